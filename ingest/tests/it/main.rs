#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod proxy;
mod world;

mod bad_input;
mod batch;
mod crash;
mod durable;
mod faults;
mod repeats;
mod stored;
