//! Runs: what was sealed up to which cut, what was left for later, and which hours stand still.

use std::collections::BTreeMap;

use sqlx::any::AnyRow;
use usage::{CustomerId, Hour, MeterId, PlatformId, Timestamp};

use crate::{EpochState, Ledger, LedgerError, row::Columns as _, row::Statement, row::one};

/// One pass over one platform's hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealRunRow {
    pub run_id: String,
    pub platform: PlatformId,
    pub hour: Hour,
    /// 1, 2, … for the hour, in order of commit.
    pub ordinal: u64,
    pub cut_id: u64,
    /// What the journals counted for the hour at the cut.
    pub events: u64,
    /// Epochs that it did not wait for; empty: the hour was complete.
    pub silent: Vec<u64>,
    /// How many customers and meters it left for a later run.
    pub deferred: u64,
    pub committed_at: Timestamp,
    pub recorded_at: Option<Timestamp>,
}

/// A customer's meter that a run left for a later one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeferralRow {
    pub ordinal: u64,
    pub customer: CustomerId,
    pub meter: MeterId,
}

/// An hour that is not sealed until its books agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreezeRow {
    pub platform: PlatformId,
    pub hour: Hour,
    pub reason: String,
    pub detail: String,
    pub found_at: Timestamp,
}

impl Ledger {
    pub async fn seal_run_get(&self, run_id: &str) -> Result<SealRunRow, LedgerError> {
        let get = include_str!("../../../sql/ledger/queries/runs/get.sql");
        let rows = self.rows("reading a run", get, |s| s.text(run_id).done()).await?;
        read(&one(rows, || format!("run {run_id}"))?)
    }

    /// The runs of an hour in order of commit.
    pub async fn seal_run_list(
        &self,
        platform: &PlatformId,
        hour: Hour,
    ) -> Result<Vec<SealRunRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/runs/list_of_hour.sql");
        let rows = self.rows("listing runs", list, |s| s.text(platform.as_str()).hour(hour).done()).await?;
        rows.iter().map(read).collect()
    }

    /// The last run of every hour of every platform.
    pub async fn seal_run_latest(&self) -> Result<BTreeMap<(PlatformId, Hour), SealRunRow>, LedgerError> {
        let latest = include_str!("../../../sql/ledger/queries/runs/latest.sql");
        let rows = self.rows("listing last runs", latest, Statement::done).await?;
        rows.iter().map(|row| read(row).map(|run| ((run.platform.clone(), run.hour), run))).collect()
    }

    /// Runs of a platform, newest hours first, from below an hour and ordinal.
    pub async fn seal_run_page(
        &self,
        platform: &PlatformId,
        below: Option<(Hour, u64)>,
        limit: u32,
    ) -> Result<Vec<SealRunRow>, LedgerError> {
        let page = include_str!("../../../sql/ledger/queries/runs/page.sql");
        let (hour, ordinal) = below.map_or((i64::MAX, 0), |(hour, ordinal)| (hour.index(), ordinal));
        let rows = self
            .rows("listing runs", page, |s| {
                s.text(platform.as_str())
                    .integer(hour)
                    .number("an ordinal", ordinal)
                    .integer(i64::from(limit))
                    .done()
            })
            .await?;
        rows.iter().map(read).collect()
    }

    /// Committed runs whose record is not beside the usage yet.
    pub async fn seal_run_unrecorded(&self, limit: u32) -> Result<Vec<SealRunRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/runs/unrecorded.sql");
        let rows = self.rows("listing unrecorded runs", list, |s| s.integer(i64::from(limit)).done()).await?;
        rows.iter().map(read).collect()
    }

    /// Notes that a run's record is beside the usage: from now on it is shown and sent.
    pub async fn seal_run_recorded(&self, run_id: &str) -> Result<(), LedgerError> {
        let now = self.now().await?;
        let recorded = include_str!("../../../sql/ledger/queries/runs/recorded.sql");
        self.run("noting a run's record", recorded, |s| s.text(run_id).time(now).done()).await.map(drop)
    }

    /// Everything that the runs of an hour left for later ones.
    pub async fn seal_deferral_list(
        &self,
        platform: &PlatformId,
        hour: Hour,
    ) -> Result<Vec<DeferralRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/runs/deferrals_of_hour.sql");
        let rows =
            self.rows("listing deferrals", list, |s| s.text(platform.as_str()).hour(hour).done()).await?;
        rows.iter()
            .map(|row| {
                Ok(DeferralRow {
                    ordinal: row.number("ordinal")?,
                    customer: row.parsed("customer_id", CustomerId::parse)?,
                    meter: row.parsed("meter_id", MeterId::parse)?,
                })
            })
            .collect()
    }

    pub async fn freeze_put(
        &self,
        platform: &PlatformId,
        hour: Hour,
        reason: &str,
        detail: &str,
    ) -> Result<(), LedgerError> {
        let now = self.now().await?;
        let put = include_str!("../../../sql/ledger/queries/runs/freeze_put.sql");
        self.run("freezing an hour", put, |s| {
            s.text(platform.as_str()).hour(hour).text(reason).text(detail).time(now).done()
        })
        .await
        .map(drop)
    }

    pub async fn freeze_clear(&self, platform: &PlatformId, hour: Hour) -> Result<(), LedgerError> {
        let clear = include_str!("../../../sql/ledger/queries/runs/freeze_clear.sql");
        self.run("thawing an hour", clear, |s| s.text(platform.as_str()).hour(hour).done()).await.map(drop)
    }

    pub async fn freeze_list(&self, platform: &PlatformId) -> Result<Vec<FreezeRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/runs/freeze_list.sql");
        let rows = self.rows("listing frozen hours", list, |s| s.text(platform.as_str()).done()).await?;
        rows.iter()
            .map(|row| {
                Ok(FreezeRow {
                    platform: row.parsed("platform_id", PlatformId::parse)?,
                    hour: row.hour("hour")?,
                    reason: row.text("reason")?,
                    detail: row.text("detail")?,
                    found_at: row.time("found_at")?,
                })
            })
            .collect()
    }

    /// Hours in `[from, to)` of which not everything is sealed: journals counted more than the last run, something was
    /// deferred, or an open journal is not confirmed past the hour and the platform's lateness.
    pub async fn hours_unsealed(
        &self,
        platform: &PlatformId,
        from: Hour,
        to: Hour,
    ) -> Result<Vec<Hour>, LedgerError> {
        let lateness = self.platform_get(platform).await?.lateness_us;
        let confirmed = self
            .epoch_list()
            .await?
            .into_iter()
            .filter(|epoch| epoch.state == EpochState::Open)
            .map(|epoch| epoch.confirmed_through)
            .min();
        let counts = include_str!("../../../sql/ledger/queries/epochs/hours_beyond.sql");
        let rows = self
            .rows("counting hours", counts, |s| s.text(platform.as_str()).hour(from).hour(to).done())
            .await?;
        let mut counted: BTreeMap<Hour, u64> = BTreeMap::new();
        for row in &rows {
            let events = counted.entry(row.hour("hour")?).or_default();
            *events = events
                .checked_add(row.number("events")?)
                .ok_or(LedgerError::TooLarge { what: "a count of events" })?;
        }
        let runs = self.seal_run_latest().await?;
        let mut unsealed = Vec::new();
        let mut hour = from;
        while hour < to {
            let complete = confirmed
                .is_none_or(|at| hour.end().checked_add_micros(lateness).is_some_and(|due| at >= due));
            let sealed = match (counted.get(&hour), runs.get(&(platform.clone(), hour))) {
                (None, _) => true,
                (Some(events), Some(run)) => {
                    *events == run.events && run.deferred == 0 && run.recorded_at.is_some()
                }
                (Some(_), None) => false,
            };
            if !complete || !sealed {
                unsealed.push(hour);
            }
            hour = hour.next();
        }
        Ok(unsealed)
    }
}

fn read(row: &AnyRow) -> Result<SealRunRow, LedgerError> {
    let silent = row.text("silent")?;
    let silent = silent
        .split(',')
        .filter(|part| !part.is_empty())
        .map(|part| {
            part.parse().map_err(|_| LedgerError::Corrupt {
                column: "silent",
                reason: format!("{part:?} is no epoch"),
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(SealRunRow {
        run_id: row.text("run_id")?,
        platform: row.parsed("platform_id", PlatformId::parse)?,
        hour: row.hour("hour")?,
        ordinal: row.number("ordinal")?,
        cut_id: row.number("cut_id")?,
        events: row.number("events")?,
        silent,
        deferred: row.number("deferred")?,
        committed_at: row.time("committed_at")?,
        recorded_at: row.time_or_null("recorded_at")?,
    })
}
