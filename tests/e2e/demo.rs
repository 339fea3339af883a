//! The demo is the main job: if its figures differ, the product is broken.

use contextmeter_tests::repository;

use crate::world;

#[tokio::test]
async fn the_demo_ends_with_five_equal_figures_and_a_proven_dispute() {
    let world = world();
    let docs = repository().join("docs");
    let (code, out, err) =
        world.run("demo", &["demo", "--once", "--json", "--docs", docs.to_str().unwrap()]).await;
    assert_eq!(code, 0, "{out}\n{err}");
    let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();

    let posted = last["posted_tokens"].as_u64().unwrap();
    assert!(posted > 0);
    for figure in ["stored_tokens", "statement_tokens", "stripe_tokens", "invoice_tokens"] {
        assert_eq!(last[figure].as_u64(), Some(posted), "{figure} in {last}");
    }
    assert!(last["reports"].as_u64().unwrap() >= 7, "{last}");
    let dispute = &last["dispute"];
    assert_eq!(dispute["proof_verified"], true, "{last}");
    assert!(dispute["frame"]["provider_id"].is_string() && dispute["frame"]["frame_id"].is_string());
    assert_eq!(dispute["event_id"].as_str().unwrap().len(), 32);
    assert!(dispute["statement_id"].as_str().unwrap().starts_with("stm_"));
    assert!(dispute["stripe_identifier"].as_str().unwrap().starts_with("cm1_"));
    assert!(dispute["invoice_line"].as_str().unwrap().starts_with("il_"));
    assert!(std::path::Path::new(last["data_dir"].as_str().unwrap()).is_dir());

    // The folder can be asked afterwards, by the same commands, with nobody running.
    let verified = world.run_json("demo", &["verify", "--platform", "demo"]).await;
    assert_eq!(verified["ok"], true, "{verified}");
    let frame = dispute["frame"].clone();
    let found = world
        .run_json(
            "demo",
            &[
                "dispute",
                "--provider",
                frame["provider_id"].as_str().unwrap(),
                "--frame",
                frame["frame_id"].as_str().unwrap(),
            ],
        )
        .await;
    assert!(found.to_string().contains(dispute["invoice_line"].as_str().unwrap()), "{found}");
}

#[tokio::test]
async fn the_demo_keeps_to_its_own_folder_whatever_is_configured() {
    let mut world = world();
    // Books that belong to somebody: if the demo opened them, it would fail here.
    world
        .set("CONTEXTMETER_LEDGER_URL", "postgres://nobody@127.0.0.1:1/books")
        .set("CONTEXTMETER_STORE_URL", "http://127.0.0.1:1");
    let docs = repository().join("docs");
    let arguments = ["demo", "--once", "--json", "--docs", docs.to_str().unwrap()];
    let (code, out, err) = world.run("demo", &arguments).await;
    assert_eq!(code, 0, "{out}\n{err}");
    assert!(world.data("demo").join("ledger.sqlite").is_file());

    // A second day in the same books would make the figures of the first one wrong.
    let (code, _, err) = world.run("demo", &arguments).await;
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("needs an empty folder"), "{err}");

    // What is wrong with the command line leaves nothing behind.
    let (code, _, err) = world.run("other", &["demo", "--once", "--docs", "no-such-folder"]).await;
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("--docs") && !world.data("other").exists(), "{err}");
}
