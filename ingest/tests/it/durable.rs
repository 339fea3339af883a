//! The folder opened again after an end without goodbye.

use std::time::Duration;

use crate::world::{World, noon, report};

/// Each process of the service has a runtime of its own here: when it goes, its tasks end where they are.
fn process() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn g1_a_journal_that_was_dropped_is_opened_again_and_loses_nothing() {
    let main = process();
    let world = main.block_on(World::sqlite());
    let mut acknowledgements = Vec::new();
    for turns in [["1", "2"], ["3", "4"]] {
        let life = process();
        let room = life.block_on(world.open());
        for turn in turns {
            let (status, answer) = life.block_on(room.post(&report(turn, &[10])));
            assert_eq!(status, 200, "{answer}");
            acknowledgements.push((turn, answer["acknowledgement"].clone()));
        }
        drop(room);
        drop(life);
    }
    main.block_on(async {
        let room = world.open().await;
        assert_eq!(room.ingest.backlog().epoch, 3);
        for (turn, acknowledgement) in &acknowledgements {
            let (status, answer) = room.post(&report(turn, &[10])).await;
            assert_eq!((status, &answer["status"]), (200, &"duplicate".into()), "{answer}");
            assert_eq!(&answer["acknowledgement"], acknowledgement);
        }
        assert_eq!(room.post(&report("5", &[1])).await.1["acknowledgement"]["seq"], 1);
        world.store.migrate().await.unwrap();
        room.ingest.drained().await;
        assert_eq!(world.balanced(noon()).await, (5, 41));
        let epochs = world.ledger().epoch_list().await.unwrap();
        let ends: Vec<_> = epochs.iter().map(|row| (row.epoch, row.confirmed_seq, row.end_seq)).collect();
        assert_eq!(ends, [(1, 2, Some(2)), (2, 2, Some(2)), (3, 1, None)]);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_shutdown_the_folder_can_be_opened_and_what_waits_is_stored_with_sqlite() {
    what_waits_is_stored_after_a_shutdown(World::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_shutdown_the_folder_can_be_opened_and_what_waits_is_stored_with_postgres() {
    what_waits_is_stored_after_a_shutdown(World::postgres().await).await;
}

async fn what_waits_is_stored_after_a_shutdown(world: World) {
    let room = world.open().await;
    assert_eq!(room.post(&report("1", &[3])).await.0, 200);
    room.end().await;
    world.store.migrate().await.unwrap();
    let room = world.open().await;
    room.ingest.drained().await;
    assert_eq!(world.balanced(noon()).await, (1, 3));
    room.end().await;
    let room = world.open().await;
    room.ingest.drained().await;
    assert_eq!(world.balanced(noon()).await, (1, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_open_is_not_opened_twice() {
    let world = World::sqlite().await;
    let _room = world.open().await;
    let error = world.open_with(|_| {}).await.err().unwrap();
    assert!(!error.is_retryable(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_of_the_folder_is_refused() {
    let world = World::sqlite().await;
    world.open().await.end().await;
    let old = world.journal_dir().with_extension("old");
    copy(&world.journal_dir(), &old);
    world.open().await.end().await; // an epoch that the copy does not know
    std::fs::remove_dir_all(world.journal_dir()).unwrap();
    std::fs::rename(old, world.journal_dir()).unwrap();
    let error = world.open_with(|_| {}).await.err().unwrap();
    assert!(matches!(error, ingest::IngestError::OlderFolder { epoch: 2 }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_lacks_confirmed_positions_of_its_own_epoch_is_refused() {
    let world = World::sqlite().await.with_tables().await;
    let room = world.open().await;
    assert_eq!(room.post(&report("1", &[3])).await.0, 200);
    room.ingest.drained().await;
    room.end().await;
    let row = world.ledger().epoch_list().await.unwrap().remove(0);
    assert_eq!((row.epoch, row.confirmed_seq), (1, 1));
    // The folder that is gone had two more reports, and they are stored.
    world.ledger().epoch_confirm(1, 3, row.confirmed_through, &[]).await.unwrap();
    let error = world.open_with(|_| {}).await.err().unwrap();
    assert!(matches!(error, ingest::IngestError::OlderFolder { epoch: 1 }), "{error}");
    let row = world.ledger().epoch_list().await.unwrap().remove(0);
    assert_eq!(row.end_seq, None, "an end that is not true was declared");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_are_taken_while_the_ledger_is_away() {
    // The operator's token asks the ledger for its platform, so this test posts with a key.
    let world = World::sqlite().await.with_tables().await;
    let key = world.key().await;
    let room = world.open().await;
    room.refresh_keys().await;
    assert_eq!(room.post_as(&key, &report("1", &[1])).await.0, 200);
    room.ingest.drained().await;
    world.ledger().close().await;
    let (status, answer) = room.post_as(&key, &report("2", &[2])).await;
    assert_eq!(status, 200, "{answer}");
    let mut stranger = report("3", &[3]);
    stranger["customer_id"] = "initech".into();
    let (status, problem) = room.post_as(&key, &stranger).await;
    assert_eq!((status, &problem["code"]), (503, &"ledger_unavailable".into()), "{problem}");

    let backlog = room.ingest.backlog();
    while world.store.positions(backlog.epoch, 2).await.unwrap().positions < 2 {
        tokio::task::yield_now().await;
    }
    // It is in the store, but the ledger does not know: that is neither confirmed nor drained, however long one waits.
    let waited = tokio::time::timeout(Duration::from_millis(300), room.ingest.drained()).await;
    assert!(waited.is_err(), "drained without the ledger");
    let backlog = room.ingest.backlog();
    assert_eq!((backlog.appended_seq, backlog.confirmed_seq), (2, 1));
    assert!(room.ingest.trouble().unwrap().contains("ledger"));
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
