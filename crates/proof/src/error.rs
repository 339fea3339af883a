/// Why a tree cannot be built or a proof does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    #[error("event {0} does not come after its predecessor")]
    NotIncreasing(String),
    #[error("a sum or count is too large")]
    Overflow,
    #[error("event {0} is not in the tree")]
    NotInTree(String),
    #[error("the leaf is not at its place: {0}")]
    WrongShape(&'static str),
    #[error("the {what} differs: the proof leads to {found}, the root says {expected}")]
    Differs { what: &'static str, found: String, expected: String },
    #[error("there is no entry {index} in a log of {size}")]
    OutOfLog { index: u64, size: u64 },
    #[error("the signature does not hold")]
    BadSignature,
    #[error("key {0} is not among the trusted ones of its family")]
    UnknownKey(String),
    #[error("not a valid {0}")]
    Malformed(&'static str),
}

pub(crate) fn same(
    what: &'static str,
    found: &crate::Hash,
    expected: &crate::Hash,
) -> Result<(), ProofError> {
    if found == expected {
        return Ok(());
    }
    Err(ProofError::Differs { what, found: hex::encode(found), expected: hex::encode(expected) })
}
