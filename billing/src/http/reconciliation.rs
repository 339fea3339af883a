//! `/v1/reconciliation`: what was placed against what Stripe counts, per customer, meter and hour.

use axum::{Json, extract::State};
use ledger::ReconciliationRow;
use serde::Serialize;
use usage::{CustomerId, Hour, MeterId, Timestamp};
use utoipa::ToSchema;
use web::{Auth, Page, PageQuery, Problem, StrictJson, StrictQuery, codes, scope};

use super::{Desk, Nothing};
use crate::payments::ReconcileStatus;

#[derive(Serialize, ToSchema)]
pub(super) struct Reconciliation {
    customer_id: String,
    meter_id: String,
    #[schema(value_type = String)]
    hour: Hour,
    placed: String,
    seen: String,
    /// Placed less seen, or seen less placed.
    drift_tokens: String,
    /// Placements whose minute has not shown them.
    unsettled: u64,
    #[schema(value_type = String)]
    checked_at: Timestamp,
}

impl From<ReconciliationRow> for Reconciliation {
    fn from(row: ReconciliationRow) -> Reconciliation {
        Reconciliation {
            customer_id: row.customer.to_string(),
            meter_id: row.meter.to_string(),
            hour: row.hour,
            placed: row.placed.to_string(),
            seen: row.seen.to_string(),
            drift_tokens: row.placed.abs_diff(row.seen).to_string(),
            unsettled: row.unsettled,
            checked_at: row.checked_at,
        }
    }
}

/// Lists the hours as of their last comparison, newest first.
#[utoipa::path(get, path = "/v1/reconciliation", tag = "finance", security(("key" = [])),
    params(("limit" = Option<u32>, Query, description = "1 to 1000"), ("after" = Option<String>, Query, description = "the `next` of the page before")),
    responses((status = 200, description = "A page", body = inline(Vec<Reconciliation>))))]
pub(super) async fn list_reconciliation(
    Auth(caller, _): Auth<scope::Finance>,
    State(desk): State<Desk>,
    StrictQuery(query): StrictQuery<PageQuery>,
) -> Result<Json<Page<Reconciliation>>, Problem> {
    let limit = query.limit()?;
    let after = query.after.as_deref().map(cursor).transpose()?;
    let after = after.as_ref().map(|(hour, customer, meter)| (*hour, customer, meter));
    let rows = desk.ledger.reconciliation_list(&caller.platform, after, limit.saturating_add(1)).await?;
    let page = Page::cut(rows, limit, |row| format!("{}/{}/{}", row.hour.index(), row.meter, row.customer));
    Ok(Json(Page { data: page.data.into_iter().map(Reconciliation::from).collect(), next: page.next }))
}

/// The hour, the meter and, because it may hold a slash, last the customer.
fn cursor(text: &str) -> Result<(Hour, CustomerId, MeterId), Problem> {
    let parse = || {
        let mut parts = text.splitn(3, '/');
        let hour = Hour::from_index(parts.next()?.parse().ok()?)?;
        let meter = MeterId::parse(parts.next()?).ok()?;
        let customer = CustomerId::parse(parts.next()?).ok()?;
        Some((hour, customer, meter))
    };
    parse().ok_or_else(|| {
        Problem::new(&codes::INVALID_VALUE)
            .detail("`after` is the `next` of the page before, unchanged.")
            .pointer("/after")
    })
}

/// Compares what was sent with what Stripe counts, now. The worker does the same by itself.
#[utoipa::path(post, path = "/v1/reconciliation", tag = "finance", security(("key" = [])), request_body = Nothing,
    responses((status = 200, description = "What was found", body = ReconcileStatus),
        (status = 409, description = "payments_off"), (status = 503, description = "stripe_unavailable, busy")))]
pub(super) async fn run_reconciliation(
    Auth(caller, _): Auth<scope::Finance>,
    State(desk): State<Desk>,
    StrictJson(Nothing {}): StrictJson<Nothing>,
) -> Result<Json<ReconcileStatus>, Problem> {
    let status = desk.run(|payments| async move { payments.reconcile_of(Some(&caller.platform)).await });
    Ok(Json(status.await?))
}
