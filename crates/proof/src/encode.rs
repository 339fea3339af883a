use sha2::{Digest as _, Sha256};

use crate::Hash;

/// The encoding of everything that is hashed or signed; written a second time here, because the verifier must not share a
/// mistake with what it verifies. The published vectors hold the two together.
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(192))
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.count(text.len()).raw(text.as_bytes())
    }

    /// A length or count. What is measured here is in memory and bounded by its readers, far below 4 GiB.
    pub(crate) fn count(self, count: usize) -> Self {
        self.raw(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes())
    }

    pub(crate) fn option<T>(self, value: Option<T>, write: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.raw(&[0]),
            Some(value) => write(self.raw(&[1]), value),
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn hash(self) -> Hash {
        sha256(&self.0)
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}
