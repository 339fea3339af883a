//! Connections, transactions and the ledger's clock.

use std::{str::FromStr as _, time::Duration};

use sqlx::{
    Any, AnyPool, Executor as _, Row as _, Transaction,
    any::{AnyConnectOptions, AnyPoolOptions},
};
use usage::{SharedClock, Timestamp};

use crate::{
    LedgerError,
    row::{Arguments, Statement},
};

/// Where the ledger is.
#[derive(Clone)]
pub struct LedgerOptions {
    /// `sqlite:///path/ledger.sqlite` or `postgres://user:password@host/database`.
    pub url: String,
    /// Replaces the database's clock, so that tests move time.
    pub clock: Option<SharedClock>,
    pub max_connections: u32,
}

impl LedgerOptions {
    /// The database's own clock and a small pool.
    pub fn new(url: impl Into<String>) -> LedgerOptions {
        LedgerOptions { url: url.into(), clock: None, max_connections: 8 }
    }
}

impl std::fmt::Debug for LedgerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LedgerOptions")
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}

/// Which database answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

/// The ledger. Cloning shares the connections.
#[derive(Clone)]
pub struct Ledger {
    pub(crate) pool: AnyPool,
    backend: Backend,
    clock: Option<SharedClock>,
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").field("backend", &self.backend).finish_non_exhaustive()
    }
}

/// A transaction that writes. Dropped without [`Tx::commit`], nothing of it happened.
pub struct Tx {
    inner: Transaction<'static, Any>,
    now: Timestamp,
}

impl std::fmt::Debug for Tx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tx").field("now", &self.now).finish_non_exhaustive()
    }
}

/// What makes a SQLite connection durable and patient with the one other writer of the same process.
const SQLITE_SETTINGS: &str =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 30000;";

impl Ledger {
    /// Connects; the schema is [`Ledger::migrate`]'s.
    pub async fn open(options: LedgerOptions) -> Result<Ledger, LedgerError> {
        sqlx::any::install_default_drivers();
        let (backend, url) = match options.url.strip_prefix("sqlite:") {
            Some(_) => (Backend::Sqlite, format!("{}?mode=rwc", options.url)),
            None => (Backend::Postgres, options.url.clone()),
        };
        let connect = AnyConnectOptions::from_str(&url)
            .map_err(|e| LedgerError::of("reading the ledger's address", e))?;
        let pool = AnyPoolOptions::new()
            .max_connections(options.max_connections.max(2))
            .acquire_timeout(Duration::from_secs(10))
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    if backend == Backend::Sqlite {
                        connection.execute(SQLITE_SETTINGS).await?;
                    }
                    Ok(())
                })
            })
            .connect_with(connect)
            .await
            .map_err(|e| LedgerError::of("connecting", e))?;
        Ok(Ledger { pool, backend, clock: options.clock })
    }

    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The instant by the ledger's clock: leases and deadlines go by it, whoever asks.
    pub async fn now(&self) -> Result<Timestamp, LedgerError> {
        match &self.clock {
            Some(clock) => Ok(clock.now()),
            None => {
                let row = sqlx::query(self.clock_statement())
                    .fetch_one(&self.pool)
                    .await
                    .map_err(|e| LedgerError::of("asking the ledger's clock", e))?;
                read_clock(&row)
            }
        }
    }

    /// Answers whether the database answers.
    pub async fn ping(&self) -> Result<(), LedgerError> {
        sqlx::query("SELECT 1").execute(&self.pool).await.map_err(|e| LedgerError::of("pinging", e))?;
        Ok(())
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Begins a transaction that may write.
    pub async fn write(&self) -> Result<Tx, LedgerError> {
        // SQLite must take its write lock before it reads, or two readers that then write lock each other out.
        let mut inner = match self.backend {
            Backend::Sqlite => self.pool.begin_with("BEGIN IMMEDIATE").await,
            Backend::Postgres => self.pool.begin().await,
        }
        .map_err(|e| LedgerError::of("beginning a transaction", e))?;
        let now = match &self.clock {
            Some(clock) => clock.now(),
            None => {
                let row = sqlx::query(self.clock_statement())
                    .fetch_one(&mut *inner)
                    .await
                    .map_err(|e| LedgerError::of("asking the ledger's clock", e))?;
                read_clock(&row)?
            }
        };
        Ok(Tx { inner, now })
    }

    fn clock_statement(&self) -> &'static str {
        match self.backend {
            Backend::Sqlite => include_str!("../../../sql/ledger/queries/schema/now_sqlite.sql"),
            Backend::Postgres => include_str!("../../../sql/ledger/queries/schema/now_postgres.sql"),
        }
    }

    /// Rows of a statement outside a transaction.
    pub(crate) async fn rows(
        &self,
        operation: &'static str,
        statement: &'static str,
        bind: impl FnOnce(Statement) -> Arguments,
    ) -> Result<Vec<sqlx::any::AnyRow>, LedgerError> {
        let query = bind(Statement::new(statement))?;
        query.fetch_all(&self.pool).await.map_err(|e| LedgerError::of(operation, e))
    }

    /// Runs a statement outside a transaction; returns how many rows it changed.
    pub(crate) async fn run(
        &self,
        operation: &'static str,
        statement: &'static str,
        bind: impl FnOnce(Statement) -> Arguments,
    ) -> Result<u64, LedgerError> {
        let query = bind(Statement::new(statement))?;
        let done = query.execute(&self.pool).await.map_err(|e| LedgerError::of(operation, e))?;
        Ok(done.rows_affected())
    }
}

fn read_clock(row: &sqlx::any::AnyRow) -> Result<Timestamp, LedgerError> {
    let micros: i64 = row.try_get(0).map_err(|e| LedgerError::of("reading the ledger's clock", e))?;
    Ok(Timestamp::from_micros(micros))
}

impl Tx {
    /// The instant of the transaction's beginning by the ledger's clock.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub async fn commit(self) -> Result<(), LedgerError> {
        self.inner.commit().await.map_err(|e| LedgerError::of("committing", e))
    }

    pub(crate) async fn rows(
        &mut self,
        operation: &'static str,
        statement: &'static str,
        bind: impl FnOnce(Statement) -> Arguments,
    ) -> Result<Vec<sqlx::any::AnyRow>, LedgerError> {
        let query = bind(Statement::new(statement))?;
        query.fetch_all(&mut *self.inner).await.map_err(|e| LedgerError::of(operation, e))
    }

    pub(crate) async fn run(
        &mut self,
        operation: &'static str,
        statement: &'static str,
        bind: impl FnOnce(Statement) -> Arguments,
    ) -> Result<u64, LedgerError> {
        let query = bind(Statement::new(statement))?;
        let done = query.execute(&mut *self.inner).await.map_err(|e| LedgerError::of(operation, e))?;
        Ok(done.rows_affected())
    }

    /// Runs the text of a whole migration: several statements, no parameters.
    pub(crate) async fn script(
        &mut self,
        operation: &'static str,
        text: &'static str,
    ) -> Result<(), LedgerError> {
        sqlx::raw_sql(text).execute(&mut *self.inner).await.map_err(|e| LedgerError::of(operation, e))?;
        Ok(())
    }
}
