//! The index forgets reports that nobody may send again.

use std::{sync::Weak, time::Duration};

use tokio_util::sync::CancellationToken;
use usage::{SharedClock, Timestamp};

use super::{IndexEntry, Journal, blocking, record::Value as _};
use crate::{IngestError, error::During as _};

const DAY_MICROS: i64 = 86_400 * 1_000_000;
/// How far back an accounting time may lie at the most.
pub(crate) const REMEMBERED_MICROS: i64 = 400 * DAY_MICROS;
/// A day more, because an accounting time may also lie a little ahead of its acceptance.
const FORGOTTEN_MICROS: i64 = REMEMBERED_MICROS + DAY_MICROS;
const AT_ONCE: usize = 10_000;

/// Once a day, until told to end.
pub(crate) async fn forget_daily(journal: Weak<Journal>, clock: SharedClock, shutdown: CancellationToken) {
    let day = Duration::from_secs(86_400);
    while shutdown.run_until_cancelled(tokio::time::sleep(day)).await.is_some() {
        let Some(journal) = Weak::upgrade(&journal) else { return };
        let (now, shutdown) = (clock.now(), shutdown.clone());
        match blocking(move || journal.forget(now, &shutdown)).await {
            Ok(reports) => tracing::debug!(reports, "the index forgot old reports"),
            Err(error) => tracing::warn!(%error, "the index keeps old reports until tomorrow"),
        }
    }
}

impl Journal {
    fn forget(&self, now: Timestamp, shutdown: &CancellationToken) -> Result<usize, IngestError> {
        let mut forgotten = 0;
        let mut old = Vec::new();
        for entry in self.tables.index.iter() {
            if shutdown.is_cancelled() {
                break;
            }
            let (key, value) = entry.into_inner().during("reading the index")?;
            let accepted = IndexEntry::decode(&value)?.received_at();
            if now.micros_since(accepted) > i128::from(FORGOTTEN_MICROS) {
                old.push(key);
            }
            if old.len() >= AT_ONCE {
                forgotten += self.remove(&mut old)?;
            }
        }
        forgotten += self.remove(&mut old)?;
        Ok(forgotten)
    }

    fn remove(&self, keys: &mut Vec<fjall::UserKey>) -> Result<usize, IngestError> {
        let count = keys.len();
        let mut batch = self.batch();
        for key in keys.drain(..) {
            batch.remove(&self.tables.index, key);
        }
        self.commit(batch, "forgetting reports")?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_util::sync::CancellationToken;
    use usage::{ManualClock, PlatformId, ReportKey, Timestamp};

    use super::{FORGOTTEN_MICROS, IndexEntry, Journal, REMEMBERED_MICROS};
    use crate::journal::{keys, record::Value as _};

    #[tokio::test]
    async fn what_may_be_sent_again_is_remembered_and_what_is_older_is_not() {
        let clock = ManualClock::new(Timestamp::from_micros(0));
        let test = ledger::testing::sqlite(Some(Arc::new(clock.clone()))).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let journal =
            Journal::open(folder.path().join("journal"), &test.ledger, Arc::new(clock)).await.unwrap();
        let platform = PlatformId::parse("acme").unwrap();
        let key = |at: u8| ReportKey([at; 16]);
        let mut batch = journal.batch();
        for at in 0..3u8 {
            let entry = IndexEntry {
                report_hash: [at; 32],
                epoch: 1,
                first_seq: 1,
                last_seq: 1,
                received_at: i64::from(at),
            };
            batch.insert(&journal.tables.index, keys::report(&platform, key(at)), entry.encode().unwrap());
        }
        journal.commit(batch, "preparing").unwrap();
        let end = CancellationToken::new();
        assert_eq!(journal.forget(Timestamp::from_micros(REMEMBERED_MICROS), &end).unwrap(), 0);
        assert_eq!(journal.forget(Timestamp::from_micros(FORGOTTEN_MICROS + 2), &end).unwrap(), 2);
        assert!(journal.find(&platform, key(0)).unwrap().is_none());
        assert!(journal.find(&platform, key(2)).unwrap().is_some());
    }
}
