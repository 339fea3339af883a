use crate::{EventRow, ReportRow, StoreError, UsageStore, error::failed};

/// Rows that are stored together: of one month, so that each table takes them as one block of one partition, whole or
/// not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportBlock {
    pub events: Vec<EventRow>,
    pub reports: Vec<ReportRow>,
}

impl UsageStore {
    /// Stores a block. When it fails, send the same block again, whole: rows that were stored collapse, and views that
    /// a crash left behind are fed again.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the outcome is not known or the store is away; `Refused` when it will not take these rows.
    pub async fn insert(&self, block: &ReportBlock) -> Result<(), StoreError> {
        let mut months =
            block.events.iter().map(EventRow::month).chain(block.reports.iter().map(ReportRow::month));
        let first = months.next();
        if months.any(|month| Some(month) != first) {
            let detail = "a block of two months would not be stored as one; cut it by month".to_owned();
            return Err(StoreError::Corrupt { operation: "inserting rows", detail });
        }
        self.insert_rows("usage_events", &block.events).await?;
        self.insert_rows("reports", &block.reports).await
    }

    pub(crate) async fn insert_rows<T>(&self, table: &'static str, rows: &[T]) -> Result<(), StoreError>
    where
        T: clickhouse::RowOwned + clickhouse::RowWrite,
    {
        if rows.is_empty() {
            return Ok(());
        }
        let error = |error| failed("inserting rows", error);
        let mut insert = self
            .client
            .insert::<T>(table)
            .await
            .map_err(error)?
            // One body is one block, and one block of one partition is stored whole or not at all.
            .with_setting("max_insert_block_size", "100000000")
            .with_setting("min_insert_block_size_rows", "100000000")
            .with_setting("min_insert_block_size_bytes", "0")
            .with_setting("max_partitions_per_insert_block", "1")
            .with_setting("async_insert", "0");
        for row in rows {
            insert.write(row).await.map_err(error)?;
        }
        insert.end().await.map_err(error)
    }
}
