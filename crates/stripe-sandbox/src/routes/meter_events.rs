//! Taking usage. The rules are one; how a refusal is said differs between the first version, the second and the stream.

use serde_json::{Value, json};

use super::{Answer, Call};
use crate::decimal::{Decimal, significant_digits};
use crate::error::ApiError;
use crate::faults::{EventWindowClock, UnknownCustomer};
use crate::state::{EventState, Kind, MeterEvent, text};
use crate::webhooks;

const PAST_SECONDS_MAX: i64 = 35 * 86_400;
const FUTURE_SECONDS_MAX: i64 = 300;
const DIGITS_MAX: usize = 15;

pub(super) struct Given {
    pub(super) event_name: String,
    pub(super) identifier: Option<String>,
    pub(super) timestamp: Option<i64>,
    pub(super) payload: Value,
}

pub(super) struct Taken {
    pub(super) identifier: String,
    pub(super) timestamp: i64,
    pub(super) created: i64,
}

#[derive(Debug)]
pub(super) enum Refusal {
    NoMeter,
    InactiveMeter { meter: String },
    NoCustomerKey { meter: String, key: String },
    NoValueKey { meter: String, key: String },
    InvalidValue { meter: String, value: String },
    TooManyDigits { meter: String, value: String },
    UnknownCustomer { meter: String, key: String, customer: String },
    TooOld { meter: String, earliest: i64 },
    InFuture { meter: String, latest: i64 },
    Duplicate { identifier: String },
}

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    let given = Given {
        event_name: call.text("event_name").unwrap_or_default(),
        identifier: call.text("identifier"),
        timestamp: call.params["timestamp"].as_i64(),
        payload: call.params["payload"].clone(),
    };
    let taken = take(call, &given).map_err(|refusal| refused(&refusal, &given))?;
    Ok(json!({
        "object": "billing.meter_event", "created": taken.created, "event_name": given.event_name, "identifier": taken.identifier,
        "livemode": call.account.livemode, "payload": given.payload, "timestamp": taken.timestamp,
    }))
}

/// Counts the event, or says why not. Nothing changes when it is refused.
pub(super) fn take(call: &mut Call<'_>, given: &Given) -> Result<Taken, Refusal> {
    let named = |meter: &&Value| meter["event_name"] == given.event_name.as_str();
    let active = call.account.rows(Kind::Meter).filter(named).find(|meter| meter["status"] == "active");
    let Some(meter) = active.cloned() else {
        return Err(match call.account.rows(Kind::Meter).find(named) {
            Some(meter) => Refusal::InactiveMeter { meter: text(meter, "id") },
            None => Refusal::NoMeter,
        });
    };
    let meter_id = text(&meter, "id");
    let key = text(&meter["customer_mapping"], "event_payload_key");
    let Some(customer) = given.payload[&key].as_str().map(ToOwned::to_owned) else {
        return Err(Refusal::NoCustomerKey { meter: meter_id, key });
    };
    let value = value(call, &meter, given)?;
    let known = call.account.find(Kind::Customer, &customer, &key).is_ok();
    if !known && call.settings.unknown_customer == UnknownCustomer::Refuse {
        return Err(Refusal::UnknownCustomer { meter: meter_id, key, customer });
    }
    let now = match call.settings.event_window_clock {
        EventWindowClock::Frozen => call.account.now_of(&customer, call.now),
        EventWindowClock::Base => call.now,
    };
    let timestamp = given.timestamp.unwrap_or(now);
    if timestamp < now - PAST_SECONDS_MAX {
        return Err(Refusal::TooOld { meter: meter_id, earliest: now - PAST_SECONDS_MAX });
    }
    if timestamp > now + FUTURE_SECONDS_MAX {
        return Err(Refusal::InFuture { meter: meter_id, latest: now + FUTURE_SECONDS_MAX });
    }
    let identifier = given.identifier.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let former = call.account.usage.by_identifier(&identifier);
    if former.is_some_and(|former| call.now - former.received_at < call.settings.identifier_window_seconds) {
        return Err(Refusal::Duplicate { identifier });
    }
    let later = if known { call.reject.clone() } else { Some("meter_event_customer_not_found".to_owned()) };
    let state = if later.is_some() { EventState::Rejected } else { EventState::Counted };
    if let Some(code) = later {
        let message = format!("The event was refused after it was received: {code}.");
        webhooks::error_report(call.account, &meter_id, &code, &message, &identifier, call.now);
    }
    call.account.usage.push(MeterEvent {
        identifier: identifier.clone(),
        event_name: given.event_name.clone(),
        meter: meter_id,
        customer,
        value,
        timestamp,
        received_at: call.now,
        state,
        cancelled_at: None,
    });
    Ok(Taken { identifier, timestamp, created: call.now })
}

fn value(call: &Call<'_>, meter: &Value, given: &Given) -> Result<Decimal, Refusal> {
    let id = text(meter, "id");
    let key = text(&meter["value_settings"], "event_payload_key");
    let Some(text) = given.payload[&key].as_str().map(ToOwned::to_owned) else {
        return Err(Refusal::NoValueKey { meter: id, key });
    };
    match Decimal::parse(&text) {
        Some(_) if significant_digits(&text) > DIGITS_MAX => {
            Err(Refusal::TooManyDigits { meter: id, value: text })
        }
        Some(value) if call.settings.integer_only && (!value.is_integer() || value.is_negative()) => {
            Err(Refusal::InvalidValue { meter: id, value: text })
        }
        Some(value) => Ok(value),
        None => Err(Refusal::InvalidValue { meter: id, value: text }),
    }
}

/// As the first version says it: mostly without a code. All but the duplicate are found before the work begins and stay off the key.
fn refused(refusal: &Refusal, given: &Given) -> ApiError {
    let error = match refusal {
        Refusal::NoMeter | Refusal::InactiveMeter { .. } => {
            ApiError::invalid(refusal.message(&given.event_name)).param("event_name")
        }
        Refusal::NoCustomerKey { .. } => {
            ApiError::invalid(refusal.message(&given.event_name)).param("payload")
        }
        Refusal::NoValueKey { key, .. } => {
            ApiError::invalid(refusal.message(&given.event_name)).param(format!("payload[{key}]"))
        }
        Refusal::InvalidValue { .. } | Refusal::TooManyDigits { .. } => {
            ApiError::invalid(refusal.message(&given.event_name)).param("payload[value]")
        }
        Refusal::UnknownCustomer { key, customer, .. } => {
            ApiError::missing("customer", customer, &format!("payload[{key}]"))
        }
        Refusal::TooOld { .. } | Refusal::InFuture { .. } => {
            ApiError::invalid(refusal.message(&given.event_name)).param("timestamp")
        }
        Refusal::Duplicate { .. } => {
            return ApiError::invalid(refusal.message(&given.event_name)).retry(false);
        }
    };
    error.unstored()
}

impl Refusal {
    pub(super) fn message(&self, event_name: &str) -> String {
        match self {
            Self::NoMeter | Self::InactiveMeter { .. } => {
                format!("No active meter found for event name \"{event_name}\".")
            }
            Self::NoCustomerKey { key, .. } => format!("Customer mapping key {key} not found in payload."),
            Self::NoValueKey { key, .. } => format!("Value key {key} not found in payload."),
            Self::InvalidValue { value, .. } => format!(
                "The value in the event payload is not a number that a meter takes. Received {value}."
            ),
            Self::TooManyDigits { value, .. } => {
                format!(
                    "The value in the event payload can have at most {DIGITS_MAX} digits. Received {value}."
                )
            }
            Self::UnknownCustomer { customer, .. } => format!("No such customer: '{customer}'"),
            Self::TooOld { earliest, .. } => format!(
                "The event timestamp cannot be more than 35 days in past. Expected a timestamp greater than or equal to {earliest}."
            ),
            Self::InFuture { latest, .. } => format!(
                "The event timestamp cannot be more than 5 minutes in the future. Expected a timestamp less than or equal to {latest}."
            ),
            Self::Duplicate { identifier } => {
                format!("An event already exists with identifier {identifier}.")
            }
        }
    }

    /// The code of an error report.
    pub(super) fn report_code(&self) -> &'static str {
        match self {
            Self::NoMeter => "no_meter",
            Self::InactiveMeter { .. } => "archived_meter",
            Self::NoCustomerKey { .. } => "meter_event_no_customer_defined",
            Self::NoValueKey { .. } => "meter_event_value_not_found",
            Self::InvalidValue { .. } => "meter_event_invalid_value",
            Self::TooManyDigits { .. } => "meter_event_value_too_many_digits",
            Self::UnknownCustomer { .. } => "meter_event_customer_not_found",
            Self::TooOld { .. } => "timestamp_too_far_in_past",
            Self::InFuture { .. } => "timestamp_in_future",
            Self::Duplicate { .. } => "duplicate_meter_event",
        }
    }

    /// The meter that a report is about.
    pub(super) fn meter(&self) -> Option<&str> {
        match self {
            Self::NoMeter | Self::Duplicate { .. } => None,
            Self::InactiveMeter { meter }
            | Self::NoCustomerKey { meter, .. }
            | Self::NoValueKey { meter, .. }
            | Self::InvalidValue { meter, .. }
            | Self::TooManyDigits { meter, .. }
            | Self::UnknownCustomer { meter, .. }
            | Self::TooOld { meter, .. }
            | Self::InFuture { meter, .. } => Some(meter),
        }
    }
}
