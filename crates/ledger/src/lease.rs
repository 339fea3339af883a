//! Leases with fences: who may do a thing now, and a number that tells a holder who slept.

use usage::Timestamp;

use crate::{Ledger, LedgerError, Tx, row::Columns as _};

/// A lease that was taken. It holds until `expires_at` by the ledger's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub name: String,
    pub holder: String,
    pub fence: u64,
    pub expires_at: Timestamp,
}

impl Ledger {
    /// Takes a lease that is free, expired or this holder's own. `None`: another has it.
    pub async fn lease_acquire(
        &self,
        name: &str,
        holder: &str,
        ttl_micros: i64,
    ) -> Result<Option<Lease>, LedgerError> {
        let mut tx = self.write().await?;
        tx.lease_lock(name).await?;
        let (now, expires_at) = (tx.now(), tx.end_of(ttl_micros)?);
        let acquire = include_str!("../../../sql/ledger/queries/leases/acquire.sql");
        let rows = tx
            .rows("taking a lease", acquire, |s| s.text(name).text(holder).time(now).time(expires_at).done())
            .await?;
        let fence = rows.first().map(|row| row.number("fence")).transpose()?;
        tx.commit().await?;
        Ok(fence.map(|fence| Lease { name: name.to_owned(), holder: holder.to_owned(), fence, expires_at }))
    }

    /// Moves the end of a lease that is still held.
    pub async fn lease_renew(&self, lease: &Lease, ttl_micros: i64) -> Result<Lease, LedgerError> {
        let mut tx = self.write().await?;
        let (now, expires_at) = (tx.now(), tx.end_of(ttl_micros)?);
        let renew = include_str!("../../../sql/ledger/queries/leases/renew.sql");
        let rows = tx
            .rows("renewing a lease", renew, |s| {
                s.text(&lease.name)
                    .text(&lease.holder)
                    .number("a fence", lease.fence)
                    .time(now)
                    .time(expires_at)
                    .done()
            })
            .await?;
        if rows.is_empty() {
            return Err(LedgerError::FenceLost { lease: lease.name.clone() });
        }
        tx.commit().await?;
        Ok(Lease { expires_at, ..lease.clone() })
    }

    /// Gives a lease back before its end.
    pub async fn lease_release(&self, lease: &Lease) -> Result<(), LedgerError> {
        let release = include_str!("../../../sql/ledger/queries/leases/release.sql");
        self.run("releasing a lease", release, |s| {
            s.text(&lease.name).text(&lease.holder).number("a fence", lease.fence).done()
        })
        .await
        .map(drop)
    }
}

impl Tx {
    /// Fails with `FenceLost` unless the lease is still held, and keeps it from changing hands until this transaction ends.
    pub async fn check_fence(&mut self, lease: &Lease) -> Result<(), LedgerError> {
        let now = self.now();
        let hold = include_str!("../../../sql/ledger/queries/leases/hold.sql");
        let rows = self
            .rows("checking a fence", hold, |s| {
                s.text(&lease.name).text(&lease.holder).number("a fence", lease.fence).time(now).done()
            })
            .await?;
        match rows.is_empty() {
            true => Err(LedgerError::FenceLost { lease: lease.name.clone() }),
            false => Ok(()),
        }
    }

    /// Makes the row of a name; on Postgres the insert waits for one that inserts the same, and the update that follows locks it.
    pub(crate) async fn lease_lock(&mut self, name: &str) -> Result<(), LedgerError> {
        let insert = include_str!("../../../sql/ledger/queries/leases/insert.sql");
        self.run("making a lease", insert, |s| s.text(name).done()).await?;
        let touch = include_str!("../../../sql/ledger/queries/leases/touch.sql");
        self.run("locking a lease", touch, |s| s.text(name).done()).await.map(drop)
    }

    fn end_of(&self, ttl_micros: i64) -> Result<Timestamp, LedgerError> {
        self.now()
            .as_micros()
            .checked_add(ttl_micros)
            .map(Timestamp::from_micros)
            .ok_or(LedgerError::TooLarge { what: "a lease's end" })
    }
}
