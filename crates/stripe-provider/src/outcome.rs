//! What an answer means: the one place where Stripe's texts and codes are read.

use billing::provider::{PaymentError, SendOutcome};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::client::{Answer, StripeFailure};
use crate::objects::EventObject;

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorObject,
}

#[derive(Deserialize)]
struct ErrorObject {
    #[serde(rename = "type")]
    kind: Option<String>,
    code: Option<String>,
    message: Option<String>,
}

impl ErrorObject {
    /// None for anything that is not Stripe's own refusal, such as a proxy's page.
    fn of(answer: &Answer) -> Option<Self> {
        serde_json::from_slice::<ErrorBody>(&answer.body).ok().map(|body| body.error)
    }

    fn code(&self) -> String {
        self.code.clone().or_else(|| self.kind.clone()).unwrap_or_else(|| "unknown".to_owned())
    }

    fn message(&self) -> String {
        self.message.clone().unwrap_or_default()
    }

    /// Version 1 has no code for it: the text is all there is. The code is version 2's.
    fn says_already_exists(&self) -> bool {
        self.code.as_deref() == Some("duplicate_meter_event")
            || self
                .message
                .as_deref()
                .is_some_and(|message| message.starts_with("An event already exists with identifier"))
    }
}

/// What is known of a meter event after one attempt.
pub(crate) fn of_send(
    identifier: &str,
    livemode: bool,
    result: Result<Answer, StripeFailure>,
) -> SendOutcome {
    let answer = match result {
        Ok(answer) => answer,
        Err(failure @ StripeFailure::NotConnected(_)) => {
            return SendOutcome::NotTaken { why: failure.to_string(), after: None };
        }
        Err(failure) => return SendOutcome::Unknown { why: failure.to_string() },
    };
    if (200..300).contains(&answer.status) {
        return match serde_json::from_slice::<EventObject>(&answer.body) {
            Ok(event) if event.identifier == identifier && event.livemode == livemode => {
                SendOutcome::Delivered { request: answer.request_id }
            }
            // A 200 that does not name our event is no evidence of it.
            _ => SendOutcome::Unknown { why: format!("status {} without our event", answer.status) },
        };
    }
    let Some(error) = ErrorObject::of(&answer) else {
        return SendOutcome::Unknown { why: format!("status {} without a readable error", answer.status) };
    };
    let named = || format!("{}: {}", error.code(), error.message());
    match answer.status {
        400 if error.says_already_exists() => SendOutcome::AlreadyExists,
        // The key of this very attempt was used before, which the ledger does not remember: it may have been restored.
        400 if error.kind.as_deref() == Some("idempotency_error") => SendOutcome::Unknown { why: named() },
        // Our key, not our event.
        401 | 403 => SendOutcome::NotTaken { why: named(), after: None },
        409 => SendOutcome::Unknown { why: named() },
        // With a reason it is a limiter's, without one a lock's; neither looked at the event.
        429 => SendOutcome::NotTaken {
            why: answer.limit_reason.clone().unwrap_or_else(|| error.code()),
            after: answer.retry_after,
        },
        status if status >= 500 => SendOutcome::Unknown { why: named() },
        _ => SendOutcome::Refused { code: error.code(), message: error.message() },
    }
}

/// The object of any other call.
pub(crate) fn of_call<T: DeserializeOwned>(
    what: &str,
    result: Result<Answer, StripeFailure>,
) -> Result<T, PaymentError> {
    let answer = match result {
        Ok(answer) => answer,
        Err(failure) => return Err(PaymentError::Unknown { why: failure.to_string() }),
    };
    if (200..300).contains(&answer.status) {
        return serde_json::from_slice(&answer.body)
            .map_err(|error| PaymentError::Unknown { why: format!("{what} cannot be read: {error}") });
    }
    let Some(error) = ErrorObject::of(&answer) else {
        return Err(PaymentError::Unknown { why: format!("status {} for {what}", answer.status) });
    };
    let message = error.message();
    match answer.status {
        // The id exists under the other mode's key.
        _ if message.contains("a similar object exists in") => {
            Err(PaymentError::OtherAccount { what: what.to_owned() })
        }
        404 => Err(PaymentError::NotFound { what: what.to_owned() }),
        400 if error.code.as_deref() == Some("resource_missing") => {
            Err(PaymentError::NotFound { what: what.to_owned() })
        }
        429 => Err(PaymentError::RateLimited { after: answer.retry_after }),
        status if status >= 500 || status == 409 => {
            Err(PaymentError::Unknown { why: format!("{}: {message}", error.code()) })
        }
        status => Err(PaymentError::Refused { status, code: error.code(), message }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used, reason = "a failed assertion is the failure")]
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        Answer {
            status,
            body: Bytes::from(body.to_owned()),
            request_id: Some("req_1".into()),
            should_retry: None,
            limit_reason: None,
            retry_after: None,
            replayed: false,
        }
    }

    #[test]
    fn each_answer_to_a_send_means_one_thing() {
        let error = |kind: &str, code: &str, message: &str| {
            let code = if code.is_empty() { String::new() } else { format!(r#""code":"{code}","#) };
            format!(r#"{{"error":{{"type":"{kind}",{code}"message":"{message}"}}}}"#)
        };
        let request = "invalid_request_error";
        for (status, body, meaning) in [
            (200, r#"{"identifier":"cm1_a","livemode":false}"#.to_owned(), "delivered"),
            (200, r#"{"identifier":"cm1_b","livemode":false}"#.to_owned(), "unknown"),
            (200, r#"{"identifier":"cm1_a","livemode":true}"#.to_owned(), "unknown"),
            (200, "<html></html>".to_owned(), "unknown"),
            (400, error(request, "", "An event already exists with identifier cm1_a."), "exists"),
            (
                400,
                error("idempotency_error", "", "Keys for idempotent requests can only be used …"),
                "unknown",
            ),
            (400, error(request, "", "No active meter found for event name \\\"x\\\"."), "refused"),
            (400, error(request, "resource_missing", "No such customer: 'cus_1'"), "refused"),
            (401, error(request, "", "Invalid API Key provided"), "not taken"),
            (403, error(request, "", "The provided key does not have the permissions"), "not taken"),
            (409, error(request, "idempotency_key_in_use", "There is currently another request"), "unknown"),
            (429, error(request, "lock_timeout", "This object can't be accessed right now"), "not taken"),
            (429, error(request, "rate_limit", "Request rate limit exceeded."), "not taken"),
            (500, error("api_error", "", "An unknown error occurred."), "unknown"),
            (502, "<html>Bad Gateway</html>".to_owned(), "unknown"),
            (404, "<html>Not found</html>".to_owned(), "unknown"),
        ] {
            let found = match of_send("cm1_a", false, Ok(answer(status, &body))) {
                SendOutcome::Delivered { .. } => "delivered",
                SendOutcome::AlreadyExists => "exists",
                SendOutcome::Refused { .. } => "refused",
                SendOutcome::NotTaken { .. } => "not taken",
                SendOutcome::Unknown { .. } => "unknown",
            };
            assert_eq!(found, meaning, "{status} {body}");
        }
    }

    #[test]
    fn a_broken_call_is_unknown_and_no_connection_is_not_taken() {
        let broken = of_send("cm1_a", false, Err(StripeFailure::BrokenOff("reset".into())));
        assert!(matches!(broken, SendOutcome::Unknown { .. }));
        let never = of_send("cm1_a", false, Err(StripeFailure::NotConnected("refused".into())));
        assert!(matches!(never, SendOutcome::NotTaken { .. }));
    }

    #[test]
    fn a_limiter_says_how_long() {
        let mut limited =
            answer(429, r#"{"error":{"type":"invalid_request_error","code":"rate_limit","message":"slow"}}"#);
        limited.limit_reason = Some("global-rate".into());
        limited.retry_after = Some(Duration::from_secs(2));
        let SendOutcome::NotTaken { why, after } = of_send("cm1_a", false, Ok(limited)) else {
            panic!("taken")
        };
        assert_eq!((why.as_str(), after), ("global-rate", Some(Duration::from_secs(2))));
    }

    #[test]
    fn an_object_of_the_other_mode_is_never_taken() {
        let body = r#"{"error":{"type":"invalid_request_error","code":"resource_missing","message":"No such customer: 'cus_1'; a similar object exists in live mode, but a test mode key was used to make this request."}}"#;
        let found = of_call::<serde_json::Value>("cus_1", Ok(answer(404, body)));
        assert_eq!(found.unwrap_err(), PaymentError::OtherAccount { what: "cus_1".into() });
    }
}
