//! What happened to a budget. These are stored for ever: a member may be added, never changed.

use serde::{Deserialize, Serialize};
use usage::{CustomerId, PlatformId};

use super::{AttemptId, DelegationId, Digest, Note, Reference};

/// One decision that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    Opened {
        platform: PlatformId,
        delegation: DelegationId,
        customer: CustomerId,
        limit_tokens: u64,
    },
    Reserved {
        attempt: AttemptId,
        tokens: u64,
    },
    /// What the attempt used is not known: its reservation is held from here on.
    MarkedUnknown {
        attempt: AttemptId,
        reason: Note,
    },
    /// What the attempt used is known.
    Settled {
        attempt: AttemptId,
        tokens: u64,
        evidence: Evidence,
    },
    /// The effect did not happen.
    Released {
        attempt: AttemptId,
        evidence: Evidence,
    },
    /// A person decided about a hold.
    Resolved {
        attempt: AttemptId,
        resolution: Resolution,
    },
}

/// Where it can be looked up that a quantity is right or an effect did not happen. It is not judged here, it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    pub reference: Reference,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// A person's decision about a hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    pub ending: Ending,
    pub decided_by: Note,
    pub reason: Note,
}

/// How a hold ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ending {
    /// The attempt used this much.
    Settled { tokens: u64 },
    /// The attempt used nothing, and the effect did not happen.
    Released,
}
