#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod audit;
mod composition;
mod docs;
mod isolation;
mod meter;
mod properties;
mod serving;
mod stdio;
mod support;
