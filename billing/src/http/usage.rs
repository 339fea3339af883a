//! `/v1/usage`, `/v1/events` and `/v1/conflicts`: what is stored.

use std::collections::HashSet;

use axum::{Json, extract::State};
use serde::Deserialize;
use serde_json::{Value, json};
use usage::{EventId, Hour, ReportKey, Timestamp, UsageEvent};
use usage_store::{EventRow, UsageFilter, UsageKey};
use web::{Auth, PageQuery, Problem, StrictPath, StrictQuery, scope};

use super::sealing::{invalid, not_found};
use crate::BillingError;
use crate::billing::Billing;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageQuery {
    customer_id: Option<String>,
    provider_id: Option<String>,
    from: Option<String>,
    until: Option<String>,
    limit: Option<u32>,
    after: Option<String>,
}

/// Sums usage by customer, provider and hour, of what is stored and not in conflict.
#[utoipa::path(get, path = "/v1/usage", tag = "read", security(("key" = [])),
    params(("customer_id" = Option<String>, Query, description = "Of this customer"), ("provider_id" = Option<String>, Query, description = "Of this provider"),
        ("from" = Option<String>, Query, description = "From this hour on; by default the last 31 days"), ("until" = Option<String>, Query, description = "Before this hour"),
        ("limit" = Option<u32>, Query, description = "1 to 1000"), ("after" = Option<String>, Query, description = "the `next` of the page before")),
    responses((status = 200, description = "A page, with the total of all pages"), (status = 422, description = "invalid_value")))]
pub(super) async fn list_usage(
    Auth(caller, _): Auth<scope::Read>,
    State(billing): State<Billing>,
    StrictQuery(query): StrictQuery<UsageQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = web::limit(query.limit)?;
    let now = Hour::of(billing.inner().clock.now());
    let hour = |text: Option<String>, pointer: &str, default: i64| match text {
        Some(text) => super::hour(&text, pointer),
        None => now
            .index()
            .checked_add(default)
            .and_then(Hour::from_index)
            .ok_or_else(|| invalid(pointer, "The hour is out of range.")),
    };
    let filter = UsageFilter {
        from: hour(query.from, "/from", -31 * 24)?,
        until: hour(query.until, "/until", 2)?,
        customer: query.customer_id,
        provider: query.provider_id,
    };
    let after = query.after.as_deref().map(usage_key).transpose()?;
    let store = &billing.inner().store;
    let lines = store
        .usage_list(&caller.platform, &filter, after.as_ref(), limit.saturating_add(1))
        .await
        .map_err(BillingError::from)?;
    let total = store.usage_total(&caller.platform, &filter).await.map_err(BillingError::from)?;
    let page =
        web::Page::cut(lines, limit, |line| json!([line.customer, line.provider, line.hour]).to_string());
    let data: Vec<Value> = page
        .data
        .iter()
        .map(|line| {
            json!({
                "customer_id": line.customer, "provider_id": line.provider, "hour": Hour::from_index(line.hour),
                "tokens": line.tokens.to_string(), "frames": line.frames.to_string(), "events": line.events.to_string(),
            })
        })
        .collect();
    let total = json!({
        "tokens": total.tokens.to_string(), "frames": total.frames.to_string(), "events": total.events.to_string(),
    });
    Ok(Json(json!({"data": data, "total": total, "next": page.next})))
}

fn usage_key(text: &str) -> Result<UsageKey, Problem> {
    let (customer, provider, hour) = serde_json::from_str(text)
        .map_err(|_| invalid("/after", "`after` is the `next` of the page before."))?;
    Ok(UsageKey { customer, provider, hour })
}

/// Shows one event with its frames; in conflict, with every content that was reported, the first of them on top.
#[utoipa::path(get, path = "/v1/events/{event_id}", tag = "read", security(("key" = [])),
    params(("event_id" = String, Path, description = "32 hexadecimal digits")),
    responses((status = 200, description = "The event"), (status = 404, description = "not_found")))]
pub(super) async fn get_event(
    Auth(caller, _): Auth<scope::Read>,
    State(billing): State<Billing>,
    StrictPath(id): StrictPath<String>,
) -> Result<Json<Value>, Problem> {
    let event: EventId =
        id.parse().map_err(|_| invalid("/event_id", "An event's id has 32 hexadecimal digits."))?;
    let copies =
        billing.inner().store.event_get(&caller.platform, event).await.map_err(BillingError::from)?;
    let first = copies.first().ok_or_else(|| not_found(&format!("event {id}")))?;
    let mut body = event_json(&first.to_event().map_err(BillingError::from)?, first);
    if let Some(members) = body.as_object_mut() {
        let conflict = copies.iter().any(|copy| copy.report_hash != first.report_hash);
        members.insert("in_conflict".to_owned(), json!(conflict));
        members.insert("copies".to_owned(), json!(copies.len()));
        if conflict {
            let mut seen = HashSet::new();
            let contents = copies
                .iter()
                .filter(|copy| seen.insert(copy.report_hash))
                .map(|copy| copy.to_event().map(|event| event_json(&event, copy)))
                .collect::<Result<Vec<_>, _>>()
                .map_err(BillingError::from)?;
            members.insert("contents".to_owned(), json!(contents));
        }
    }
    Ok(Json(body))
}

pub(super) fn event_json(event: &UsageEvent, row: &EventRow) -> Value {
    let frames: Vec<Value> = event
        .frames
        .iter()
        .map(|frame| {
            json!({
                "frame_id": frame.frame_id, "content_digest": frame.digest.as_ref().map(usage::Digest::to_received),
                "tokens": frame.cost, "commitment": frame.commitment,
            })
        })
        .collect();
    json!({
        "event_id": event.event_id, "kind": event.kind.as_str(), "customer_id": event.customer,
        "request_id": event.request_id, "turn_id": event.turn_id, "provider_id": event.provider_id,
        "as_of": event.as_of, "tokens": event.tokens, "frames_served": event.frames_served,
        "frames_rejected": event.frames_rejected, "salt": event.salt, "content_hash": event.content_hash,
        "report_hash": event.report_hash, "warnings": event.warnings, "frames": frames,
        "position": { "epoch": row.epoch, "seq": row.seq },
        "received_at": Timestamp::from_micros(row.received_at),
    })
}

/// Lists reports of which two contents are stored: both are kept, neither is counted until a person decides.
#[utoipa::path(get, path = "/v1/conflicts", tag = "support", security(("key" = [])),
    params(("limit" = Option<u32>, Query, description = "1 to 1000"), ("after" = Option<String>, Query, description = "the `next` of the page before")),
    responses((status = 200, description = "A page of conflicts")))]
pub(super) async fn list_conflicts(
    Auth(caller, _): Auth<scope::Support>,
    State(billing): State<Billing>,
    StrictQuery(query): StrictQuery<PageQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = query.limit()?;
    let after = query.after.as_deref().map(report_key).transpose()?;
    let rows = billing
        .inner()
        .store
        .conflict_list(&caller.platform, None, after, limit.saturating_add(1))
        .await
        .map_err(BillingError::from)?;
    let page = web::Page::cut(rows, limit, |row| hex::encode(row.report_key));
    let data: Vec<Value> = page
        .data
        .iter()
        .map(|row| {
            json!({
                "report_key": hex::encode(row.report_key), "request_id": row.request, "turn_id": row.turn,
                "hour": Hour::from_index(row.first_hour), "contents": row.contents,
                "first_received_at": Timestamp::from_micros(row.first_received),
                "last_received_at": Timestamp::from_micros(row.last_received),
            })
        })
        .collect();
    Ok(Json(json!({"data": data, "next": page.next})))
}

fn report_key(text: &str) -> Result<ReportKey, Problem> {
    let mut key = [0; 16];
    hex::decode_to_slice(text, &mut key)
        .map_err(|_| invalid("/after", "`after` is the `next` of the page before."))?;
    Ok(ReportKey(key))
}
