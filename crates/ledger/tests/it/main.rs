//! The conformance suite: each case on SQLite and on a real Postgres.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod core_rows;
mod cuts;
mod leases;
mod queries;
mod schema;

use ledger::testing::TestLedger;
use usage::{ManualClock, Timestamp};

/// Noon of an ordinary day.
const NOON: Timestamp = Timestamp::from_micros(1_796_040_000_000_000);

/// Both ledgers, with a clock that the test moves.
async fn both() -> (Vec<TestLedger>, ManualClock) {
    let clock = ManualClock::new(NOON);
    let ledgers = ledger::testing::ledgers(Some(std::sync::Arc::new(clock.clone()))).await.unwrap();
    (ledgers, clock)
}
