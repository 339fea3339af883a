//! The routes of this room. Each handler has its platform from the key; nothing of another platform is in any answer.

mod delegations;

mod reservations;

mod holds;

mod failure;

use axum::Json;
use http::{HeaderName, StatusCode};
use utoipa_axum::{router::OpenApiRouter, routes};
use web::{Problem, Routes, codes};

use crate::delegation::Delegation;

pub(crate) fn routes(delegation: Delegation) -> Routes {
    OpenApiRouter::new()
        .routes(routes!(delegations::open_delegation, delegations::list_delegations))
        .routes(routes!(delegations::get_delegation))
        .routes(routes!(reservations::create_reservation, reservations::list_reservations))
        .routes(routes!(reservations::settle_reservation))
        .routes(routes!(reservations::mark_reservation_unknown))
        .routes(routes!(reservations::release_reservation))
        .routes(routes!(holds::list_holds))
        .routes(routes!(holds::resolve_hold))
        .with_state(delegation)
}

/// Whether the answer was given before: then it is no leave to do the effect once more.
const REPLAYED: HeaderName = HeaderName::from_static("contextmeter-replayed");

/// A decision: its status, whether it is a repeat, and its body, which is the same each time.
type Decided<T> = (StatusCode, [(HeaderName, &'static str); 1], Json<T>);

fn decided<T>(status: StatusCode, replayed: bool, body: T) -> Decided<T> {
    (status, [(REPLAYED, if replayed { "true" } else { "false" })], Json(body))
}

fn not_found(what: &str) -> Problem {
    Problem::new(&codes::NOT_FOUND)
        .detail(format!("There is no {what} on this platform; look at its identity."))
}
