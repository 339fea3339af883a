//! Rows as they stand in the tables. Journals keep them too, so they read and write in any encoding.

use clickhouse::Row;
use serde::{Deserialize, Serialize};
use usage::{
    Commitment, ContentHash, CustomerId, Digest, EventFrame, EventId, EventKind, FrameKey, Hour, PlatformId,
    Position, ProviderId, ReportHash, ReportKey, ReportRecord, RequestId, Salt, Timestamp, TurnId,
    UsageEvent,
};

use crate::StoreError;

/// One row of `usage_events`.
#[derive(Debug, Clone, PartialEq, Eq, Row, Serialize, Deserialize)]
pub struct EventRow {
    pub platform: String,
    pub hour: i64,
    pub customer: String,
    pub event_id: [u8; 16],
    pub content_hash: [u8; 32],
    pub epoch: u64,
    pub seq: u64,
    pub kind: String,
    pub provider: String,
    pub request: String,
    pub turn: String,
    pub report_key: [u8; 16],
    pub report_hash: [u8; 32],
    /// Microseconds since 1970, UTC; as is `received_at`.
    pub as_of: i64,
    pub received_at: i64,
    pub tokens: u64,
    pub frames_served: u32,
    pub frames_rejected: u32,
    pub salt: [u8; 32],
    pub warnings: Vec<String>,
    #[serde(rename = "frames.frame_id")]
    pub frame_ids: Vec<String>,
    #[serde(rename = "frames.digest_kind")]
    pub digest_kinds: Vec<u8>,
    #[serde(rename = "frames.digest_sha256")]
    pub digest_sha256s: Vec<[u8; 32]>,
    #[serde(rename = "frames.digest_other")]
    pub digest_others: Vec<String>,
    #[serde(rename = "frames.cost")]
    pub costs: Vec<u64>,
    #[serde(rename = "frames.commitment")]
    pub commitments: Vec<[u8; 32]>,
}

impl EventRow {
    pub fn new(event: &UsageEvent, position: Position, received_at: Timestamp) -> Self {
        let digests: Vec<StoredDigest> =
            event.frames.iter().map(|frame| StoredDigest::of(frame.digest.as_ref())).collect();
        Self {
            platform: event.platform.as_str().to_owned(),
            hour: Hour::of(event.as_of).index(),
            customer: event.customer.as_str().to_owned(),
            event_id: event.event_id.0,
            content_hash: event.content_hash.0,
            epoch: position.epoch,
            seq: position.seq,
            kind: event.kind.as_str().to_owned(),
            provider: event.provider_id.as_str().to_owned(),
            request: event.request_id.as_str().to_owned(),
            turn: event.turn_id.as_str().to_owned(),
            report_key: event.report_key.0,
            report_hash: event.report_hash.0,
            as_of: event.as_of.as_micros(),
            received_at: received_at.as_micros(),
            tokens: event.tokens,
            frames_served: event.frames_served,
            frames_rejected: event.frames_rejected,
            salt: event.salt.0,
            warnings: event.warnings.clone(),
            frame_ids: event.frames.iter().map(|frame| frame.frame_id.as_str().to_owned()).collect(),
            digest_kinds: digests.iter().map(|digest| digest.kind).collect(),
            digest_sha256s: digests.iter().map(|digest| digest.sha256).collect(),
            digest_others: digests.into_iter().map(|digest| digest.other).collect(),
            costs: event.frames.iter().map(|frame| frame.cost).collect(),
            commitments: event.frames.iter().map(|frame| frame.commitment.0).collect(),
        }
    }

    pub fn position(&self) -> Position {
        Position { epoch: self.epoch, seq: self.seq }
    }

    /// The partition that the row belongs to, as `yyyymm`: a function of its time alone.
    pub fn month(&self) -> u32 {
        month(self.as_of)
    }

    /// The event again, as it was accepted.
    ///
    /// # Errors
    ///
    /// `Corrupt` when the row could not have been written by us: an id out of its bounds, or lists of unequal length.
    pub fn to_event(&self) -> Result<UsageEvent, StoreError> {
        let corrupt = |detail: &str| StoreError::Corrupt {
            operation: "reading an event",
            detail: format!("event {}: {detail}", EventId(self.event_id)),
        };
        let places = self.frame_ids.len();
        let lists = [
            self.digest_kinds.len(),
            self.digest_sha256s.len(),
            self.digest_others.len(),
            self.costs.len(),
            self.commitments.len(),
        ];
        if lists.iter().any(|length| *length != places) {
            return Err(corrupt("lists of frames of unequal length"));
        }
        let mut frames = Vec::with_capacity(places);
        let identities = self.frame_ids.iter().zip(&self.digest_kinds);
        let digests = self.digest_sha256s.iter().zip(&self.digest_others);
        let costs = self.costs.iter().zip(&self.commitments);
        for (((frame_id, kind), (sha256, other)), (cost, commitment)) in identities.zip(digests).zip(costs) {
            let digest = StoredDigest { kind: *kind, sha256: *sha256, other: other.clone() };
            frames.push(EventFrame {
                frame_id: FrameKey::parse(frame_id.clone()).map_err(|_| corrupt("a frame id"))?,
                digest: digest.digest().ok_or_else(|| corrupt("a kind of digest"))?,
                cost: *cost,
                commitment: Commitment(*commitment),
            });
        }
        Ok(UsageEvent {
            kind: EventKind::parse(&self.kind).ok_or_else(|| corrupt("its kind"))?,
            platform: PlatformId::parse(self.platform.clone()).map_err(|_| corrupt("its platform"))?,
            customer: CustomerId::parse(self.customer.clone()).map_err(|_| corrupt("its customer"))?,
            request_id: RequestId::parse(self.request.clone()).map_err(|_| corrupt("its request"))?,
            turn_id: TurnId::parse(self.turn.clone()).map_err(|_| corrupt("its turn"))?,
            provider_id: ProviderId::parse(self.provider.clone()).map_err(|_| corrupt("its provider"))?,
            event_id: EventId(self.event_id),
            report_key: ReportKey(self.report_key),
            as_of: Timestamp::from_micros(self.as_of),
            tokens: self.tokens,
            frames_served: self.frames_served,
            frames_rejected: self.frames_rejected,
            salt: Salt(self.salt),
            content_hash: ContentHash(self.content_hash),
            report_hash: ReportHash(self.report_hash),
            frames,
            warnings: self.warnings.clone(),
        })
    }
}

/// One row of `reports`.
#[derive(Debug, Clone, PartialEq, Eq, Row, Serialize, Deserialize)]
pub struct ReportRow {
    pub platform: String,
    pub report_key: [u8; 16],
    pub report_hash: [u8; 32],
    pub epoch: u64,
    pub first_seq: u64,
    pub last_seq: u64,
    pub request: String,
    pub turn: String,
    pub customer: String,
    pub hour: i64,
    /// Microseconds since 1970, UTC; as is `received_at`.
    pub as_of: i64,
    pub received_at: i64,
    pub budget_requested: u64,
    pub budget_consumed: u64,
    pub events: u32,
    pub tokens: u64,
    pub warnings: String,
    pub origin: String,
    pub consents: String,
    pub legs: String,
}

impl ReportRow {
    pub fn new(
        record: &ReportRecord,
        epoch: u64,
        first_seq: u64,
        last_seq: u64,
        received_at: Timestamp,
    ) -> Self {
        let report = record.audited.report();
        let as_of = record.audited.as_of();
        Self {
            platform: record.platform.as_str().to_owned(),
            report_key: record.report_key.0,
            report_hash: record.report_hash.0,
            epoch,
            first_seq,
            last_seq,
            request: report.request_id.as_str().to_owned(),
            turn: report.turn_id.as_str().to_owned(),
            customer: report.customer_id.as_str().to_owned(),
            hour: Hour::of(as_of).index(),
            as_of: as_of.as_micros(),
            received_at: received_at.as_micros(),
            budget_requested: report.report.budget_requested,
            budget_consumed: report.report.budget_consumed,
            events: u32::try_from(record.events.len()).unwrap_or(u32::MAX), // 1024 at most, by the report's limits
            tokens: record.audited.tokens(),
            warnings: json(&record.audited.warnings()),
            origin: report.origin.as_ref().map(json).unwrap_or_default(),
            consents: json(&report.consents),
            legs: json(&report.legs),
        }
    }

    pub fn month(&self) -> u32 {
        month(self.as_of)
    }
}

fn json<T: Serialize>(value: &T) -> String {
    // Our own plain structures: they have no map keys that could fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// `toYYYYMM` in UTC, from the text form of the time.
fn month(micros: i64) -> u32 {
    let text = Timestamp::from_micros(micros).to_string();
    let digits: String = text.chars().take(7).filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// A digest in three columns.
pub(crate) struct StoredDigest {
    pub(crate) kind: u8,
    pub(crate) sha256: [u8; 32],
    pub(crate) other: String,
}

impl StoredDigest {
    pub(crate) fn of(digest: Option<&Digest>) -> Self {
        match digest {
            None => Self { kind: 0, sha256: [0; 32], other: String::new() },
            Some(Digest::Sha256(bytes)) => Self { kind: 1, sha256: *bytes, other: String::new() },
            Some(Digest::Other(text)) => Self { kind: 2, sha256: [0; 32], other: text.clone() },
        }
    }

    /// Outer none: not a kind that we write.
    pub(crate) fn digest(self) -> Option<Option<Digest>> {
        match self.kind {
            0 => Some(None),
            1 => Some(Some(Digest::Sha256(self.sha256))),
            2 => Some(Some(Digest::Other(self.other))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::month;

    #[test]
    fn a_month_is_of_the_time_in_utc() {
        assert_eq!(month(0), 197_001);
        assert_eq!(month(-1), 196_912);
        assert_eq!(month(1_796_083_199_999_999), 202_611);
        assert_eq!(month(1_796_083_200_000_000), 202_612);
    }
}
