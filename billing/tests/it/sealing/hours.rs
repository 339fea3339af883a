//! When an hour is sealed, and what a later run adds to it.

use billing::{BillingError, SealRequest};
use usage::Clock as _;
use usage_store::{EventRow, ReportBlock};

use super::on_both;
use super::world::{MINUTE, Turn, World, noon, platform};

on_both!(
    an_hour_is_sealed_once_and_a_second_activation_seals_nothing,
    a_late_report_becomes_revision_two_and_revision_one_stays_byte_for_byte,
    g2_a_copy_of_an_event_from_another_journal_counts_once,
    g3_two_contents_of_a_report_are_held_and_what_was_sealed_stands,
    a_row_that_the_store_lacks_freezes_the_hour_until_it_is_stored,
    an_hour_that_cannot_be_counted_is_frozen_and_the_others_are_sealed,
    a_lease_that_another_holds_gives_busy,
    nothing_is_shown_before_the_record_of_the_run_is_beside_the_usage,
);

async fn an_hour_is_sealed_once_and_a_second_activation_seals_nothing(world: World) {
    let mut journal = world.journal("a").await;
    world.take(&mut journal, &[Turn::new("1", "globex", &[900, 100]), Turn::new("2", "initech", &[7])]).await;
    let early = world.seal().await;
    assert_eq!((early.sealed.len(), early.waiting[0].reason.as_str()), (0, "hour_open"));
    world.clock.set(noon().end());
    assert_eq!(world.seal().await.waiting[0].reason, "late_reports_may_come");
    world.clock.advance_micros(15 * MINUTE);
    assert_eq!(world.seal().await.waiting[0].reason, "journal_silent");
    world.tell(&journal).await;

    let status = world.seal().await;
    assert_eq!(status.sealed.len(), 1, "{status:?}");
    assert_eq!((status.sealed[0].statements, status.sealed[0].deferred), (2, 0));
    let sealed = world.statements("acme").await;
    let sums: Vec<_> =
        sealed.iter().map(|s| (s.customer.as_str(), s.count, s.sum, s.revision, s.log_index)).collect();
    assert_eq!(sums, [("globex", 1, 1000, 1, 1), ("initech", 1, 7, 1, 2)]);
    for billing in [&world.billing, &world.another()] {
        world.clock.advance_micros(60 * MINUTE);
        let again =
            billing.seal_activate(SealRequest { force: true, ..SealRequest::default() }).await.unwrap();
        assert!(again.sealed.is_empty() && again.waiting.is_empty() && again.frozen.is_empty(), "{again:?}");
    }
    assert_eq!(world.statements("acme").await, sealed);
    assert_eq!(world.ledger().seal_run_list(&platform("acme"), noon()).await.unwrap().len(), 1);
    assert_eq!(world.difference().await, None);
}

async fn a_late_report_becomes_revision_two_and_revision_one_stays_byte_for_byte(world: World) {
    let mut journal = world.journal("a").await;
    world.take(&mut journal, &[Turn::new("1", "globex", &[900]), Turn::new("2", "initech", &[7])]).await;
    world.settled(&[&journal]).await;
    world.seal().await;
    let first = world.statements("acme").await;
    let (_, shown) = world.get("acme", &format!("/v1/statements/{}", first[0].statement_id)).await;
    let record = world.store.run_list(&platform("acme")).await.unwrap();

    world.take(&mut journal, &[Turn::new("3", "globex", &[5, 6])]).await;
    let soon = world.seal().await;
    assert_eq!(soon.waiting[0].reason, "revision_not_due");
    world.clock.advance_micros(MINUTE);
    assert_eq!(world.seal().await.sealed[0].statements, 1, "nothing new for the other customer");

    let both = world.statements("acme").await;
    assert_eq!(both[..2], first[..], "what was sealed never changes");
    let second = &both[2];
    assert_eq!(
        (second.customer.as_str(), second.revision, second.count, second.sum),
        ("globex", 2, 1, 11),
        "a revision has what came since"
    );
    assert_ne!(second.statement_hash, first[0].statement_hash);
    let (_, again) = world.get("acme", &format!("/v1/statements/{}", first[0].statement_id)).await;
    assert_eq!(again.to_string(), shown.to_string());
    assert_eq!(world.store.run_list(&platform("acme")).await.unwrap()[0], record[0]);
    assert_eq!(world.difference().await, None);
}

async fn g2_a_copy_of_an_event_from_another_journal_counts_once(world: World) {
    let (mut a, mut b) = (world.journal("a").await, world.journal("b").await);
    let turn = Turn::new("1", "globex", &[900]);
    world.take(&mut a, std::slice::from_ref(&turn)).await;
    world.take(&mut b, std::slice::from_ref(&turn)).await;
    world.settled(&[&a, &b]).await;
    assert_eq!(world.seal().await.sealed.len(), 1);

    // And one that comes after the hour was sealed.
    let mut c = world.journal("c").await;
    world.take(&mut c, &[turn]).await;
    world.clock.advance_micros(60 * MINUTE);
    for journal in [&a, &b, &c] {
        world.tell(journal).await;
    }
    let status = world.seal().await;
    assert_eq!(status.sealed[0].statements, 0, "the copy is sealed as nothing new: {status:?}");
    assert!(world.seal().await.sealed.is_empty(), "and only once");
    let statements = world.statements("acme").await;
    let sums: Vec<_> = statements.iter().map(|s| (s.revision, s.count, s.sum)).collect();
    assert_eq!(sums, [(1, 1, 900)]);
    let (_, usage) = world.get("acme", "/v1/usage").await;
    assert_eq!(usage["total"]["tokens"], "900", "{usage}");
    let (_, conflicts) = world.get("acme", "/v1/conflicts").await;
    assert_eq!(conflicts["data"], serde_json::json!([]), "a copy is no conflict");
    assert_eq!(world.difference().await, None);
}

async fn g3_two_contents_of_a_report_are_held_and_what_was_sealed_stands(world: World) {
    let (mut a, mut b) = (world.journal("a").await, world.journal("b").await);
    let sealed = Turn::new("sealed", "globex", &[900]);
    world
        .take(&mut a, &[sealed, Turn::new("raced", "globex", &[40]), Turn::new("fine", "globex", &[1])])
        .await;
    let mut other_provider = Turn::new("raced", "globex", &[40]);
    other_provider.providers.push(("notes", vec![2]));
    world.take(&mut b, &[other_provider]).await;
    world.settled(&[&a, &b]).await;
    world.seal().await;
    let first = world.statements("acme").await;
    assert_eq!((first.len(), first[0].count, first[0].sum), (1, 2, 901), "neither content of the raced one");

    // Another content of what is sealed: it stands, and nothing of the newcomer is counted.
    let mut changed = Turn::new("sealed", "globex", &[901]);
    changed.providers.push(("notes", vec![3]));
    world.take(&mut b, &[changed, Turn::new("late", "globex", &[5])]).await;
    world.clock.advance_micros(60 * MINUTE);
    world.tell(&a).await;
    world.tell(&b).await;
    world.seal().await;
    let both = world.statements("acme").await;
    assert_eq!(both[0], first[0]);
    assert_eq!((both.len(), both[1].revision, both[1].count, both[1].sum), (2, 2, 1, 5));

    let (_, conflicts) = world.get("acme", "/v1/conflicts").await;
    let mut turns: Vec<_> =
        conflicts["data"].as_array().unwrap().iter().map(|c| c["turn_id"].as_str().unwrap()).collect();
    turns.sort_unstable();
    assert_eq!(turns, ["raced", "sealed"], "{conflicts}");
    assert_eq!(conflicts["data"][0]["contents"], 2);
    assert_eq!(world.get("other", "/v1/conflicts").await.1["data"], serde_json::json!([]), "g9");
    assert_eq!(world.difference().await, None);
}

async fn a_row_that_the_store_lacks_freezes_the_hour_until_it_is_stored(world: World) {
    let mut journal = world.journal("a").await;
    world.take(&mut journal, &[Turn::new("1", "globex", &[900])]).await;
    let lost = world.accept(&mut journal, &Turn::new("2", "globex", &[33]));
    let mut elsewhere = Turn::new("3", "globex", &[8]);
    elsewhere.platform = "other";
    world.take(&mut journal, &[elsewhere]).await;
    world.settled(&[&journal]).await;

    let status = world.seal().await;
    assert_eq!(status.sealed.len(), 1, "{status:?}");
    assert_eq!(status.sealed[0].platform_id, "other", "who is not concerned is sealed");
    assert_eq!(
        (status.frozen[0].platform_id.as_str(), status.frozen[0].reason.as_str()),
        ("acme", "store_differs")
    );
    let detail = status.frozen[0].detail.as_deref().unwrap();
    assert!(detail.contains("2 events, 933 tokens"), "{detail}");
    let (_, windows) = world.get("acme", "/v1/windows").await;
    assert_eq!(windows["data"], serde_json::json!([]));
    assert_eq!(windows["frozen"][0]["reason"], "store_differs");
    assert_eq!(world.get("other", "/v1/windows").await.1["frozen"], serde_json::json!([]), "g9");
    assert_eq!(world.difference().await.map(|first| first.0), Some("journal"));
    let forced = SealRequest { force: true, ..SealRequest::default() };
    let status = world.billing.seal_activate(forced).await.unwrap();
    assert_eq!((status.sealed.len(), status.frozen.len()), (0, 1), "nobody may force past it");

    world.store.insert(&lost).await.unwrap();
    let status = world.seal().await;
    assert_eq!((status.sealed.len(), status.frozen.len()), (1, 0), "{status:?}");
    assert_eq!(world.statements("acme").await[0].sum, 933);
    let (_, windows) = world.get("acme", "/v1/windows").await;
    assert_eq!(windows["frozen"], serde_json::json!([]), "{windows}");
    assert_eq!(world.difference().await, None);
}

async fn an_hour_that_cannot_be_counted_is_frozen_and_the_others_are_sealed(world: World) {
    let mut journal = world.journal("a").await;
    let early = Turn::new("1", "globex", &[5]);
    let early = Turn { at: early.at.checked_add_micros(-60 * MINUTE).unwrap(), ..early };
    let odd = world.take(&mut journal, &[early, Turn::new("2", "globex", &[7])]).await.remove(0);
    // The same figures, of a kind that no program of ours writes.
    world.remove(&odd).await;
    let row = EventRow { kind: "mystery".to_owned(), ..odd.clone() };
    world.store.insert(&ReportBlock { events: vec![row], reports: Vec::new() }).await.unwrap();
    world.settled(&[&journal]).await;
    let status = world.seal().await;
    assert_eq!((status.sealed.len(), status.sealed[0].hour), (1, noon()), "{status:?}");
    assert_eq!(
        (status.frozen[0].reason.as_str(), status.frozen[0].hour),
        ("cannot_be_counted", noon().previous())
    );
    let (_, windows) = world.get("acme", "/v1/windows").await;
    assert_eq!(windows["frozen"][0]["reason"], "cannot_be_counted", "{windows}");

    world.remove(&odd).await;
    world.store.insert(&ReportBlock { events: vec![odd], reports: Vec::new() }).await.unwrap();
    assert_eq!(world.seal().await.sealed.len(), 1);
    assert_eq!(world.ledger().freeze_list(&platform("acme")).await.unwrap(), []);
}

async fn a_lease_that_another_holds_gives_busy(world: World) {
    let mut journal = world.journal("a").await;
    world.take(&mut journal, &[Turn::new("1", "globex", &[900])]).await;
    world.settled(&[&journal]).await;
    let held = world.ledger().lease_acquire("seal", "another", 30 * MINUTE).await.unwrap().unwrap();
    let refused = world.billing.seal_activate(SealRequest::default()).await;
    assert!(matches!(refused, Err(BillingError::Busy)), "{refused:?}");
    let (status, problem) = world.post("acme", "/v1/windows/seal", "{}").await;
    assert_eq!((status, problem["code"].as_str()), (503, Some("busy")));
    assert!(world.statements("acme").await.is_empty());

    // Who died keeps it no longer than it runs.
    world.clock.set(held.expires_at.checked_add_micros(1).unwrap());
    let (status, done) = world.post("acme", "/v1/windows/seal", "{}").await;
    assert_eq!((status, done["sealed"].as_array().unwrap().len()), (200, 1), "{done}");
    assert_eq!(world.statements("acme").await.len(), 1);
}

async fn nothing_is_shown_before_the_record_of_the_run_is_beside_the_usage(world: World) {
    let mut journal = world.journal("a").await;
    let events = world.take(&mut journal, &[Turn::new("1", "globex", &[900])]).await;
    world.settled(&[&journal]).await;
    world.sql("RENAME TABLE seal_runs TO seal_runs_away").await;
    let failed = world.billing.seal_activate(SealRequest::default()).await;
    assert!(matches!(failed, Err(BillingError::Store(_))), "{failed:?}");
    let runs = world.ledger().seal_run_list(&platform("acme"), noon()).await.unwrap();
    assert_eq!((runs.len(), runs[0].recorded_at), (1, None), "it is committed and not recorded");
    let hidden = world.ledger().statements_of_run(&runs[0].run_id).await.unwrap().remove(0);

    for list in ["/v1/statements", "/v1/heads"] {
        let (status, page) = world.get("acme", list).await;
        assert_eq!((status, &page["data"]), (200, &serde_json::json!([])), "{list}");
    }
    let path = format!("/v1/statements/{}", hidden.statement_id);
    assert_eq!(world.get("acme", &path).await.0, 404);
    assert!(world.ledger().statement_log(&platform("acme"), 0, 10).await.unwrap().is_empty(), "nor sent");
    let unsealed = world.ledger().hours_unsealed(&platform("acme"), noon(), noon().next()).await.unwrap();
    assert_eq!(unsealed, [noon()]);
    let lookup = format!("/v1/disputes/lookup?event_id={}", hex::encode(events[0].event_id));
    let (_, chains) = world.get("acme", &lookup).await;
    assert_eq!(chains["data"][0]["statement"], serde_json::json!(null), "{chains}");

    world.sql("RENAME TABLE seal_runs_away TO seal_runs").await;
    assert!(world.seal().await.sealed.is_empty(), "it was sealed already");
    assert_eq!(world.get("acme", &path).await.0, 200);
    for list in ["/v1/statements", "/v1/heads"] {
        assert_eq!(world.get("acme", list).await.1["data"].as_array().unwrap().len(), 1, "{list}");
    }
    let record = world.store.run_list(&platform("acme")).await.unwrap().remove(0);
    let record: serde_json::Value = serde_json::from_str(&record.record).unwrap();
    assert_eq!(record["statements"][0]["statement_id"], hidden.statement_id.as_str());
    assert_eq!(record["cut"]["positions"], serde_json::json!({journal.epoch.to_string(): journal.seq}));
    assert!(world.clock.now() > noon().end());
    assert_eq!(world.difference().await, None);
}
