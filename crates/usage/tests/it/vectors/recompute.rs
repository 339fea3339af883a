//! Another language, another author's hash functions: the published script gets the same from the inputs.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use super::committed;

fn script(vectors: &Path) -> Output {
    let mut python = Command::new("python3");
    python.args(["-I", "-S"]).arg(committed::folder().join("recompute.py")).arg(vectors);
    python.output().expect("python3 is there: install it with `apt-get install python3`")
}

#[test]
fn a_script_of_the_standard_library_gets_every_vector_from_its_inputs() {
    let output = script(&committed::folder().join("vectors.json"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A script that always says yes, or that repeats what it reads, would pass the test above.
#[test]
fn the_script_names_the_vector_in_which_one_byte_was_changed() {
    let all: Value = serde_json::from_str(&committed::text()).unwrap();
    for group in all.as_object().unwrap().keys() {
        for side in ["output", "input"] {
            // A signature's message does not show in its kid, which is all that the script makes of it.
            if (&group[..], side) == ("signature", "input") {
                continue;
            }
            let mut changed = all.clone();
            let vector = changed[group].as_array_mut().unwrap().last_mut().unwrap();
            let value = &mut vector[side];
            assert!(
                change_a_value(value) || change_a_word(value),
                "{group}: nothing to change in the {side}"
            );
            let name = format!("{group}: {}", vector["name"].as_str().unwrap());
            let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("changed_vectors.json");
            fs::write(&copy, serde_json::to_string_pretty(&changed).unwrap()).unwrap();
            let output = script(&copy);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{name}: a changed {side} was not noticed");
            assert!(said.starts_with(&name), "{name}: {said}");
        }
    }
}

/// The last digit of the first hash, or of the first number.
fn change_a_value(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let digits = text.rsplit('_').next().unwrap_or_default();
            let is_hash = digits.len() >= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_hash {
                let last = if text.ends_with('0') { "1" } else { "0" };
                text.replace_range(text.len() - 1.., last);
            }
            is_hash
        }
        Value::Number(number) => {
            *value = number.as_u64().map_or_else(|| 1.into(), |number| (number ^ 1).into());
            true
        }
        Value::Array(items) => items.iter_mut().any(change_a_value),
        Value::Object(members) => members.values_mut().any(change_a_value),
        _ => false,
    }
}

/// The first character of the first word.
fn change_a_word(value: &mut Value) -> bool {
    match value {
        Value::String(text) if text.starts_with(|first: char| first.is_ascii()) => {
            let first = if text.starts_with('B') { "C" } else { "B" };
            text.replace_range(..1, first);
            true
        }
        Value::Array(items) => items.iter_mut().any(change_a_word),
        Value::Object(members) => members.values_mut().any(change_a_word),
        _ => false,
    }
}
