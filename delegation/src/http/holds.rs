//! `/v1/holds`: attempts whose use is not known, in front of a person until evidence or that person says.

use axum::{Json, extract::State};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use usage::Timestamp;
use utoipa::ToSchema;
use web::{Auth, Page, PageQuery, Problem, StrictJson, StrictPath, StrictQuery, codes, scope};

use super::{
    Decided, not_found,
    reservations::{ReservationAnswer, run},
};
use crate::{
    Delegation,
    rules::{
        AttemptId, Budget, Command, DelegationId, Ending, Event, Hold, HoldId, Note, Resolution, Resolve,
    },
    store::History,
};

/// Budgets that one page looks into. A page may be short therefore: go on while it has a `next`.
const SCAN_BUDGETS: u32 = 100;

/// An attempt whose use is not known.
#[derive(Serialize, ToSchema)]
pub(super) struct HoldView {
    hold_id: String,
    delegation_id: String,
    attempt_id: String,
    customer_id: String,
    /// What stays set aside.
    tokens: u64,
    reason: String,
    #[schema(value_type = Option<String>)]
    since: Option<Timestamp>,
}

impl HoldView {
    fn new(budget: &Budget, history: &History, hold: Hold) -> Self {
        Self {
            hold_id: hold.id.to_string(),
            delegation_id: hold.id.delegation.to_string(),
            attempt_id: hold.id.attempt.to_string(),
            customer_id: budget.customer.to_string(),
            tokens: hold.tokens,
            reason: hold.reason.to_string(),
            since: history.record(hold.since_seq).map(|record| record.at),
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResolveHold {
    outcome: ResolveOutcome,
    /// What the attempt used; with `settled` only.
    #[serde(default)]
    tokens: Option<u64>,
    /// The person who decided.
    #[schema(value_type = String)]
    decided_by: Note,
    #[schema(value_type = String)]
    reason: Note,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ResolveOutcome {
    /// The attempt used `tokens`.
    Settled,
    /// The effect did not happen.
    Released,
}

impl ResolveHold {
    fn resolution(self) -> Result<Resolution, Problem> {
        let wrong =
            |detail: &str| Problem::new(&codes::INVALID_VALUE).detail(detail.to_owned()).pointer("/tokens");
        let ending = match (self.outcome, self.tokens) {
            (ResolveOutcome::Settled, Some(tokens)) => Ending::Settled { tokens },
            (ResolveOutcome::Released, None) => Ending::Released,
            (ResolveOutcome::Settled, None) => {
                return Err(wrong(
                    "Say in `tokens` what the attempt used; unknown use is never taken for zero.",
                ));
            }
            (ResolveOutcome::Released, Some(_)) => {
                return Err(wrong("What is released used nothing; leave `tokens` out, or say `settled`."));
            }
        };
        Ok(Resolution { ending, decided_by: self.decided_by, reason: self.reason })
    }
}

/// A resolution in the words of the request.
pub(super) fn told(resolution: &Resolution) -> serde_json::Value {
    let (decided_by, reason) = (&resolution.decided_by, &resolution.reason);
    match resolution.ending {
        Ending::Settled { tokens } => {
            json!({"outcome": "settled", "tokens": tokens, "decided_by": decided_by, "reason": reason})
        }
        Ending::Released => json!({"outcome": "released", "decided_by": decided_by, "reason": reason}),
    }
}

/// Where a page of holds begins: after this attempt of the budget, or after the whole budget.
struct Place {
    delegation: DelegationId,
    attempt: Option<AttemptId>,
}

impl Place {
    fn parse(after: &str) -> Option<Place> {
        match after.strip_suffix('~') {
            Some(delegation) => {
                Some(Place { delegation: DelegationId::parse(delegation).ok()?, attempt: None })
            }
            None => HoldId::parse(after)
                .ok()
                .map(|hold| Place { delegation: hold.delegation, attempt: Some(hold.attempt) }),
        }
    }
}

/// Lists holds in order of their budgets. A page may be short: go on while it has a `next`.
#[utoipa::path(get, path = "/v1/holds", tag = "delegation", security(("key" = [])),
    params(("limit" = Option<u32>, Query, description = "1 to 1000"), ("after" = Option<String>, Query, description = "the `next` of the page before")),
    responses((status = 200, description = "A page", body = inline(Vec<HoldView>)), (status = 422, description = "invalid_value")))]
pub(super) async fn list_holds(
    Auth(caller, _): Auth<scope::Finance>,
    State(delegation): State<Delegation>,
    StrictQuery(query): StrictQuery<PageQuery>,
) -> Result<Json<Page<HoldView>>, Problem> {
    let limit = query.limit()?;
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
    let wrong = || {
        Problem::new(&codes::INVALID_VALUE)
            .detail("`after` is the `next` of the page before.")
            .pointer("/after")
    };
    let after = query.after.map(|after| Place::parse(&after).ok_or_else(wrong)).transpose()?;
    let mut views = Vec::new();

    if let Some(Place { delegation: id, attempt: Some(last) }) = &after
        && let Some((budget, history)) = delegation.read(&caller.platform, id).await?
    {
        let further = budget.holds().filter(|hold| hold.id.attempt > *last);
        views.extend(further.map(|hold| HoldView::new(&budget, &history, hold)));
    }
    let from = after.map(|place| place.delegation);
    let store = delegation.store(&caller.platform);
    let budgets = store.list(from.as_ref(), SCAN_BUDGETS).await?;
    let all_seen = budgets.len() < usize::try_from(SCAN_BUDGETS).unwrap_or(usize::MAX);
    let mut seen = None;
    for (event, _) in budgets {
        if views.len() >= wanted {
            break;
        }
        let Event::Opened { delegation: id, .. } = event else { continue };
        if let Some((budget, history)) = delegation.read(&caller.platform, &id).await? {
            views.extend(budget.holds().map(|hold| HoldView::new(&budget, &history, hold)));
        }
        seen = Some(id);
    }
    let mut page = Page::cut(views, limit, |view| view.hold_id.clone());
    if page.next.is_none() && !all_seen {
        page.next = seen.map(|id| format!("{id}~"));
    }
    Ok(Json(page))
}

/// Ends a hold by a person's decision.
#[utoipa::path(post, path = "/v1/holds/{hold_id}/resolution", tag = "delegation", security(("key" = [])), request_body = ResolveHold,
    params(("hold_id" = String, Path, description = "As listed")),
    responses((status = 200, description = "Ended", body = ReservationAnswer), (status = 404, description = "not_found"),
        (status = 409, description = "attempt_conflict, attempt_ended"), (status = 422, description = "invalid_request, invalid_value")))]
pub(super) async fn resolve_hold(
    Auth(caller, _): Auth<scope::Finance>,
    State(delegation): State<Delegation>,
    StrictPath(id): StrictPath<String>,
    StrictJson(body): StrictJson<ResolveHold>,
) -> Result<Decided<ReservationAnswer>, Problem> {
    let hold = HoldId::parse(&id).map_err(|_| not_found("such hold"))?;
    let command = Command::Resolve(Resolve { attempt: hold.attempt, resolution: body.resolution()? });
    run(&delegation, &caller, &hold.delegation, &command, StatusCode::OK).await
}
