//! The lease of a running task.

use std::time::Duration;

use ledger::{Lease, Ledger};
use tokio::sync::Mutex;

use super::PaymentsError;
use super::pace::BootInstant;

fn micros(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX)
}

pub(super) struct Held {
    ledger: Ledger,
    ttl: Duration,
    current: Mutex<(Lease, BootInstant)>,
}

impl Held {
    pub(super) async fn acquire(
        ledger: &Ledger,
        name: &str,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Self>, PaymentsError> {
        // Before the call: what the ledger grants begins at the earliest now.
        let since = BootInstant::now();
        let lease = ledger.lease_acquire(name, holder, micros(ttl)).await?;
        Ok(lease.map(|lease| Self { ledger: ledger.clone(), ttl, current: Mutex::new((lease, since)) }))
    }

    /// The lease for a transaction's fence, renewed while more than a quarter of it has passed.
    pub(super) async fn lease(&self) -> Result<Lease, PaymentsError> {
        self.with_at_most(self.ttl / 4).await
    }

    /// True when less than half of the lease has passed: a call that begins now is over before another process may act.
    pub(super) async fn may_send(&self) -> bool {
        let current = self.current.lock().await;
        current.1.elapsed() < self.ttl / 2
    }

    async fn with_at_most(&self, passed: Duration) -> Result<Lease, PaymentsError> {
        let mut current = self.current.lock().await;
        if current.1.elapsed() >= passed {
            let since = BootInstant::now();
            let renewed = self.ledger.lease_renew(&current.0, micros(self.ttl)).await?;
            *current = (renewed, since);
        }
        Ok(current.0.clone())
    }

    /// A lease that cannot be given back runs out by itself.
    pub(super) async fn release(self) {
        let (lease, _) = self.current.into_inner();
        if let Err(error) = self.ledger.lease_release(&lease).await {
            tracing::warn!(%error, lease = lease.name, "failed to give a lease back; it will run out");
        }
    }
}
