//! The official client, and plain HTTP, against the engine in process. Each test runs in a process of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

mod round_trip;
