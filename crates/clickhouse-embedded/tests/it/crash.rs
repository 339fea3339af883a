use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use clickhouse::Row;
use serde::{Deserialize, Serialize};

use crate::support::{database, execute, open};

/// Set in the process that is killed: the folder, and the first batch's number.
const CHILD: &str = "CLICKHOUSE_EMBEDDED_CRASH_CHILD";
const NAME: &str = "crash::kill_9_loses_no_acknowledged_batch_and_leaves_none_in_part";
const ROWS: u64 = 1000;

#[derive(Row, Serialize, Deserialize)]
struct Line {
    batch: u64,
    row: u64,
    text: String,
}

#[derive(Row, Deserialize)]
struct Batch {
    batch: u64,
    rows: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_loses_no_acknowledged_batch_and_leaves_none_in_part() {
    if let Ok(child) = std::env::var(CHILD) {
        let (folder, first) = child.rsplit_once('#').unwrap();
        write_until_killed(Path::new(folder), first.parse().unwrap()).await;
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeSet::new();
    for round in 0..4_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(CHILD, format!("{}#{}", folder.path().display(), round * 1_000_000))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Killed at another point of its work each round: the writers are at any instant of theirs.
        let mut left = 3 + round * 17;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while left > 0 {
            let line = lines.next().expect("the child ended early").unwrap();
            if let Some((_, batch)) = line.split_once("acknowledged ") {
                acknowledged.insert(batch.trim().parse::<u64>().unwrap());
                left -= 1;
            }
        }
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        // What it had said before it died counts as well.
        for line in lines.map_while(Result::ok) {
            if let Some(batch) =
                line.split_once("acknowledged ").and_then(|(_, batch)| batch.trim().parse().ok())
            {
                acknowledged.insert(batch);
            }
        }

        let engine = open(folder.path()).await;
        let client = database(&engine);
        let sql = "SELECT batch, count() AS rows FROM lines GROUP BY batch";
        let stored = client.query(sql).fetch_all::<Batch>().await.unwrap();
        let partial: Vec<_> =
            stored.iter().filter(|batch| batch.rows != ROWS).map(|batch| batch.batch).collect();
        assert_eq!(partial, Vec::<u64>::new(), "batches stored in part");
        let stored: BTreeSet<_> = stored.iter().map(|batch| batch.batch).collect();
        let lost: Vec<_> = acknowledged.difference(&stored).collect();
        assert_eq!(lost, Vec::<&u64>::new(), "acknowledged batches lost");
        engine.close().await.unwrap();
    }
}

async fn write_until_killed(folder: &Path, first: u64) {
    let engine = open(folder).await;
    let client = database(&engine);
    let table = "CREATE TABLE IF NOT EXISTS lines (batch UInt64, row UInt64, text String) ENGINE = MergeTree ORDER BY (batch, row) \
                 SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1";
    execute(&client, table).await;
    let writer = async |offset: u64| {
        for batch in (first + offset..first + 1_000_000).step_by(3) {
            let mut insert = client.insert::<Line>("lines").await.unwrap();
            for row in 0..ROWS {
                insert.write(&Line { batch, row, text: format!("{batch}/{row}") }).await.unwrap();
            }
            insert.end().await.unwrap();
            println!("acknowledged {batch}");
        }
    };
    tokio::join!(writer(0), writer(1), writer(2));
}
