//! What the writer reads from the journal and notes in it.

use std::collections::BTreeMap;

use ledger::HourCount;
use usage::{Hour, PlatformId, Timestamp};

use super::{
    EpochState, Journal, Record, keys,
    record::{BlockEnd, Count, Quarantined, Value as _},
};
use crate::{IngestError, error::During as _};

/// Records that are sent together, for ever under the same bounds.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) records: Vec<Record>,
}

/// Cumulative counts of hours, by hour and platform.
pub(crate) type Tally = BTreeMap<(i64, String), Count>;

impl Journal {
    /// Epochs with something to send or to tell, the oldest first, ours last; each with the counts that the ledger lacks.
    pub(crate) fn unfinished(&self) -> Result<Vec<(u64, EpochState, Tally)>, IngestError> {
        let mut lanes = Vec::new();
        for (epoch, state) in self.tables.epoch_states()? {
            if epoch != self.epoch && state.is_finished() {
                continue;
            }
            let mut untold = Tally::new();
            for entry in self.tables.counts.prefix(keys::epoch(epoch)) {
                let (key, value) = entry.into_inner().during("reading counts")?;
                let count = Count::decode(&value)?;
                if count.seq > state.told_seq {
                    untold.insert(hour_of(&key)?, count);
                }
            }
            lanes.push((epoch, state, untold));
        }
        let left = |state: &EpochState| state.end_seq.map_or(0, |end| end.saturating_sub(state.stored_seq));
        let mut frontier = self.frontier();
        frontier.former_rows = lanes.iter().map(|(_, state, _)| left(state)).fold(0, u64::saturating_add);
        frontier.gauge();
        drop(frontier);
        Ok(lanes)
    }

    /// The block after a position: the one that was cut there before, or a new one of about `rows` rows.
    pub(crate) fn next_block(
        &self,
        epoch: u64,
        stored_seq: u64,
        rows: usize,
    ) -> Result<Option<Block>, IngestError> {
        let first_seq = stored_seq.saturating_add(1);
        let start = keys::position(epoch, first_seq);
        let cut = self.tables.blocks.get(start).during("reading a block's bounds")?;
        let bound = cut.map(|bytes| BlockEnd::decode(&bytes)).transpose()?;
        let mut records: Vec<Record> = Vec::new();
        let (mut last_seq, mut taken, mut bytes) = (stored_seq, 0_usize, 0_usize);
        for entry in self.tables.records.range(start..=keys::position(epoch, u64::MAX)) {
            let value = entry.value().during("reading records")?;
            let record = Record::decode(&value)?;
            if record.first_seq != last_seq.saturating_add(1) {
                return Err(gap(epoch, last_seq));
            }
            last_seq = record.last_seq;
            taken = taken.saturating_add(record.events.len().max(1));
            bytes = bytes.saturating_add(value.len());
            records.push(record);
            let full = match bound {
                Some(BlockEnd(end)) => last_seq >= end,
                None => taken >= rows || bytes >= BLOCK_BYTES,
            };
            if full {
                break;
            }
        }
        if bound.is_some_and(|BlockEnd(end)| end != last_seq) {
            return Err(gap(epoch, last_seq));
        }
        if records.is_empty() {
            return Ok(None);
        }
        if bound.is_none() {
            // Before anything is sent: after a crash the same rows go together again, and the store sees the same block.
            let mut batch = self.batch();
            batch.insert(&self.tables.blocks, start, BlockEnd(last_seq).encode()?);
            self.commit(batch, "cutting a block")?;
        }
        Ok(Some(Block { first_seq, last_seq, records }))
    }

    /// Notes that a block is stored, except for what is quarantined: the counts move with the position, in one step.
    pub(crate) fn note_stored(
        &self,
        epoch: u64,
        state: EpochState,
        block: Block,
        refused: &BTreeMap<usize, String>,
    ) -> Result<(EpochState, Tally), IngestError> {
        let mut batch = self.batch();
        let mut changed = Tally::new();
        for (at, record) in block.records.into_iter().enumerate() {
            if let Some(reason) = refused.get(&at) {
                let key = keys::position(epoch, record.first_seq);
                let kept = Quarantined { reason: reason.clone(), record };
                batch.insert(&self.tables.quarantine, key, kept.encode()?);
                continue;
            }
            for event in &record.events {
                let hour = (event.hour, event.platform.clone());
                let count = match changed.get(&hour) {
                    Some(count) => *count,
                    None => self.count(epoch, &hour)?,
                };
                let overflow =
                    || IngestError::Corrupt { what: "count", reason: "it is too large".to_owned() };
                let count = Count {
                    seq: block.last_seq,
                    events: count.events.checked_add(1).ok_or_else(overflow)?,
                    tokens: count.tokens.checked_add(event.tokens.into()).ok_or_else(overflow)?,
                    frames: count.frames.checked_add(event.frames_served.into()).ok_or_else(overflow)?,
                };
                changed.insert(hour, count);
            }
        }
        for ((hour, platform), count) in &changed {
            batch.insert(&self.tables.counts, keys::count(epoch, *hour, platform), count.encode()?);
        }
        let state = EpochState { stored_seq: block.last_seq, ..state };
        batch.insert(&self.tables.epochs, keys::epoch(epoch), state.encode()?);
        batch.remove(&self.tables.blocks, keys::position(epoch, block.first_seq));
        self.commit(batch, "noting what is stored")?;
        let mut frontier = self.frontier();
        if epoch == self.epoch {
            frontier.stored_seq = block.last_seq;
        } else {
            let rows = block.last_seq.saturating_sub(block.first_seq).saturating_add(1);
            frontier.former_rows = frontier.former_rows.saturating_sub(rows);
        }
        frontier.gauge();
        drop(frontier);
        Ok((state, changed))
    }

    fn count(&self, epoch: u64, (hour, platform): &(i64, String)) -> Result<Count, IngestError> {
        let found = self.tables.counts.get(keys::count(epoch, *hour, platform)).during("reading a count")?;
        found.map_or_else(|| Ok(Count::default()), |bytes| Count::decode(&bytes))
    }

    /// Notes that the ledger knows, and lets go of the records; the index stays.
    pub(crate) fn note_told(&self, epoch: u64, state: EpochState) -> Result<EpochState, IngestError> {
        let told = EpochState { told_seq: state.stored_seq, ..state };
        let mut batch = self.batch();
        let done =
            keys::position(epoch, state.told_seq.saturating_add(1))..=keys::position(epoch, told.told_seq);
        if state.told_seq < told.told_seq {
            for entry in self.tables.records.range(done) {
                batch.remove(&self.tables.records, entry.key().during("reading records")?);
            }
        }
        batch.insert(&self.tables.epochs, keys::epoch(epoch), told.encode()?);
        self.commit(batch, "letting go of records")?;
        Ok(told)
    }

    /// Whether a report is in the store. One that is set apart is not, although what follows it is.
    pub(crate) fn is_stored(&self, entry: &super::IndexEntry) -> Result<bool, IngestError> {
        let state = self.tables.epochs.get(keys::epoch(entry.epoch)).during("reading an epoch")?;
        let state = state.map(|bytes| EpochState::decode(&bytes)).transpose()?;
        if state.is_none_or(|state| entry.last_seq > state.stored_seq) {
            return Ok(false);
        }
        // The position and the quarantine are written together, so this look comes second.
        let key = keys::position(entry.epoch, entry.first_seq);
        let apart = self.tables.quarantine.contains_key(key).during("reading the quarantine")?;
        Ok(!apart)
    }

    /// When the oldest record that is not stored was accepted.
    pub(crate) fn oldest_unstored(
        &self,
        epoch: u64,
        stored_seq: u64,
    ) -> Result<Option<Timestamp>, IngestError> {
        let start = keys::position(epoch, stored_seq.saturating_add(1));
        let oldest = self.tables.records.range(start..=keys::position(epoch, u64::MAX)).next();
        let Some(oldest) = oldest else { return Ok(None) };
        let record = Record::decode(&oldest.value().during("reading records")?)?;
        Ok(Some(Timestamp::from_micros(record.received_at)))
    }

    /// How many records the store refused and a person must look at.
    pub(crate) fn quarantined(&self) -> Result<usize, IngestError> {
        self.tables.quarantine.len().during("counting quarantined records")
    }
}

/// A block's JSON and rows together; ClickHouse takes a body of this size in one go.
const BLOCK_BYTES: usize = 32 << 20;

fn gap(epoch: u64, seq: u64) -> IngestError {
    IngestError::Corrupt { what: "epoch", reason: format!("epoch {epoch} has a gap after position {seq}") }
}

fn hour_of(key: &[u8]) -> Result<(i64, String), IngestError> {
    keys::read_count(key).ok_or_else(|| IngestError::Corrupt {
        what: "count",
        reason: "its key is no epoch, hour and platform".to_owned(),
    })
}

/// Counts as the ledger takes them.
pub(crate) fn hour_counts(tally: &Tally) -> Result<Vec<HourCount>, IngestError> {
    let corrupt = |reason: String| IngestError::Corrupt { what: "count", reason };
    tally
        .iter()
        .map(|((hour, platform), count)| {
            Ok(HourCount {
                platform: PlatformId::parse(platform.as_str()).map_err(|error| corrupt(error.to_string()))?,
                hour: Hour::from_index(*hour).ok_or_else(|| corrupt(format!("{hour} is no hour")))?,
                seq: count.seq,
                events: count.events,
                tokens: count.tokens,
                frames: count.frames,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Block, EpochState};
    use crate::journal::testing::{Desk, Metrics, submission};

    fn block(desk: &Desk, stored_seq: u64) -> Block {
        desk.journal.next_block(desk.journal.epoch, stored_seq, 2).unwrap().unwrap()
    }

    #[tokio::test]
    async fn g1_counts_that_the_ledger_was_not_told_are_told_after_a_crash() {
        let desk = Desk::open().await;
        let epoch = desk.journal.epoch;
        desk.accept(&[("1", 3), ("2", 4), ("3", 5)]);
        let mut state = EpochState::default();
        for stored in [2, 3] {
            let block = block(&desk, state.stored_seq);
            state = desk.journal.note_stored(epoch, state, block, &BTreeMap::new()).unwrap().0;
            assert_eq!(state.stored_seq, stored);
        }
        let desk = desk.reopened().await;
        let lanes = desk.journal.unfinished().unwrap();
        let (former, state, untold) = &lanes[0];
        assert_eq!((*former, state.stored_seq, state.told_seq, state.end_seq), (epoch, 3, 0, Some(3)));
        let counts: Vec<_> = untold.values().map(|count| (count.seq, count.events, count.tokens)).collect();
        assert_eq!(counts, [(3, 3, 12)]);
        desk.journal.note_told(*former, *state).unwrap();
        let desk = desk.reopened().await;
        let left: Vec<u64> = desk.journal.unfinished().unwrap().iter().map(|lane| lane.0).collect();
        assert!(!left.contains(&epoch), "{left:?}");
    }

    #[tokio::test]
    async fn a_record_is_kept_until_the_ledger_knows_and_its_index_entry_stays() {
        let desk = Desk::open().await;
        let entries = desk.accept(&[("1", 3), ("2", 4), ("3", 5)]);
        let kept = |desk: &Desk| {
            entries.iter().map(|entry| desk.journal.record(entry).unwrap().is_some()).collect::<Vec<_>>()
        };
        let block = block(&desk, 0);
        let (state, _) = desk.journal.note_stored(1, EpochState::default(), block, &BTreeMap::new()).unwrap();
        assert_eq!(kept(&desk), [true, true, true]);
        desk.journal.note_told(1, state).unwrap();
        assert_eq!(kept(&desk), [false, false, true]);
        assert_eq!(desk.find("1"), Some(entries[0]));
    }

    #[tokio::test]
    async fn the_oldest_report_that_is_not_stored_bounds_what_is_complete() {
        let desk = Desk::open().await;
        let first = desk.accept(&[("1", 3)])[0];
        desk.clock.advance_micros(1_000_000);
        let second = desk.accept(&[("2", 4)])[0];
        let oldest = |seq| desk.journal.oldest_unstored(1, seq).unwrap();
        assert_eq!(oldest(0), Some(first.received_at()));
        assert_eq!(oldest(1), Some(second.received_at()));
        assert_eq!(oldest(2), None);
    }

    #[tokio::test]
    async fn no_report_gets_a_time_before_an_instant_that_was_declared_complete() {
        let desk = Desk::open().await;
        desk.clock.advance_micros(5_000_000);
        let complete = desk.journal.standing().decided_through;
        desk.clock.advance_micros(-4_000_000); // somebody set the clock back
        let entry = desk.accept(&[("1", 3)])[0];
        assert!(entry.received_at() >= complete);
    }

    #[tokio::test]
    async fn decisions_are_counted_and_the_backlog_is_what_is_not_stored() {
        let desk = Desk::open().await;
        let metrics = Metrics::default();
        metrics::with_local_recorder(&metrics, || {
            let group = [("1", 3), ("1", 3), ("1", 3), ("1", 4), ("2", 5), ("3", 6)];
            desk.decide(group.iter().map(|(turn, cost)| submission(turn, &[*cost])).collect());
            let counted = ["accepted", "duplicate", "conflict"]
                .map(|what| metrics.read(&format!("contextmeter_reports_{what}_total")));
            assert_eq!(counted, [3, 2, 1]);
            let backlog = || f64::from_bits(metrics.read("contextmeter_journal_backlog_rows")).to_string();
            assert_eq!(backlog(), "3");
            let block = block(&desk, 0);
            desk.journal.note_stored(1, EpochState::default(), block, &BTreeMap::new()).unwrap();
            assert_eq!(backlog(), "1");
        });
    }
}
