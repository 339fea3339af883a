use std::sync::Arc;
use std::time::Duration;

use ledger::Ledger;
use tokio::sync::Mutex;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use usage::SharedClock;
use usage_store::UsageStore;

use crate::payments::{Payments, PaymentsError, SyncRequest};
use crate::provider::PaymentProvider;
use crate::{BillingError, SealRequest};

/// What billing works with.
pub struct BillingDeps {
    pub ledger: Ledger,
    pub store: UsageStore,
    pub clock: SharedClock,
    pub head_signer: Arc<proof::SigningKey>,
    /// None: usage is sealed and nothing is billed.
    pub payments: Option<Arc<dyn PaymentProvider>>,
}

/// The worker and the routes, over one ledger and one store. Clones share it.
#[derive(Clone)]
pub struct Billing(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) ledger: Ledger,
    pub(crate) store: UsageStore,
    pub(crate) clock: SharedClock,
    pub(crate) head_signer: Arc<proof::SigningKey>,
    pub(crate) payments: Option<Payments>,
    pub(crate) holder: String,
    /// Within this process one seals at a time; between processes the lease says so.
    pub(crate) sealing: Mutex<()>,
}

impl Billing {
    pub fn new(deps: BillingDeps) -> Self {
        let payments = deps.payments.map(|provider| Payments::new(deps.ledger.clone(), provider));
        Self(Arc::new(Inner {
            ledger: deps.ledger,
            store: deps.store,
            clock: deps.clock,
            head_signer: deps.head_signer,
            payments,
            holder: uuid::Uuid::new_v4().to_string(),
            sealing: Mutex::new(()),
        }))
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// The payments tasks, when a payment service is configured.
    pub fn payments(&self) -> Option<&Payments> {
        self.0.payments.as_ref()
    }

    pub fn routes(&self) -> web::Routes {
        crate::http::routes(self.clone())
            .merge(crate::http::payments_routes(self.0.ledger.clone(), self.0.payments.clone()))
    }

    /// Seals, bills, reconciles and guards, every `pause`, until told to stop. A task that fails is tried again at its next turn.
    pub async fn run_worker(&self, pause: Duration, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(pause);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            // Each task may be cut off at any await: none leaves anything half done.
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.turn() => {}
            }
        }
    }

    async fn turn(&self) {
        told("sealing", self.seal_activate(SealRequest::default()).await.map(drop));
        if let Some(payments) = &self.0.payments {
            told_payments("syncing", payments.sync_activate(SyncRequest::default()).await.map(drop));
            told_payments("reconciling", payments.reconcile_activate().await.map(drop));
            told_payments("guarding invoices", payments.guard_activate().await.map(drop));
        }
    }
}

fn told(task: &'static str, result: Result<(), BillingError>) {
    match result {
        Ok(()) | Err(BillingError::Busy) => {}
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "{task} failed; it is tried again")
        }
    }
}

fn told_payments(task: &'static str, result: Result<(), PaymentsError>) {
    told(
        task,
        match result {
            Err(PaymentsError::Busy) => Ok(()),
            other => other.map_err(BillingError::from),
        },
    );
}
