use serde::{Deserialize, Serialize};

use super::Statement;
use crate::{
    Hash, Leaf, ProofError,
    encode::{Encoder, sha256},
    error::same,
    text::hexadecimal,
};

/// What an event's content hash is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventOpening {
    /// `context` or `delegation`.
    pub kind: String,
    pub provider: String,
    /// Microseconds UTC.
    pub as_of: i64,
    pub tokens: u64,
    pub frames_served: u32,
    pub frames_rejected: u32,
    pub frames: Vec<FrameOpening>,
    /// The turn, which with kind, platform and provider gives the event's id. Absent after an erasure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<OpenedTurn>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenedTurn {
    pub request_id: String,
    pub turn_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameOpening {
    pub cost: u64,
    #[serde(with = "hexadecimal")]
    pub commitment: Hash,
    /// The identity behind the commitment. Absent after an erasure, and for frames that are not the reader's business.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<OpenedFrame>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenedFrame {
    /// The frame's own salt, not the event's: it opens this frame and no other.
    #[serde(with = "hexadecimal")]
    pub salt: Hash,
    pub frame_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_digest: Option<String>,
}

impl EventOpening {
    /// From the frames to the leaf; answers how many frames are opened by name.
    pub(super) fn verify(&self, statement: &Statement, leaf: &Leaf) -> Result<usize, ProofError> {
        if self.as_of < statement.piece_start || self.as_of >= statement.piece_end {
            return Err(ProofError::WrongShape("the event's time is outside the statement's piece"));
        }
        if self.kind == "context" {
            self.check_sums()?;
        }
        if let Some(turn) = &self.turn {
            same("event id", &padded(self.event_id(statement, turn)), &padded(leaf.event_id))?;
        }
        let mut encoder = Encoder::new()
            .text("cm.event.1")
            .raw(&leaf.event_id)
            .text(&statement.customer)
            .raw(&self.as_of.to_be_bytes())
            .raw(&self.tokens.to_be_bytes())
            .raw(&self.frames_served.to_be_bytes())
            .raw(&self.frames_rejected.to_be_bytes())
            .count(self.frames.len());
        let mut named = 0;
        for frame in &self.frames {
            if let Some(opened) = &frame.opened {
                same("frame commitment", &opened.commitment(&self.provider), &frame.commitment)?;
                named += 1;
            }
            encoder = encoder.raw(&frame.cost.to_be_bytes()).raw(&frame.commitment);
        }
        same("content hash", &encoder.hash(), &leaf.content_hash)?;
        Ok(named)
    }

    fn check_sums(&self) -> Result<(), ProofError> {
        let sum = self
            .frames
            .iter()
            .try_fold(0u64, |sum, frame| sum.checked_add(frame.cost))
            .ok_or(ProofError::Overflow)?;
        if sum != self.tokens {
            let (found, expected) = (sum.to_string(), self.tokens.to_string());
            return Err(ProofError::Differs { what: "sum of the frames", found, expected });
        }
        if usize::try_from(self.frames_served) != Ok(self.frames.len()) {
            let (found, expected) = (self.frames.len().to_string(), self.frames_served.to_string());
            return Err(ProofError::Differs { what: "number of frames", found, expected });
        }
        Ok(())
    }

    fn event_id(&self, statement: &Statement, turn: &OpenedTurn) -> [u8; 16] {
        let bytes = Encoder::new()
            .text("cm.id.1")
            .text(&self.kind)
            .text(&statement.platform)
            .text(&turn.request_id)
            .text(&turn.turn_id)
            .text(&self.provider)
            .into_bytes();
        let mut id = [0; 16];
        for (to, from) in id.iter_mut().zip(sha256(&bytes)) {
            *to = from;
        }
        id
    }
}

/// So that one comparison serves ids and hashes.
fn padded(id: [u8; 16]) -> Hash {
    let mut hash = [0; 32];
    for (to, from) in hash.iter_mut().zip(id) {
        *to = from;
    }
    hash
}

impl OpenedFrame {
    fn commitment(&self, provider: &str) -> Hash {
        Encoder::new()
            .text("cm.frame.1")
            .raw(&self.salt)
            .text(provider)
            .text(&self.frame_id)
            .option(self.content_digest.as_deref(), Encoder::text)
            .hash()
    }
}

/// What a meter's definition hash is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterOpening {
    pub kind: String,
    /// In ascending order of their bytes; absent: every provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub providers: Option<Vec<String>>,
    /// `tokens`, `frames_served` or `events`.
    pub quantity: String,
}

impl MeterOpening {
    pub fn definition_hash(&self, meter: &str) -> Hash {
        Encoder::new()
            .text("cm.meter.1")
            .text(meter)
            .text(&self.kind)
            .option(self.providers.as_ref(), |encoder, providers| {
                let encoder = encoder.count(providers.len());
                providers.iter().fold(encoder, |encoder, provider| encoder.text(provider))
            })
            .text(&self.quantity)
            .hash()
    }

    /// From the definition and the event to the leaf's quantity.
    pub(super) fn verify(
        &self,
        statement: &Statement,
        leaf: &Leaf,
        event: Option<&EventOpening>,
    ) -> Result<(), ProofError> {
        same("definition hash", &self.definition_hash(&statement.meter), &statement.definition_hash)?;
        let Some(event) = event else { return Ok(()) };
        let listed = self.providers.as_ref().is_none_or(|providers| providers.contains(&event.provider));
        if event.kind != self.kind || !listed {
            return Err(ProofError::WrongShape("the meter does not take this event"));
        }
        let quantity = match self.quantity.as_str() {
            "tokens" => event.tokens,
            "frames_served" => u64::from(event.frames_served),
            "events" => 1,
            _ => return Err(ProofError::Malformed("quantity")),
        };
        if quantity != leaf.quantity {
            let (found, expected) = (quantity.to_string(), leaf.quantity.to_string());
            return Err(ProofError::Differs { what: "quantity", found, expected });
        }
        Ok(())
    }
}
