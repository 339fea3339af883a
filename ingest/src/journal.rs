//! The journal: accepted reports on this machine's disk until they are in the store, and the index that recognises repeats.
//!
//! One thread decides and appends, so that look-up, decision and append are one step; everything that a group decided is on
//! the disk before the first of its answers leaves.

mod appender;
mod forget;
mod keys;
mod open;
mod record;
mod spool;
#[cfg(test)]
mod testing;

pub(crate) use appender::{Appender, Decision, Submission};
pub(crate) use forget::{REMEMBERED_MICROS, forget_daily};
pub(crate) use open::blocking;
pub(crate) use record::{EpochState, IndexEntry, Record};
pub(crate) use spool::{Block, Tally, hour_counts};

use std::sync::{Mutex, MutexGuard, PoisonError};

use fjall::{Database, Keyspace, OwnedWriteBatch, PersistMode};
use tokio::sync::{Notify, watch};
use usage::{PlatformId, ReportKey, SharedClock, Timestamp};

use crate::{IngestError, error::During as _};
use record::Value as _;

/// An open folder, in its own epoch.
pub(crate) struct Journal {
    tables: Tables,
    pub(crate) epoch: u64,
    clock: SharedClock,
    frontier: Mutex<Frontier>,
    /// Rung after each group, for the writer.
    pub(crate) appended: Notify,
    fatal: watch::Sender<Option<String>>,
}

struct Tables {
    db: Database,
    meta: Keyspace,
    index: Keyspace,
    records: Keyspace,
    blocks: Keyspace,
    epochs: Keyspace,
    counts: Keyspace,
    quarantine: Keyspace,
}

/// Where this epoch stands. The clock is read under its lock, so that no report can get a time before an instant that was
/// already declared complete.
struct Frontier {
    appended_seq: u64,
    /// The time of the group that is being made durable.
    in_flight: Option<Timestamp>,
    /// No later group gets an earlier time.
    floor: Timestamp,
    /// Of our own epoch.
    stored_seq: u64,
    /// What former epochs left.
    former_rows: u64,
}

impl Frontier {
    fn gauge(&self) {
        let rows = self.appended_seq.saturating_sub(self.stored_seq).saturating_add(self.former_rows);
        metrics::gauge!("contextmeter_journal_backlog_rows").set(u32::try_from(rows).unwrap_or(u32::MAX));
    }
}

/// What the writer sees of the frontier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) appended_seq: u64,
    /// Everything accepted before this instant has a seq up to `appended_seq`.
    pub(crate) decided_through: Timestamp,
}

impl Journal {
    fn frontier(&self) -> MutexGuard<'_, Frontier> {
        self.frontier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn appended_seq(&self) -> u64 {
        self.frontier().appended_seq
    }

    /// Reads the clock before it looks what is appended, and binds every later group to that reading.
    pub(crate) fn standing(&self) -> Standing {
        let mut frontier = self.frontier();
        let now = self.clock.now().max(frontier.floor);
        frontier.floor = now;
        Standing { appended_seq: frontier.appended_seq, decided_through: frontier.in_flight.unwrap_or(now) }
    }

    /// Begins a group: its time, and the last seq before it.
    fn begin_group(&self) -> (Timestamp, u64) {
        let mut frontier = self.frontier();
        let at = self.clock.now().max(frontier.floor);
        frontier.floor = at;
        frontier.in_flight = Some(at);
        (at, frontier.appended_seq)
    }

    fn end_group(&self, appended_seq: u64) {
        {
            let mut frontier = self.frontier();
            frontier.appended_seq = appended_seq;
            frontier.in_flight = None;
            frontier.gauge();
        }
        self.appended.notify_one();
    }

    /// What is remembered of a report.
    pub(crate) fn find(
        &self,
        platform: &PlatformId,
        key: ReportKey,
    ) -> Result<Option<IndexEntry>, IngestError> {
        let found = self.tables.index.get(keys::report(platform, key)).during("looking a report up")?;
        found.map(|bytes| IndexEntry::decode(&bytes)).transpose()
    }

    /// A report's record, while it is kept.
    pub(crate) fn record(&self, entry: &IndexEntry) -> Result<Option<Record>, IngestError> {
        let key = keys::position(entry.epoch, entry.first_seq);
        let found = self.tables.records.get(key).during("reading a record")?;
        found.map(|bytes| Record::decode(&bytes)).transpose()
    }

    fn batch(&self) -> OwnedWriteBatch {
        self.tables.batch()
    }

    /// Makes a batch durable. When that fails, nobody knows what is on the disk, and the process must end.
    fn commit(&self, batch: OwnedWriteBatch, operation: &'static str) -> Result<(), IngestError> {
        batch.commit().during(operation).inspect_err(|error| self.fail(error))
    }

    /// Declares that nothing can be promised any more.
    pub(crate) fn fail(&self, error: &IngestError) {
        tracing::error!(%error, source = ?std::error::Error::source(error), "the journal cannot go on");
        self.fatal.send_replace(Some(match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        }));
    }

    pub(crate) fn failure(&self) -> watch::Receiver<Option<String>> {
        self.fatal.subscribe()
    }
}

impl Tables {
    fn batch(&self) -> OwnedWriteBatch {
        self.db.batch().durability(Some(PersistMode::SyncAll))
    }
}
