use std::collections::BTreeSet;

use contextgraph_types::{
    ContextFrame, ContextQuery, ContextQueryResult, FrameKind, Representation, budget_tokens,
};
use sha2::{Digest, Sha256};

/// A text that can be served whole, with the words that it is found by.
#[derive(Debug, Clone)]
pub(super) struct Page {
    /// Whole but for its score.
    frame: ContextFrame,
    title: Vec<String>,
    body: Vec<String>,
}

/// What counts of a word in the text; the title's words weigh more, since whoever wrote it chose them.
const TIMES_COUNTED_MAX: u32 = 3;
const TITLE_WEIGHT: u32 = 3;

impl Page {
    pub(super) fn new(id: String, kind: FrameKind, title: &str, citation: String, content: String) -> Self {
        let (words_of_title, body) = (words(title), words(&content));
        let digest = sha256(content.as_bytes());
        let cost = budget_tokens(&content);
        let mut frame = ContextFrame::full(id, kind, title, content, 0.0, cost);
        frame.content_digest = Some(digest);
        frame.citation_label = Some(citation);
        Self { frame, title: words_of_title, body }
    }

    pub(super) fn frame_mut(&mut self) -> &mut ContextFrame {
        &mut self.frame
    }

    fn points(&self, wanted: &BTreeSet<String>) -> u32 {
        let of = |word: &String| {
            let in_title = if self.title.contains(word) { TITLE_WEIGHT } else { 0 };
            let in_body =
                self.body.iter().filter(|other| *other == word).take(TIMES_COUNTED_MAX as usize).count();
            in_title + u32::try_from(in_body).unwrap_or(TIMES_COUNTED_MAX)
        };
        wanted.iter().map(of).sum()
    }
}

/// The best pages for a query that fit into its budget, best first; equally good ones by id.
///
/// A page gets, for each different word of the query, 3 points if its title has it and 1 for each of the first three times that its
/// text has it; pages without a point are not served. A page too large for what is left is passed over for smaller ones.
pub(super) fn best(pages: &[Page], query: &ContextQuery) -> ContextQueryResult {
    let full = query.preferred_representations().contains(&Representation::Full);
    let wanted: BTreeSet<_> = words(query.query_text.as_deref().unwrap_or(&query.goal)).into_iter().collect();
    let mut found: Vec<_> = pages
        .iter()
        .filter(|page| full && (query.kinds.is_empty() || query.kinds.contains(&page.frame.kind)))
        .map(|page| (page.points(&wanted), page))
        .filter(|(points, _)| *points > 0)
        .collect();
    found.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.frame.id.cmp(&other.frame.id)));

    let most =
        u32::try_from(wanted.len()).unwrap_or(u32::MAX).saturating_mul(TITLE_WEIGHT + TIMES_COUNTED_MAX);
    let mut left = query.max_tokens;
    let mut frames = Vec::new();
    let mut dropped = 0u32;
    for (points, page) in found {
        let place = u32::try_from(frames.len()).is_ok_and(|count| count < query.max_frames);
        match left.checked_sub(page.frame.token_cost) {
            Some(rest) if place => {
                left = rest;
                frames.push(ContextFrame { score: share(points, most), ..page.frame.clone() });
            }
            _ => dropped = dropped.saturating_add(1),
        }
    }
    ContextQueryResult::unattested(frames, dropped > 0, (dropped > 0).then_some(dropped))
}

/// The protocol's score is a float between 0 and 1. It orders frames and is never part of a cost.
#[expect(clippy::float_arithmetic, reason = "a rank, not a quantity")]
fn share(points: u32, most: u32) -> f32 {
    let thousandths = u64::from(points).saturating_mul(1000) / u64::from(most.max(1));
    f32::from(u16::try_from(thousandths.min(1000)).unwrap_or(1000)) / 1000.0
}

/// Lower-cased runs of letters and digits, of two characters or more.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().nth(1).is_some())
        .map(str::to_lowercase)
        .collect()
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}
