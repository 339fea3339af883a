#![doc = include_str!("../README.md")]

mod error;
mod pool;
mod row;

mod migrate;

mod customers;
mod cuts;
mod epochs;
mod erasure;
mod keys;
mod lease;
mod meters;
mod platforms;
mod public_keys;
mod records;

mod heads;
mod runs;
mod statements;

mod invoices;
mod placements;
mod subscriptions;

pub mod testing;

pub use customers::CustomerRow;
pub use cuts::Cut;
pub use epochs::{EpochRow, EpochState, HourCount};
pub use error::LedgerError;
pub use heads::HeadRow;
pub use invoices::{InvoiceLineRow, InvoiceRow};
pub use keys::KeyRow;
pub use lease::Lease;
pub use meters::MeterRow;
pub use migrate::MigrationReport;
pub use placements::{PlacementCursor, PlacementRow, ReconciliationRow, SyncWaitRow, SyncWaitSummary};
pub use platforms::{PlatformRow, SyncMode};
pub use pool::{Backend, Ledger, LedgerOptions, Tx};
pub use public_keys::PublicKeyRow;
pub use records::RecordRow;
pub use runs::{DeferralRow, FreezeRow, SealRunRow};
pub use statements::{LogMove, PieceKey, PieceRow, SealCommit, StatementRow};
pub use subscriptions::{
    BillPeriodRead, BillPeriodRow, PeriodClosing, SubscriptionRead, SubscriptionState, SubscriptionView,
};
