//! What was answered under an idempotency key: the first result of work that began, for a day, errors included.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::error::ApiError;

pub(crate) const KEY_CHARS_MAX: usize = 255;
const KEPT_SECONDS: i64 = 86_400;

#[derive(Default, Serialize, Deserialize)]
pub(crate) struct IdempotencyStore {
    entries: HashMap<String, Entry>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Entry {
    /// Method, path and parameters of the first use.
    fingerprint: String,
    at: i64,
    answer: Option<StoredAnswer>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredAnswer {
    pub(crate) status: u16,
    pub(crate) body: String,
    pub(crate) request_id: String,
    pub(crate) should_retry: Option<bool>,
    pub(crate) limit_reason: Option<String>,
}

pub(crate) enum Begin {
    /// Nothing is known of the key: it is taken now, and must be finished or released.
    First,
    Replay(StoredAnswer),
}

impl IdempotencyStore {
    pub(crate) fn begin(&mut self, key: &str, fingerprint: &str, now: i64) -> Result<Begin, ApiError> {
        let expired = |entry: &Entry| entry.answer.is_some() && now.saturating_sub(entry.at) >= KEPT_SECONDS;
        match self.entries.get(key).filter(|entry| !expired(entry)) {
            None => {
                self.entries.insert(
                    key.to_owned(),
                    Entry { fingerprint: fingerprint.to_owned(), at: now, answer: None },
                );
                Ok(Begin::First)
            }
            Some(entry) if entry.fingerprint != fingerprint => Err(other_parameters(key)),
            Some(Entry { answer: Some(answer), .. }) => Ok(Begin::Replay(answer.clone())),
            Some(_) => Err(in_use(key)),
        }
    }

    pub(crate) fn finish(&mut self, key: &str, answer: StoredAnswer) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.answer = Some(answer);
        }
    }

    /// The work never began: the key is as if it had not been sent.
    pub(crate) fn release(&mut self, key: &str) {
        if self.entries.get(key).is_some_and(|entry| entry.answer.is_none()) {
            self.entries.remove(key);
        }
    }

    /// After a restart no request is running.
    pub(crate) fn drop_unfinished(&mut self) {
        self.entries.retain(|_, entry| entry.answer.is_some());
    }
}

fn other_parameters(key: &str) -> ApiError {
    let mut error = ApiError::invalid(format!(
        "Keys for idempotent requests can only be used with the same parameters they were first used with. \
         Try using a key other than '{key}' if you meant to execute a different request."
    ))
    .unstored();
    error.kind = "idempotency_error";
    error
}

fn in_use(key: &str) -> ApiError {
    ApiError::invalid(format!(
        "There is currently another in-progress request using this Idempotent Key: {key}. \
         Please try again once that request has finished."
    ))
    .status(409)
    .code("idempotency_key_in_use")
    .retry(true)
    .unstored()
}
