#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is the failure")]

//! The stand-in from outside: each answer is held against the operation's schema before a test sees it.

mod desk;
mod schema;

mod faults;
mod idempotency;
mod invoices;
mod lists;
mod meter_events;
mod modes;
mod over_the_wire;
mod restart;
mod subscriptions;
mod summaries;
mod test_clocks;
mod v2;
