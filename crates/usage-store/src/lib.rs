#![doc = include_str!("../README.md")]

mod store;

mod error;
mod migrate;
mod params;

mod cut;
mod rows;

mod events;
mod frames;
mod insert;
mod reports;
mod runs;
mod totals;

pub use cut::Cut;
pub use error::StoreError;
pub use events::{
    CoveredEvent, CoveredStream, Customers, EventStream, UsageFilter, UsageKey, UsageLine, UsageTotal,
};
pub use frames::{FrameAfter, FrameHit, FrameQuery};
pub use insert::ReportBlock;
pub use migrate::StoreMigrationReport;
pub use reports::ConflictRow;
pub use rows::{EventRow, ReportRow};
pub use runs::RunRow;
pub use store::{StoreOptions, UsageStore};
pub use totals::{EpochTotals, Positions, Stray};
