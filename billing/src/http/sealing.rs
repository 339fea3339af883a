//! `/v1/windows`, `/v1/statements`, `/v1/heads` and `/v1/verify`: what was sealed, and whether it still says the same.

use axum::{Json, extract::State};
use ledger::{SealRunRow, StatementRow};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use usage::{CustomerId, Hour, Timestamp};
use utoipa::ToSchema;
use web::{Auth, Page, PageQuery, Problem, StrictJson, StrictPath, StrictQuery, codes, scope};

use super::Nothing;
use crate::billing::Billing;
use crate::{SealRequest, SealStatus, Verification, disputes};

#[derive(Serialize, ToSchema)]
pub(super) struct Statement {
    statement_id: String,
    customer_id: String,
    meter_id: String,
    #[schema(value_type = String)]
    hour: Hour,
    #[schema(value_type = String)]
    piece_start: Timestamp,
    #[schema(value_type = String)]
    piece_end: Timestamp,
    revision: u32,
    count: u64,
    /// Decimal.
    sum: String,
    root: String,
    hash: String,
    definition_hash: String,
    run_id: String,
    log_index: u64,
}

impl From<&StatementRow> for Statement {
    fn from(row: &StatementRow) -> Self {
        Self {
            statement_id: row.statement_id.clone(),
            customer_id: row.customer.to_string(),
            meter_id: row.meter.to_string(),
            hour: row.hour,
            piece_start: row.piece_start,
            piece_end: row.piece_end,
            revision: row.revision,
            count: row.count,
            sum: row.sum.to_string(),
            root: hex::encode(row.root),
            hash: hex::encode(row.statement_hash),
            definition_hash: hex::encode(row.definition_hash),
            run_id: row.run_id.clone(),
            log_index: row.log_index,
        }
    }
}

/// A statement as the API shows it.
pub(crate) fn statement_json(row: &StatementRow) -> Value {
    // A plain structure: it has nothing that could fail.
    serde_json::to_value(Statement::from(row)).unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatementQuery {
    customer_id: Option<String>,
    hour: Option<String>,
    limit: Option<u32>,
    after: Option<String>,
}

/// Lists statements in the order of the platform's log.
#[utoipa::path(get, path = "/v1/statements", tag = "read", security(("key" = [])),
    params(("customer_id" = Option<String>, Query, description = "Of this customer"), ("hour" = Option<String>, Query, description = "Of this hour, as `2026-11-30T12:00:00Z`"),
        ("limit" = Option<u32>, Query, description = "1 to 1000"), ("after" = Option<String>, Query, description = "the `next` of the page before")),
    responses((status = 200, description = "A page", body = inline(Vec<Statement>)), (status = 422, description = "invalid_value")))]
pub(super) async fn list_statements(
    Auth(caller, _): Auth<scope::Read>,
    State(billing): State<Billing>,
    StrictQuery(query): StrictQuery<StatementQuery>,
) -> Result<Json<Page<Statement>>, Problem> {
    let limit = web::limit(query.limit)?;
    let customer =
        query.customer_id.map(|id| super::parsed(CustomerId::parse(id), "/customer_id")).transpose()?;
    let hour = query.hour.map(|hour| super::hour(&hour, "/hour")).transpose()?;
    let after = super::place(query.after.as_deref())?;
    let rows = billing
        .inner()
        .ledger
        .statement_list(&caller.platform, customer.as_ref(), hour, after, limit.saturating_add(1))
        .await?;
    let page = rows.iter().map(Statement::from).collect();
    Ok(Json(Page::cut(page, limit, |statement: &Statement| statement.log_index.to_string())))
}

/// Shows one statement.
#[utoipa::path(get, path = "/v1/statements/{statement_id}", tag = "read", security(("key" = [])),
    params(("statement_id" = String, Path, description = "`stm_…`")),
    responses((status = 200, description = "The statement", body = Statement), (status = 404, description = "not_found")))]
pub(super) async fn get_statement(
    Auth(caller, _): Auth<scope::Read>,
    State(billing): State<Billing>,
    StrictPath(id): StrictPath<String>,
) -> Result<Json<Statement>, Problem> {
    let row = billing.inner().ledger.statement_get(&caller.platform, &id).await?;
    let row = row.filter(|row| row.recorded).ok_or_else(|| not_found(&format!("statement {id}")))?;
    Ok(Json(Statement::from(&row)))
}

/// Lists signed heads of the platform's log, the newest first.
#[utoipa::path(get, path = "/v1/heads", tag = "read", security(("key" = [])),
    params(("limit" = Option<u32>, Query, description = "1 to 1000"), ("after" = Option<String>, Query, description = "the `next` of the page before")),
    responses((status = 200, description = "A page of heads")))]
pub(super) async fn list_heads(
    Auth(caller, _): Auth<scope::Read>,
    State(billing): State<Billing>,
    StrictQuery(query): StrictQuery<PageQuery>,
) -> Result<Json<Page<Value>>, Problem> {
    let limit = query.limit()?;
    let below = query.after.as_deref().map(|after| super::place(Some(after))).transpose()?;
    let heads = billing.inner().ledger.head_list(&caller.platform, below, limit.saturating_add(1)).await?;
    let page = heads
        .into_iter()
        .map(|head| {
            disputes::signed(&caller.platform, head)
                .map(|head| serde_json::to_value(head).unwrap_or_default())
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Json(Page::cut(page, limit, |head| head["size"].to_string())))
}

/// Lists runs, the newest hours first, and the hours that stand still.
#[utoipa::path(get, path = "/v1/windows", tag = "finance", security(("key" = [])),
    params(("limit" = Option<u32>, Query, description = "1 to 1000"), ("after" = Option<String>, Query, description = "the `next` of the page before")),
    responses((status = 200, description = "A page of runs with the frozen hours")))]
pub(super) async fn list_windows(
    Auth(caller, _): Auth<scope::Finance>,
    State(billing): State<Billing>,
    StrictQuery(query): StrictQuery<PageQuery>,
) -> Result<Json<Value>, Problem> {
    let limit = query.limit()?;
    let below = query.after.as_deref().map(run_place).transpose()?;
    let ledger = &billing.inner().ledger;
    let runs = ledger.seal_run_page(&caller.platform, below, limit.saturating_add(1)).await?;
    let page = Page::cut(runs, limit, |run| format!("{}.{}", run.hour.index(), run.ordinal));
    let frozen: Vec<Value> = ledger
        .freeze_list(&caller.platform)
        .await?
        .into_iter()
        .map(|row| json!({"hour": row.hour, "reason": row.reason, "detail": row.detail, "found_at": row.found_at}))
        .collect();
    let data: Vec<Value> = page.data.iter().map(run_json).collect();
    Ok(Json(json!({"data": data, "frozen": frozen, "next": page.next})))
}

fn run_json(run: &SealRunRow) -> Value {
    json!({
        "run_id": run.run_id, "hour": run.hour, "ordinal": run.ordinal, "cut_id": run.cut_id, "events": run.events,
        "silent": run.silent, "deferred": run.deferred, "committed_at": run.committed_at, "recorded_at": run.recorded_at,
    })
}

fn run_place(text: &str) -> Result<(Hour, u64), Problem> {
    text.split_once('.')
        .and_then(|(hour, ordinal)| Some((Hour::from_index(hour.parse().ok()?)?, ordinal.parse().ok()?)))
        .ok_or_else(|| invalid("/after", "`after` is the `next` of the page before."))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunSeal {
    /// Waits neither for late reports nor for silent journals, only for the hour's end.
    #[serde(default)]
    force: bool,
    /// Only this hour, as `2026-11-30T12:00:00Z`.
    hour: Option<String>,
}

/// Seals the platform's hours that are due, now. The worker does the same by itself.
#[utoipa::path(post, path = "/v1/windows/seal", tag = "finance", security(("key" = [])), request_body = RunSeal,
    responses((status = 200, description = "What was sealed and why other hours wait", body = SealStatus), (status = 503, description = "busy, store_unavailable, ledger_unavailable")))]
pub(super) async fn seal_windows(
    Auth(caller, _): Auth<scope::Finance>,
    State(billing): State<Billing>,
    StrictJson(body): StrictJson<RunSeal>,
) -> Result<Json<SealStatus>, Problem> {
    let hour = body.hour.map(|hour| super::hour(&hour, "/hour")).transpose()?;
    let request = SealRequest { platform: Some(caller.platform), hour, force: body.force };
    // Goes on although its client went away: cut off in the middle it would leave its lease to run out.
    let task = tokio::spawn(async move { billing.seal_activate(request).await });
    let status = task.await.map_err(|error| Problem::new(&codes::INTERNAL).internal(&error))?;
    Ok(Json(status?))
}

/// Makes every statement of the platform again from what is stored and names the first difference. For the operator, also
/// looks for positions that the journals confirmed and the store lacks, of whatever platform.
#[utoipa::path(post, path = "/v1/verify", tag = "finance", security(("key" = [])), request_body = Nothing,
    responses((status = 200, description = "What was found", body = Verification), (status = 503, description = "store_unavailable, ledger_unavailable")))]
pub(super) async fn verify(
    Auth(caller, _): Auth<scope::Finance>,
    State(billing): State<Billing>,
    StrictJson(Nothing {}): StrictJson<Nothing>,
) -> Result<Json<Verification>, Problem> {
    let mut found = billing.verify(&caller.platform).await?;
    if found.ok && caller.operator {
        found.first_difference = billing.verify_journals().await?;
        found.ok = found.first_difference.is_none();
    }
    Ok(Json(found))
}

pub(super) fn invalid(pointer: &str, detail: &str) -> Problem {
    Problem::new(&codes::INVALID_VALUE).detail(detail).pointer(pointer)
}

pub(super) fn not_found(what: &str) -> Problem {
    Problem::new(&codes::NOT_FOUND).detail(format!("There is no {what}."))
}
