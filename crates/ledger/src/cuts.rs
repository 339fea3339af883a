//! Cuts: one reading of every epoch's confirmed position.

use std::collections::BTreeMap;

use usage::Timestamp;

use crate::{Ledger, LedgerError, Tx, row::Columns as _, row::Statement, row::one};

/// A numbered vector of positions, monotone in every component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    pub cut_id: u64,
    pub taken_at: Timestamp,
    pub positions: BTreeMap<u64, u64>,
}

impl Cut {
    /// The position of an epoch; one that the cut does not know has none.
    pub fn seq(&self, epoch: u64) -> u64 {
        self.positions.get(&epoch).copied().unwrap_or(0)
    }
}

impl Ledger {
    /// Takes a cut, or returns the newest one when no epoch has moved since.
    pub async fn cut_take(&self) -> Result<Cut, LedgerError> {
        let mut tx = self.write().await?;
        // Postgres lets two write at once; the lock makes cuts one after the other.
        tx.lease_lock("cuts").await?;
        let latest = include_str!("../../../sql/ledger/queries/cuts/latest.sql");
        if let Some(row) =
            tx.rows("reading the newest cut", latest, Statement::done).await?.into_iter().next()
        {
            let (cut_id, taken_at) = (row.number("cut_id")?, row.time("taken_at")?);
            let changed = include_str!("../../../sql/ledger/queries/cuts/changed.sql");
            let rows = tx.rows("comparing a cut", changed, |s| s.number("a cut", cut_id).done()).await?;
            let moved: i64 = sqlx::Row::try_get(&one(rows, || "count".to_owned())?, 0)
                .map_err(|e| LedgerError::of("comparing a cut", e))?;
            if moved == 0 {
                let positions = positions(&mut tx, cut_id).await?;
                tx.commit().await?;
                return Ok(Cut { cut_id, taken_at, positions });
            }
        }
        let now = tx.now();
        let insert = include_str!("../../../sql/ledger/queries/cuts/insert.sql");
        let rows = tx.rows("taking a cut", insert, |s| s.time(now).done()).await?;
        let cut_id = one(rows, || "new cut".to_owned())?.number("cut_id")?;
        let fill = include_str!("../../../sql/ledger/queries/cuts/fill.sql");
        tx.run("filling a cut", fill, |s| s.number("a cut", cut_id).done()).await?;
        let positions = positions(&mut tx, cut_id).await?;
        tx.commit().await?;
        Ok(Cut { cut_id, taken_at: now, positions })
    }

    pub async fn cut_get(&self, cut_id: u64) -> Result<Cut, LedgerError> {
        let get = include_str!("../../../sql/ledger/queries/cuts/get.sql");
        let rows = self.rows("reading a cut", get, |s| s.number("a cut", cut_id).done()).await?;
        let taken_at = one(rows, || format!("cut {cut_id}"))?.time("taken_at")?;
        let list = include_str!("../../../sql/ledger/queries/cuts/positions.sql");
        let rows = self.rows("reading a cut's positions", list, |s| s.number("a cut", cut_id).done()).await?;
        let positions = rows
            .iter()
            .map(|row| Ok((row.number("epoch_id")?, row.number("seq")?)))
            .collect::<Result<_, LedgerError>>()?;
        Ok(Cut { cut_id, taken_at, positions })
    }
}

async fn positions(tx: &mut Tx, cut_id: u64) -> Result<BTreeMap<u64, u64>, LedgerError> {
    let list = include_str!("../../../sql/ledger/queries/cuts/positions.sql");
    let rows = tx.rows("reading a cut's positions", list, |s| s.number("a cut", cut_id).done()).await?;
    rows.iter().map(|row| Ok((row.number("epoch_id")?, row.number("seq")?))).collect()
}
