use clickhouse::Row;
use serde::{Deserialize, Serialize};
use usage::PlatformId;

use crate::{StoreError, UsageStore, error::failed};

/// A sealed run beside the usage it was sealed from.
#[derive(Debug, Clone, PartialEq, Eq, Row, Serialize, Deserialize)]
pub struct RunRow {
    pub platform: String,
    pub hour: i64,
    pub run_id: String,
    /// Microseconds since 1970, UTC.
    pub committed_at: i64,
    /// JSON, in the words of who sealed it.
    pub record: String,
}

impl UsageStore {
    /// Writes the record of a committed run. Safe to repeat.
    pub async fn run_insert(&self, run: &RunRow) -> Result<(), StoreError> {
        self.insert_rows("seal_runs", std::slice::from_ref(run)).await
    }

    /// A platform's runs in order of commit.
    pub async fn run_list(&self, platform: &PlatformId) -> Result<Vec<RunRow>, StoreError> {
        self.query(include_str!("../../../sql/clickhouse/queries/runs/list.sql"))
            .param("platform", platform.as_str())
            .fetch_all()
            .await
            .map_err(|error| failed("listing runs", error))
    }
}
