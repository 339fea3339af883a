//! Rules of the house that a compiler does not know. Each failure says what to do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod edges;
mod files;
