use crate::{Hash, SumNode, encode::Encoder};

/// What a statement commits to. Times are microseconds UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementFacts<'a> {
    pub platform: &'a str,
    pub customer: &'a str,
    pub meter: &'a str,
    pub definition_hash: Hash,
    pub piece_start: i64,
    pub piece_end: i64,
    pub revision: u32,
    pub root: SumNode,
}

/// The statement's name and its entry in the platform's log.
pub fn statement_hash(facts: &StatementFacts<'_>) -> Hash {
    Encoder::new()
        .raw(&[0x02])
        .text("cm.statement.1")
        .text(facts.platform)
        .text(facts.customer)
        .text(facts.meter)
        .raw(&facts.definition_hash)
        .raw(&facts.piece_start.to_be_bytes())
        .raw(&facts.piece_end.to_be_bytes())
        .raw(&facts.revision.to_be_bytes())
        .raw(&facts.root.count.to_be_bytes())
        .raw(&facts.root.sum.to_be_bytes())
        .raw(&facts.root.hash)
        .hash()
}

/// The state of a platform's log at an instant: what leaves our database, signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadBody {
    pub platform: String,
    pub size: u64,
    pub root: Hash,
    /// Microseconds UTC.
    pub at: i64,
}

impl HeadBody {
    pub fn to_sign(&self) -> Vec<u8> {
        Encoder::new()
            .text("cm.head.1")
            .text(&self.platform)
            .raw(&self.size.to_be_bytes())
            .raw(&self.root)
            .raw(&self.at.to_be_bytes())
            .into_bytes()
    }
}

/// One placement of a closed billing period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodItem<'a> {
    pub placement: &'a str,
    pub statement: Hash,
}

/// The root of a closed period, over its placements in the order of (piece start, revision, part, n). The caller sorts.
pub fn period_root(items: &[PeriodItem<'_>]) -> Hash {
    let encoder = Encoder::new().text("cm.period.1").count(items.len());
    items.iter().fold(encoder, |encoder, item| encoder.text(item.placement).raw(&item.statement)).hash()
}
