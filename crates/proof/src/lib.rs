#![doc = include_str!("../README.md")]

mod encode;
mod error;
mod file;
mod keys;
pub mod log;
mod statement;
mod text;
mod tree;

pub use error::ProofError;
pub use file::{
    EventOpening, FileFormat, FrameOpening, MeterOpening, OpenedFrame, OpenedTurn, ProofFile, SignedHead,
    Statement, Verdict,
};
pub use keys::{KeyFamily, PublicKey, Signature, SigningKey, VerifyingKey};
pub use statement::{HeadBody, PeriodItem, StatementFacts, period_root, statement_hash};
pub use tree::{
    InclusionProof, Leaf, Side, Step, SumNode, SumTreeBuilder, inclusion, sum_root, verify_leaves,
};

/// SHA-256 of one of our encodings.
pub type Hash = [u8; 32];
