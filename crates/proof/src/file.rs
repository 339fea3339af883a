mod opening;

use serde::{Deserialize, Serialize};

use crate::{
    Hash, HeadBody, InclusionProof, KeyFamily, Leaf, ProofError, PublicKey, Signature, StatementFacts,
    SumNode, log::LogInclusion, statement_hash, text::hexadecimal,
};

pub use opening::{EventOpening, FrameOpening, MeterOpening, OpenedFrame, OpenedTurn};

/// Everything that a person without access to us needs in order to check that an event was billed, once and with this
/// quantity, in a statement that a signed head contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProofFile {
    pub format: FileFormat,
    pub statement: Statement,
    pub leaf: Leaf,
    pub inclusion: InclusionProof,
    pub log: LogInclusion,
    pub head: SignedHead,
    /// The public halves as we served them. Compare them with a copy from elsewhere: a file vouches for itself otherwise.
    pub keys: Vec<PublicKey>,
    /// What the content hash is over: from the frames to the leaf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventOpening>,
    /// What the definition hash is over: from the event to the quantity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<MeterOpening>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum FileFormat {
    #[default]
    #[serde(rename = "contextmeter.proof.1")]
    V1,
}

/// A statement in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    pub platform: String,
    pub customer: String,
    pub meter: String,
    #[serde(with = "hexadecimal")]
    pub definition_hash: Hash,
    /// Microseconds UTC, the first that is in it.
    pub piece_start: i64,
    /// Microseconds UTC, the first that is not.
    pub piece_end: i64,
    pub revision: u32,
    pub root: SumNode,
}

impl Statement {
    pub fn hash(&self) -> Hash {
        statement_hash(&StatementFacts {
            platform: &self.platform,
            customer: &self.customer,
            meter: &self.meter,
            definition_hash: self.definition_hash,
            piece_start: self.piece_start,
            piece_end: self.piece_end,
            revision: self.revision,
            root: self.root,
        })
    }
}

/// A head in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedHead {
    pub platform: String,
    pub size: u64,
    #[serde(with = "hexadecimal")]
    pub root: Hash,
    /// Microseconds UTC.
    pub at: i64,
    pub kid: String,
    pub signature: Signature,
}

impl SignedHead {
    pub fn sign(body: HeadBody, key: &crate::SigningKey) -> Self {
        let signature = key.sign(&body.to_sign());
        Self {
            platform: body.platform,
            size: body.size,
            root: body.root,
            at: body.at,
            kid: key.kid(),
            signature,
        }
    }

    pub fn verify(&self, keys: &[PublicKey]) -> Result<(), ProofError> {
        let key = PublicKey::find(keys, KeyFamily::Head, &self.kid)?;
        let body =
            HeadBody { platform: self.platform.clone(), size: self.size, root: self.root, at: self.at };
        key.verify(&body.to_sign(), &self.signature)
    }
}

/// What a proof file shows when it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    #[serde(with = "hexadecimal")]
    pub statement_hash: Hash,
    /// What the statement counts of this event.
    pub quantity: u64,
    /// The event's place among the statement's, from 0.
    pub position: u64,
    /// The statement's place in the platform's log, from 0.
    pub log_index: u64,
    /// Which key signed the head.
    pub kid: String,
    /// Whether the content hash was recomputed from what the event holds.
    pub event_opened: bool,
    /// How many of its frames are opened by name.
    pub frames_opened: usize,
    /// Whether the quantity was recomputed from the meter's definition.
    pub meter_opened: bool,
}

impl ProofFile {
    /// Trusts the keys in the file; says nothing about whose they are.
    pub fn verify(&self) -> Result<Verdict, ProofError> {
        self.verify_with(&self.keys)
    }

    /// Trusts only these keys.
    pub fn verify_with(&self, trusted: &[PublicKey]) -> Result<Verdict, ProofError> {
        let mut frames_opened = 0;
        if let Some(event) = &self.event {
            frames_opened = event.verify(&self.statement, &self.leaf)?;
        }
        if let Some(meter) = &self.meter {
            meter.verify(&self.statement, &self.leaf, self.event.as_ref())?;
        }
        self.inclusion.verify(&self.leaf, &self.statement.root)?;
        let statement_hash = self.statement.hash();
        if self.head.platform != self.statement.platform {
            return Err(ProofError::Differs {
                what: "platform",
                found: self.head.platform.clone(),
                expected: self.statement.platform.clone(),
            });
        }
        if self.log.size != self.head.size {
            let (found, expected) = (self.log.size.to_string(), self.head.size.to_string());
            return Err(ProofError::Differs { what: "log size", found, expected });
        }
        self.log.verify(&statement_hash, &self.head.root)?;
        self.head.verify(trusted)?;
        Ok(Verdict {
            statement_hash,
            quantity: self.leaf.quantity,
            position: self.inclusion.position()?,
            log_index: self.log.index,
            kid: self.head.kid.clone(),
            event_opened: self.event.is_some(),
            frames_opened,
            meter_opened: self.meter.is_some(),
        })
    }
}
