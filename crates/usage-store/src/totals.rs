use clickhouse::Row;
use serde::Deserialize;
use usage::{Hour, PlatformId};

use crate::{Cut, StoreError, UsageStore, error::failed, params::QueryExt as _};

/// What is stored of one journal for a platform's hour, up to a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Row, Deserialize)]
pub struct EpochTotals {
    pub epoch: u64,
    pub events: u64,
    pub tokens: u128,
    pub frames: u64,
}

/// How the positions of a journal lie: gapless when `gap` is zero and `positions` is `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Row, Deserialize)]
pub struct Positions {
    /// The first position that is missing below `last`; zero when none is.
    pub gap: u64,
    pub last: u64,
    pub positions: u64,
}

/// A row that no journal accounts for.
#[derive(Debug, Clone, PartialEq, Eq, Row, Deserialize)]
pub struct Stray {
    pub hour: i64,
    pub customer: String,
    pub event_id: [u8; 16],
    pub epoch: u64,
    pub seq: u64,
}

impl UsageStore {
    /// What the store holds of each journal, to be compared with what the journals counted themselves.
    pub async fn epoch_totals(
        &self,
        platform: &PlatformId,
        hour: Hour,
        upper: &Cut,
    ) -> Result<Vec<EpochTotals>, StoreError> {
        self.query(include_str!("../../../sql/clickhouse/queries/totals/epochs.sql"))
            .param("platform", platform.as_str())
            .param("hour", hour.index())
            .upper(Some(upper))
            .fetch_all()
            .await
            .map_err(|error| failed("totalling journals", error))
    }

    /// The positions of one journal that are stored up to `end`. A report without events holds one as well.
    pub async fn positions(&self, epoch: u64, end: u64) -> Result<Positions, StoreError> {
        self.query(include_str!("../../../sql/clickhouse/queries/totals/gap.sql"))
            .param("epoch", epoch)
            .param("end", end)
            .fetch_one()
            .await
            .map_err(|error| failed("reading positions", error))
    }

    /// A platform's row of an epoch that is not among `epochs`, or one of two contents at one position.
    pub async fn stray_find(
        &self,
        platform: &PlatformId,
        epochs: &[u64],
    ) -> Result<Option<Stray>, StoreError> {
        self.query(include_str!("../../../sql/clickhouse/queries/totals/strays.sql"))
            .param("platform", platform.as_str())
            .param("epochs", epochs)
            .fetch_optional()
            .await
            .map_err(|error| failed("looking for rows of no journal", error))
    }
}
