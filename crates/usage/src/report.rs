mod parse;
mod protocol;

use serde::{Deserialize, Serialize};

use crate::{CustomerId, FrameKey, HostId, ProviderId, Rejection, RequestId, TurnId, words::words};
use parse::{bounded, object, whole_u32, whole_u64};

pub(crate) use parse::{check_digest, check_note, present};

/// What one turn of an agent used: the wire form that platforms post.
///
/// Reading it is strict: unknown, doubled or null members, numbers with a fraction or an exponent, and texts beyond their
/// bounds are refused with a pointer. Writing it gives the same shape back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct TurnReport {
    pub customer_id: CustomerId,
    pub request_id: RequestId,
    pub turn_id: TurnId,
    /// Which host numbered it, for finding gaps. Outside every hash, as are consents and legs.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub origin: Option<Origin>,
    pub report: UsageReport,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::consents")]
    pub consents: Vec<ConsentReceipt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::legs")]
    pub legs: Vec<Leg>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Origin {
    pub host_id: HostId,
    /// One life of the host's outbox.
    #[serde(deserialize_with = "bounded::note")]
    pub epoch: String,
    #[serde(deserialize_with = "whole_u64")]
    pub seq: u64,
}

/// The protocol's usage report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct UsageReport {
    #[serde(deserialize_with = "whole_u64")]
    pub budget_requested: u64,
    #[serde(deserialize_with = "whole_u64")]
    pub budget_consumed: u64,
    /// As it was received; the audit reads it.
    pub as_of: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::providers")]
    pub providers: Vec<ProviderUsage>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct ProviderUsage {
    pub provider_id: ProviderId,
    #[serde(deserialize_with = "whole_u32")]
    pub frames_served: u32,
    #[serde(deserialize_with = "whole_u32")]
    pub frames_rejected: u32,
    #[serde(deserialize_with = "whole_u64")]
    pub token_cost: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::frames")]
    pub served_frames: Vec<ServedFrame>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct ServedFrame {
    pub frame: FrameId,
    #[serde(deserialize_with = "whole_u64")]
    pub token_cost: u64,
}

/// A frame's identity: whose, which, and the digest that its provider declared, which nobody re-derives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct FrameId {
    pub provider_id: ProviderId,
    pub frame_id: FrameKey,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "bounded::digest")]
    pub content_digest: Option<String>,
}

/// How the call to one provider ended. Kept for support, outside every hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Leg {
    pub provider_id: ProviderId,
    pub outcome: LegOutcome,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::reasons")]
    pub reasons: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "bounded::rejected")]
    pub rejected: Vec<FrameId>,
    #[serde(deserialize_with = "whole_u64")]
    pub elapsed_micros: u64,
}

words! {
    /// Served what was billed, or one of the ways not to.
    pub enum LegOutcome {
        Served = "served",
        Empty = "empty",
        Rejected = "rejected",
        RefusedConsent = "refused_consent",
        Failed = "failed",
        TimedOut = "timed_out",
        Panicked = "panicked",
    }
}

/// The protocol's consent receipt: who agreed that what may leave to whom. Kept for support, outside every hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct ConsentReceipt {
    pub provider_id: ProviderId,
    #[serde(deserialize_with = "bounded::note")]
    pub scope: String,
    #[serde(deserialize_with = "bounded::note")]
    pub provider_name: String,
    #[serde(deserialize_with = "bounded::note")]
    pub provider_version: String,
    pub grantor: Grantor,
    #[serde(deserialize_with = "bounded::note")]
    pub granted_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "bounded::optional_note")]
    pub expires_at: Option<String>,
}

/// Who granted a consent: `kind` is `human` or `policy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Grantor {
    pub kind: GrantorKind,
    #[serde(deserialize_with = "bounded::note")]
    pub id: String,
}

words! {
    pub enum GrantorKind {
        Human = "human",
        Policy = "policy",
    }
}

object!(TurnReport, Origin, UsageReport, ProviderUsage, ServedFrame, FrameId, Leg, ConsentReceipt, Grantor);

/// What one report may hold at most. A body limit alone would still let small frames become large rows.
pub struct Limits;

impl Limits {
    pub const PROVIDERS: usize = 1024;
    /// Over all providers of a report.
    pub const FRAMES: usize = 65_536;
    pub const CONSENTS: usize = 1024;
    pub const LEGS: usize = 1024;
    pub const REASONS_PER_LEG: usize = 64;
    /// Rejected identities over all legs.
    pub const REJECTED: usize = 65_536;
    pub const DIGEST_BYTES: usize = 512;
    /// Free texts: reasons, names, versions, an outbox's epoch.
    pub const NOTE_BYTES: usize = 1024;
}

impl TurnReport {
    pub fn from_json(body: &[u8]) -> Result<Self, Rejection> {
        parse::from_json(body)
    }

    /// Takes over a report that a host of the protocol made in this process.
    pub fn from_protocol(
        customer_id: CustomerId,
        request_id: RequestId,
        turn_id: TurnId,
        report: &contextgraph_types::UsageReport,
    ) -> Result<Self, Rejection> {
        let report = protocol::usage_report(report)?;
        Ok(Self {
            customer_id,
            request_id,
            turn_id,
            origin: None,
            report,
            consents: Vec::new(),
            legs: Vec::new(),
        })
    }

    /// The same bytes for the same report: members in the order of the type, no spaces.
    pub fn to_json(&self) -> Vec<u8> {
        // Only a map with keys that are not texts, or a failing writer, could fail here; there is neither.
        serde_json::to_vec(self).unwrap_or_default()
    }
}
