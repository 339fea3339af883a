//! A command's failure as its client meets it.

use serde_json::json;
use web::{Problem, codes};

use super::not_found;
use crate::{
    delegation::DelegationError,
    rules::{Event, Refusal},
    store::StoreError,
};

impl From<DelegationError> for Problem {
    fn from(error: DelegationError) -> Problem {
        match error {
            DelegationError::Refused(refusal) => refused(refusal),
            DelegationError::Store(error) => error.into(),
            DelegationError::Busy => Problem::new(&codes::BUSY)
                .detail("Others changed the budget each time; send the same request again after the time in Retry-After."),
            DelegationError::Rules(_) | DelegationError::NoAnswer => Problem::new(&codes::INTERNAL).internal(&error),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            StoreError::Ledger(error) => error.into(),
            StoreError::Damaged { .. } | StoreError::Encode(_) => {
                Problem::new(&codes::INTERNAL).internal(&error)
            }
        }
    }
}

fn refused(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::NotOpened => not_found("such delegation"),
        Refusal::NoAttempt(attempt) => not_found(&format!("reservation {attempt}")),
        Refusal::NotHeld(attempt) => not_found(&format!("hold of the attempt {attempt}")),
        Refusal::Zero { member } => Problem::new(&codes::INVALID_VALUE)
            .detail(format!("`{member}` is at least 1; name how many tokens are meant."))
            .pointer(format!("/{member}")),
        Refusal::OpenedOtherwise { delegation, first } => Problem::new(&codes::DELEGATION_CONFLICT)
            .detail(format!("The delegation {delegation} was opened with other content; choose another identity."))
            .pointer("/delegation_id")
            .with("first", told(&first)),
        Refusal::AnsweredOtherwise { attempt, first } => Problem::new(&codes::ATTEMPT_CONFLICT)
            .detail(format!(
                "The same was asked for the attempt {attempt} before with other content, and that stands; send the first content, or use another attempt."
            ))
            .with("first", told(&first)),
        Refusal::Ended { attempt, phase } => Problem::new(&codes::ATTEMPT_ENDED)
            .detail(format!("The attempt {attempt} was {} before and stays so; reserve anew for another try.", phase.as_str()))
            .with("phase", json!(phase.as_str())),
        Refusal::Exhausted { asked, available } => Problem::new(&codes::BUDGET_EXHAUSTED)
            .detail(format!("{asked} tokens are asked for and {available} are left; reserve less, or settle what is open."))
            .pointer("/tokens")
            .with("available", json!(available.to_string())),
        Refusal::Closed => Problem::new(&codes::DELEGATION_CLOSED)
            .detail("An attempt used more than it had reserved; see why, and open another delegation."),
        Refusal::Full => Problem::new(&codes::DELEGATION_FULL)
            .detail("The delegation has as many attempts as one may have; open another one."),
    }
}

/// The first content, in the words of the request and not in those of the store.
fn told(event: &Event) -> serde_json::Value {
    match event {
        Event::Opened { delegation, customer, limit_tokens, .. } => json!({
            "delegation_id": delegation, "customer_id": customer, "limit_tokens": limit_tokens,
        }),
        Event::Reserved { attempt, tokens } => json!({"attempt_id": attempt, "tokens": tokens}),
        Event::MarkedUnknown { reason, .. } => json!({"reason": reason}),
        Event::Settled { tokens, evidence, .. } => json!({"tokens": tokens, "evidence": evidence}),
        Event::Released { evidence, .. } => json!({"evidence": evidence}),
        Event::Resolved { resolution, .. } => super::holds::told(resolution),
    }
}
