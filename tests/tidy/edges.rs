//! The edges between the rooms: what `docs/ARCHITECTURE.md` draws is what `cargo metadata` says.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Room, what it may use. `usage` is the vocabulary: every room that has a path to it may name it (decision 0001).
const EDGES: &[(&str, &[&str])] = &[
    ("usage", &[]),
    ("proof", &[]),
    ("clickhouse-embedded", &[]),
    ("stripe-sandbox", &[]),
    ("usage-store", &["usage"]),
    ("ledger", &["usage"]),
    ("web", &["usage", "ledger"]),
    ("host-core", &["usage", "proof"]),
    ("ingest", &["usage", "web", "usage-store", "ledger", "proof"]),
    ("billing", &["usage", "web", "usage-store", "ledger", "proof"]),
    ("stripe-provider", &["usage", "billing"]),
    ("delegation", &["usage", "web", "ledger"]),
    ("contextmeter-console", &["usage", "billing", "delegation", "web"]),
];

/// May use all of ours: the command wires, the tests judge.
const OPEN: &[&str] = &["contextmeter", "contextmeter-tests"];

/// A room's tests may start the real engine and the real sandbox; nothing else is added.
const TEST_EDGES: &[&str] = &["clickhouse-embedded", "stripe-sandbox", "usage-store", "ledger", "usage"];

#[test]
fn no_room_uses_another_than_the_design_says() {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".to_owned()])
        .exec()
        .expect("cargo metadata answers");
    let rooms: BTreeSet<&str> = metadata.packages.iter().map(|p| p.name.as_str()).collect();
    let allowed: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();

    for package in &metadata.packages {
        let name = package.name.as_str();
        if OPEN.contains(&name) {
            continue;
        }
        let allowed = allowed.get(name).unwrap_or_else(|| {
            panic!("{name} is not in the table of rooms: add it to docs/ARCHITECTURE.md and here")
        });
        for dependency in package.dependencies.iter().filter(|d| rooms.contains(d.name.as_str())) {
            let to = dependency.name.as_str();
            let fine = allowed.contains(&to)
                || (dependency.kind == DependencyKind::Development && TEST_EDGES.contains(&to));
            assert!(
                fine,
                "{name} may not use {to}: move the shared part down, or pass it in as a trait or a value"
            );
        }
    }
    let named: BTreeSet<&str> = EDGES.iter().map(|(room, _)| *room).chain(OPEN.iter().copied()).collect();
    assert_eq!(named, rooms, "the table of rooms and the workspace differ");
}

#[test]
fn one_crate_alone_speaks_each_foreign_protocol() {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".to_owned()])
        .exec()
        .expect("cargo metadata answers");
    for (library, owner) in [
        ("sqlx", "ledger"),
        ("clickhouse", "usage-store"),
        ("libloading", "clickhouse-embedded"),
        ("async-stripe-billing", "stripe-provider"),
        ("fjall", "ingest"),
    ] {
        for package in &metadata.packages {
            for dependency in &package.dependencies {
                let in_tests = dependency.kind == DependencyKind::Development;
                assert!(
                    dependency.name != library || package.name.as_str() == owner || in_tests,
                    "{} uses {library}, which is {owner}'s alone",
                    package.name
                );
            }
        }
    }
}
