//! What each file of the repository must keep.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn files(ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" && name != "node_modules" {
                    folders.push(path);
                }
            } else if name.ends_with(ending) {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root()).unwrap().to_path_buf(), text));
            }
        }
    }
    assert!(!found.is_empty(), "no file ends in {ending}");
    found
}

#[test]
fn a_file_of_code_stays_under_six_hundred_lines() {
    for (path, text) in files(".rs") {
        let lines = text.lines().count();
        assert!(lines <= 600, "{} has {lines} lines: split it by resource", path.display());
    }
}

#[test]
fn every_statement_of_sql_is_used_and_says_what_it_does() {
    let code: String = files(".rs").into_iter().map(|(_, text)| text).collect();
    for (path, text) in files(".sql") {
        let name = path.strip_prefix("sql").unwrap().display().to_string();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(text.trim_start().starts_with("--"), "{name}: begin with a comment that says what it does");
        assert!(code.contains(&file), "{name}: no code includes it; delete it or use it");
    }
}

#[test]
fn every_error_page_has_a_code_and_every_document_one_title() {
    let codes = fs::read_to_string(root().join("crates/web/src/problem/codes.rs")).unwrap();
    for (path, text) in files(".md") {
        if path.starts_with("docs/errors") && !path.ends_with("README.md") {
            let code = path.file_stem().unwrap().to_string_lossy();
            assert!(codes.contains(&format!("\"{code}\"")), "{}: no code has this page", path.display());
        }
        let fenced = text.split("```").step_by(2).collect::<String>();
        let titles = fenced.lines().filter(|line| line.starts_with("# ")).count();
        assert_eq!(titles, 1, "{}: a document has one title", path.display());
    }
}

#[test]
fn documents_name_files_that_exist() {
    // Words in back-quotes that look like a path of ours.
    let tops = [
        "host-core/",
        "ingest/",
        "billing/",
        "delegation/",
        "console/",
        "contextmeter/",
        "tests/",
        "crates/",
        "sql/",
        "docs/",
        "scripts/",
    ];
    for (path, text) in files(".md") {
        let prose = text.split("```").step_by(2).collect::<String>();
        for word in prose.split('`').skip(1).step_by(2) {
            let plain = !word.contains(|c: char| c.is_whitespace() || "*<>{}…$#()".contains(c));
            if plain && tops.iter().any(|top| word.starts_with(top)) {
                assert!(root().join(word).exists(), "{} names `{word}`, which is not there", path.display());
            }
        }
    }
}

#[test]
fn no_environment_is_read_outside_the_configuration() {
    for (path, text) in files(".rs") {
        let tests = path.components().any(|c| c.as_os_str() == "tests" || c.as_os_str() == "examples");
        let allowed = path.ends_with("contextmeter/src/config.rs")
            || path.ends_with("test_support.rs")
            || path.ends_with("testing.rs");
        let reads = ["env::var(", "env::var_os(", "env::vars("].iter().any(|call| text.contains(call));
        assert!(!reads || tests || allowed, "{} reads the environment: take a parameter", path.display());
    }
}
