#![doc = include_str!("../README.md")]

mod ingest;

mod http;
mod journal;
mod writer;

mod error;

pub use error::IngestError;
pub use ingest::{Backlog, Ingest, IngestDeps, IngestOptions};

pub(crate) use ingest::Parts;
