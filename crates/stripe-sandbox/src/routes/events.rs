use super::{Answer, Call};
use crate::state::Kind;

pub(super) fn list(call: &mut Call<'_>) -> Answer {
    let types = call.params["types"].as_array().cloned();
    let wanted = call.text("type");
    call.list(Kind::Event, "/v1/events", |row| {
        let kind = row["type"].as_str().unwrap_or_default();
        let one = wanted.as_deref().is_none_or(|wanted| match wanted.strip_suffix(".*") {
            Some(group) => kind.strip_prefix(group).is_some_and(|rest| rest.starts_with('.')),
            None => kind == wanted,
        });
        one && types.as_ref().is_none_or(|types| types.contains(&row["type"]))
    })
}

pub(super) fn retrieve(call: &mut Call<'_>) -> Answer {
    call.own(Kind::Event)
}
