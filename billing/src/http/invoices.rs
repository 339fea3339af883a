//! `/v1/invoices`: what Stripe bills, and what holds it.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use ledger::{InvoiceLineRow, InvoiceRow};
use serde::Serialize;
use usage::Timestamp;
use utoipa::ToSchema;
use web::{Auth, Page, PageQuery, Problem, StrictJson, StrictPath, StrictQuery, codes, scope};

use super::{Desk, Nothing};
use crate::payments::GuardStatus;

#[derive(Serialize, ToSchema)]
pub(super) struct Invoice {
    invoice_id: String,
    customer_id: String,
    stripe_customer: String,
    subscription_id: Option<String>,
    /// `found`, `closed`, `held`, `finalized` or `dead`.
    status: String,
    /// Why it waits or is held.
    reason: Option<String>,
    /// `matched`, `shortfall`, `excess` or `not_compared`, once it is final.
    verdict: Option<String>,
    /// Placed in its periods, and counted on its lines.
    expected: Option<String>,
    billed: Option<String>,
    /// From the first to the last instant of the usage that it bills.
    #[schema(value_type = Option<String>)]
    period_start: Option<Timestamp>,
    #[schema(value_type = Option<String>)]
    period_end: Option<Timestamp>,
    /// Over the placements of its periods and their statements; the same text is `contextmeter_root` in its metadata at Stripe.
    root: Option<String>,
    lines: Vec<Line>,
    #[schema(value_type = String)]
    created_at: Timestamp,
    #[schema(value_type = Option<String>)]
    finalizes_at: Option<Timestamp>,
    #[schema(value_type = Option<String>)]
    finalized_at: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Line {
    line_id: String,
    /// Absent from lines that bill none of our meters.
    meter_id: Option<String>,
    /// Units; absent where Stripe's number is not whole.
    quantity: Option<String>,
    /// In the smallest unit of the currency.
    amount: i64,
    currency: String,
    price_id: Option<String>,
    subscription_item: Option<String>,
    #[schema(value_type = String)]
    period_start: Timestamp,
    #[schema(value_type = String)]
    period_end: Timestamp,
    description: Option<String>,
    /// Of the final invoice; a draft's lines may still change.
    is_final: bool,
}

impl Line {
    fn of(row: InvoiceLineRow) -> Line {
        Line {
            line_id: row.line_id,
            meter_id: row.meter.map(|meter| meter.to_string()),
            quantity: row.quantity.map(|quantity| quantity.to_string()),
            amount: row.amount,
            currency: row.currency,
            price_id: row.price_id,
            subscription_item: row.item_id,
            period_start: row.period_start,
            period_end: row.period_end,
            description: row.description,
            is_final: row.last,
        }
    }
}

impl Invoice {
    fn of(row: InvoiceRow, lines: Vec<InvoiceLineRow>) -> Invoice {
        let metered = || lines.iter().filter(|line| line.meter.is_some());
        Invoice {
            period_start: metered().map(|line| line.period_start).min(),
            period_end: metered().map(|line| line.period_end).max(),
            invoice_id: row.invoice_id,
            customer_id: row.customer.to_string(),
            stripe_customer: row.stripe_customer,
            subscription_id: row.subscription_id,
            status: row.state,
            reason: row.reason,
            verdict: row.verdict,
            expected: row.expected.map(|sum| sum.to_string()),
            billed: row.billed.map(|sum| sum.to_string()),
            root: row.root.map(hex::encode),
            lines: lines.into_iter().map(Line::of).collect(),
            created_at: row.created_at,
            finalizes_at: row.finalizes_at,
            finalized_at: row.finalised_at,
        }
    }
}

/// Lists the invoices that came into our hands, with their lines.
#[utoipa::path(get, path = "/v1/invoices", tag = "finance", security(("key" = [])),
    params(("limit" = Option<u32>, Query, description = "1 to 1000"), ("after" = Option<String>, Query, description = "the `next` of the page before")),
    responses((status = 200, description = "A page", body = inline(Vec<Invoice>))))]
pub(super) async fn list_invoices(
    Auth(caller, _): Auth<scope::Finance>,
    State(desk): State<Desk>,
    StrictQuery(query): StrictQuery<PageQuery>,
) -> Result<Json<Page<Invoice>>, Problem> {
    let limit = query.limit()?;
    let after = query.after.unwrap_or_default();
    let rows = desk.ledger.invoice_list(&caller.platform, &after, limit.saturating_add(1)).await?;
    let page = Page::cut(rows, limit, |row| row.invoice_id.clone());
    let mut lines: BTreeMap<String, Vec<InvoiceLineRow>> = BTreeMap::new();
    if let (Some(first), Some(last)) = (page.data.first(), page.data.last()) {
        for line in
            desk.ledger.invoice_lines_between(&caller.platform, &first.invoice_id, &last.invoice_id).await?
        {
            lines.entry(line.invoice_id.clone()).or_default().push(line);
        }
    }
    let data = page.data.into_iter().map(|row| {
        let lines = lines.remove(&row.invoice_id).unwrap_or_default();
        Invoice::of(row, lines)
    });
    Ok(Json(Page { data: data.collect(), next: page.next }))
}

/// Shows one invoice.
#[utoipa::path(get, path = "/v1/invoices/{invoice_id}", tag = "finance", security(("key" = [])),
    params(("invoice_id" = String, Path, description = "in_…")),
    responses((status = 200, description = "The invoice", body = Invoice), (status = 404, description = "not_found")))]
pub(super) async fn get_invoice(
    Auth(caller, _): Auth<scope::Finance>,
    State(desk): State<Desk>,
    StrictPath(invoice_id): StrictPath<String>,
) -> Result<Json<Invoice>, Problem> {
    let Some(row) = desk.ledger.invoice_get(&caller.platform, &invoice_id).await? else {
        return Err(
            Problem::new(&codes::NOT_FOUND).detail("There is no such invoice; GET /v1/invoices lists them.")
        );
    };
    let lines = desk.ledger.invoice_lines(&caller.platform, &invoice_id).await?;
    Ok(Json(Invoice::of(row, lines)))
}

/// Takes drafts into our hands and finalises those whose usage agrees, now. The worker does the same by itself.
#[utoipa::path(post, path = "/v1/invoices/guard", tag = "finance", security(("key" = [])), request_body = Nothing,
    responses((status = 200, description = "What was found and done", body = GuardStatus),
        (status = 409, description = "payments_off"), (status = 503, description = "stripe_unavailable, busy")))]
pub(super) async fn guard_invoices(
    Auth(caller, _): Auth<scope::Finance>,
    State(desk): State<Desk>,
    StrictJson(Nothing {}): StrictJson<Nothing>,
) -> Result<Json<GuardStatus>, Problem> {
    Ok(Json(desk.run(|payments| async move { payments.guard_of(Some(&caller.platform)).await }).await?))
}
