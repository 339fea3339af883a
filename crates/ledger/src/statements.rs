//! Statements, the pieces they are for, and the one transaction that seals them.

use std::collections::BTreeMap;

use sqlx::any::AnyRow;
use usage::{CustomerId, Hour, MeterId, PlatformId, Timestamp};

use crate::{HeadRow, Lease, Ledger, LedgerError, SealRunRow, row::Columns as _};

/// What a customer used of a meter in a piece, as one run found it. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementRow {
    /// `stm_` and the first 32 digits of its hash.
    pub statement_id: String,
    pub platform: PlatformId,
    pub customer: CustomerId,
    pub meter: MeterId,
    pub definition_hash: [u8; 32],
    pub hour: Hour,
    pub piece_start: Timestamp,
    pub piece_end: Timestamp,
    pub revision: u32,
    pub count: u64,
    pub sum: u128,
    pub root: [u8; 32],
    pub statement_hash: [u8; 32],
    /// Its place in the platform's log, from 1.
    pub log_index: u64,
    pub run_id: String,
    /// Whether its run's record is beside the usage.
    pub recorded: bool,
}

/// A part of a customer's hour that one billing period has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceRow {
    pub customer: CustomerId,
    pub meter: MeterId,
    pub start: Timestamp,
    pub end: Timestamp,
}

/// A customer, a meter and the start of a piece.
pub type PieceKey = (CustomerId, MeterId, Timestamp);

/// Everything that a run writes, at once or not at all.
#[derive(Debug, Clone)]
pub struct SealCommit {
    pub run: SealRunRow,
    pub deferrals: Vec<(CustomerId, MeterId)>,
    /// Those that the run fixed.
    pub pieces: Vec<PieceRow>,
    pub statements: Vec<StatementRow>,
    /// The log after the statements; none when there are none.
    pub log: Option<LogMove>,
}

/// How a run moves the platform's log.
#[derive(Debug, Clone)]
pub struct LogMove {
    pub former_size: u64,
    pub frontier: Vec<u8>,
    pub head: HeadRow,
}

impl Ledger {
    /// Commits a run while the lease is held.
    ///
    /// # Errors
    ///
    /// `FenceLost` when another took the lease since, `Conflict` when another run was faster: nothing is written.
    pub async fn seal_commit(&self, lease: &Lease, commit: &SealCommit) -> Result<(), LedgerError> {
        let mut tx = self.write().await?;
        tx.check_fence(lease).await?;
        let run = &commit.run;
        let silent: Vec<String> = run.silent.iter().map(u64::to_string).collect();
        let insert = include_str!("../../../sql/ledger/queries/runs/insert.sql");
        tx.run("inserting a run", insert, |s| {
            s.text(&run.run_id)
                .text(run.platform.as_str())
                .hour(run.hour)
                .number("an ordinal", run.ordinal)
                .number("a cut", run.cut_id)
                .number("a count of events", run.events)
                .text(&silent.join(","))
                .number("a count of deferrals", run.deferred)
                .time(run.committed_at)
                .done()
        })
        .await?;
        let insert = include_str!("../../../sql/ledger/queries/runs/deferral_insert.sql");
        for (customer, meter) in &commit.deferrals {
            tx.run("deferring a customer", insert, |s| {
                s.text(&run.run_id).text(customer.as_str()).text(meter.as_str()).done()
            })
            .await?;
        }
        let insert = include_str!("../../../sql/ledger/queries/pieces/insert.sql");
        for piece in &commit.pieces {
            tx.run("fixing a piece", insert, |s| {
                s.text(run.platform.as_str())
                    .text(piece.customer.as_str())
                    .text(piece.meter.as_str())
                    .hour(run.hour)
                    .time(piece.start)
                    .time(piece.end)
                    .done()
            })
            .await?;
        }
        let insert = include_str!("../../../sql/ledger/queries/statements/insert.sql");
        for statement in &commit.statements {
            tx.run("inserting a statement", insert, |s| {
                s.text(&statement.statement_id)
                    .text(statement.platform.as_str())
                    .text(statement.customer.as_str())
                    .text(statement.meter.as_str())
                    .bytes(&statement.definition_hash)
                    .hour(statement.hour)
                    .time(statement.piece_start)
                    .time(statement.piece_end)
                    .integer(i64::from(statement.revision))
                    .number("a count of events", statement.count)
                    .sum(statement.sum)
                    .bytes(&statement.root)
                    .bytes(&statement.statement_hash)
                    .number("a place in the log", statement.log_index)
                    .text(&statement.run_id)
                    .done()
            })
            .await?;
        }
        if let Some(log) = &commit.log {
            tx.log_move(&run.platform, log).await?;
        }
        tx.commit().await
    }

    /// The pieces of a platform's hour.
    pub async fn piece_list(&self, platform: &PlatformId, hour: Hour) -> Result<Vec<PieceRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/pieces/list_of_hour.sql");
        let rows = self.rows("listing pieces", list, |s| s.text(platform.as_str()).hour(hour).done()).await?;
        rows.iter()
            .map(|row| {
                Ok(PieceRow {
                    customer: row.parsed("customer_id", CustomerId::parse)?,
                    meter: row.parsed("meter_id", MeterId::parse)?,
                    start: row.time("piece_start")?,
                    end: row.time("piece_end")?,
                })
            })
            .collect()
    }

    /// The last revision of each piece of a platform's hour that has a statement.
    pub async fn revision_list(
        &self,
        platform: &PlatformId,
        hour: Hour,
    ) -> Result<BTreeMap<PieceKey, u32>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/statements/revisions_of_hour.sql");
        let rows =
            self.rows("listing revisions", list, |s| s.text(platform.as_str()).hour(hour).done()).await?;
        rows.iter()
            .map(|row| {
                let key = (
                    row.parsed("customer_id", CustomerId::parse)?,
                    row.parsed("meter_id", MeterId::parse)?,
                    row.time("piece_start")?,
                );
                Ok((key, revision(row)?))
            })
            .collect()
    }

    /// A platform's statements in the order of its log, after a place. Ends before the first whose run is not recorded
    /// beside the usage.
    pub async fn statement_log(
        &self,
        platform: &PlatformId,
        after_index: u64,
        limit: u32,
    ) -> Result<Vec<StatementRow>, LedgerError> {
        let log = include_str!("../../../sql/ledger/queries/statements/log.sql");
        let rows = self
            .rows("reading the log", log, |s| {
                s.text(platform.as_str())
                    .number("a place in the log", after_index)
                    .integer(i64::from(limit))
                    .done()
            })
            .await?;
        let statements = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(statements.into_iter().take_while(|statement| statement.recorded).collect())
    }

    pub async fn statement_get(
        &self,
        platform: &PlatformId,
        statement_id: &str,
    ) -> Result<Option<StatementRow>, LedgerError> {
        let get = include_str!("../../../sql/ledger/queries/statements/get.sql");
        let rows = self
            .rows("reading a statement", get, |s| s.text(platform.as_str()).text(statement_id).done())
            .await?;
        rows.first().map(read).transpose()
    }

    /// Recorded statements after a place in the log, of a customer and hour or of all.
    pub async fn statement_list(
        &self,
        platform: &PlatformId,
        customer: Option<&CustomerId>,
        hour: Option<Hour>,
        after_index: u64,
        limit: u32,
    ) -> Result<Vec<StatementRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/statements/list.sql");
        let rows = self
            .rows("listing statements", list, |s| {
                s.text(platform.as_str())
                    .number("a place in the log", after_index)
                    .text(customer.map_or("", CustomerId::as_str))
                    .flag(hour.is_some())
                    .integer(hour.map_or(0, |hour| hour.index()))
                    .integer(i64::from(limit))
                    .done()
            })
            .await?;
        rows.iter().map(read).collect()
    }

    pub async fn statements_of_run(&self, run_id: &str) -> Result<Vec<StatementRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/statements/of_run.sql");
        let rows = self.rows("listing a run's statements", list, |s| s.text(run_id).done()).await?;
        rows.iter().map(read).collect()
    }

    /// The statements of a customer's hour, recorded or not.
    pub async fn statements_of_hour(
        &self,
        platform: &PlatformId,
        hour: Hour,
        customer: &CustomerId,
    ) -> Result<Vec<StatementRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/statements/of_hour.sql");
        let rows = self
            .rows("listing an hour's statements", list, |s| {
                s.text(platform.as_str()).hour(hour).text(customer.as_str()).done()
            })
            .await?;
        rows.iter().map(read).collect()
    }

    /// The first `size` entries of a platform's log.
    pub async fn statement_hashes(
        &self,
        platform: &PlatformId,
        size: u64,
    ) -> Result<Vec<[u8; 32]>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/statements/hashes.sql");
        let rows = self
            .rows("reading the log's entries", list, |s| {
                s.text(platform.as_str()).number("a size", size).done()
            })
            .await?;
        rows.iter().map(|row| row.array("statement_hash")).collect()
    }
}

fn revision(row: &AnyRow) -> Result<u32, LedgerError> {
    u32::try_from(row.integer("revision")?)
        .map_err(|_| LedgerError::Corrupt { column: "revision", reason: "it is out of range".to_owned() })
}

fn read(row: &AnyRow) -> Result<StatementRow, LedgerError> {
    Ok(StatementRow {
        statement_id: row.text("statement_id")?,
        platform: row.parsed("platform_id", PlatformId::parse)?,
        customer: row.parsed("customer_id", CustomerId::parse)?,
        meter: row.parsed("meter_id", MeterId::parse)?,
        definition_hash: row.array("definition_hash")?,
        hour: row.hour("hour")?,
        piece_start: row.time("piece_start")?,
        piece_end: row.time("piece_end")?,
        revision: revision(row)?,
        count: row.number("count")?,
        sum: row.sum("sum")?,
        root: row.array("root")?,
        statement_hash: row.array("statement_hash")?,
        log_index: row.number("log_index")?,
        run_id: row.text("run_id")?,
        recorded: row.time_or_null("recorded_at")?.is_some(),
    })
}
