//! Commands on stored budgets: read, decide, append, and again when somebody else was faster.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use ledger::{Ledger, LedgerError};
use tokio::sync::Mutex;
use usage::{PlatformId, SharedClock};

use crate::{
    rules::{Budget, Command, Corrupt, DelegationId, Refusal, decide},
    store::{History, Store, StoreError},
};

/// How often a command is decided anew because another process appended first.
const ROUNDS: u32 = 16;
/// Commands on one budget wait for each other here, so that one process does not race itself.
const LANES: usize = 64;

/// The budgets of all platforms. Cloning shares them.
#[derive(Clone)]
pub struct Delegation(Arc<Inner>);

struct Inner {
    ledger: Ledger,
    clock: SharedClock,
    lanes: [Mutex<()>; LANES],
}

/// Why a command has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DelegationError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("others changed the budget each of {ROUNDS} times")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a decided event does not fit the budget")]
    Rules(#[from] Corrupt),
    #[error("a decided command has no event")]
    NoAnswer,
}

/// A command's answer: the same each time it is asked.
pub(crate) struct Answer {
    /// The budget as of the deciding event.
    pub(crate) budget: Budget,
    pub(crate) history: History,
    /// Whether it was decided before. Then this answer is no leave to do the effect once more.
    pub(crate) replayed: bool,
}

impl Delegation {
    pub fn new(ledger: Ledger, clock: SharedClock) -> Delegation {
        let lanes = std::array::from_fn(|_| Mutex::new(()));
        Delegation(Arc::new(Inner { ledger, clock, lanes }))
    }

    /// The routes, with their state.
    pub fn routes(&self) -> web::Routes {
        crate::http::routes(self.clone())
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    pub(crate) fn store(&self, platform: &PlatformId) -> Store {
        Store::new(&self.0.ledger, platform)
    }

    /// A budget with its history; none when it was not opened.
    pub(crate) async fn read(
        &self,
        platform: &PlatformId,
        delegation: &DelegationId,
    ) -> Result<Option<(Budget, History)>, StoreError> {
        let history = self.store(platform).read(delegation).await?;
        Ok(history.state.clone().map(|budget| (budget, history)))
    }

    /// Decides a command and stores what it causes.
    pub(crate) async fn execute(
        &self,
        platform: &PlatformId,
        delegation: &DelegationId,
        key: &str,
        command: &Command,
    ) -> Result<Answer, DelegationError> {
        let store = self.store(platform);
        let _turn = self.lane(&store.stream(delegation)).lock().await;
        for _ in 0..ROUNDS {
            let mut history = store.read(delegation).await?;
            let events = decide(&history.state, command)?;
            let replayed = events.is_empty();
            match append(&store, &mut history, delegation, self.0.clock.now(), key, events).await {
                Err(StoreError::Ledger(LedgerError::Conflict { .. })) => continue,
                done => done?,
            }
            let decided = history.state.as_ref().and_then(|budget| budget.answered_at(command));
            let seq = decided.ok_or(DelegationError::NoAnswer)?;
            let budget = history.state_at(seq)?.ok_or(DelegationError::NoAnswer)?;
            return Ok(Answer { budget, history, replayed });
        }
        Err(DelegationError::Busy)
    }

    #[expect(clippy::cast_possible_truncation, reason = "any part of the hash chooses a lane")]
    fn lane(&self, stream: &str) -> &Mutex<()> {
        let mut hasher = DefaultHasher::new();
        stream.hash(&mut hasher);
        let lane = (hasher.finish() as usize) % LANES;
        &self.0.lanes[lane]
    }
}

/// A decision is one event at the most, so that storing it is one step.
async fn append(
    store: &Store,
    history: &mut History,
    delegation: &DelegationId,
    at: usage::Timestamp,
    key: &str,
    events: Vec<crate::rules::Event>,
) -> Result<(), StoreError> {
    for event in events {
        store.append(history, delegation, at, key, event).await?;
    }
    Ok(())
}
