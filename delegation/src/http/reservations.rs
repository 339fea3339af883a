//! `/v1/delegations/{id}/reservations`: what is set aside before an effect, and what became of it.

use axum::{Json, extract::State};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use usage::Timestamp;
use utoipa::ToSchema;
use web::{Auth, Caller, Page, PageQuery, Problem, StrictJson, StrictPath, StrictQuery, scope};

use super::{
    Decided, decided,
    delegations::{DelegationView, named},
    not_found,
};
use crate::{
    Delegation,
    delegation::Answer,
    rules::{
        Attempt, AttemptId, Command, DelegationId, Digest, Evidence, Note, Outcome, Reference, Release,
        Reserve, Settle, Unknown,
    },
    store::History,
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateReservation {
    /// Yours to choose, one for each try: the same content again is answered as the first time.
    #[schema(value_type = String)]
    attempt_id: AttemptId,
    /// The most that the attempt can use.
    tokens: u64,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SettleReservation {
    /// What the attempt used. Zero is a quantity like any other here: it is known.
    tokens: u64,
    evidence: EvidenceBody,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MarkUnknown {
    /// Why nobody knows.
    #[schema(value_type = String)]
    reason: Note,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseReservation {
    evidence: EvidenceBody,
}

/// Where it can be looked up.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EvidenceBody {
    /// A receipt's identity, a provider's request.
    #[schema(value_type = String)]
    reference: Reference,
    /// `sha256:` and 64 hexadecimal digits.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    digest: Option<Digest>,
}

impl From<EvidenceBody> for Evidence {
    fn from(body: EvidenceBody) -> Evidence {
        Evidence { reference: body.reference, digest: body.digest }
    }
}

/// An attempt.
#[derive(Serialize, ToSchema)]
pub(super) struct ReservationView {
    attempt_id: String,
    /// `reserved`, `held`, `settled` or `released`.
    phase: &'static str,
    reserved_tokens: u64,
    /// What it used; absent while that is not known.
    used_tokens: Option<u64>,
    /// By how much it used more than was reserved.
    overrun_tokens: u64,
    #[schema(value_type = Option<String>)]
    reserved_at: Option<Timestamp>,
    #[schema(value_type = Option<String>)]
    held_since: Option<Timestamp>,
    #[schema(value_type = Option<String>)]
    ended_at: Option<Timestamp>,
    /// Who decided, when a person did.
    decided_by: Option<String>,
}

/// The answer to a command: the attempt and its budget as of the decision.
#[derive(Serialize, ToSchema)]
pub(super) struct ReservationAnswer {
    #[serde(flatten)]
    attempt: ReservationView,
    delegation: DelegationView,
}

impl ReservationView {
    fn new(id: &AttemptId, attempt: &Attempt, history: &History) -> Self {
        let at = |seq: u64| history.record(seq).map(|record| record.at);
        let ended = attempt.outcome.as_ref();
        Self {
            attempt_id: id.to_string(),
            phase: attempt.phase().as_str(),
            reserved_tokens: attempt.reserved,
            used_tokens: attempt.used(),
            overrun_tokens: attempt.overrun(),
            reserved_at: at(attempt.reserved_seq),
            held_since: attempt.unknown.as_ref().and_then(|(seq, _)| at(*seq)),
            ended_at: ended.and_then(|(seq, _)| at(*seq)),
            decided_by: ended.and_then(|(_, outcome)| match outcome {
                Outcome::Resolved(resolution) => Some(resolution.decided_by.to_string()),
                Outcome::Settled { .. } | Outcome::Released { .. } => None,
            }),
        }
    }
}

impl ReservationAnswer {
    pub(super) fn new(id: &AttemptId, answer: &Answer) -> Result<Self, Problem> {
        let attempt = answer.budget.attempts.get(id).ok_or_else(|| Problem::new(&web::codes::INTERNAL))?;
        Ok(Self {
            attempt: ReservationView::new(id, attempt, &answer.history),
            delegation: DelegationView::new(&answer.budget, &answer.history),
        })
    }
}

/// Reserves tokens before an effect. Have this answer before the effect begins.
#[utoipa::path(post, path = "/v1/delegations/{delegation_id}/reservations", tag = "delegation", security(("key" = [])), request_body = CreateReservation,
    params(("delegation_id" = String, Path, description = "The budget")),
    responses((status = 201, description = "Reserved; with the header `Contextmeter-Replayed: true` it was so before", body = ReservationAnswer),
        (status = 402, description = "budget_exhausted"), (status = 404, description = "not_found"),
        (status = 409, description = "attempt_conflict, delegation_closed, delegation_full"), (status = 422, description = "invalid_request, invalid_value")))]
pub(super) async fn create_reservation(
    Auth(caller, _): Auth<scope::Ingest>,
    State(delegation): State<Delegation>,
    StrictPath(id): StrictPath<String>,
    StrictJson(body): StrictJson<CreateReservation>,
) -> Result<Decided<ReservationAnswer>, Problem> {
    let command = Command::Reserve(Reserve { attempt: body.attempt_id, tokens: body.tokens });
    run(&delegation, &caller, &named(&id)?, &command, StatusCode::CREATED).await
}

/// Lists a budget's attempts in order of their identity.
#[utoipa::path(get, path = "/v1/delegations/{delegation_id}/reservations", tag = "delegation", security(("key" = [])),
    params(("delegation_id" = String, Path, description = "The budget"), ("limit" = Option<u32>, Query, description = "1 to 1000"),
        ("after" = Option<String>, Query, description = "the `next` of the page before")),
    responses((status = 200, description = "A page", body = inline(Vec<ReservationView>)), (status = 404, description = "not_found")))]
pub(super) async fn list_reservations(
    Auth(caller, _): Auth<scope::Read>,
    State(delegation): State<Delegation>,
    StrictPath(id): StrictPath<String>,
    StrictQuery(query): StrictQuery<PageQuery>,
) -> Result<Json<Page<ReservationView>>, Problem> {
    let limit = query.limit()?;
    let after = query.after.unwrap_or_default();
    let (budget, history) = delegation
        .read(&caller.platform, &named(&id)?)
        .await?
        .ok_or_else(|| not_found(&format!("delegation {id}")))?;
    let more = budget.attempts.iter().filter(|(id, _)| id.as_str() > after.as_str());
    let count = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
    let views = more.take(count).map(|(id, attempt)| ReservationView::new(id, attempt, &history)).collect();
    Ok(Json(Page::cut(views, limit, |view| view.attempt_id.clone())))
}

/// Settles an attempt: what it used is known.
#[utoipa::path(post, path = "/v1/delegations/{delegation_id}/reservations/{attempt_id}/settlement", tag = "delegation", security(("key" = [])),
    request_body = SettleReservation,
    params(("delegation_id" = String, Path, description = "The budget"), ("attempt_id" = String, Path, description = "The attempt")),
    responses((status = 200, description = "Settled", body = ReservationAnswer), (status = 404, description = "not_found"),
        (status = 409, description = "attempt_conflict, attempt_ended"), (status = 422, description = "invalid_request")))]
pub(super) async fn settle_reservation(
    Auth(caller, _): Auth<scope::Ingest>,
    State(delegation): State<Delegation>,
    StrictPath((id, attempt)): StrictPath<(String, String)>,
    StrictJson(body): StrictJson<SettleReservation>,
) -> Result<Decided<ReservationAnswer>, Problem> {
    let settle = Settle { attempt: tried(&attempt)?, tokens: body.tokens, evidence: body.evidence.into() };
    run(&delegation, &caller, &named(&id)?, &Command::Settle(settle), StatusCode::OK).await
}

/// Says that nobody knows what an attempt used: its reservation is held.
#[utoipa::path(post, path = "/v1/delegations/{delegation_id}/reservations/{attempt_id}/unknown", tag = "delegation", security(("key" = [])),
    request_body = MarkUnknown,
    params(("delegation_id" = String, Path, description = "The budget"), ("attempt_id" = String, Path, description = "The attempt")),
    responses((status = 200, description = "Held", body = ReservationAnswer), (status = 404, description = "not_found"),
        (status = 409, description = "attempt_conflict, attempt_ended"), (status = 422, description = "invalid_request")))]
pub(super) async fn mark_reservation_unknown(
    Auth(caller, _): Auth<scope::Ingest>,
    State(delegation): State<Delegation>,
    StrictPath((id, attempt)): StrictPath<(String, String)>,
    StrictJson(body): StrictJson<MarkUnknown>,
) -> Result<Decided<ReservationAnswer>, Problem> {
    let unknown = Unknown { attempt: tried(&attempt)?, reason: body.reason };
    run(&delegation, &caller, &named(&id)?, &Command::Unknown(unknown), StatusCode::OK).await
}

/// Releases an attempt whose effect did not happen.
#[utoipa::path(post, path = "/v1/delegations/{delegation_id}/reservations/{attempt_id}/release", tag = "delegation", security(("key" = [])),
    request_body = ReleaseReservation,
    params(("delegation_id" = String, Path, description = "The budget"), ("attempt_id" = String, Path, description = "The attempt")),
    responses((status = 200, description = "Released", body = ReservationAnswer), (status = 404, description = "not_found"),
        (status = 409, description = "attempt_conflict, attempt_ended"), (status = 422, description = "invalid_request")))]
pub(super) async fn release_reservation(
    Auth(caller, _): Auth<scope::Ingest>,
    State(delegation): State<Delegation>,
    StrictPath((id, attempt)): StrictPath<(String, String)>,
    StrictJson(body): StrictJson<ReleaseReservation>,
) -> Result<Decided<ReservationAnswer>, Problem> {
    let release = Release { attempt: tried(&attempt)?, evidence: body.evidence.into() };
    run(&delegation, &caller, &named(&id)?, &Command::Release(release), StatusCode::OK).await
}

/// Decides a command about an attempt and shows the attempt as of the decision.
pub(super) async fn run(
    delegation: &Delegation,
    caller: &Caller,
    id: &DelegationId,
    command: &Command,
    status: StatusCode,
) -> Result<Decided<ReservationAnswer>, Problem> {
    let answer = delegation.execute(&caller.platform, id, &caller.key_id, command).await?;
    let attempt = command.attempt().ok_or_else(|| Problem::new(&web::codes::INTERNAL))?;
    Ok(decided(status, answer.replayed, ReservationAnswer::new(attempt, &answer)?))
}

fn tried(attempt: &str) -> Result<AttemptId, Problem> {
    AttemptId::parse(attempt).map_err(|_| not_found("such reservation"))
}
