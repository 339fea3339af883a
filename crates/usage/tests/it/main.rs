//! What the vocabulary promises, from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod audit;
mod hashes;
mod identity;
mod random;
mod reading;
mod sample;
mod time;
mod vectors;
mod wire;
