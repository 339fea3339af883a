//! `/v1/meters`: what is counted, and under which name Stripe counts it.

use axum::{Json, extract::State};
use ledger::MeterRow;
use serde::Serialize;
use usage::{Hour, MeterDefinition, Timestamp};
use utoipa::ToSchema;
use web::{Auth, Problem, StrictJson, codes, scope};

use super::{Desk, Nothing};

#[derive(Serialize, ToSchema)]
pub(super) struct Meter {
    meter_id: String,
    /// `tokens`, `frames_served` or `events`.
    quantity: String,
    event_name: String,
    /// Absent until the meters were made sure of at Stripe.
    stripe_meter: Option<String>,
    #[schema(value_type = String)]
    effective_from: Hour,
    #[schema(value_type = Option<String>)]
    superseded_at: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Meters {
    data: Vec<Meter>,
    next: Option<String>,
}

/// Lists the platform's meters.
#[utoipa::path(get, path = "/v1/meters", tag = "finance", security(("key" = [])),
    responses((status = 200, description = "All meters", body = Meters)))]
pub(super) async fn list_meters(
    Auth(caller, _): Auth<scope::Finance>,
    State(desk): State<Desk>,
) -> Result<Json<Meters>, Problem> {
    meters(desk.ledger.meter_list(&caller.platform).await?)
}

/// Makes sure that each of the platform's meters exists at Stripe, and notes which one it is there.
#[utoipa::path(post, path = "/v1/meters", tag = "finance", security(("key" = [])), request_body = Nothing,
    responses((status = 200, description = "All meters", body = Meters),
        (status = 409, description = "payments_off, stripe_refused"), (status = 503, description = "stripe_unavailable, busy")))]
pub(super) async fn ensure_meters(
    Auth(caller, _): Auth<scope::Finance>,
    State(desk): State<Desk>,
    StrictJson(Nothing {}): StrictJson<Nothing>,
) -> Result<Json<Meters>, Problem> {
    meters(desk.run(|payments| async move { payments.meters_ensure(&caller.platform).await }).await?)
}

fn meters(rows: Vec<MeterRow>) -> Result<Json<Meters>, Problem> {
    let data = rows.into_iter().map(meter).collect::<Result<_, _>>()?;
    Ok(Json(Meters { data, next: None }))
}

fn meter(row: MeterRow) -> Result<Meter, Problem> {
    let definition: MeterDefinition = serde_json::from_str(&row.definition)
        .map_err(|error| Problem::new(&codes::INTERNAL).internal(&error))?;
    Ok(Meter {
        meter_id: row.meter.to_string(),
        quantity: definition.quantity.as_str().to_owned(),
        event_name: row.event_name,
        stripe_meter: row.stripe_meter,
        effective_from: row.effective_from,
        superseded_at: row.superseded_at,
    })
}
