//! The first content of a turn, for the diff of a conflict: from the journal while it is there, else from the store.

use std::sync::Arc;

use usage::{
    CustomerId, FrameId, ProviderUsage, ReportRecord, ServedFrame, Timestamp, TurnReport, UsageEvent,
    UsageReport,
};
use usage_store::{EventRow, ReportRow};

use super::Desk;
use crate::journal::{IndexEntry, blocking};

impl Desk {
    pub(super) async fn first_report(&self, record: &ReportRecord, first: &IndexEntry) -> Option<TurnReport> {
        let (parts, entry) = (Arc::clone(&self.0), *first);
        if let Ok(Some(kept)) = blocking(move || parts.journal.record(&entry)).await {
            return TurnReport::from_json(&kept.body).ok();
        }
        let stored = self.0.store.report_get(&record.platform, record.report_key).await.ok()?;
        let row =
            stored.into_iter().find(|row| row.epoch == first.epoch && row.last_seq == first.last_seq)?;
        let mut events = self.0.store.events_of_turn(&record.platform, record.report_key).await.ok()?;
        events
            .retain(|event| event.epoch == row.epoch && (row.first_seq..=row.last_seq).contains(&event.seq));
        events.sort_by_key(|event| event.seq);
        rebuild(record, &row, &events)
    }
}

/// The report again, as far as its hash is over it.
fn rebuild(second: &ReportRecord, row: &ReportRow, events: &[EventRow]) -> Option<TurnReport> {
    if u32::try_from(events.len()).ok()? != row.events {
        return None;
    }
    let providers = events
        .iter()
        .map(|event| event.to_event().ok().map(provider))
        .collect::<Option<Vec<ProviderUsage>>>()?;
    let same_turn = second.audited.report();
    Some(TurnReport {
        customer_id: CustomerId::parse(row.customer.as_str()).ok()?,
        request_id: same_turn.request_id.clone(),
        turn_id: same_turn.turn_id.clone(),
        origin: None,
        report: UsageReport {
            budget_requested: row.budget_requested,
            budget_consumed: row.budget_consumed,
            as_of: Timestamp::from_micros(row.as_of).to_string(),
            providers,
        },
        consents: Vec::new(),
        legs: Vec::new(),
    })
}

fn provider(event: UsageEvent) -> ProviderUsage {
    let served_frames = event
        .frames
        .iter()
        .map(|frame| ServedFrame {
            frame: FrameId {
                provider_id: event.provider_id.clone(),
                frame_id: frame.frame_id.clone(),
                content_digest: frame.digest.as_ref().map(usage::Digest::to_received),
            },
            token_cost: frame.cost,
        })
        .collect();
    ProviderUsage {
        provider_id: event.provider_id,
        frames_served: event.frames_served,
        frames_rejected: event.frames_rejected,
        token_cost: event.tokens,
        served_frames,
    }
}
