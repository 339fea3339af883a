//! `/v1/delegations`: budgets.

use axum::{Json, extract::State};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use usage::{CustomerId, Timestamp};
use utoipa::ToSchema;
use web::{Auth, Page, PageQuery, Problem, StrictJson, StrictPath, StrictQuery, codes, scope};

use super::{Decided, decided, not_found};
use crate::{
    Delegation,
    rules::{Budget, Command, DelegationId, Event, Open},
    store::History,
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenDelegation {
    /// Yours to choose: the same content again is answered as the first time.
    #[schema(value_type = String)]
    delegation_id: DelegationId,
    #[schema(value_type = String)]
    customer_id: CustomerId,
    /// What all attempts together may reserve and use.
    limit_tokens: u64,
}

/// A budget. Sums are decimal text.
#[derive(Serialize, ToSchema)]
pub(super) struct DelegationView {
    delegation_id: String,
    customer_id: String,
    limit_tokens: u64,
    /// Set aside for attempts that are on their way.
    reserved: String,
    /// Set aside for attempts whose use is not known.
    held: String,
    settled: String,
    /// What may still be reserved.
    available: String,
    /// By how much the attempts used more than the limit.
    overdrawn: String,
    /// An attempt used more than it had reserved: nothing more is reserved.
    closed: bool,
    /// How many decisions made it.
    revision: u64,
    #[schema(value_type = Option<String>)]
    opened_at: Option<Timestamp>,
}

impl DelegationView {
    pub(super) fn new(budget: &Budget, history: &History) -> Self {
        let totals = budget.totals();
        Self {
            delegation_id: budget.delegation.to_string(),
            customer_id: budget.customer.to_string(),
            limit_tokens: budget.limit_tokens,
            reserved: totals.reserved.to_string(),
            held: totals.held.to_string(),
            settled: totals.settled.to_string(),
            available: budget.available().to_string(),
            overdrawn: budget.overdrawn().to_string(),
            closed: budget.is_closed(),
            revision: budget.seq,
            opened_at: history.record(1).map(|record| record.at),
        }
    }
}

/// A budget in a list: as it was opened, without its sums.
#[derive(Serialize, ToSchema)]
pub(super) struct DelegationItem {
    delegation_id: String,
    customer_id: String,
    limit_tokens: u64,
    #[schema(value_type = String)]
    opened_at: Timestamp,
}

/// Opens a budget for a customer.
#[utoipa::path(post, path = "/v1/delegations", tag = "delegation", security(("key" = [])), request_body = OpenDelegation,
    responses((status = 201, description = "The budget as it was opened", body = DelegationView),
        (status = 409, description = "delegation_conflict"), (status = 422, description = "invalid_request, invalid_value, customer_unknown")))]
pub(super) async fn open_delegation(
    Auth(caller, _): Auth<scope::Finance>,
    State(delegation): State<Delegation>,
    StrictJson(body): StrictJson<OpenDelegation>,
) -> Result<Decided<DelegationView>, Problem> {
    let id = body.delegation_id;
    if delegation.ledger().platform_get(&caller.platform).await?.strict_customers {
        known(delegation.ledger().customer_get(&caller.platform, &body.customer_id).await)?;
    }
    let command = Command::Open(Open {
        platform: caller.platform.clone(),
        delegation: id.clone(),
        customer: body.customer_id,
        limit_tokens: body.limit_tokens,
    });
    let answer = delegation.execute(&caller.platform, &id, &caller.key_id, &command).await?;
    let view = DelegationView::new(&answer.budget, &answer.history);
    Ok(decided(StatusCode::CREATED, answer.replayed, view))
}

/// Lists budgets in order of their identity.
#[utoipa::path(get, path = "/v1/delegations", tag = "delegation", security(("key" = [])),
    params(("limit" = Option<u32>, Query, description = "1 to 1000"), ("after" = Option<String>, Query, description = "the `next` of the page before")),
    responses((status = 200, description = "A page", body = inline(Vec<DelegationItem>)), (status = 422, description = "invalid_value")))]
pub(super) async fn list_delegations(
    Auth(caller, _): Auth<scope::Read>,
    State(delegation): State<Delegation>,
    StrictQuery(query): StrictQuery<PageQuery>,
) -> Result<Json<Page<DelegationItem>>, Problem> {
    let limit = query.limit()?;
    let after = query.after.map(place).transpose()?;
    let store = delegation.store(&caller.platform);
    let rows = store.list(after.as_ref(), limit.saturating_add(1)).await?;
    let items = rows
        .into_iter()
        .filter_map(|(event, opened_at)| match event {
            Event::Opened { delegation, customer, limit_tokens, .. } => Some(DelegationItem {
                delegation_id: delegation.to_string(),
                customer_id: customer.to_string(),
                limit_tokens,
                opened_at,
            }),
            _ => None,
        })
        .collect();
    Ok(Json(Page::cut(items, limit, |item| item.delegation_id.clone())))
}

/// Shows a budget with its sums.
#[utoipa::path(get, path = "/v1/delegations/{delegation_id}", tag = "delegation", security(("key" = [])),
    params(("delegation_id" = String, Path, description = "As it was opened")),
    responses((status = 200, description = "The budget", body = DelegationView), (status = 404, description = "not_found")))]
pub(super) async fn get_delegation(
    Auth(caller, _): Auth<scope::Read>,
    State(delegation): State<Delegation>,
    StrictPath(id): StrictPath<String>,
) -> Result<Json<DelegationView>, Problem> {
    let (budget, history) = delegation
        .read(&caller.platform, &named(&id)?)
        .await?
        .ok_or_else(|| not_found(&format!("delegation {id}")))?;
    Ok(Json(DelegationView::new(&budget, &history)))
}

/// An identity in an address: one that cannot be is not there.
pub(super) fn named(id: &str) -> Result<DelegationId, Problem> {
    DelegationId::parse(id).map_err(|_| not_found("such delegation"))
}

fn place(after: String) -> Result<DelegationId, Problem> {
    DelegationId::parse(after).map_err(|_| {
        Problem::new(&codes::INVALID_VALUE)
            .detail("`after` is the `next` of the page before.")
            .pointer("/after")
    })
}

fn known(found: Result<ledger::CustomerRow, ledger::LedgerError>) -> Result<(), Problem> {
    match found {
        Ok(_) => Ok(()),
        Err(ledger::LedgerError::NotFound { .. }) => Err(Problem::new(&codes::CUSTOMER_UNKNOWN)
            .detail("The platform takes known customers alone; link this one first.")
            .pointer("/customer_id")),
        Err(error) => Err(error.into()),
    }
}
