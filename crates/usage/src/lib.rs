#![doc = include_str!("../README.md")]

mod ack;
mod audit;
mod encode;
mod event;
mod ids;
mod quantity;
mod report;
mod time;
mod words;

pub use ack::{Acknowledgement, AcknowledgementBody, Position};
pub use audit::{AuditPolicy, AuditedReport, Finding, Rejection, audit, audit_content};
pub use encode::Encoder;
pub use event::{
    Difference, Digest, ErasureKey, EventFrame, EventKind, ReportRecord, UsageEvent, UsageEventParts,
    frame_commitment, report_diff,
};
pub use ids::{
    Commitment, ContentHash, CustomerId, EventId, FrameKey, HexError, HostId, IdError, MeterId, PlatformId,
    ProviderId, ReportHash, ReportKey, RequestId, Salt, StreamId, TurnId,
};
pub use quantity::{EventFacts, MeterDefinition, MeterFilter, Quantity};
pub use report::{
    ConsentReceipt, FrameId, Grantor, GrantorKind, Leg, LegOutcome, Limits, Origin, ProviderUsage,
    ServedFrame, TurnReport, UsageReport,
};
pub use time::{Clock, Hour, ManualClock, SharedClock, SystemClock, TimeError, Timestamp};
