use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Encoder, PlatformId, ReportHash, RequestId, Timestamp, TurnId};

/// Where something stands in a journal: gapless within its epoch, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    pub epoch: u64,
    pub seq: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.epoch, self.seq)
    }
}

/// What a signed answer to a report says: this report stood on the disk of this journal at this place and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcknowledgementBody {
    pub platform: PlatformId,
    pub request_id: RequestId,
    pub turn_id: TurnId,
    pub report_hash: ReportHash,
    pub position: Position,
    pub at: Timestamp,
}

impl AcknowledgementBody {
    /// The bytes that are signed; never the JSON, which has many spellings.
    pub fn to_sign(&self) -> Vec<u8> {
        Encoder::new("cm.ack.1")
            .text(self.platform.as_str())
            .text(self.request_id.as_str())
            .text(self.turn_id.as_str())
            .fixed(&self.report_hash.0)
            .u64(self.position.epoch)
            .u64(self.position.seq)
            .i64(self.at.as_micros())
            .into_bytes()
    }
}

/// The acknowledgement as it stands in the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acknowledgement {
    pub epoch: u64,
    pub seq: u64,
    pub at: Timestamp,
    /// Which public key checks the signature: 16 hexadecimal digits.
    pub kid: String,
    /// Ed25519, base64 with padding.
    pub signature: String,
}

impl Acknowledgement {
    pub fn position(&self) -> Position {
        Position { epoch: self.epoch, seq: self.seq }
    }
}
