//! The whole process killed while it takes reports: engine, journal and ledger at once.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test that starts itself tells the child so by its environment, and the child answers by its output"
)]

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::world::{Room, World, noon, report};

/// Set in a process that this file starts: its folder and its round.
const CHILD: &str = "CONTEXTMETER_INGEST_KILLED";
const NAME: &str = "crash::g1_g2_kill_9_loses_no_acknowledged_report_and_counts_each_once";
const ROUNDS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_g2_kill_9_loses_no_acknowledged_report_and_counts_each_once() {
    if let Ok(child) = std::env::var(CHILD) {
        let (folder, round) = child.rsplit_once('#').unwrap();
        return post_until_killed(Path::new(folder), round).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeMap::new();
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(CHILD, format!("{}#{round}", folder.path().display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Killed at another point of its work each round; what it said before it died counts.
        let mut left = 5 + round * 41;
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            let Some((_, said)) = line.split_once("acknowledged ") else { continue };
            let Some((turn, acknowledgement)) = said.split_once(' ') else { continue };
            let Ok(acknowledgement) = serde_json::from_str::<Value>(acknowledgement) else { continue };
            acknowledged.insert(turn.to_owned(), acknowledgement);
            left = left.saturating_sub(1);
            if left == 0 {
                child.kill().unwrap(); // SIGKILL; the pipe still holds what was said
            }
        }
        assert!(!child.wait().unwrap().success(), "round {round} ended by itself");
        assert_eq!(left, 0, "round {round}");
    }

    let world = World::at(folder.path()).await;
    let room = world.open().await;
    for (turn, acknowledgement) in &acknowledged {
        let (status, again) = room.post(&report(turn, &[1])).await;
        assert_eq!((status, &again["status"]), (200, &"duplicate".into()), "turn {turn}: {again}");
        assert_eq!(&again["acknowledgement"], acknowledgement, "turn {turn}");
    }
    room.ingest.drained().await;
    let (events, tokens) = world.balanced(noon()).await;
    let epochs = world.ledger().epoch_list().await.unwrap();
    assert_eq!(epochs.len(), ROUNDS + 1);
    for epoch in &epochs[..ROUNDS] {
        let end = epoch.end_seq.unwrap();
        assert_eq!(epoch.confirmed_seq, end, "{epoch:?}");
        let positions = world.store.positions(epoch.epoch, end).await.unwrap();
        assert_eq!((positions.gap, positions.positions), (0, end), "{epoch:?}");
    }
    // Each report has one event of one token; what was accepted and never answered is there too, once.
    assert_eq!(events, epochs.iter().filter_map(|epoch| epoch.end_seq).sum::<u64>());
    assert_eq!(u128::from(events), tokens);
    assert!(events >= acknowledged.len() as u64);
}

async fn post_until_killed(folder: &Path, round: &str) {
    let world = World::at(folder).await;
    let room = world.open_with(|options| options.block_rows = 16).await.unwrap();
    futures_util::future::join_all((0..4).map(|host| post_for_ever(&room, round, host))).await;
}

async fn post_for_ever(room: &Room, round: &str, host: u32) {
    for count in 0_u64.. {
        let turn = format!("{round}-{host}-{count}");
        let (status, answer) = room.post(&report(&turn, &[1])).await;
        assert_eq!(status, 200, "{answer}");
        println!("acknowledged {turn} {}", answer["acknowledgement"]);
    }
}
