//! How far a platform's log is placed, what waits, and what was compared.

use usage::{CustomerId, Hour, MeterId, PlatformId, Timestamp};

use crate::{Ledger, LedgerError, Tx, row::Columns as _};

/// A statement that is not placed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncWaitRow {
    pub platform: PlatformId,
    pub statement_id: String,
    pub customer: CustomerId,
    pub meter: MeterId,
    pub sum: u128,
    pub reason: String,
    pub since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncWaitSummary {
    pub reason: String,
    pub count: u64,
    pub oldest: Timestamp,
}

/// An hour of a customer and meter, here and at the payment service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconciliationRow {
    pub platform: PlatformId,
    pub customer: CustomerId,
    pub meter: MeterId,
    pub hour: Hour,
    pub placed: u128,
    pub seen: u128,
    pub unsettled: u64,
    pub checked_at: Timestamp,
}

impl Ledger {
    /// The last statement of the log that was looked at; 0 before the first.
    pub async fn sync_cursor(&self, platform: &PlatformId) -> Result<u64, LedgerError> {
        const GET: &str = include_str!("../../../../sql/ledger/queries/placements/cursor_get.sql");
        let rows = self.rows("reading the sync cursor", GET, |s| s.text(platform.as_str()).done()).await?;
        rows.first().map_or(Ok(0), |row| row.number("log_index"))
    }

    pub async fn sync_cursor_set_in_txn(
        &self,
        tx: &mut Tx,
        platform: &PlatformId,
        log_index: u64,
    ) -> Result<(), LedgerError> {
        const SET: &str = include_str!("../../../../sql/ledger/queries/placements/cursor_set.sql");
        tx.run("moving the sync cursor", SET, |s| {
            s.text(platform.as_str()).number("log index", log_index).done()
        })
        .await?;
        Ok(())
    }

    /// How long a statement has waited stays, whatever its reason is now.
    pub async fn sync_wait_put_in_txn(&self, tx: &mut Tx, row: &SyncWaitRow) -> Result<(), LedgerError> {
        const PUT: &str = include_str!("../../../../sql/ledger/queries/placements/wait_put.sql");
        tx.run("noting a statement that waits", PUT, |s| {
            s.text(row.platform.as_str())
                .text(&row.statement_id)
                .text(row.customer.as_str())
                .text(row.meter.as_str())
                .sum(row.sum)
                .text(&row.reason)
                .time(row.since)
                .done()
        })
        .await?;
        Ok(())
    }

    pub async fn sync_wait_delete_in_txn(&self, tx: &mut Tx, statement_id: &str) -> Result<(), LedgerError> {
        const DELETE: &str = include_str!("../../../../sql/ledger/queries/placements/wait_delete.sql");
        tx.run("ending a statement's wait", DELETE, |s| s.text(statement_id).done()).await?;
        Ok(())
    }

    pub async fn sync_wait_list(
        &self,
        platform: &PlatformId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<SyncWaitRow>, LedgerError> {
        const LIST: &str = include_str!("../../../../sql/ledger/queries/placements/wait_list.sql");
        let rows = self
            .rows("listing statements that wait", LIST, |s| {
                s.text(platform.as_str()).text(after).integer(i64::from(limit)).done()
            })
            .await?;
        rows.iter()
            .map(|row| {
                Ok(SyncWaitRow {
                    platform: row.parsed("platform_id", PlatformId::parse)?,
                    statement_id: row.text("statement_id")?,
                    customer: row.parsed("customer_id", CustomerId::parse)?,
                    meter: row.parsed("meter_id", MeterId::parse)?,
                    sum: row.sum("sum")?,
                    reason: row.text("reason")?,
                    since: row.time("since")?,
                })
            })
            .collect()
    }

    pub async fn sync_wait_summary(
        &self,
        platform: &PlatformId,
    ) -> Result<Vec<SyncWaitSummary>, LedgerError> {
        const SUMMARY: &str = include_str!("../../../../sql/ledger/queries/placements/wait_summary.sql");
        let rows = self.rows("summing up what waits", SUMMARY, |s| s.text(platform.as_str()).done()).await?;
        rows.iter()
            .map(|row| {
                Ok(SyncWaitSummary {
                    reason: row.text("reason")?,
                    count: row.number("count")?,
                    oldest: row.time("oldest")?,
                })
            })
            .collect()
    }

    /// How many statements of a customer and meter wait.
    pub async fn sync_wait_count(
        &self,
        platform: &PlatformId,
        customer: &CustomerId,
        meter: &MeterId,
    ) -> Result<u64, LedgerError> {
        const COUNT: &str = include_str!("../../../../sql/ledger/queries/placements/wait_count_of.sql");
        let rows = self
            .rows("counting what waits", COUNT, |s| {
                s.text(platform.as_str()).text(customer.as_str()).text(meter.as_str()).done()
            })
            .await?;
        rows.first().map_or(Ok(0), |row| row.number("count"))
    }

    pub async fn reconciliation_put(&self, row: &ReconciliationRow) -> Result<(), LedgerError> {
        const PUT: &str = include_str!("../../../../sql/ledger/queries/placements/reconciliation_put.sql");
        self.run("noting a reconciliation", PUT, |s| {
            s.text(row.platform.as_str())
                .text(row.customer.as_str())
                .text(row.meter.as_str())
                .hour(row.hour)
                .sum(row.placed)
                .sum(row.seen)
                .number("unsettled placements", row.unsettled)
                .time(row.checked_at)
                .done()
        })
        .await?;
        Ok(())
    }

    /// The reconciled hours after a row, newest first.
    pub async fn reconciliation_list(
        &self,
        platform: &PlatformId,
        after: Option<(Hour, &CustomerId, &MeterId)>,
        limit: u32,
    ) -> Result<Vec<ReconciliationRow>, LedgerError> {
        const LIST: &str = include_str!("../../../../sql/ledger/queries/placements/reconciliation_list.sql");
        let (hour, customer, meter) = after.map_or((i64::MAX, "", ""), |(hour, customer, meter)| {
            (hour.index(), customer.as_str(), meter.as_str())
        });
        let rows = self
            .rows("listing reconciliations", LIST, |s| {
                s.text(platform.as_str())
                    .integer(hour)
                    .text(customer)
                    .text(meter)
                    .integer(i64::from(limit))
                    .done()
            })
            .await?;
        rows.iter().map(reconciliation).collect()
    }

    /// The hours that do not agree.
    pub async fn reconciliation_open(
        &self,
        platform: &PlatformId,
        limit: u32,
    ) -> Result<Vec<ReconciliationRow>, LedgerError> {
        const LIST: &str = include_str!("../../../../sql/ledger/queries/placements/reconciliation_open.sql");
        let rows = self
            .rows("listing open reconciliations", LIST, |s| {
                s.text(platform.as_str()).integer(i64::from(limit)).done()
            })
            .await?;
        rows.iter().map(reconciliation).collect()
    }
}

fn reconciliation(row: &sqlx::any::AnyRow) -> Result<ReconciliationRow, LedgerError> {
    Ok(ReconciliationRow {
        platform: row.parsed("platform_id", PlatformId::parse)?,
        customer: row.parsed("customer_id", CustomerId::parse)?,
        meter: row.parsed("meter_id", MeterId::parse)?,
        hour: row.hour("hour")?,
        placed: row.sum("placed")?,
        seen: row.sum("seen")?,
        unsettled: row.number("unsettled")?,
        checked_at: row.time("checked_at")?,
    })
}
