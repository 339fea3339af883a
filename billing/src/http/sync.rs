//! `/v1/sync`: what Stripe was told, and what waits.

use axum::{Json, extract::State};
use ledger::SyncWaitRow;
use serde::{Deserialize, Serialize};
use usage::Timestamp;
use utoipa::ToSchema;
use web::{Auth, Page, PageQuery, Problem, StrictJson, StrictQuery, scope};

use super::Desk;
use crate::payments::{PlatformSync, SyncRequest, SyncStatus, sync_view};

#[derive(Serialize, ToSchema)]
pub(super) struct Sync {
    #[serde(flatten)]
    platform: PlatformSync,
    /// The statements that wait, each with its reason.
    data: Vec<Wait>,
    next: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Wait {
    statement_id: String,
    customer_id: String,
    meter_id: String,
    sum: String,
    reason: String,
    #[schema(value_type = String)]
    since: Timestamp,
}

impl From<SyncWaitRow> for Wait {
    fn from(row: SyncWaitRow) -> Wait {
        Wait {
            statement_id: row.statement_id,
            customer_id: row.customer.to_string(),
            meter_id: row.meter.to_string(),
            sum: row.sum.to_string(),
            reason: row.reason,
            since: row.since,
        }
    }
}

/// Shows the mode, the placements by state, and the statements that wait.
#[utoipa::path(get, path = "/v1/sync", tag = "finance", security(("key" = [])),
    params(("limit" = Option<u32>, Query, description = "1 to 1000"), ("after" = Option<String>, Query, description = "the `next` of the page before")),
    responses((status = 200, description = "The platform's sync, with a page of what waits", body = Sync)))]
pub(super) async fn show_sync(
    Auth(caller, _): Auth<scope::Finance>,
    State(desk): State<Desk>,
    StrictQuery(query): StrictQuery<PageQuery>,
) -> Result<Json<Sync>, Problem> {
    let limit = query.limit()?;
    let after = query.after.unwrap_or_default();
    let platform = desk.ledger.platform_get(&caller.platform).await?;
    let view = sync_view(&desk.ledger, &platform, desk.payments.as_ref()).await?;
    let rows = desk.ledger.sync_wait_list(&caller.platform, &after, limit.saturating_add(1)).await?;
    let page = Page::cut(rows.into_iter().map(Wait::from).collect(), limit, |wait| wait.statement_id.clone());
    Ok(Json(Sync { platform: view, data: page.data, next: page.next }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunSync {
    /// Makes a next placement of each that Stripe refused. For after the cause was put right.
    #[serde(default)]
    retry_refused: bool,
}

/// Reads the subscriptions, plans what is new and sends what is planned, now. The worker does the same by itself.
#[utoipa::path(post, path = "/v1/sync", tag = "finance", security(("key" = [])), request_body = RunSync,
    responses((status = 200, description = "What was done", body = SyncStatus),
        (status = 409, description = "payments_off"), (status = 503, description = "stripe_unavailable, busy")))]
pub(super) async fn run_sync(
    Auth(caller, _): Auth<scope::Finance>,
    State(desk): State<Desk>,
    StrictJson(body): StrictJson<RunSync>,
) -> Result<Json<SyncStatus>, Problem> {
    let status = desk.run(move |payments| async move {
        payments.subscriptions_of(Some(&caller.platform)).await?;
        let request = SyncRequest { platform: Some(caller.platform), retry_refused: body.retry_refused };
        payments.sync_activate(request).await
    });
    Ok(Json(status.await?))
}
