//! Budgets: their rules over random histories, and their routes over both ledgers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod histories;
mod holds;
mod routes;
mod rules;
mod world;
