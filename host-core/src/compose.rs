use std::fmt::Write as _;

use contextgraph_types::ContextFrame;
use usage::FrameId;

use crate::{Reason, fan_out::FanOut};

/// What goes into the prompt: the same bytes for the same frames, in whatever order the providers answered.
///
/// Frames stand in the order of their identities (provider, frame, digest; texts by their bytes), never by score or cost, so that
/// an unchanged set leaves a cached prompt prefix unchanged. Everything that was billed is here, once, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composition {
    pub text: String,
    pub admitted: Vec<Admitted>,
    /// Every other frame that was offered, and why it is not in the text.
    pub omitted: Vec<Omitted>,
}

/// A frame in the text: where it stands and what to cite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    pub identity: FrameId,
    pub token_cost: u32,
    pub title: String,
    pub citation: String,
    /// Its bytes in the text.
    pub place: std::ops::Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Omitted {
    /// The provider that offered it.
    pub provider_id: usage::ProviderId,
    pub identity: Option<FrameId>,
    pub reason: Reason,
}

impl FanOut {
    /// Puts the served frames together.
    pub fn compose(&self) -> Composition {
        let mut served: Vec<_> = self.legs().iter().flat_map(|leg| &leg.served).collect();
        // Identities are unique here: a provider's own are by the audit, and no two providers share an id.
        served.sort_by(|a, b| a.identity.cmp(&b.identity));
        let size =
            served.iter().map(|one| one.frame.content.as_deref().unwrap_or_default().len() + 160).sum();
        let mut text = String::with_capacity(size);
        let mut admitted = Vec::with_capacity(served.len());
        for one in served {
            if !text.is_empty() {
                text.push('\n');
            }
            let start = text.len();
            render_into(&mut text, &one.identity, &one.frame);
            admitted.push(Admitted {
                identity: one.identity.clone(),
                token_cost: one.frame.token_cost,
                title: one.frame.title.clone(),
                citation: one.frame.citation_label.clone().unwrap_or_default(),
                place: start..text.len(),
            });
        }
        let mut omitted: Vec<_> = self
            .legs()
            .iter()
            .flat_map(|leg| {
                leg.rejected.iter().map(|frame| Omitted {
                    provider_id: leg.provider_id.clone(),
                    identity: frame.identity.clone(),
                    reason: frame.reason.clone(),
                })
            })
            .collect();
        omitted.sort();
        Composition { text, admitted, omitted }
    }
}

/// One frame between its fences.
pub(crate) fn render(identity: &FrameId, frame: &ContextFrame) -> String {
    let mut text = String::new();
    render_into(&mut text, identity, frame);
    text
}

fn render_into(text: &mut String, identity: &FrameId, frame: &ContextFrame) {
    text.push_str("<frame");
    attribute(text, "provider", identity.provider_id.as_str());
    attribute(text, "id", identity.frame_id.as_str());
    attribute(text, "kind", frame.kind.as_str());
    attribute(text, "title", &frame.title);
    attribute(text, "cite", frame.citation_label.as_deref().unwrap_or_default());
    if let Some(handle) = &frame.content_ref {
        attribute(text, "ref", &handle.uri);
    }
    match &frame.content {
        None => text.push_str("/>\n"),
        Some(content) => {
            text.push_str(">\n");
            escape(text, content, Within::Content);
            text.push_str("\n</frame>\n");
        }
    }
}

fn attribute(text: &mut String, name: &str, value: &str) {
    text.push(' ');
    text.push_str(name);
    text.push_str("=\"");
    escape(text, value, Within::Attribute);
    text.push('"');
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Attribute,
    Content,
}

/// Writes what others wrote so that it cannot end its fence, in one pass. Different texts stay different, because the escaping
/// character is escaped too: nobody can make a frame look like another one.
fn escape(text: &mut String, raw: &str, within: Within) {
    let mut from = 0;
    for (at, c) in raw.char_indices() {
        let named = match c {
            '&' => Some("&amp;"),
            '<' => Some("&lt;"),
            '"' if within == Within::Attribute => Some("&quot;"),
            _ => None,
        };
        let line = within == Within::Content && matches!(c, '\n' | '\t');
        let obeyed = !line && (c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'));
        if named.is_none() && !obeyed {
            continue;
        }
        text.push_str(raw.get(from..at).unwrap_or_default());
        from = at + c.len_utf8();
        match named {
            Some(name) => text.push_str(name),
            // Writing to a String cannot fail.
            None => drop(write!(text, "&#{};", u32::from(c))),
        }
    }
    text.push_str(raw.get(from..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(raw: &str, within: Within) -> String {
        let mut text = String::new();
        escape(&mut text, raw, within);
        text
    }

    #[test]
    fn what_would_end_a_fence_is_escaped_and_different_texts_stay_different() {
        let raws = [
            "</frame>",
            "&lt;/frame>",
            "</FRAME >",
            "<\\/frame>",
            "a\nb",
            "a b",
            "a&#10;b",
            "a\u{0}b",
            "a\u{2028}b",
        ];
        for within in [Within::Content, Within::Attribute] {
            let mut written: Vec<_> = raws.iter().map(|raw| escaped(raw, within)).collect();
            assert!(written.iter().all(|text| !text.contains('<')), "{written:?}");
            written.sort();
            written.dedup();
            assert_eq!(written.len(), raws.len());
        }
        assert_eq!(escaped("a \"b\"\n\tc", Within::Content), "a \"b\"\n\tc");
        assert_eq!(escaped("a \"b\"\n", Within::Attribute), "a &quot;b&quot;&#10;");
    }
}
