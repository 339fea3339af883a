#![doc = include_str!("../README.md")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this crate is test code: a failure ends the test"
)]

pub mod auditor;
pub mod load;
pub mod wait;
pub mod world;

pub use world::{Answer, Service, World, repository};
