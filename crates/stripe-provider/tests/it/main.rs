//! The provider, and billing through it, against the sandbox over a real loopback connection.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod statements;
mod stripe;
mod world;

mod calls;
mod payments;
