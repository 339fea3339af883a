use serde::{Deserialize, Serialize};

use crate::{
    Hash, ProofError,
    encode::Encoder,
    error::same,
    text::{decimal, hexadecimal},
};

/// One event as a statement counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaf {
    #[serde(with = "hexadecimal")]
    pub event_id: [u8; 16],
    #[serde(with = "hexadecimal")]
    pub content_hash: Hash,
    pub quantity: u64,
}

impl Leaf {
    fn node(&self) -> SumNode {
        let hash = Encoder::new()
            .raw(&[0x00])
            .text("cm.leaf.1")
            .raw(&self.event_id)
            .raw(&self.content_hash)
            .raw(&self.quantity.to_be_bytes())
            .hash();
        SumNode { hash, count: 1, sum: u128::from(self.quantity) }
    }
}

/// A node: what lies below it, how many leaves, and how much they add up to. The root of a statement is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SumNode {
    #[serde(with = "hexadecimal")]
    pub hash: Hash,
    pub count: u64,
    #[serde(with = "decimal")]
    pub sum: u128,
}

impl SumNode {
    /// The root over nothing.
    pub fn empty() -> Self {
        Self { hash: Encoder::new().text("cm.empty.1").hash(), count: 0, sum: 0 }
    }

    /// Counts and sums of both sides stand in the hash, so no side can be inflated at the cost of the other.
    fn join(left: &Self, right: &Self) -> Result<Self, ProofError> {
        let mut encoder = Encoder::new().raw(&[0x01]).text("cm.node.1");
        for side in [left, right] {
            encoder = encoder.raw(&side.hash).raw(&side.count.to_be_bytes()).raw(&side.sum.to_be_bytes());
        }
        Ok(Self {
            hash: encoder.hash(),
            count: left.count.checked_add(right.count).ok_or(ProofError::Overflow)?,
            sum: left.sum.checked_add(right.sum).ok_or(ProofError::Overflow)?,
        })
    }
}

/// Builds the root, and on request one proof, from leaves in the order of their ids, holding no more than one node for each
/// binary digit of their number.
///
/// The nodes held are the perfect trees of a binary counter, largest first. Joining them from the right is the split of RFC 6962,
/// whose left part is always the largest power of two below the whole.
#[derive(Debug, Clone, Default)]
pub struct SumTreeBuilder {
    parts: Vec<Part>,
    last: Option<[u8; 16]>,
    target: Option<[u8; 16]>,
}

#[derive(Debug, Clone)]
struct Part {
    node: SumNode,
    /// The way up from the wanted leaf, in the one part that has it.
    path: Option<Vec<Step>>,
}

impl Part {
    fn join(left: Self, right: Self) -> Result<Self, ProofError> {
        let node = SumNode::join(&left.node, &right.node)?;
        let path = match (left.path, right.path) {
            (Some(path), _) => Some(extended(path, Side::Right, right.node)),
            (None, Some(path)) => Some(extended(path, Side::Left, left.node)),
            (None, None) => None,
        };
        Ok(Self { node, path })
    }
}

fn extended(mut path: Vec<Step>, side: Side, sibling: SumNode) -> Vec<Step> {
    path.push(Step { side, sibling });
    path
}

impl SumTreeBuilder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Also collects the proof that this event is in the tree.
    pub fn proving(event_id: [u8; 16]) -> Self {
        Self { target: Some(event_id), ..Self::default() }
    }

    pub fn push(&mut self, leaf: Leaf) -> Result<(), ProofError> {
        if self.last.is_some_and(|last| last >= leaf.event_id) {
            return Err(ProofError::NotIncreasing(hex::encode(leaf.event_id)));
        }
        self.last = Some(leaf.event_id);
        let path = (self.target == Some(leaf.event_id)).then(Vec::new);
        let mut part = Part { node: leaf.node(), path };
        while let Some(left) = self.parts.pop_if(|left| left.node.count == part.node.count) {
            part = Part::join(left, part)?;
        }
        self.parts.push(part);
        Ok(())
    }

    pub fn finish(self) -> Result<SumNode, ProofError> {
        Ok(self.fold()?.map_or_else(SumNode::empty, |whole| whole.node))
    }

    /// The root and the proof for the event that [`proving`](Self::proving) named.
    pub fn finish_proof(self) -> Result<(SumNode, InclusionProof), ProofError> {
        let name = self.target.map(hex::encode).unwrap_or_default();
        match self.fold()? {
            Some(Part { node, path: Some(steps) }) => Ok((node, InclusionProof { steps })),
            _ => Err(ProofError::NotInTree(name)),
        }
    }

    fn fold(mut self) -> Result<Option<Part>, ProofError> {
        let Some(mut whole) = self.parts.pop() else { return Ok(None) };
        while let Some(left) = self.parts.pop() {
            whole = Part::join(left, whole)?;
        }
        Ok(Some(whole))
    }
}

/// The root over leaves in the order of their ids.
pub fn sum_root(leaves: &[Leaf]) -> Result<SumNode, ProofError> {
    let mut builder = SumTreeBuilder::new();
    for leaf in leaves {
        builder.push(*leaf)?;
    }
    builder.finish()
}

/// The proof that an event is among the leaves.
pub fn inclusion(leaves: &[Leaf], event_id: [u8; 16]) -> Result<InclusionProof, ProofError> {
    let mut builder = SumTreeBuilder::proving(event_id);
    for leaf in leaves {
        builder.push(*leaf)?;
    }
    Ok(builder.finish_proof()?.1)
}

/// Checks a complete list of leaves against a root: strictly increasing ids, count, sum and hash.
pub fn verify_leaves(leaves: &[Leaf], root: &SumNode) -> Result<(), ProofError> {
    compare(&sum_root(leaves)?, root)
}

/// On which side of the way up a sibling stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Left,
    Right,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub side: Side,
    pub sibling: SumNode,
}

/// That a leaf is in a tree: its siblings from the leaf upwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InclusionProof {
    pub steps: Vec<Step>,
}

impl InclusionProof {
    /// Adds up again on the way to the root, and holds every node to the shape that its count prescribes.
    ///
    /// The ids of other leaves are not in a proof, so that they increase is for the complete list to show
    /// ([`verify_leaves`]); that there are exactly `count` of them is checked here.
    pub fn verify(&self, leaf: &Leaf, root: &SumNode) -> Result<(), ProofError> {
        let mut node = leaf.node();
        for step in &self.steps {
            let (left, right) = match step.side {
                Side::Left => (&step.sibling, &node),
                Side::Right => (&node, &step.sibling),
            };
            if !left.count.is_power_of_two() {
                return Err(ProofError::WrongShape("a left part is not a power of two"));
            }
            if right.count == 0 || right.count > left.count {
                return Err(ProofError::WrongShape("a right part is not between one and its left part"));
            }
            node = SumNode::join(left, right)?;
        }
        compare(&node, root)
    }

    /// The place of the leaf among all, from 0.
    pub fn position(&self) -> Result<u64, ProofError> {
        let left = self.steps.iter().filter(|step| step.side == Side::Left);
        left.map(|step| step.sibling.count).try_fold(0u64, u64::checked_add).ok_or(ProofError::Overflow)
    }
}

fn compare(found: &SumNode, root: &SumNode) -> Result<(), ProofError> {
    let differs = |what, found: String, expected: String| Err(ProofError::Differs { what, found, expected });
    if found.count != root.count {
        return differs("count", found.count.to_string(), root.count.to_string());
    }
    if found.sum != root.sum {
        return differs("sum", found.sum.to_string(), root.sum.to_string());
    }
    same("root", &found.hash, &root.hash)
}
