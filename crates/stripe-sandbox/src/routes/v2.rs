//! The second version: JSON, RFC 3339, codes of its own.

use serde_json::{Value, json};

use super::meter_events::{Given, Refusal, take};
use super::{Answer, Call, meter_event_adjustments};
use crate::clock::{parse_rfc3339, rfc3339};
use crate::error::ApiError;
use crate::state::{Kind, new_id};
use crate::webhooks;

const SESSION_SECONDS: i64 = 900;

pub(super) fn meter_event(call: &mut Call<'_>) -> Answer {
    let params = call.params.clone();
    let given = given(&params)?;
    let taken = take(call, &given).map_err(|refusal| refused(&refusal, &given))?;
    Ok(json!({
        "object": "v2.billing.meter_event", "created": rfc3339(taken.created), "event_name": given.event_name,
        "identifier": taken.identifier, "livemode": call.account.livemode, "payload": given.payload, "timestamp": rfc3339(taken.timestamp),
    }))
}

fn given(event: &Value) -> Result<Given, ApiError> {
    let timestamp = match event["timestamp"].as_str() {
        Some(text) => {
            let parsed = parse_rfc3339(text);
            Some(parsed.ok_or_else(|| {
                ApiError::invalid(format!("The timestamp {text} is not RFC 3339.")).code("invalid_timestamp")
            })?)
        }
        None => None,
    };
    Ok(Given {
        event_name: event["event_name"].as_str().unwrap_or_default().to_owned(),
        identifier: event["identifier"].as_str().map(ToOwned::to_owned),
        timestamp,
        payload: event["payload"].clone(),
    })
}

fn refused(refusal: &Refusal, given: &Given) -> ApiError {
    let (code, message) = match refusal {
        Refusal::NoMeter => ("no_meter", refusal.message(&given.event_name)),
        Refusal::InactiveMeter { .. } => {
            ("archived_meter", "The meter must be Active to submit events.".to_owned())
        }
        Refusal::NoCustomerKey { .. } => ("payload_no_customer_defined", refusal.message(&given.event_name)),
        Refusal::NoValueKey { .. } => ("payload_no_value_defined", refusal.message(&given.event_name)),
        Refusal::InvalidValue { .. } | Refusal::TooManyDigits { .. } => {
            ("payload_invalid_value", refusal.message(&given.event_name))
        }
        Refusal::Duplicate { .. } => (
            "duplicate_meter_event",
            "A meter event with a duplicate identifier has already been submitted.".to_owned(),
        ),
        other => (other.report_code(), other.message(&given.event_name)),
    };
    ApiError::invalid(message).code(code).unstored()
}

pub(super) fn adjustment(call: &mut Call<'_>) -> Answer {
    let (event_name, identifier) = meter_event_adjustments::cancel(call)?;
    Ok(json!({
        "id": new_id("mtreadj"), "object": "v2.billing.meter_event_adjustment", "cancel": { "identifier": identifier },
        "created": rfc3339(call.now), "event_name": event_name, "livemode": call.account.livemode, "status": "pending", "type": "cancel",
    }))
}

pub(super) fn session(call: &mut Call<'_>) -> Answer {
    let token = new_id("token");
    let expires = call.now.saturating_add(SESSION_SECONDS);
    call.account.sessions.insert(token.clone(), expires);
    Ok(json!({
        "id": new_id("mes"), "object": "v2.billing.meter_event_session", "authentication_token": token, "created": rfc3339(call.now),
        "expires_at": rfc3339(expires), "livemode": call.account.livemode,
    }))
}

/// Takes all and says nothing: what is wrong comes as a report.
pub(super) fn stream(call: &mut Call<'_>) -> Answer {
    let events = call.params["events"].as_array().cloned().unwrap_or_default();
    for event in events {
        let given = given(&event)?;
        if let Err(refusal) = take(call, &given) {
            let identifier = given.identifier.clone().unwrap_or_default();
            match refusal.meter() {
                Some(meter) => {
                    let message = refusal.message(&given.event_name);
                    webhooks::error_report(
                        call.account,
                        meter,
                        refusal.report_code(),
                        &message,
                        &identifier,
                        call.now,
                    );
                }
                None if matches!(refusal, Refusal::NoMeter) => {
                    webhooks::no_meter_report(call.account, &given.event_name, &identifier, call.now);
                }
                // A duplicate in a stream is dropped.
                None => {}
            }
        }
    }
    Ok(json!({}))
}

pub(super) fn event(call: &mut Call<'_>) -> Answer {
    call.own(Kind::ThinEvent)
}
