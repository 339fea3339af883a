mod build;
mod diff;

use zeroize::Zeroizing;

use crate::{
    AuditedReport, Commitment, ContentHash, CustomerId, EventId, FrameKey, PlatformId, ProviderId,
    ReportHash, ReportKey, RequestId, Salt, Timestamp, TurnId, words::words,
};

pub use build::{UsageEventParts, frame_commitment};
pub use diff::{Difference, report_diff};

words! {
    /// Where an event comes from. Hashed as its word.
    pub enum EventKind {
        /// Frames that a provider served in a turn.
        Context = "context",
        /// A settled delegation.
        Delegation = "delegation",
    }
}

/// The secret of one customer of one platform. Destroying it erases the customer: what remains can no longer be guessed.
#[derive(Clone)]
pub struct ErasureKey(Zeroizing<[u8; 32]>);

impl ErasureKey {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// For the ledger, which keeps it.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for ErasureKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ErasureKey(…)")
    }
}

/// A content digest, stored more tightly where it has the usual form and hashed as it was received.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Digest {
    Sha256([u8; 32]),
    Other(String),
}

impl Digest {
    pub fn from_received(text: &str) -> Self {
        let usual = text.strip_prefix("sha256:").filter(|hex| !hex.bytes().any(|b| b.is_ascii_uppercase()));
        let mut bytes = [0; 32];
        match usual.map(|hex| hex::decode_to_slice(hex, &mut bytes)) {
            Some(Ok(())) => Self::Sha256(bytes),
            _ => Self::Other(text.to_owned()),
        }
    }

    /// Exactly the text that came in.
    pub fn to_received(&self) -> String {
        match self {
            Self::Sha256(bytes) => format!("sha256:{}", hex::encode(bytes)),
            Self::Other(text) => text.clone(),
        }
    }
}

/// What one provider cost in one turn: the unit of billing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageEvent {
    pub kind: EventKind,
    pub platform: PlatformId,
    pub customer: CustomerId,
    pub request_id: RequestId,
    pub turn_id: TurnId,
    pub provider_id: ProviderId,
    pub event_id: EventId,
    pub report_key: ReportKey,
    pub as_of: Timestamp,
    pub tokens: u64,
    pub frames_served: u32,
    pub frames_rejected: u32,
    pub salt: Salt,
    pub content_hash: ContentHash,
    pub report_hash: ReportHash,
    pub frames: Vec<EventFrame>,
    /// Codes of what the audit noticed without refusing it.
    pub warnings: Vec<String>,
}

/// A served frame of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFrame {
    pub frame_id: FrameKey,
    pub digest: Option<Digest>,
    pub cost: u64,
    pub commitment: Commitment,
}

/// A report with everything that is derived from it: what the journal writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportRecord {
    pub platform: PlatformId,
    pub report_key: ReportKey,
    pub report_hash: ReportHash,
    pub audited: AuditedReport,
    /// One per provider, in the order of the report.
    pub events: Vec<UsageEvent>,
}
