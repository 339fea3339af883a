//! Budgets as streams of records in the ledger: one stream a budget, each record chained to the one before it.

use ledger::{Ledger, LedgerError, RecordRow};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use usage::{PlatformId, Timestamp};

use crate::rules::{Corrupt, DelegationId, Event, State, fold};

/// Records that are read at once.
const READ_ROWS: u32 = 1_000;

/// Why a budget could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A record that our code cannot have written there.
    #[error("record {seq} of {stream} is damaged")]
    Damaged {
        stream: String,
        seq: u64,
        #[source]
        why: Damage,
    },
    #[error("an event cannot be written as a record")]
    Encode(#[source] serde_json::Error),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Damage {
    #[error("it has another shape")]
    Shape(#[source] serde_json::Error),
    #[error("it does not follow the record before it")]
    Chain,
    #[error("it opens another budget")]
    Stranger,
    #[error("a record before it is missing")]
    Gap,
    #[error(transparent)]
    Rules(#[from] Corrupt),
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// SHA-256 of the record before it, so that a record that is lost or changed is noticed. Zeros before the first.
    prev: String,
    pub(crate) at: Timestamp,
    /// The key that asked.
    pub(crate) key: String,
    pub(crate) event: Event,
}

/// A budget's records, checked.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) records: Vec<Record>,
    pub(crate) state: State,
    head: [u8; 32],
}

impl History {
    fn new() -> History {
        History { records: Vec::new(), state: None, head: [0; 32] }
    }

    /// The state as of an event.
    pub(crate) fn state_at(&self, seq: u64) -> Result<State, Corrupt> {
        if self.state.as_ref().is_some_and(|budget| budget.seq == seq) {
            return Ok(self.state.clone());
        }
        let count = usize::try_from(seq).unwrap_or(usize::MAX);
        self.records.iter().take(count).try_fold(None, |state, record| fold(state, &record.event))
    }

    pub(crate) fn record(&self, seq: u64) -> Option<&Record> {
        let index = usize::try_from(seq.checked_sub(1)?).ok()?;
        self.records.get(index)
    }

    fn seq_next(&self) -> u64 {
        self.state.as_ref().map_or(1, |budget| budget.seq.saturating_add(1))
    }

    fn take(&mut self, body: &[u8], seq: u64) -> Result<(), Damage> {
        if seq != self.seq_next() {
            return Err(Damage::Gap);
        }
        let record: Record = serde_json::from_slice(body).map_err(Damage::Shape)?;
        if record.prev != hex::encode(self.head) {
            return Err(Damage::Chain);
        }
        self.state = fold(self.state.take(), &record.event)?;
        self.head = Sha256::digest(body).into();
        self.records.push(record);
        Ok(())
    }
}

/// The streams of one platform's budgets.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    ledger: Ledger,
    owner: String,
}

impl Store {
    /// A platform's name has no `/`, so that no budget of one platform can be named like one of another.
    pub(crate) fn new(ledger: &Ledger, platform: &PlatformId) -> Store {
        Store { ledger: ledger.clone(), owner: format!("delegation/{platform}") }
    }

    pub(crate) fn stream(&self, delegation: &DelegationId) -> String {
        format!("{}/{delegation}", self.owner)
    }

    pub(crate) async fn read(&self, delegation: &DelegationId) -> Result<History, StoreError> {
        let stream = self.stream(delegation);
        let mut history = History::new();
        loop {
            let after = history.seq_next().saturating_sub(1);
            let rows = self.ledger.record_read(&stream, after, READ_ROWS).await?;
            for row in &rows {
                self.take(&mut history, delegation, row)?;
            }
            if rows.len() < usize::try_from(READ_ROWS).unwrap_or(usize::MAX) {
                return Ok(history);
            }
        }
    }

    /// Appends an event; a ledger's `Conflict` when somebody else appended since the history was read.
    pub(crate) async fn append(
        &self,
        history: &mut History,
        delegation: &DelegationId,
        at: Timestamp,
        key: &str,
        event: Event,
    ) -> Result<(), StoreError> {
        let stream = self.stream(delegation);
        let record = Record { prev: hex::encode(history.head), at, key: key.to_owned(), event };
        let body = serde_json::to_vec(&record).map_err(StoreError::Encode)?;
        let seq = history.seq_next();
        match seq {
            1 => self.ledger.record_stream_begin(&self.owner, &stream, &body).await?,
            _ => self.ledger.record_append(&stream, seq, &body).await?,
        }
        history.take(&body, seq).map_err(|why| StoreError::Damaged { stream, seq, why })
    }

    /// Budgets in order of their identity, those after `after`, as they were opened.
    pub(crate) async fn list(
        &self,
        after: Option<&DelegationId>,
        limit: u32,
    ) -> Result<Vec<(Event, Timestamp)>, StoreError> {
        let after = after.map(|delegation| self.stream(delegation)).unwrap_or_default();
        let rows = self.ledger.record_stream_list(&self.owner, &after, limit).await?;
        rows.into_iter()
            .map(|(stream, row)| {
                let damaged = |why| StoreError::Damaged { stream: stream.clone(), seq: row.seq, why };
                let record: Record =
                    serde_json::from_slice(&row.body).map_err(|error| damaged(Damage::Shape(error)))?;
                match &record.event {
                    Event::Opened { delegation, .. } if self.stream(delegation) == stream => {
                        Ok((record.event, record.at))
                    }
                    _ => Err(damaged(Damage::Stranger)),
                }
            })
            .collect()
    }

    fn take(
        &self,
        history: &mut History,
        delegation: &DelegationId,
        row: &RecordRow,
    ) -> Result<(), StoreError> {
        let damaged = |why| StoreError::Damaged { stream: self.stream(delegation), seq: row.seq, why };
        history.take(&row.body, row.seq).map_err(damaged)?;
        match &history.state {
            Some(budget)
                if format!("delegation/{}/{}", budget.platform, budget.delegation)
                    == self.stream(delegation) =>
            {
                Ok(())
            }
            _ => Err(damaged(Damage::Stranger)),
        }
    }
}
