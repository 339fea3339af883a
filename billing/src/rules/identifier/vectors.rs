//! The published test vectors of a placement's names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed look-up is the failure")]

#[path = "../../../../crates/usage/tests/it/vectors/committed.rs"]
mod committed;

use serde_json::{Value, json};
use usage::Timestamp;

use super::PlacementKey;

#[test]
fn every_published_name_of_a_placement_is_what_this_crate_computes() {
    let vectors = inputs().into_iter().map(|(name, input)| {
        let output = names(&input);
        committed::vector(name, input, output)
    });
    committed::hold(vec![("placement", vectors.collect())]);
}

fn names(input: &Value) -> Value {
    let text = |name: &str| input[name].as_str().unwrap();
    let time = |name: &str| Timestamp::from_micros(input[name].as_i64().unwrap());
    let number = |name: &str| u32::try_from(input[name].as_u64().unwrap()).unwrap();
    let key = PlacementKey {
        account: text("account"),
        platform: &text("platform").parse().unwrap(),
        customer: &text("customer").parse().unwrap(),
        meter: &text("meter").parse().unwrap(),
        piece_start: time("piece_start"),
        piece_end: time("piece_end"),
        revision: number("revision"),
        part: number("part"),
        n: number("n"),
    };
    json!({ "identifier": key.identifier(), "placement_id": key.placement_id() })
}

fn inputs() -> Vec<(&'static str, Value)> {
    let of = |customer: &str, start: i64, revision: u32, part: u32, n: u32| {
        json!({
            "account": "acct_1", "platform": "reseller", "customer": customer, "meter": "context_tokens",
            "piece_start": start, "piece_end": start + 3_600_000_000, "revision": revision, "part": part, "n": n,
        })
    };
    let start = 1_796_040_000_000_000;
    vec![
        ("the first placement of an hour", of("acme", start, 1, 0, 1)),
        ("after evidence that it is nowhere: the next", of("acme", start, 1, 0, 2)),
        ("the second part of a large sum", of("acme", start, 1, 1, 1)),
        ("a later revision", of("acme", start, 2, 0, 1)),
        ("unicode, the hour before 1970", of("株式会社 😀", -3_600_000_000, 1, 0, 1)),
        ("the largest numbers", of("acme", start, u32::MAX, u32::MAX, u32::MAX)),
    ]
}
