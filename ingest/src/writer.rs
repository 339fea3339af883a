//! From the journal into the store, in order, and what is stored told to the ledger.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ledger::Ledger;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;
use usage_store::{ReportBlock, StoreError, UsageStore};

use crate::{
    IngestError,
    journal::{Block, EpochState, Journal, Record, Tally, blocking, hour_counts},
};

/// A report waits this long for others that go into the same block, unless somebody waits for it.
const LINGER: Duration = Duration::from_millis(50);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How far the writer is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// Of our own epoch: stored, and told to the ledger.
    pub(crate) confirmed_seq: u64,
    /// Every request for a drained journal up to this one was answered.
    pub(crate) answered: u64,
    /// What keeps the writer from going on, if anything does.
    pub(crate) trouble: Option<String>,
}

pub(crate) struct Writer {
    pub(crate) journal: Arc<Journal>,
    pub(crate) store: UsageStore,
    pub(crate) ledger: Ledger,
    pub(crate) block_rows: usize,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) progress: watch::Sender<Progress>,
    /// Counts requests for a drained journal.
    pub(crate) asked: watch::Receiver<u64>,
    pub(crate) shutdown: CancellationToken,
}

/// An epoch on its way into the store.
struct Lane {
    epoch: u64,
    state: EpochState,
    untold: Tally,
}

/// The journal failed, or the process is told to end.
enum Stop {
    Shutdown,
    Journal(IngestError),
}

impl From<IngestError> for Stop {
    fn from(error: IngestError) -> Self {
        Stop::Journal(error)
    }
}

impl Writer {
    /// Runs until told to end. What is not done by then is done after the next opening.
    pub(crate) async fn run(mut self) {
        if let Err(Stop::Journal(error)) = self.drain_all().await {
            self.journal.fail(&error);
        }
    }

    async fn drain_all(&mut self) -> Result<(), Stop> {
        let lanes = self.with_journal(Journal::unfinished).await?;
        for (epoch, state, untold) in lanes {
            let mut lane = Lane { epoch, state, untold };
            self.drain(&mut lane).await?;
        }
        Ok(())
    }

    /// Ends when a former epoch is finished; never for our own.
    async fn drain(&mut self, lane: &mut Lane) -> Result<(), Stop> {
        let own = lane.epoch == self.journal.epoch;
        let mut beat = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let ticket = *self.asked.borrow_and_update();
            let stored = self.store_next(lane).await?;
            let wanted = ticket > self.progress.borrow().answered;
            let due = lane.state.told_seq < lane.state.stored_seq || Instant::now() >= beat || wanted;
            if due {
                match self.tell(lane).await? {
                    Some(everything) => {
                        (beat, pause) = (Instant::now() + self.heartbeat_interval, FIRST_PAUSE);
                        if own {
                            self.progress.send_modify(|progress| {
                                progress.confirmed_seq = lane.state.told_seq;
                                if everything {
                                    progress.answered = progress.answered.max(ticket);
                                }
                            });
                        }
                    }
                    None if stored => {} // the ledger is away; the store is not
                    None => {
                        self.pause(pause).await?;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                        continue;
                    }
                }
            }
            if lane.state.is_finished() {
                return Ok(());
            }
            if !stored && !own {
                let reason = format!("epoch {} ends before its end at {:?}", lane.epoch, lane.state.end_seq);
                return Err(IngestError::Corrupt { what: "epoch", reason }.into());
            }
            if !stored {
                self.wait(lane, beat).await?;
            }
        }
    }

    /// Waits for something to store, to tell, or for somebody who asks.
    async fn wait(&mut self, lane: &Lane, beat: Instant) -> Result<(), Stop> {
        if self.journal.appended_seq() == lane.state.stored_seq {
            tokio::select! {
                () = self.shutdown.cancelled() => return Err(Stop::Shutdown),
                () = self.journal.appended.notified() => {}
                () = tokio::time::sleep_until(beat) => return Ok(()),
                Ok(()) = self.asked.changed() => return Ok(()),
            }
        }
        tokio::select! {
            () = self.shutdown.cancelled() => Err(Stop::Shutdown),
            () = tokio::time::sleep(LINGER) => Ok(()),
            Ok(()) = self.asked.changed() => Ok(()),
        }
    }

    /// Stores the next block, if there is one. Comes back only when it is stored.
    async fn store_next(&self, lane: &mut Lane) -> Result<bool, Stop> {
        let (epoch, after, rows) = (lane.epoch, lane.state.stored_seq, self.block_rows);
        let Some(block) = self.with_journal(move |journal| journal.next_block(epoch, after, rows)).await?
        else {
            return Ok(false);
        };
        let refused = self.send(&block).await?;
        let state = lane.state;
        let (state, changed) =
            self.with_journal(move |journal| journal.note_stored(epoch, state, block, &refused)).await?;
        lane.state = state;
        lane.untold.extend(changed);
        Ok(true)
    }

    /// Sends a block until all of it is stored or known to be refused; the latter by place and reason.
    async fn send(&self, block: &Block) -> Result<BTreeMap<usize, String>, Stop> {
        let mut refused = BTreeMap::new();
        let mut parts: Vec<_> = std::iter::once(0..block.records.len()).collect();
        while let Some(part) = parts.pop() {
            let Some(records) = block.records.get(part.clone()) else { continue };
            let Err(reason) = self.insert(records).await? else { continue };
            if part.len() > 1 {
                let middle = part.start + part.len() / 2;
                parts.push(middle..part.end);
                parts.push(part.start..middle);
            } else {
                tracing::error!(%reason, seq = records.first().map(|record| record.first_seq), "the store refuses a report; it is quarantined");
                metrics::counter!("contextmeter_reports_quarantined_total").increment(1);
                refused.insert(part.start, reason);
            }
        }
        Ok(refused)
    }

    /// Inserts records, each month on its own. The inner error: these rows are refused and always will be.
    async fn insert(&self, records: &[Record]) -> Result<Result<(), String>, Stop> {
        let mut months: BTreeMap<u32, ReportBlock> = BTreeMap::new();
        for record in records {
            let month = months.entry(record.report.month()).or_default();
            month.events.extend(record.events.iter().cloned());
            month.reports.push(record.report.clone());
        }
        for block in months.values() {
            let mut pause = FIRST_PAUSE;
            loop {
                match self.store.insert(block).await {
                    Ok(()) => break,
                    Err(error) if blames_rows(&error) => return Ok(Err(error.to_string())),
                    Err(error) => {
                        tracing::warn!(%error, source = ?std::error::Error::source(&error), "the store takes nothing; the journal keeps it");
                        self.trouble(Some(format!("the usage store takes nothing: {error}")));
                        self.pause(pause).await?;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                }
            }
            self.trouble(None);
        }
        Ok(Ok(()))
    }

    /// Tells the ledger. None: it is away. True: nothing accepted before now is missing in the store.
    async fn tell(&self, lane: &mut Lane) -> Result<Option<bool>, Stop> {
        let standing = self.journal.standing();
        let (epoch, state) = (lane.epoch, lane.state);
        let appended = state.end_seq.unwrap_or(standing.appended_seq);
        let everything = appended == state.stored_seq;
        let through = if everything {
            standing.decided_through
        } else {
            let oldest =
                self.with_journal(move |journal| journal.oldest_unstored(epoch, state.stored_seq)).await?;
            oldest.unwrap_or(standing.decided_through).min(standing.decided_through)
        };
        let counts = hour_counts(&lane.untold)?;
        if let Err(error) = self.ledger.epoch_confirm(epoch, state.stored_seq, through, &counts).await {
            tracing::warn!(%error, source = ?std::error::Error::source(&error), epoch, "the ledger was not told what is stored; it is told later");
            self.trouble(Some(format!("the ledger was not told what is stored: {error}")));
            return Ok(None);
        }
        self.trouble(None);
        lane.untold.clear();
        if state.told_seq < state.stored_seq {
            lane.state = self.with_journal(move |journal| journal.note_told(epoch, state)).await?;
        }
        Ok(Some(everything))
    }

    fn trouble(&self, trouble: Option<String>) {
        self.progress.send_if_modified(|progress| {
            let changed = progress.trouble != trouble;
            progress.trouble = trouble;
            changed
        });
    }

    async fn pause(&self, time: Duration) -> Result<(), Stop> {
        match self.shutdown.run_until_cancelled(tokio::time::sleep(time)).await {
            Some(()) => Ok(()),
            None => Err(Stop::Shutdown),
        }
    }

    async fn with_journal<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Journal) -> Result<T, IngestError> + Send + 'static,
    ) -> Result<T, Stop> {
        if self.shutdown.is_cancelled() {
            return Err(Stop::Shutdown);
        }
        let journal = Arc::clone(&self.journal);
        Ok(blocking(move || task(&journal)).await?)
    }
}

/// Whether the engine says that the rows themselves cannot be taken. Anything else (rights, disk, schema) is somebody's to
/// repair, and the rows wait for it.
fn blames_rows(error: &StoreError) -> bool {
    // Cannot parse or convert, types and sizes out of bounds, constraints: ClickHouse's codes for a value that is at fault.
    const CODES: &[i32] =
        &[6, 19, 26, 27, 38, 41, 53, 69, 70, 72, 117, 128, 131, 190, 321, 349, 395, 441, 469];
    matches!(error, StoreError::Refused { code, .. } if CODES.contains(code))
}
