//! `docs/formats/vectors.json`: each crate that computes a format owns its groups in that one file, and holds them to what it computes.
//! Included by path in the tests of `proof` and `billing` too, which may not depend on this crate for what they check.

use std::{fs, path::PathBuf};

use serde_json::{Map, Value, json};

pub(crate) fn folder() -> PathBuf {
    let crate_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = crate_folder.ancestors().find(|folder| folder.join("docs/formats").is_dir());
    root.expect("the repository has docs/formats").join("docs/formats")
}

pub(crate) fn text() -> String {
    fs::read_to_string(folder().join("vectors.json")).unwrap_or_else(|_| "{}".to_owned())
}

pub(crate) fn group(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(&text()).unwrap();
    let vectors = all.get(name).and_then(Value::as_array).cloned();
    vectors.unwrap_or_else(|| panic!("vectors.json has no group `{name}`: run `make bless`"))
}

/// One vector: what goes in, and what an implementation must get.
pub(crate) fn vector(name: &str, input: Value, output: Value) -> Value {
    json!({ "name": name, "input": input, "output": output })
}

/// Compares computed groups with the committed file, or writes them there under `UPDATE_GOLDEN`, which `make bless` sets.
pub(crate) fn hold(groups: Vec<(&str, Vec<Value>)>) {
    #[expect(clippy::disallowed_methods, reason = "a test's switch, and no configuration of ours")]
    let blessing = std::env::var_os("UPDATE_GOLDEN").is_some();
    if blessing {
        return bless(groups);
    }
    for (name, computed) in groups {
        let committed = group(name);
        for (computed, committed) in computed.iter().zip(&committed) {
            assert_eq!(computed, committed, "a vector of `{name}` changed: a published format never does");
        }
        assert_eq!(computed.len(), committed.len(), "`{name}` has more or fewer vectors: run `make bless`");
    }
}

/// Several test processes write at once, so each takes the folder's lock and replaces its own groups only.
fn bless(groups: Vec<(&str, Vec<Value>)>) {
    let lock = fs::File::open(folder()).unwrap();
    lock.lock().unwrap();
    let mut all: Map<String, Value> = serde_json::from_str(&text()).unwrap();
    for (name, vectors) in groups {
        all.insert(name.to_owned(), Value::from(vectors));
    }
    let (new, file) = (folder().join(".vectors.json.new"), folder().join("vectors.json"));
    fs::write(&new, format!("{}\n", serde_json::to_string_pretty(&all).unwrap())).unwrap();
    fs::rename(new, file).unwrap();
}
