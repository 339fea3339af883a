#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

mod bad_input;
mod batch;
mod durable;
mod repeats;
mod stored;
