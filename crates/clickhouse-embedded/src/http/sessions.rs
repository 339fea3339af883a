use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OwnedMutexGuard;

use super::request::SessionAsk;
use crate::Exception;
use crate::library::connection::Connection;

const MOST: usize = 100;

/// Connections that outlive their request, by session id: temporary tables and SET stay.
#[derive(Default)]
pub(crate) struct Sessions {
    by_id: Mutex<HashMap<String, Entry>>,
}

struct Entry {
    slot: Arc<tokio::sync::Mutex<Slot>>,
    used: Instant,
    timeout: Duration,
}

/// `None` until the first request has connected, and after a statement that left the connection unusable.
#[derive(Default)]
pub(crate) struct Slot {
    pub(super) connection: Option<Connection>,
}

pub(super) type Held = OwnedMutexGuard<Slot>;

impl Sessions {
    /// Waits for the request before it in the same session.
    pub(super) async fn take(&self, ask: &SessionAsk) -> Result<Held, Exception> {
        let slot = {
            let mut by_id = self.lock();
            let now = Instant::now();
            by_id.retain(|_, entry| {
                let in_use = Arc::strong_count(&entry.slot) > 1;
                in_use || now.duration_since(entry.used) < entry.timeout
            });
            if ask.must_exist && !by_id.contains_key(&ask.id) {
                return Err(Exception::new(372, "SESSION_NOT_FOUND", "Session not found"));
            }
            if by_id.len() >= MOST && !by_id.contains_key(&ask.id) {
                return Err(Exception::new(
                    202,
                    "TOO_MANY_SIMULTANEOUS_QUERIES",
                    "Too many sessions are open",
                ));
            }
            let entry = by_id.entry(ask.id.clone()).or_insert_with(|| Entry {
                slot: Arc::default(),
                used: now,
                timeout: ask.timeout,
            });
            entry.used = now;
            entry.timeout = ask.timeout;
            Arc::clone(&entry.slot)
        };
        Ok(slot.lock_owned().await)
    }

    pub(super) fn close(&self, id: &str) {
        let entry = self.lock().remove(id);
        drop(entry); // outside the lock: it may close a connection
    }

    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
