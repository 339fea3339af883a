//! The published test vectors of the formats that this crate computes, and those of `usage` that it computes a second time.

#[path = "../../../usage/tests/it/vectors/committed.rs"]
pub(crate) mod committed;
mod groups;

use proof::MeterOpening;

#[test]
fn every_published_vector_is_what_this_crate_computes() {
    committed::hold(groups::all());
}

/// The event's id, its content hash and a frame's commitment are held together by the sample's proof file, see `file`.
#[test]
fn the_meters_that_usage_published_have_the_same_definition_hash_here() {
    for vector in committed::group("meter") {
        let input = &vector["input"];
        let word = |name: &str| input[name].as_str().unwrap().to_owned();
        let mut providers: Option<Vec<String>> = serde_json::from_value(input["providers"].clone()).unwrap();
        if let Some(providers) = &mut providers {
            providers.sort_unstable();
        }
        let opening = MeterOpening { kind: word("kind"), providers, quantity: word("quantity") };
        let expected = vector["output"]["definition_hash"].as_str().unwrap();
        assert_eq!(hex::encode(opening.definition_hash(&word("meter"))), expected, "{}", vector["name"]);
    }
}
