//! Verifying finds what somebody changed in the tables behind our back, and names it.

use ledger::StatementRow;
use usage_store::{EventRow, ReportBlock};

use super::on_both;
use super::world::{Journal, MINUTE, Turn, World, noon, platform};

on_both!(
    g5_a_changed_number_of_tokens_is_found_and_its_event_named,
    g5_a_changed_number_with_frames_that_fit_is_found_and_its_event_named,
    g5_an_event_of_another_customer_is_found,
    g5_a_removed_event_is_found_and_its_statement_named,
    g5_an_added_event_is_found_and_its_statement_named,
    g5_an_added_customer_is_found,
    g5_an_event_at_a_place_that_no_journal_gave_is_found,
    g5_a_removed_event_that_no_run_counted_yet_is_found,
    g9_what_journals_lack_is_told_to_the_operator_and_what_others_have_to_nobody,
);

/// A sealed hour of two customers: `globex` with two events, `initech` with one. Verified.
async fn sealed(world: &World) -> (Journal, Vec<EventRow>, Vec<StatementRow>) {
    let mut journal = world.journal("a").await;
    let turns = [
        Turn::new("1", "globex", &[900, 100]),
        Turn::new("2", "globex", &[30]),
        Turn::new("3", "initech", &[7]),
    ];
    let events = world.take(&mut journal, &turns).await;
    world.settled(&[&journal]).await;
    world.seal().await;
    let statements = world.statements("acme").await;
    assert_eq!((statements.len(), world.difference().await), (2, None));
    (journal, events, statements)
}

async fn put(world: &World, event: EventRow) {
    world.store.insert(&ReportBlock { events: vec![event], reports: Vec::new() }).await.unwrap();
}

fn id(event: &EventRow) -> Option<String> {
    Some(hex::encode(event.event_id))
}

async fn g5_a_changed_number_of_tokens_is_found_and_its_event_named(world: World) {
    let (_, events, _) = sealed(&world).await;
    world.remove(&events[0]).await;
    put(&world, EventRow { tokens: 1001, ..events[0].clone() }).await;
    let (what, named, message) = world.difference().await.unwrap();
    assert_eq!((what, named), ("event", id(&events[0])), "{message}");
    world.remove(&events[0]).await;
    put(&world, events[0].clone()).await;
    assert_eq!(world.difference().await, None, "put back as it was");
}

async fn g5_a_changed_number_with_frames_that_fit_is_found_and_its_event_named(world: World) {
    let (_, events, _) = sealed(&world).await;
    world.remove(&events[0]).await;
    put(&world, EventRow { tokens: 1001, costs: vec![901, 100], ..events[0].clone() }).await;
    let (what, named, message) = world.difference().await.unwrap();
    assert_eq!((what, named), ("event", id(&events[0])), "{message}");
    let (_, found) = world.post("acme", "/v1/verify", "{}").await;
    assert_eq!(
        (&found["ok"], found["first_difference"]["event_id"].as_str()),
        (&false.into(), id(&events[0]).as_deref())
    );
    assert_eq!(found["first_difference"]["hour"], noon().to_string());
}

async fn g5_an_event_of_another_customer_is_found(world: World) {
    let (_, events, _) = sealed(&world).await;
    world.remove(&events[0]).await;
    put(&world, EventRow { customer: "initech".to_owned(), ..events[0].clone() }).await;
    let (what, named, message) = world.difference().await.unwrap();
    assert_eq!((what, named), ("event", id(&events[0])), "{message}");
}

async fn g5_a_removed_event_is_found_and_its_statement_named(world: World) {
    let (_, events, statements) = sealed(&world).await;
    world.remove(&events[1]).await;
    let (what, named, message) = world.difference().await.unwrap();
    assert_eq!((what, named), ("statement", Some(statements[0].statement_id.clone())), "{message}");
    assert!(message.contains("2 events with a sum of 1030; stored are 1 with 1000"), "{message}");
    put(&world, events[1].clone()).await;
    world.remove(&events[2]).await;
    let (what, named, message) = world.difference().await.unwrap();
    assert_eq!((what, named), ("statement", Some(statements[1].statement_id.clone())), "{message}");
}

async fn g5_an_added_event_is_found_and_its_statement_named(world: World) {
    let (mut journal, events, statements) = sealed(&world).await;
    // A real event of another turn, slipped in at a place that the run covered.
    let forged = world.accept(&mut journal, &Turn::new("9", "globex", &[5])).events.remove(0);
    put(&world, EventRow { seq: events[1].seq, ..forged }).await;
    let (what, named, message) = world.difference().await.unwrap();
    assert_eq!((what, named), ("statement", Some(statements[0].statement_id.clone())), "{message}");
    assert!(message.contains("stored are 3 with 1035"), "{message}");
}

async fn g5_an_added_customer_is_found(world: World) {
    let (mut journal, events, _) = sealed(&world).await;
    let forged = world.accept(&mut journal, &Turn::new("9", "umbrella", &[5])).events.remove(0);
    put(&world, EventRow { seq: events[1].seq, ..forged }).await;
    let (what, _, message) = world.difference().await.unwrap();
    assert_eq!(what, "statement");
    assert!(message.contains("1 events of customer umbrella"), "{message}");
}

async fn g5_an_event_at_a_place_that_no_journal_gave_is_found(world: World) {
    let (mut journal, _, _) = sealed(&world).await;
    let mut turn = Turn::new("9", "globex", &[5]);
    turn.at = turn.at.checked_add_micros(-60 * MINUTE).unwrap();
    let forged = world.accept(&mut journal, &turn).events.remove(0);
    put(&world, EventRow { epoch: 77, ..forged.clone() }).await;
    let (what, _, message) = world.difference().await.unwrap();
    assert_eq!((what, message.contains("77/")), ("position", true), "{message}");
    world.remove(&forged).await;
    put(&world, EventRow { seq: 1, ..forged }).await;
    let (what, _, message) = world.difference().await.unwrap();
    assert_eq!((what, message.contains("1/1")), ("position", true), "{message}");
}

async fn g5_a_removed_event_that_no_run_counted_yet_is_found(world: World) {
    let (mut journal, _, _) = sealed(&world).await;
    let late = world.take(&mut journal, &[Turn::new("late", "globex", &[5])]).await;
    assert_eq!(world.difference().await, None);
    world.remove(&late[0]).await;
    let (what, _, message) = world.difference().await.unwrap();
    assert_eq!(what, "journal");
    assert!(message.contains("journal 1 counted 4 events, 1042 tokens"), "{message}");
}

async fn g9_what_journals_lack_is_told_to_the_operator_and_what_others_have_to_nobody(world: World) {
    let (mut journal, events, _) = sealed(&world).await;
    let key = world.key("acme", "finance").await;
    let ask = async || world.send(&key, "POST", "/v1/verify", None, "{}").await.1;

    // A report without events: nothing but its position is missing.
    let turn = Turn { providers: Vec::new(), ..Turn::new("none", "globex", &[]) };
    world.take(&mut journal, &[turn]).await;
    let (_, whole) = world.post("acme", "/v1/verify", "{}").await;
    assert_eq!(whole["ok"], true, "{whole}");
    world.sql("ALTER TABLE reports DELETE WHERE events = 0").await;
    let (_, found) = world.post("acme", "/v1/verify", "{}").await;
    assert_eq!(
        (&found["ok"], &found["first_difference"]["what"]),
        (&false.into(), &"position".into()),
        "{found}"
    );
    assert_eq!(ask().await["ok"], true, "whose report it was cannot be told");

    // Another platform's stray row.
    put(&world, EventRow { platform: "other".to_owned(), epoch: 77, ..events[0].clone() }).await;
    assert_eq!(ask().await["ok"], true);
    let other = world.billing.verify(&platform("other")).await.unwrap();
    assert_eq!(other.first_difference.map(|first| first.what), Some("position"));
}
