//! The store on the real engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod frames;
mod schema;
mod world;
