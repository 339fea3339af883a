//! What a verifier rests on, from outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod file;
mod log;
mod sample;
mod signatures;
mod tree;
mod vectors;
