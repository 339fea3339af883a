use std::{collections::BTreeMap, fmt};

use contextgraph_types::{ContextFrame, ContextQuery, Representation, budget_tokens, is_protocol_timestamp};
use usage::{FrameId, FrameKey, Limits, ProviderId, Timestamp};

use crate::{compose::render, note::note};

/// Why a frame or a whole answer was rejected: a stable code and a sentence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    pub code: &'static str,
    pub detail: String,
}

impl Reason {
    pub(crate) fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

/// A frame that was offered and is not billed.
#[derive(Debug, Clone, PartialEq)]
pub struct RejectedFrame {
    /// None when the provider gave it no identity that a report may carry.
    pub identity: Option<FrameId>,
    pub frame: ContextFrame,
    pub reason: Reason,
}

/// A frame that is billed.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    pub identity: FrameId,
    pub frame: ContextFrame,
}

/// An answer after the audit. Every offered frame is in exactly one of the lists.
#[derive(Debug, Default)]
pub(crate) struct Audited {
    /// By identity, each once.
    pub(crate) served: Vec<Served>,
    pub(crate) rejected: Vec<RejectedFrame>,
}

/// Judges one provider's answer, from the answer alone.
///
/// What is dishonest about the budget (a declared cost that is not that of the content, a sum above the budget, more frames than
/// asked for) rejects the whole answer: its author cannot be billed by its word. What is wrong with one frame rejects that frame.
/// The same frame again is billed once; one identity that reads in two ways is billed for neither.
pub(crate) fn audit(provider: &ProviderId, query: &ContextQuery, frames: Vec<ContextFrame>) -> Audited {
    let whole = whole_answer(query, &frames);
    let mut audited = Audited::default();
    let mut good: BTreeMap<FrameId, Vec<ContextFrame>> = BTreeMap::new();
    for frame in frames {
        let judged = cost(&frame).and_then(|()| identity(provider, &frame)).and_then(|identity| {
            whole.clone().map_or(Ok(()), Err)?;
            one_frame(provider, query, &frame).map(|()| identity)
        });
        match judged {
            Ok(identity) => good.entry(identity).or_default().push(frame),
            Err(reason) => {
                let identity = identity(provider, &frame).ok();
                audited.rejected.push(RejectedFrame { identity, frame, reason });
            }
        }
    }
    for (identity, mut copies) in good {
        let rendered = |frame: &ContextFrame| render(&identity, frame);
        let conflict = match copies.split_first() {
            Some((first, others)) if !others.is_empty() => {
                let first = rendered(first);
                others.iter().any(|other| rendered(other) != first)
            }
            _ => false,
        };
        // Copies may still differ in their score, and the order of arrival must decide nothing.
        copies.sort_by(|a, b| a.score.total_cmp(&b.score));
        let kept = if conflict { None } else { copies.pop() };
        let reason = if conflict {
            Reason::new("identity_conflict", "One identity was offered with two contents; neither is billed.")
        } else {
            Reason::new("duplicate", "The same frame was offered again; it is billed once.")
        };
        audited.rejected.extend(copies.into_iter().map(|frame| RejectedFrame {
            identity: Some(identity.clone()),
            frame,
            reason: reason.clone(),
        }));
        if let Some(frame) = kept {
            audited.served.push(Served { identity, frame });
        }
    }
    audited
}

/// The identity under which a report may name the frame.
fn identity(provider: &ProviderId, frame: &ContextFrame) -> Result<FrameId, Reason> {
    let frame_id = FrameKey::parse(frame.id.as_str())
        .map_err(|error| Reason::new(error.code(), format!("A frame has no usable id: {error}.")))?;
    if let Some(digest) = &frame.content_digest {
        let bounded = !digest.is_empty() && digest.len() <= Limits::DIGEST_BYTES;
        if !bounded || digest.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
            return Err(Reason::new(
                "digest_invalid",
                format!("Frame {} has a digest that is empty, too long or not one line.", note(&frame.id)),
            ));
        }
    }
    Ok(FrameId { provider_id: provider.clone(), frame_id, content_digest: frame.content_digest.clone() })
}

/// Faults that make the whole answer worthless.
fn whole_answer(query: &ContextQuery, frames: &[ContextFrame]) -> Option<Reason> {
    let liars = frames.iter().filter(|frame| cost(frame).is_err()).count();
    if liars > 0 {
        return Some(Reason::new(
            "answer_dishonest",
            format!("{liars} frames of the answer declare another cost than their content has."),
        ));
    }
    if u32::try_from(frames.len()).map_or(true, |offered| offered > query.max_frames) {
        return Some(Reason::new(
            "too_many_frames",
            format!("{} frames were offered, {} were asked for at most.", frames.len(), query.max_frames),
        ));
    }
    let sum: u128 = frames.iter().map(|frame| u128::from(frame.token_cost)).sum();
    if sum > u128::from(query.max_tokens) {
        return Some(Reason::new(
            "over_budget",
            format!("The frames add up to {sum} tokens, the budget is {}.", query.max_tokens),
        ));
    }
    None
}

fn cost(frame: &ContextFrame) -> Result<(), Reason> {
    let content = frame.content.as_deref().unwrap_or_default();
    // The protocol's count is 32 bits wide; content beyond that has no cost that could be declared.
    if u32::try_from(content.len()).is_ok() && frame.token_cost == budget_tokens(content) {
        return Ok(());
    }
    Err(Reason::new(
        "cost_mismatch",
        format!(
            "Frame {} declares {} tokens, its {} bytes cost {}.",
            note(&frame.id),
            frame.token_cost,
            content.len(),
            content.len().div_ceil(4),
        ),
    ))
}

fn one_frame(provider: &ProviderId, query: &ContextQuery, frame: &ContextFrame) -> Result<(), Reason> {
    let fault = |code, says: &str| Err(Reason::new(code, format!("Frame {} {says}.", note(&frame.id))));
    if !query.kinds.is_empty() && !query.kinds.contains(&frame.kind) {
        return fault("kind_not_asked", "is of a kind that was not asked for");
    }
    if !frame.has_valid_score() {
        return fault("score_invalid", "has a score outside 0 to 1");
    }
    if frame.title.trim().is_empty() {
        return fault("title_missing", "has no title");
    }
    if frame.citation_label.as_deref().is_none_or(|label| label.trim().is_empty()) {
        return fault("citation_missing", "has no citation label");
    }
    if !frame.has_valid_temporal_fields() {
        return fault("time_invalid", "has a time that is not in the protocol's form");
    }
    if !valid_at(query, frame) {
        return fault("not_valid_then", "is not valid at the time asked for");
    }
    if !frame.provenance_with_unusable_digests().is_empty() {
        return fault("file_digest_invalid", "names a file without a usable digest of it");
    }
    if !query.preferred_representations().contains(&frame.representation) {
        return fault("representation_not_asked", "has a representation that was not asked for");
    }
    if let Err(says) = frame.representation_invariants() {
        return fault("representation_invalid", &format!("contradicts its representation: {}", note(&says)));
    }
    if frame.representation == Representation::Full && frame.canonical_content_hash.is_some() {
        return fault("representation_invalid", "is full and yet has a hash of other content");
    }
    if frame.content_ref.as_ref().is_some_and(|handle| handle.provider_id != provider.as_str()) {
        return fault("foreign_provider", "refers to content of another provider");
    }
    Ok(())
}

/// Whether the frame holds at the time of the question. A question without a time is about now, of which a provider knows best.
fn valid_at(query: &ContextQuery, frame: &ContextFrame) -> bool {
    let Some(at) = query.as_of.as_deref().filter(|at| is_protocol_timestamp(at)) else { return true };
    let Ok(at) = Timestamp::parse_rfc3339(at) else { return true };
    let read = |text: &Option<String>| text.as_deref().and_then(|text| Timestamp::parse_rfc3339(text).ok());
    read(&frame.valid_from).is_none_or(|from| from <= at) && read(&frame.valid_to).is_none_or(|to| at < to)
}
