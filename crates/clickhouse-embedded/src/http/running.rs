use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::engine::{Shared, detach};

/// Between two tries to end a statement: the first may come before the engine lists it.
const AGAIN: Duration = Duration::from_millis(50);
/// A minute of tries; what does not end by then is left to its own limits.
const TRIES: u32 = 1200;

/// A statement under way, and the way to end it from outside.
pub(super) struct Running {
    engine: Arc<Shared>,
    tag: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    cancelled: bool,
    finished: bool,
}

impl Running {
    pub(super) fn start(engine: Arc<Shared>) -> (Arc<Self>, Watch) {
        let running = Arc::new(Self {
            engine,
            tag: uuid::Uuid::new_v4().simple().to_string(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let watch = Watch(Some(Arc::clone(&running)));
        (running, watch)
    }

    /// What stands first in the statement's `log_comment`, by which it is found.
    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.state().cancelled
    }

    pub(super) fn finished(&self) {
        self.state().finished = true;
        self.changed.notify_all();
    }

    fn cancel(self: Arc<Self>) {
        let mut state = self.state();
        state.cancelled = true;
        if state.finished {
            return;
        }
        drop(state);
        // Not waited for, and not through the slots: it must run when all of them are taken.
        if let Err(error) = detach(move || self.kill()) {
            tracing::warn!(%error, "a statement whose client left could not be ended");
        }
    }

    fn kill(&self) {
        let sql = format!("KILL QUERY WHERE startsWith(Settings['log_comment'], '{}') ASYNC", self.tag);
        for _ in 0..TRIES {
            if self.state().finished {
                return;
            }
            if let Err(exception) = self.engine.administer(&sql) {
                tracing::debug!(%exception, "a statement could not be ended yet");
            }
            let state = self.state();
            let waited = self.changed.wait_timeout_while(state, AGAIN, |state| !state.finished);
            drop(waited);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the statement when dropped: its client is gone.
pub(super) struct Watch(Option<Arc<Running>>);

impl Watch {
    pub(super) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            running.cancel();
        }
    }
}
