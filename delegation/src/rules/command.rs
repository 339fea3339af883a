//! What is asked of a budget. All of a command is its content: the same again is a repeat, anything else with the same identity a conflict.

use usage::{CustomerId, PlatformId};

use super::{AttemptId, DelegationId, Evidence, Note, Resolution};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Open(Open),
    Reserve(Reserve),
    Unknown(Unknown),
    Settle(Settle),
    Release(Release),
    Resolve(Resolve),
}

/// Opens a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    pub platform: PlatformId,
    pub delegation: DelegationId,
    pub customer: CustomerId,
    pub limit_tokens: u64,
}

/// Sets tokens aside, before the effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserve {
    pub attempt: AttemptId,
    pub tokens: u64,
}

/// Says that nobody knows what the attempt used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    pub attempt: AttemptId,
    pub reason: Note,
}

/// Says what the attempt used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    pub attempt: AttemptId,
    pub tokens: u64,
    pub evidence: Evidence,
}

/// Says that the effect did not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    pub attempt: AttemptId,
    pub evidence: Evidence,
}

/// A person ends a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    pub attempt: AttemptId,
    pub resolution: Resolution,
}

impl Command {
    /// The attempt it is about.
    pub fn attempt(&self) -> Option<&AttemptId> {
        match self {
            Command::Open(_) => None,
            Command::Reserve(Reserve { attempt, .. })
            | Command::Unknown(Unknown { attempt, .. })
            | Command::Settle(Settle { attempt, .. })
            | Command::Release(Release { attempt, .. })
            | Command::Resolve(Resolve { attempt, .. }) => Some(attempt),
        }
    }
}
