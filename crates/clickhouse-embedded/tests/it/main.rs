//! The official client, and plain HTTP, against the engine in process. Each test runs in a process of its own, because
//! a process runs one engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test that starts itself again tells its child what to do by the environment and hears it by its output"
)]

mod support;

mod crash;
mod folder;
mod insert;
mod query;
mod round_trip;
mod session;
mod stream;
mod tcp;
