//! The pipeline as its users meet it: real processes, real engine, both ledgers, the Stripe sandbox.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
