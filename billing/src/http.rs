//! The routes of this room. Each handler has its platform from the key; nothing of another platform is in any answer.

mod customers;
mod meters;

mod sync;

mod reconciliation;

mod invoices;

mod failure;

use ledger::Ledger;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use web::{Problem, Routes, codes};

use crate::payments::{Payments, PaymentsError};

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
