//! What is accepted comes into the store, and the ledger's counts say the same.

use usage::{Hour, Timestamp};

use crate::world::{NOON, Room, World, noon, report, report_at};

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
    room.ingest.drained().await;
    let backlog = room.ingest.backlog();
    assert_eq!((backlog.appended_seq, backlog.confirmed_seq), (3, 3));
    let positions = world.store.positions(backlog.epoch, 3).await.unwrap();
    assert_eq!((positions.gap, positions.last, positions.positions), (0, 3, 3));
    assert_eq!(world.balanced(noon()).await, (2, 1000));
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
    world.store.migrate().await.unwrap();
    room.ingest.drained().await;
    assert_eq!(world.balanced(noon()).await, (3, 15));
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
async fn an_idle_journal_tells_that_nothing_is_missing_up_to_now() {
    let world = World::sqlite().await.with_tables().await;
    let room = world.open().await;
    world.clock.advance_micros(7_200_000_000);
    room.ingest.drained().await;
    let epochs = world.ledger().epoch_list().await.unwrap();
    assert_eq!(epochs[0].confirmed_through, usage::Clock::now(&world.clock));
    assert_eq!(epochs[0].confirmed_seq, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_something_is_not_stored_the_ledger_is_not_told_a_later_instant() {
    let world = World::sqlite().await;
    let room = world.open().await;
    assert_eq!(room.post(&report("1", &[5])).await.0, 200);
    let accepted = usage::Clock::now(&world.clock);
    world.clock.advance_micros(3_600_000_000);
    assert_eq!(room.post(&report("2", &[5])).await.0, 200);
    let through = world.ledger().epoch_list().await.unwrap()[0].confirmed_through;
    assert!(through <= accepted, "{through} is after {accepted}");
    world.store.migrate().await.unwrap();
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
