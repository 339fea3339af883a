//! Values of the journal: postcard behind one byte of version, so that a newer program can tell what it reads.

use serde::{Serialize, de::DeserializeOwned};
use usage::{Position, Timestamp};
use usage_store::{EventRow, ReportRow};

use crate::IngestError;

const VERSION: u8 = 1;

/// A value with a name for its errors.
pub(crate) trait Value: Serialize + DeserializeOwned {
    const NAME: &'static str;

    fn encode(&self) -> Result<Vec<u8>, IngestError> {
        postcard::to_extend(self, vec![VERSION])
            .map_err(|error| IngestError::Corrupt { what: Self::NAME, reason: error.to_string() })
    }

    fn decode(bytes: &[u8]) -> Result<Self, IngestError> {
        let corrupt = |reason: String| IngestError::Corrupt { what: Self::NAME, reason };
        match bytes.split_first() {
            Some((&VERSION, rest)) => postcard::from_bytes(rest).map_err(|error| corrupt(error.to_string())),
            Some((version, _)) => Err(corrupt(format!("it has version {version}; use the newer program"))),
            None => Err(corrupt("it is empty".to_owned())),
        }
    }
}

/// An accepted report, kept until it is stored and the ledger was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub(crate) struct Record {
    /// Microseconds since 1970, UTC.
    pub(crate) received_at: i64,
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    /// The report as JSON, in our own spelling.
    pub(crate) body: Vec<u8>,
    pub(crate) report: ReportRow,
    pub(crate) events: Vec<EventRow>,
}

impl Value for Record {
    const NAME: &'static str = "record";
}

/// What is remembered of every report, by which repeats are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
pub(crate) struct IndexEntry {
    pub(crate) report_hash: [u8; 32],
    pub(crate) epoch: u64,
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) received_at: i64,
}

impl IndexEntry {
    /// The position that the acknowledgement names.
    pub(crate) fn position(&self) -> Position {
        Position { epoch: self.epoch, seq: self.last_seq }
    }

    pub(crate) fn received_at(&self) -> Timestamp {
        Timestamp::from_micros(self.received_at)
    }
}

impl Value for IndexEntry {
    const NAME: &'static str = "index entry";
}

/// How far an epoch is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub(crate) struct EpochState {
    /// Every seq up to here is in the store, or quarantined.
    pub(crate) stored_seq: u64,
    /// And the ledger knows.
    pub(crate) told_seq: u64,
    /// Set when a later opening ended it.
    pub(crate) end_seq: Option<u64>,
}

impl EpochState {
    /// Whether nothing of it will ever be sent or told again.
    pub(crate) fn is_finished(&self) -> bool {
        self.end_seq.is_some_and(|end| self.told_seq >= end)
    }
}

impl Value for EpochState {
    const NAME: &'static str = "epoch";
}

/// Cumulative counts of a platform's hour within one epoch, as of `seq`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub(crate) struct Count {
    pub(crate) seq: u64,
    pub(crate) events: u64,
    pub(crate) tokens: u128,
    pub(crate) frames: u64,
}

impl Value for Count {
    const NAME: &'static str = "count";
}

/// A record that the store refuses, kept whole for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub(crate) struct Quarantined {
    pub(crate) reason: String,
    pub(crate) record: Record,
}

impl Value for Quarantined {
    const NAME: &'static str = "quarantined record";
}

/// The last seq of a block that was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
pub(crate) struct BlockEnd(pub(crate) u64);

impl Value for BlockEnd {
    const NAME: &'static str = "block";
}

#[cfg(test)]
mod tests {
    use super::{EpochState, Value as _};

    #[test]
    fn a_value_is_read_back_and_another_version_is_refused() {
        let state = EpochState { stored_seq: 3, told_seq: 2, end_seq: Some(9) };
        let mut bytes = state.encode().unwrap();
        assert_eq!(EpochState::decode(&bytes).unwrap(), state);
        bytes[0] = 9;
        assert!(EpochState::decode(&bytes).is_err());
        assert!(EpochState::decode(&[]).is_err());
        assert!(EpochState::decode(&[1]).is_err());
    }
}
