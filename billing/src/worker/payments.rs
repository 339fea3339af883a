//! The payments side of the worker: what is read of subscriptions, where statements are billed, what the payment service counts, and the invoices that we finalise.
//!
//! Each task is an idempotent activation without input: it compares what the ledger intends with what is, and may be cut off at any instant. One lease an account keeps
//! the tasks of all processes from running beside each other; a fence in every transaction keeps a process that lost it from writing.

mod guard;
mod links;
mod plan;
mod reconcile;
mod send;
mod settle;
mod subscriptions;
mod sync;

mod lease;
mod pace;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ledger::{CustomerRow, Ledger, LedgerError, MeterRow, PlatformRow};
use tokio::sync::Mutex;
use usage::{CustomerId, MeterId, PlatformId};

pub use guard::{FinalInvoice, GuardStatus, OpenInvoice};
pub use reconcile::ReconcileStatus;
pub use subscriptions::SubscriptionsStatus;
pub use sync::{PlatformSync, SyncRequest, SyncStatus, Waiting, sync_view};

use crate::provider::{PaymentError, PaymentMeter, PaymentProvider};
use lease::Held;
use pace::Pace;

/// Twice the longest call with room: a call that began within the first half is over before the lease is.
const LEASE_TTL: Duration = Duration::from_secs(60);

/// The tasks, over one ledger and one account of the payment service. Clones share it.
#[derive(Clone)]
pub struct Payments(Arc<Inner>);

struct Inner {
    ledger: Ledger,
    provider: Arc<dyn PaymentProvider>,
    pace: Pace,
    holder: String,
    /// Within this process one task runs at a time; between processes the lease says so.
    turn: Mutex<()>,
}

/// Why a task stopped. What it did until then stands.
#[derive(Debug, thiserror::Error)]
pub enum PaymentsError {
    #[error("the ledger failed")]
    Ledger(#[from] LedgerError),
    #[error("the payment service failed")]
    Provider(#[from] PaymentError),
    /// Another process has the lease: it does the work.
    #[error("another process runs the payments tasks")]
    Busy,
    #[error("a number of the ledger does not fit: {0}")]
    Number(&'static str),
    /// This account does not bill the platform.
    #[error("the platform is {}", .0.as_str())]
    Unbound(Binding),
    /// The payment service has no such customer, or had it.
    #[error("the payment service has no customer {0}")]
    NoCustomer(String),
    /// A meter of that event name is there and counts in another way.
    #[error("the payment service has another kind of meter for {0}")]
    MeterUnfit(String),
}

/// Why nothing of a platform is sent: test and live never mix, and a platform is bound to one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    Bound,
    NotBound,
    OtherAccount,
    OtherMode,
}

impl Binding {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::NotBound => "not_bound",
            Self::OtherAccount => "other_account",
            Self::OtherMode => "other_mode",
        }
    }
}

impl Payments {
    pub fn new(ledger: Ledger, provider: Arc<dyn PaymentProvider>) -> Self {
        let pace = Pace::per_second(provider.account().events_per_second);
        let holder = uuid::Uuid::now_v7().to_string();
        Self(Arc::new(Inner { ledger, provider, pace, holder, turn: Mutex::new(()) }))
    }

    pub fn provider(&self) -> &dyn PaymentProvider {
        self.0.provider.as_ref()
    }

    pub fn binding(&self, platform: &PlatformRow) -> Binding {
        let account = self.0.provider.account();
        match &platform.stripe_account {
            None => Binding::NotBound,
            Some(_) if platform.livemode != account.livemode => Binding::OtherMode,
            Some(bound) if *bound != account.id => Binding::OtherAccount,
            Some(_) => Binding::Bound,
        }
    }

    fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// Runs `task` alone, under the account's lease.
    async fn alone<T, F>(&self, task: F) -> Result<T, PaymentsError>
    where
        F: AsyncFnOnce(&Held) -> Result<T, PaymentsError>,
    {
        let _turn = self.0.turn.lock().await;
        let name = format!("payments/{}", self.0.provider.account().id);
        let held = Held::acquire(self.ledger(), &name, &self.0.holder, LEASE_TTL)
            .await?
            .ok_or(PaymentsError::Busy)?;
        let result = task(&held).await;
        held.release().await;
        result
    }

    /// All platforms or one, each with whether this account bills it.
    async fn platforms(
        &self,
        only: Option<&PlatformId>,
    ) -> Result<Vec<(PlatformRow, Binding)>, PaymentsError> {
        let platforms = match only {
            Some(platform) => vec![self.ledger().platform_get(platform).await?],
            None => self.ledger().platform_list().await?,
        };
        Ok(platforms
            .into_iter()
            .map(|platform| {
                let binding = self.binding(&platform);
                (platform, binding)
            })
            .collect())
    }

    /// What of a platform does not change while a task runs.
    async fn board(
        &self,
        platform: PlatformRow,
        remote: &BTreeMap<String, PaymentMeter>,
    ) -> Result<Board, PaymentsError> {
        let mut meters = BTreeMap::new();
        for meter in self.ledger().meter_list(&platform.platform).await? {
            let remote = meter.stripe_meter.as_ref().and_then(|id| remote.get(id)).cloned();
            meters.insert(meter.meter.clone(), (meter, remote));
        }
        let mut customers = BTreeMap::new();
        let mut after = String::new();
        loop {
            let page = self.ledger().customer_list(&platform.platform, &after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.customer.to_string();
            let full = page.len() >= PAGE_LEN;
            let account = &self.0.provider.account().id;
            for customer in page {
                if customer.stripe_customer.is_some() && customer.stripe_account.as_ref() == Some(account) {
                    customers.insert(customer.customer.clone(), customer);
                }
            }
            if !full {
                break;
            }
        }
        Ok(Board { platform, meters, customers })
    }

    async fn remote_meters(&self) -> Result<BTreeMap<String, PaymentMeter>, PaymentsError> {
        let meters = self.0.provider.meter_list().await?;
        Ok(meters.into_iter().map(|meter| (meter.id.clone(), meter)).collect())
    }
}

const PAGE: u32 = 500;
const PAGE_LEN: usize = 500;

/// A platform with its meters and linked customers.
struct Board {
    platform: PlatformRow,
    meters: BTreeMap<MeterId, (MeterRow, Option<PaymentMeter>)>,
    customers: BTreeMap<CustomerId, CustomerRow>,
}

impl Board {
    fn by_stripe_customer(&self, stripe_customer: &str) -> Option<&CustomerId> {
        self.customers
            .values()
            .find(|row| row.stripe_customer.as_deref() == Some(stripe_customer))
            .map(|row| &row.customer)
    }

    fn by_stripe_meter(&self, stripe_meter: &str) -> Option<&MeterId> {
        self.meters
            .values()
            .find(|(meter, _)| meter.stripe_meter.as_deref() == Some(stripe_meter))
            .map(|(meter, _)| &meter.meter)
    }
}
