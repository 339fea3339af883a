//! The sealed statements, as far as billing them goes.

use async_trait::async_trait;
use ledger::LedgerError;
use usage::{CustomerId, Hour, MeterId, PlatformId, Timestamp};

/// A committed statement. It never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BilledStatement {
    pub statement_id: String,
    pub platform: PlatformId,
    pub customer: CustomerId,
    pub meter: MeterId,
    pub hour: Hour,
    pub piece_start: Timestamp,
    pub piece_end: Timestamp,
    pub revision: u32,
    pub sum: u128,
    pub hash: [u8; 32],
    /// Its place in the platform's log, from 1.
    pub log_index: u64,
}

/// Where statements come from: the ledger, or a test's list.
#[async_trait]
pub trait Statements: Send + Sync + 'static {
    /// In the order of the log, after a place in it. Ends before the first whose run is not recorded beside the usage yet: a restored ledger could not
    /// make that one again.
    async fn log(
        &self,
        platform: &PlatformId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<BilledStatement>, LedgerError>;

    async fn get(
        &self,
        platform: &PlatformId,
        statement_id: &str,
    ) -> Result<Option<BilledStatement>, LedgerError>;

    /// Hours in `[from, to)` that are not sealed to their last event yet.
    async fn unsealed(&self, platform: &PlatformId, from: Hour, to: Hour) -> Result<Vec<Hour>, LedgerError>;
}
