//! What is accepted comes into the store, and the ledger's counts say the same.

use usage::{Hour, Timestamp};

use crate::proxy::holds;
use crate::world::{NOON, Room, World, noon, report, report_at};

fn two_providers(turn: &str) -> serde_json::Value {
    let mut both = report(turn, &[10]);
    let mut notes = report(turn, &[20])["report"]["providers"][0].clone();
    notes["provider_id"] = "notes".into();
    notes["served_frames"][0]["frame"]["provider_id"] = "notes".into();
    both["report"]["providers"].as_array_mut().unwrap().push(notes);
    both["report"]["budget_consumed"] = 30.into();
    both
}

async fn accepted_is_stored_and_counted(world: World) {
    let room = world.open().await;
    let (status, first) = room.post(&report("1", &[900, 100])).await;
    assert_eq!(
        (status, &first["status"], &first["tokens"]),
        (200, &"accepted".into(), &1000.into()),
        "{first}"
    );
    assert_eq!(first["events"].as_array().unwrap().len(), 1);
    assert_eq!(first["acknowledgement"]["seq"], 1);
    let (_, second) = room.post(&report("2", &[])).await;
    assert_eq!(second["acknowledgement"]["seq"], 2, "{second}");
    let mut nobody = report("3", &[]);
    nobody["report"]["providers"] = serde_json::json!([]);
    let (_, third) = room.post(&nobody).await;
    assert_eq!(third["acknowledgement"]["seq"], 3, "{third}");
    let (_, fourth) = room.post(&two_providers("4")).await;
    assert_eq!(fourth["acknowledgement"]["seq"], 5, "{fourth}");
    assert_eq!((&fourth["tokens"], fourth["events"].as_array().unwrap().len()), (&30.into(), 2));
    room.ingest.drained().await;
    let backlog = room.ingest.backlog();
    assert_eq!((backlog.appended_seq, backlog.confirmed_seq), (5, 5));
    let positions = world.store.positions(backlog.epoch, 5).await.unwrap();
    assert_eq!((positions.gap, positions.last, positions.positions), (0, 5, 5));
    assert_eq!(world.balanced(noon()).await, (4, 1030));
}

#[tokio::test(flavor = "multi_thread")]
async fn g1_an_accepted_report_is_stored_and_counted_with_sqlite() {
    accepted_is_stored_and_counted(World::sqlite().await.with_tables().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g1_an_accepted_report_is_stored_and_counted_with_postgres() {
    accepted_is_stored_and_counted(World::postgres().await.with_tables().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_absent_at_first_gets_everything_when_it_comes() {
    let world = World::sqlite().await;
    let room = world.open().await;
    for turn in ["1", "2", "3"] {
        assert_eq!(room.post(&report(turn, &[5])).await.0, 200);
    }
    let epochs = world.ledger().epoch_list().await.unwrap();
    assert_eq!(epochs[0].confirmed_seq, 0);
    assert_eq!(room.call("GET", "/v1/reports/req-1/2", "", "").await.1["stored"], false);
    world.store.migrate().await.unwrap();
    room.ingest.drained().await;
    assert_eq!(world.balanced(noon()).await, (3, 15));
    assert_eq!(room.call("GET", "/v1/reports/req-1/2", "", "").await.1["stored"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_of_two_months_is_stored_month_by_month() {
    let world = World::sqlite().await; // absent at first, so that both months wait for one block
    world.clock.set(Timestamp::parse_rfc3339("2026-12-01T00:01:00Z").unwrap());
    let room = world.open().await;
    for (turn, as_of) in
        [("1", "2026-11-30T23:59:59.999999Z"), ("2", "2026-12-01T00:00:00Z"), ("3", "2026-11-30T23:00:00Z")]
    {
        let (status, answer) = room.post(&report_at(turn, as_of, &[7])).await;
        assert_eq!(status, 200, "{answer}");
    }
    world.store.migrate().await.unwrap();
    room.ingest.drained().await;
    let midnight = Hour::of(Timestamp::parse_rfc3339("2026-12-01T00:00:00Z").unwrap());
    assert_eq!(world.balanced(midnight.previous()).await, (2, 14));
    assert_eq!(world.balanced(midnight).await, (1, 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_journal_tells_by_itself_that_nothing_is_missing() {
    let world = World::sqlite().await.with_tables().await;
    let _room = world.open().await;
    world.clock.advance_micros(7_200_000_000);
    let now = usage::Clock::now(&world.clock);
    // Never told: the test's time runs out.
    while world.ledger().epoch_list().await.unwrap()[0].confirmed_through < now {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_journal_has_told_that_nothing_is_missing_up_to_now() {
    let world = World::sqlite().await.with_tables().await;
    let an_hour = std::time::Duration::from_secs(3_600);
    let room = world.open_with(|options| options.heartbeat_interval = an_hour).await.unwrap();
    world.clock.advance_micros(7_200_000_000);
    room.ingest.drained().await;
    let epochs = world.ledger().epoch_list().await.unwrap();
    assert_eq!(epochs[0].confirmed_through, usage::Clock::now(&world.clock));
    assert_eq!(epochs[0].confirmed_seq, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn g12_while_something_is_not_stored_the_ledger_is_told_no_later_instant_than_its_acceptance() {
    let (world, proxy) = World::proxied().await;
    proxy.refuse(|_| Some(210)); // both wait, each in a block of its own
    let room = world.open_with(|options| options.block_rows = 1).await.unwrap();
    assert_eq!(room.post(&report("early", &[5])).await.0, 200);
    world.clock.advance_micros(3_600_000_000);
    let accepted = usage::Clock::now(&world.clock);
    assert_eq!(room.post(&report("later", &[5])).await.0, 200);
    world.clock.advance_micros(3_600_000_000);
    proxy.refuse(|body| holds(body, "later").then_some(210));
    let told = loop {
        let row = world.ledger().epoch_list().await.unwrap().remove(0);
        if row.confirmed_seq > 0 {
            break row;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((told.confirmed_seq, told.confirmed_through), (1, accepted));
    proxy.refuse(|_| None);
    room.ingest.drained().await;
    let through = world.ledger().epoch_list().await.unwrap()[0].confirmed_through;
    assert_eq!(through, usage::Clock::now(&world.clock));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_take_positions_without_gaps_and_balance() {
    let world = World::sqlite().await.with_tables().await;
    let room = world.open_with(|options| options.block_rows = 7).await.unwrap();
    let posts = (0..120u64).map(|turn| {
        let room: &Room = &room;
        async move { room.post(&report(&turn.to_string(), &[turn, 1])).await }
    });
    let answers = futures_util::future::join_all(posts).await;
    let mut seqs: Vec<u64> =
        answers.iter().map(|(_, answer)| answer["acknowledgement"]["seq"].as_u64().unwrap()).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=120).collect::<Vec<u64>>());
    room.ingest.drained().await;
    assert_eq!(world.balanced(noon()).await, (120, (0..120).sum::<u128>() + 120));
    assert!(NOON < usage::Clock::now(&world.clock).as_micros());
}
