//! The published test vectors of the formats that this crate computes.

#[path = "vectors/committed.rs"]
mod committed;
mod groups;
mod recompute;

use serde_json::Value;

/// An integer of a vector. JSON's number is exact here up to 64 bits.
fn number<T: TryFrom<u64>>(value: &Value) -> T {
    T::try_from(value.as_u64().unwrap()).ok().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn bytes<const N: usize>(value: &Value) -> [u8; N] {
    hex::decode(text(value)).unwrap().try_into().unwrap()
}

#[test]
fn every_published_vector_is_what_this_crate_computes() {
    committed::hold(groups::all());
}
