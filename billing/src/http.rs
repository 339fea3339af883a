//! The routes of this room. Each handler has its platform from the key; nothing of another platform is in any answer.

mod usage;

mod sealing;

mod disputes;

mod customers;
mod meters;

mod sync;

mod reconciliation;

mod invoices;

mod failure;

use ::usage::Hour;
use ledger::Ledger;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use web::{Problem, Routes, codes};

use crate::billing::Billing;
use crate::payments::{Payments, PaymentsError};

pub(crate) use sealing::statement_json;

/// Usage, sealing and disputes.
pub(crate) fn routes(billing: Billing) -> Routes {
    OpenApiRouter::new()
        .routes(routes!(usage::list_usage))
        .routes(routes!(usage::get_event))
        .routes(routes!(usage::list_conflicts))
        .routes(routes!(sealing::list_statements))
        .routes(routes!(sealing::get_statement))
        .routes(routes!(sealing::list_heads))
        .routes(routes!(sealing::list_windows))
        .routes(routes!(sealing::seal_windows))
        .routes(routes!(sealing::verify))
        .routes(routes!(disputes::lookup))
        .with_state(billing)
}

/// Customers, meters, sync, reconciliation and invoices. Without a payment service what was noted can be read, and nothing is done.
pub fn payments_routes(ledger: Ledger, payments: Option<Payments>) -> Routes {
    OpenApiRouter::new()
        .routes(routes!(customers::list_customers))
        .routes(routes!(customers::link_customer))
        .routes(routes!(meters::list_meters, meters::ensure_meters))
        .routes(routes!(sync::show_sync, sync::run_sync))
        .routes(routes!(reconciliation::list_reconciliation, reconciliation::run_reconciliation))
        .routes(routes!(invoices::list_invoices))
        .routes(routes!(invoices::guard_invoices))
        .routes(routes!(invoices::get_invoice))
        .with_state(Desk { ledger, payments })
}

#[derive(Clone)]
struct Desk {
    ledger: Ledger,
    payments: Option<Payments>,
}

impl Desk {
    fn payments(&self) -> Result<&Payments, Problem> {
        self.payments.as_ref().ok_or_else(|| {
            Problem::new(&codes::PAYMENTS_OFF).detail(
                "Set `stripe.secret_key` and start the service again; what is noted can be read without it.",
            )
        })
    }

    /// Lets a task end although its client went away: cut off in the middle it would leave its lease to run out.
    async fn run<T, F>(&self, task: impl FnOnce(Payments) -> F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, PaymentsError>> + Send + 'static,
    {
        let payments = self.payments()?.clone();
        match tokio::spawn(task(payments)).await {
            Ok(result) => result.map_err(Problem::from),
            Err(error) => Err(Problem::new(&codes::INTERNAL).internal(&error)),
        }
    }
}

/// `{}`: what a task needs is in the ledger.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A value of the request in a type that checks it.
fn parsed<T, E: std::fmt::Display>(value: Result<T, E>, pointer: &str) -> Result<T, Problem> {
    value.map_err(|error| sealing::invalid(pointer, &format!("The value is not taken: {error}.")))
}

fn hour(text: &str, pointer: &str) -> Result<Hour, Problem> {
    let at = ::usage::Timestamp::parse_rfc3339(text);
    at.ok().map(Hour::of).filter(|hour| hour.to_string() == text).ok_or_else(|| {
        sealing::invalid(pointer, "An hour is written by its beginning, as `2026-11-30T12:00:00Z`.")
    })
}

/// A place in a list that is numbered.
fn place(text: Option<&str>) -> Result<u64, Problem> {
    text.map_or(Ok(0), str::parse)
        .map_err(|_| sealing::invalid("/after", "`after` is the `next` of the page before."))
}
