use sha2::{Digest as _, Sha256};

/// The one encoding that everything we hash or sign is written in.
///
/// Integers are big-endian; a text is its length as u32 and its bytes; a list is its count as u32 and its items; an option is
/// one byte, 0 or 1, and the value. No field can run into its neighbour, so two different values never have the same bytes.
#[derive(Clone, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// Starts with a tag, which keeps the hashes of different things apart.
    pub fn new(tag: &str) -> Self {
        Self { bytes: Vec::with_capacity(256) }.text(tag)
    }

    #[must_use]
    pub fn text(mut self, value: &str) -> Self {
        self.bytes.extend_from_slice(&length(value.len()));
        self.bytes.extend_from_slice(value.as_bytes());
        self
    }

    /// Bytes of a length that the format fixes: no length is written.
    #[must_use]
    pub fn fixed<const N: usize>(mut self, value: &[u8; N]) -> Self {
        self.bytes.extend_from_slice(value);
        self
    }

    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.fixed(&value.to_be_bytes())
    }

    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.fixed(&value.to_be_bytes())
    }

    #[must_use]
    pub fn i64(self, value: i64) -> Self {
        self.fixed(&value.to_be_bytes())
    }

    #[must_use]
    pub fn option<T>(self, value: Option<T>, write: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.fixed(&[0]),
            Some(value) => write(self.fixed(&[1]), value),
        }
    }

    #[must_use]
    pub fn list<T, I>(mut self, items: I, mut write: impl FnMut(Self, T) -> Self) -> Self
    where
        I: IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    {
        let items = items.into_iter();
        self.bytes.extend_from_slice(&length(items.len()));
        items.fold(self, &mut write)
    }

    /// The bytes themselves: what a signature is over.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// SHA-256 of the bytes.
    pub fn hash(self) -> [u8; 32] {
        Sha256::digest(&self.bytes).into()
    }

    /// The first 16 bytes of the SHA-256: a name, not a commitment.
    pub fn hash16(self) -> [u8; 16] {
        let mut short = [0; 16];
        for (to, from) in short.iter_mut().zip(self.hash()) {
            *to = from;
        }
        short
    }
}

/// Every text and list here is bounded far below 4 GiB; should one ever not be, its hash is still deterministic.
fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
}
