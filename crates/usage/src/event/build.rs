use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::{Digest, ErasureKey, EventFrame, EventKind, ReportRecord, UsageEvent};
use crate::{
    AuditedReport, Commitment, ContentHash, CustomerId, Encoder, EventId, FrameKey, PlatformId, ProviderId,
    ProviderUsage, ReportHash, ReportKey, Salt, Timestamp,
};

impl ReportRecord {
    /// Pure: the same report under the same key gives the same record, whichever replica builds it.
    pub fn build(platform: &PlatformId, audited: &AuditedReport, erasure: &ErasureKey) -> Self {
        let report = audited.report();
        let report_key = ReportKey::new(platform, &report.request_id, &report.turn_id);
        let mut events: Vec<UsageEvent> = report
            .report
            .providers
            .iter()
            .enumerate()
            .map(|(at, provider)| event(platform, report_key, audited, erasure, at, provider))
            .collect();
        let report_hash = ReportHash(
            Encoder::new("cm.report.1")
                .text(report.customer_id.as_str())
                .i64(audited.as_of().as_micros())
                .u64(report.report.budget_requested)
                .u64(report.report.budget_consumed)
                .list(&events, |encoder, event: &UsageEvent| encoder.fixed(&event.content_hash.0))
                .hash(),
        );
        for event in &mut events {
            event.report_hash = report_hash;
        }
        Self { platform: platform.clone(), report_key, report_hash, audited: audited.clone(), events }
    }
}

fn event(
    platform: &PlatformId,
    report_key: ReportKey,
    audited: &AuditedReport,
    erasure: &ErasureKey,
    at: usize,
    provider: &ProviderUsage,
) -> UsageEvent {
    let report = audited.report();
    let event_id = EventId::context(platform, &report.request_id, &report.turn_id, &provider.provider_id);
    let salt = Salt::of_event(erasure, event_id);
    let frames: Vec<EventFrame> = provider
        .served_frames
        .iter()
        .zip(0u32..)
        .map(|(served, place)| EventFrame {
            frame_id: served.frame.frame_id.clone(),
            digest: served.frame.content_digest.as_deref().map(Digest::from_received),
            cost: served.token_cost,
            commitment: frame_commitment(
                salt,
                place,
                &provider.provider_id,
                &served.frame.frame_id,
                served.frame.content_digest.as_deref(),
            ),
        })
        .collect();
    let content_hash = UsageEventParts {
        event_id,
        customer: &report.customer_id,
        as_of: audited.as_of(),
        tokens: provider.token_cost,
        frames_served: provider.frames_served,
        frames_rejected: provider.frames_rejected,
    }
    .content_hash(frames.iter().map(|frame| (frame.cost, frame.commitment)));
    UsageEvent {
        kind: EventKind::Context,
        platform: platform.clone(),
        customer: report.customer_id.clone(),
        request_id: report.request_id.clone(),
        turn_id: report.turn_id.clone(),
        provider_id: provider.provider_id.clone(),
        event_id,
        report_key,
        as_of: audited.as_of(),
        tokens: provider.token_cost,
        frames_served: provider.frames_served,
        frames_rejected: provider.frames_rejected,
        salt,
        content_hash,
        report_hash: ReportHash([0; 32]), // set when all content hashes are known
        frames,
        warnings: audited.warnings_of(at),
    }
}

/// What a content hash is over besides its frames. Also what an auditor has after the identities were erased.
#[derive(Debug, Clone, Copy)]
pub struct UsageEventParts<'a> {
    pub event_id: EventId,
    pub customer: &'a CustomerId,
    pub as_of: Timestamp,
    pub tokens: u64,
    pub frames_served: u32,
    pub frames_rejected: u32,
}

impl UsageEventParts<'_> {
    pub fn content_hash<I>(&self, frames: I) -> ContentHash
    where
        I: IntoIterator<Item = (u64, Commitment), IntoIter: ExactSizeIterator>,
    {
        let encoder = Encoder::new("cm.event.1")
            .fixed(&self.event_id.0)
            .text(self.customer.as_str())
            .i64(self.as_of.as_micros())
            .u64(self.tokens)
            .u32(self.frames_served)
            .u32(self.frames_rejected)
            .list(frames, |encoder, (cost, commitment): (u64, Commitment)| {
                encoder.u64(cost).fixed(&commitment.0)
            });
        ContentHash(encoder.hash())
    }
}

impl UsageEvent {
    /// The content hash again, from what the event holds: what a reader compares with the stored one.
    pub fn recompute_content_hash(&self) -> ContentHash {
        UsageEventParts {
            event_id: self.event_id,
            customer: &self.customer,
            as_of: self.as_of,
            tokens: self.tokens,
            frames_served: self.frames_served,
            frames_rejected: self.frames_rejected,
        }
        .content_hash(self.frames.iter().map(|frame| (frame.cost, frame.commitment)))
    }
}

impl Salt {
    pub fn of_event(erasure: &ErasureKey, event: EventId) -> Self {
        Self(hmac(erasure.expose(), &event.0))
    }

    /// The salt of one frame: each has its own, so that opening one tells nothing about its neighbours.
    pub fn of_frame(self, place: u32) -> Self {
        Self(hmac(&self.0, &place.to_be_bytes()))
    }
}

fn hmac(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    // A key shorter than the hash's block is filled with zeros by definition; done here, nothing can fail.
    let mut block = Zeroizing::new([0; 64]);
    for (to, from) in block.iter_mut().zip(key) {
        *to = *from;
    }
    let mut mac = Hmac::<Sha256>::new((&*block).into());
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// The commitment of the frame at a place of an event, under the event's salt.
pub fn frame_commitment(
    event_salt: Salt,
    place: u32,
    provider: &ProviderId,
    frame: &FrameKey,
    digest: Option<&str>,
) -> Commitment {
    Commitment(
        Encoder::new("cm.frame.1")
            .fixed(&event_salt.of_frame(place).0)
            .text(provider.as_str())
            .text(frame.as_str())
            .option(digest, |encoder, digest: &str| encoder.text(digest))
            .hash(),
    )
}
