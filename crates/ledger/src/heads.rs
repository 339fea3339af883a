//! Each platform's log: its right edge, and the signed heads that left the house.

use usage::{PlatformId, Timestamp};

use crate::{Ledger, LedgerError, LogMove, Tx, row::Columns as _};

/// A signed head, in the words of `proof`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadRow {
    pub size: u64,
    pub root: [u8; 32],
    pub at: Timestamp,
    pub kid: String,
    /// Base64.
    pub signature: String,
}

impl Ledger {
    /// The size and right edge of a platform's log; none before its first statement.
    pub async fn log_frontier(&self, platform: &PlatformId) -> Result<Option<(u64, Vec<u8>)>, LedgerError> {
        let get = include_str!("../../../sql/ledger/queries/heads/frontier_get.sql");
        let rows = self.rows("reading the log's edge", get, |s| s.text(platform.as_str()).done()).await?;
        rows.first().map(|row| Ok((row.number("size")?, row.bytes("frontier")?))).transpose()
    }

    /// Heads below a size, the newest first.
    pub async fn head_list(
        &self,
        platform: &PlatformId,
        below: Option<u64>,
        limit: u32,
    ) -> Result<Vec<HeadRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/heads/list.sql");
        let below = below.unwrap_or(i64::MAX.unsigned_abs());
        let rows = self
            .rows("listing heads", list, |s| {
                s.text(platform.as_str()).number("a size", below).integer(i64::from(limit)).done()
            })
            .await?;
        rows.iter()
            .map(|row| {
                Ok(HeadRow {
                    size: row.number("size")?,
                    root: row.array("root")?,
                    at: row.time("at")?,
                    kid: row.text("kid")?,
                    signature: row.text("signature")?,
                })
            })
            .collect()
    }
}

impl Tx {
    /// Moves a platform's log from the size that the mover saw.
    pub(crate) async fn log_move(&mut self, platform: &PlatformId, log: &LogMove) -> Result<(), LedgerError> {
        let put = include_str!("../../../sql/ledger/queries/heads/frontier_put.sql");
        let changed = self
            .run("moving the log's edge", put, |s| {
                s.text(platform.as_str())
                    .number("a size", log.head.size)
                    .bytes(&log.frontier)
                    .number("a size", log.former_size)
                    .done()
            })
            .await?;
        if changed == 0 {
            return Err(LedgerError::Conflict { constraint: format!("the log of {platform}") });
        }
        let insert = include_str!("../../../sql/ledger/queries/heads/insert.sql");
        self.run("inserting a head", insert, |s| {
            s.text(platform.as_str())
                .number("a size", log.head.size)
                .bytes(&log.head.root)
                .time(log.head.at)
                .text(&log.head.kid)
                .text(&log.head.signature)
                .done()
        })
        .await
        .map(drop)
    }
}
