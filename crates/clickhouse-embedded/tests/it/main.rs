//! The official client, and plain HTTP, against the engine in process. Each test runs in a process of its own, because
//! a process runs one engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

mod crash;
mod folder;
mod insert;
mod query;
mod round_trip;
mod session;
mod stream;
mod tcp;
