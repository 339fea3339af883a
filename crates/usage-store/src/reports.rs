use clickhouse::Row;
use serde::Deserialize;
use usage::{PlatformId, ReportKey};

use crate::{Cut, ReportRow, StoreError, UsageStore, error::failed, params::QueryExt as _};

/// A report of which more than one content is stored.
#[derive(Debug, Clone, PartialEq, Eq, Row, Deserialize)]
pub struct ConflictRow {
    pub report_key: [u8; 16],
    pub request: String,
    pub turn: String,
    pub first_hour: i64,
    pub contents: u64,
    /// Microseconds since 1970, UTC; as is `last_received`.
    pub first_received: i64,
    pub last_received: i64,
}

impl UsageStore {
    /// Every stored content of one report, the earliest acceptance first.
    pub async fn report_get(
        &self,
        platform: &PlatformId,
        key: ReportKey,
    ) -> Result<Vec<ReportRow>, StoreError> {
        self.query(include_str!("../../../sql/clickhouse/queries/reports/get.sql"))
            .param("platform", platform.as_str())
            .param("report_key", key.to_string())
            .fetch_all()
            .await
            .map_err(|error| failed("reading a report", error))
    }

    /// Reports in conflict at or below a cut, or in all that is stored, by report key.
    pub async fn conflict_list(
        &self,
        platform: &PlatformId,
        upper: Option<&Cut>,
        after: Option<ReportKey>,
        limit: u32,
    ) -> Result<Vec<ConflictRow>, StoreError> {
        self.query(include_str!("../../../sql/clickhouse/queries/reports/conflicts.sql"))
            .param("platform", platform.as_str())
            .upper(upper)
            .param("after", after.map(|key| key.to_string()).unwrap_or_default())
            .param("limit", limit)
            .fetch_all()
            .await
            .map_err(|error| failed("listing conflicts", error))
    }
}
