//! The log of a platform's statements: a Merkle tree as RFC 6962 has it, over the statement hashes in the order of their commit.
//! A signed head says its size and root; two proofs connect everything to it: that an entry is in it, and that a later head
//! contains an earlier one unchanged.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Hash, ProofError, encode::sha256, error::same, text::hexadecimals};

fn leaf_hash(entry: &Hash) -> Hash {
    Sha256::new_with_prefix([0x00]).chain_update(entry).finalize().into()
}

fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Sha256::new_with_prefix([0x01]).chain_update(left).chain_update(right).finalize().into()
}

/// The right edge of a log: enough to append and to know the root, however long the log is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogFrontier {
    size: u64,
    /// One perfect tree for each binary digit 1 of the size, largest first.
    parts: Vec<Hash>,
}

impl LogFrontier {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn append(&mut self, entry: &Hash) -> Result<(), ProofError> {
        let size = self.size.checked_add(1).ok_or(ProofError::Overflow)?;
        let mut node = leaf_hash(entry);
        // Each trailing digit 1 of the old size is a tree that the new leaf completes.
        for _ in 0..self.size.trailing_ones() {
            let left = self.parts.pop().ok_or(ProofError::Malformed("log frontier"))?;
            node = node_hash(&left, &node);
        }
        self.parts.push(node);
        self.size = size;
        Ok(())
    }

    pub fn root(&self) -> Hash {
        let mut parts = self.parts.iter().rev();
        match parts.next() {
            None => sha256(b""),
            Some(last) => parts.fold(*last, |right, left| node_hash(left, &right)),
        }
    }

    /// The size as u64 and the hashes, largest tree first.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.parts.iter().fold(self.size.to_be_bytes().to_vec(), |mut bytes, part| {
            bytes.extend_from_slice(part);
            bytes
        })
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProofError> {
        const WRONG: ProofError = ProofError::Malformed("log frontier");
        let (size, rest) = bytes.split_first_chunk().ok_or(WRONG)?;
        let size = u64::from_be_bytes(*size);
        let (parts, rest) = rest.as_chunks::<32>();
        if !rest.is_empty() || u32::try_from(parts.len()) != Ok(size.count_ones()) {
            return Err(WRONG);
        }
        Ok(Self { size, parts: parts.to_vec() })
    }
}

/// The root over entries.
pub fn root(entries: &[Hash]) -> Hash {
    match entries {
        [] => sha256(b""),
        [only] => leaf_hash(only),
        _ => {
            let (left, right) = split(entries);
            node_hash(&root(left), &root(right))
        }
    }
}

/// Left: the largest power of two below the whole. Only for two entries or more.
fn split(entries: &[Hash]) -> (&[Hash], &[Hash]) {
    let half = entries.len().div_ceil(2).next_power_of_two();
    entries.split_at_checked(half).unwrap_or((entries, &[]))
}

/// That an entry is in the log that has a root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogInclusion {
    /// From 0.
    pub index: u64,
    pub size: u64,
    /// Siblings from the entry upwards.
    #[serde(with = "hexadecimals")]
    pub path: Vec<Hash>,
}

pub fn inclusion(entries: &[Hash], index: u64) -> Result<LogInclusion, ProofError> {
    let size = length(entries)?;
    let mut at = usize::try_from(index).map_err(|_| ProofError::OutOfLog { index, size })?;
    if at >= entries.len() {
        return Err(ProofError::OutOfLog { index, size });
    }
    let mut path = Vec::new();
    let mut part = entries;
    while part.len() > 1 {
        let (left, right) = split(part);
        if at < left.len() {
            path.push(root(right));
            part = left;
        } else {
            path.push(root(left));
            at -= left.len();
            part = right;
        }
    }
    path.reverse();
    Ok(LogInclusion { index, size, path })
}

impl LogInclusion {
    pub fn verify(&self, entry: &Hash, root: &Hash) -> Result<(), ProofError> {
        if self.index >= self.size {
            return Err(ProofError::OutOfLog { index: self.index, size: self.size });
        }
        let (mut at, mut last) = (self.index, self.size - 1);
        let mut node = leaf_hash(entry);
        for sibling in &self.path {
            if last == 0 {
                return Err(ProofError::WrongShape("the path is too long"));
            }
            if at % 2 == 1 || at == last {
                node = node_hash(sibling, &node);
                while at.is_multiple_of(2) && at != 0 {
                    (at, last) = (at / 2, last / 2);
                }
            } else {
                node = node_hash(&node, sibling);
            }
            (at, last) = (at / 2, last / 2);
        }
        if last != 0 {
            return Err(ProofError::WrongShape("the path is too short"));
        }
        same("log root", &node, root)
    }
}

/// That a log only grew: the earlier head is a prefix of the later one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConsistency {
    pub first_size: u64,
    pub second_size: u64,
    #[serde(with = "hexadecimals")]
    pub path: Vec<Hash>,
}

/// From the log's first `first_size` entries to all of them.
pub fn consistency(entries: &[Hash], first_size: u64) -> Result<LogConsistency, ProofError> {
    let second_size = length(entries)?;
    let out = ProofError::OutOfLog { index: first_size, size: second_size };
    let first = usize::try_from(first_size).map_err(|_| out.clone())?;
    if first > entries.len() {
        return Err(out);
    }
    let mut path = Vec::new();
    if first != 0 && first != entries.len() {
        subproof(entries, first, true, &mut path);
    }
    Ok(LogConsistency { first_size, second_size, path })
}

fn subproof(entries: &[Hash], first: usize, known: bool, path: &mut Vec<Hash>) {
    if first == entries.len() {
        if !known {
            path.push(root(entries));
        }
        return;
    }
    let (left, right) = split(entries);
    if first <= left.len() {
        subproof(left, first, known, path);
        path.push(root(right));
    } else {
        subproof(right, first - left.len(), false, path);
        path.push(root(left));
    }
}

impl LogConsistency {
    pub fn verify(&self, first_root: &Hash, second_root: &Hash) -> Result<(), ProofError> {
        if self.first_size > self.second_size {
            return Err(ProofError::OutOfLog { index: self.first_size, size: self.second_size });
        }
        if self.first_size == 0 || self.first_size == self.second_size {
            if !self.path.is_empty() {
                return Err(ProofError::WrongShape("the path is too long"));
            }
            let first = if self.first_size == 0 { &sha256(b"") } else { second_root };
            return same("first root", first_root, first);
        }
        let (mut at, mut last) = (self.first_size - 1, self.second_size - 1);
        while at % 2 == 1 {
            (at, last) = (at / 2, last / 2);
        }
        let mut path = self.path.iter();
        // A first log of a power of two is itself the first node.
        let start = if at == 0 { Some(first_root) } else { path.next() };
        let start = start.ok_or(ProofError::WrongShape("the path is too short"))?;
        let (mut first, mut second) = (*start, *start);
        for sibling in path {
            if last == 0 {
                return Err(ProofError::WrongShape("the path is too long"));
            }
            if at % 2 == 1 || at == last {
                first = node_hash(sibling, &first);
                second = node_hash(sibling, &second);
                while at.is_multiple_of(2) && at != 0 {
                    (at, last) = (at / 2, last / 2);
                }
            } else {
                second = node_hash(&second, sibling);
            }
            (at, last) = (at / 2, last / 2);
        }
        if last != 0 {
            return Err(ProofError::WrongShape("the path is too short"));
        }
        same("first root", &first, first_root)?;
        same("second root", &second, second_root)
    }
}

fn length(entries: &[Hash]) -> Result<u64, ProofError> {
    u64::try_from(entries.len()).map_err(|_| ProofError::Overflow)
}
