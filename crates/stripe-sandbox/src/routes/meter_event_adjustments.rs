use serde_json::{Value, json};

use super::{Answer, Call};
use crate::error::ApiError;
use crate::state::EventState;

/// Counted from receipt, not from the event's own time.
const CANCELLABLE_SECONDS: i64 = 86_400;

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    let (event_name, identifier) = cancel(call)?;
    Ok(json!({
        "object": "billing.meter_event_adjustment", "cancel": { "identifier": identifier }, "event_name": event_name,
        "livemode": call.account.livemode, "status": "pending", "type": "cancel",
    }))
}

/// What is on a finalised invoice stays there: nothing here looks back at invoices.
pub(super) fn cancel(call: &mut Call<'_>) -> Result<(Value, String), ApiError> {
    let param = "cancel[identifier]";
    let event_name = call.params["event_name"].clone();
    let identifier = call.params["cancel"]["identifier"].as_str().unwrap_or_default().to_owned();
    let found =
        call.account.usage.by_identifier(&identifier).filter(|event| event_name == event.event_name.as_str());
    let Some(event) = found else {
        return Err(ApiError::missing("meter event", &identifier, param));
    };
    if event.state == EventState::Cancelled {
        return Err(
            ApiError::invalid(format!("The event {identifier} has already been cancelled.")).param(param)
        );
    }
    if call.now - event.received_at > CANCELLABLE_SECONDS {
        let text = format!(
            "The event {identifier} can no longer be cancelled: it was received more than 24 hours ago."
        );
        return Err(ApiError::invalid(text).param(param));
    }
    call.account.usage.cancel(&identifier, call.now);
    Ok((event_name, identifier))
}
