use clickhouse::Row;
use serde::Deserialize;
use usage::{ContentHash, CustomerId, Digest, EventId, FrameKey, PlatformId, ProviderId, Timestamp};

use crate::{StoreError, UsageStore, error::failed, rows::StoredDigest};

/// A frame's identity, as support has it.
#[derive(Debug, Clone)]
pub struct FrameQuery {
    pub provider: ProviderId,
    pub frame: FrameKey,
    /// Absent: whatever digest it was served with.
    pub digest: Option<Digest>,
    pub customer: Option<CustomerId>,
}

/// Where a page of hits ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameAfter {
    pub at: Timestamp,
    pub event: EventId,
    pub content: ContentHash,
    pub place: u32,
}

/// One serving of a frame, in one content of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameHit {
    pub event_id: EventId,
    pub content_hash: ContentHash,
    pub place: u32,
    pub digest: Option<Digest>,
    pub cost: u64,
    pub commitment: [u8; 32],
    pub customer: String,
    pub as_of: Timestamp,
}

impl FrameHit {
    pub fn after(&self) -> FrameAfter {
        FrameAfter { at: self.as_of, event: self.event_id, content: self.content_hash, place: self.place }
    }
}

#[derive(Row, Deserialize)]
struct HitRow {
    event_id: [u8; 16],
    content_hash: [u8; 32],
    place: u32,
    digest_kind: u8,
    digest_sha256: [u8; 32],
    digest_other: String,
    cost: u64,
    commitment: [u8; 32],
    customer: String,
    at: i64,
}

impl UsageStore {
    /// Where a frame was served, newest first.
    pub async fn frame_find(
        &self,
        platform: &PlatformId,
        query: &FrameQuery,
        after: Option<&FrameAfter>,
        limit: u32,
    ) -> Result<Vec<FrameHit>, StoreError> {
        let digest = StoredDigest::of(query.digest.as_ref());
        let rows: Vec<HitRow> = self
            .query(include_str!("../../../sql/clickhouse/queries/frames/find.sql"))
            .param("platform", platform.as_str())
            .param("provider", query.provider.as_str())
            .param("frame_id", query.frame.as_str())
            .param("digest_kind", digest.kind)
            .param("digest_sha256", hex::encode(digest.sha256))
            .param("digest_other", digest.other)
            .param("customer", query.customer.as_ref().map_or("", CustomerId::as_str))
            .param("first", after.is_none())
            .param("after_at", after.map_or(0, |a| a.at.as_micros()))
            .param("after_event", after.map_or_else(|| "00".repeat(16), |a| a.event.to_string()))
            .param("after_content", after.map_or_else(|| "00".repeat(32), |a| hex::encode(a.content.0)))
            .param("after_place", after.map_or(0, |a| a.place))
            .param("limit", limit)
            .fetch_all()
            .await
            .map_err(|error| failed("finding a frame", error))?;
        rows.into_iter().map(hit).collect()
    }
}

fn hit(row: HitRow) -> Result<FrameHit, StoreError> {
    let digest = StoredDigest { kind: row.digest_kind, sha256: row.digest_sha256, other: row.digest_other };
    Ok(FrameHit {
        event_id: EventId(row.event_id),
        content_hash: ContentHash(row.content_hash),
        place: row.place,
        digest: digest.digest().ok_or_else(|| StoreError::Corrupt {
            operation: "finding a frame",
            detail: format!("an unknown kind of digest at event {}", EventId(row.event_id)),
        })?,
        cost: row.cost,
        commitment: row.commitment,
        customer: row.customer,
        as_of: Timestamp::from_micros(row.at),
    })
}
