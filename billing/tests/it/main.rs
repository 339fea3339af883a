//! Billing over a real ledger, and sealing over a real engine too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod payments;
mod sealing;
