//! Epochs: each opening of a journal folder, how far it is stored, and what it counted.

use std::collections::BTreeMap;

use sqlx::any::AnyRow;
use usage::{Hour, PlatformId, Timestamp};

use crate::{Cut, Ledger, LedgerError, row::Columns as _, row::Statement, row::one};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochState {
    /// A process appends to it.
    Open,
    /// Its end is known.
    Closed,
    /// Its folder is gone.
    Lost,
}

impl EpochState {
    pub fn as_str(self) -> &'static str {
        match self {
            EpochState::Open => "open",
            EpochState::Closed => "closed",
            EpochState::Lost => "lost",
        }
    }

    fn parse(text: String) -> Result<EpochState, &'static str> {
        [EpochState::Open, EpochState::Closed, EpochState::Lost]
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or("it is no state of an epoch")
    }
}

/// One opening of one journal folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochRow {
    pub epoch: u64,
    pub folder: String,
    pub state: EpochState,
    pub opened_at: Timestamp,
    /// Every position up to here is in the store, or quarantined.
    pub confirmed_seq: u64,
    pub end_seq: Option<u64>,
    /// Everything accepted before this instant is confirmed.
    pub confirmed_through: Timestamp,
    pub heartbeat_at: Timestamp,
}

/// Cumulative counts of one epoch for one platform and hour, as of a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HourCount {
    pub platform: PlatformId,
    pub hour: Hour,
    pub seq: u64,
    pub events: u64,
    pub tokens: u128,
    pub frames: u64,
}

impl Ledger {
    /// Registers a new epoch of a folder and closes the former one at the last position found in it.
    pub async fn epoch_open(
        &self,
        folder: &str,
        former: Option<(u64, u64)>,
    ) -> Result<EpochRow, LedgerError> {
        let mut tx = self.write().await?;
        if let Some((epoch, last_seq)) = former {
            let close = include_str!("../../../sql/ledger/queries/epochs/close_former.sql");
            tx.run("closing an epoch", close, |s| {
                s.text(folder).number("an epoch", epoch).number("a position", last_seq).done()
            })
            .await?;
        }
        let now = tx.now();
        let insert = include_str!("../../../sql/ledger/queries/epochs/insert.sql");
        let rows = tx.rows("opening an epoch", insert, |s| s.text(folder).time(now).done()).await?;
        let epoch = one(rows, || "new epoch".to_owned())?.number("epoch_id")?;
        tx.commit().await?;
        Ok(EpochRow {
            epoch,
            folder: folder.to_owned(),
            state: EpochState::Open,
            opened_at: now,
            confirmed_seq: 0,
            end_seq: None,
            confirmed_through: now,
            heartbeat_at: now,
        })
    }

    /// Tells how far an epoch is stored, with the cumulative counts as of that position. Never moves back; told twice it is the same.
    pub async fn epoch_confirm(
        &self,
        epoch: u64,
        confirmed_seq: u64,
        through: Timestamp,
        counts: &[HourCount],
    ) -> Result<(), LedgerError> {
        let mut tx = self.write().await?;
        let insert = include_str!("../../../sql/ledger/queries/epochs/count_insert.sql");
        for count in counts {
            tx.run("counting an hour", insert, |s| {
                s.number("an epoch", epoch)
                    .text(count.platform.as_str())
                    .hour(count.hour)
                    .number("a position", count.seq)
                    .number("a count of events", count.events)
                    .sum(count.tokens)
                    .number("a count of frames", count.frames)
                    .done()
            })
            .await?;
        }
        let now = tx.now();
        let confirm = include_str!("../../../sql/ledger/queries/epochs/confirm.sql");
        let changed = tx
            .run("confirming an epoch", confirm, |s| {
                s.number("an epoch", epoch).number("a position", confirmed_seq).time(through).time(now).done()
            })
            .await?;
        if changed == 0 {
            return Err(LedgerError::NotFound { what: format!("epoch {epoch}") });
        }
        tx.commit().await
    }

    /// Every epoch ever registered.
    pub async fn epoch_list(&self) -> Result<Vec<EpochRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/epochs/list.sql");
        self.rows("listing epochs", list, Statement::done).await?.iter().map(read).collect()
    }

    /// For each epoch with usage in the hour, the counts as of the greatest told position at or below the cut's.
    pub async fn epoch_counts_at(
        &self,
        platform: &PlatformId,
        hour: Hour,
        cut: &Cut,
    ) -> Result<BTreeMap<u64, HourCount>, LedgerError> {
        let counts = include_str!("../../../sql/ledger/queries/epochs/counts_of_hour.sql");
        let rows = self
            .rows("reading an hour's counts", counts, |s| s.text(platform.as_str()).hour(hour).done())
            .await?;
        let mut last = BTreeMap::new();
        for row in &rows {
            let (epoch, count) = read_count(row)?;
            if count.seq <= cut.seq(epoch) {
                last.insert(epoch, count);
            }
        }
        Ok(last)
    }

    /// For every platform, hour and epoch the counts as of a cut: the list of hours with usage.
    pub async fn epoch_counts_latest(&self, cut: &Cut) -> Result<Vec<(u64, HourCount)>, LedgerError> {
        let latest = include_str!("../../../sql/ledger/queries/epochs/latest_counts.sql");
        let rows =
            self.rows("listing hours with usage", latest, |s| s.number("a cut", cut.cut_id).done()).await?;
        rows.iter().map(read_count).collect()
    }
}

fn read(row: &AnyRow) -> Result<EpochRow, LedgerError> {
    Ok(EpochRow {
        epoch: row.number("epoch_id")?,
        folder: row.text("folder_id")?,
        state: row.parsed("state", EpochState::parse)?,
        opened_at: row.time("opened_at")?,
        confirmed_seq: row.number("confirmed_seq")?,
        end_seq: row.number_or_null("end_seq")?,
        confirmed_through: row.time("confirmed_through")?,
        heartbeat_at: row.time("heartbeat_at")?,
    })
}

fn read_count(row: &AnyRow) -> Result<(u64, HourCount), LedgerError> {
    let count = HourCount {
        platform: row.parsed("platform_id", PlatformId::parse)?,
        hour: row.hour("hour")?,
        seq: row.number("seq")?,
        events: row.number("events")?,
        tokens: row.sum("tokens")?,
        frames: row.number("frames")?,
    };
    Ok((row.number("epoch_id")?, count))
}
