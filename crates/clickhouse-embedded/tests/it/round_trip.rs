use clickhouse::Row;
use serde::{Deserialize, Serialize};

use crate::support::{database, open};

#[derive(Debug, Clone, PartialEq, Row, Serialize, Deserialize)]
struct Event {
    id: u64,
    name: String,
    digest: [u8; 4],
    tags: Vec<String>,
    #[serde(rename = "frames.id")]
    frame_ids: Vec<String>,
    #[serde(rename = "frames.cost")]
    frame_costs: Vec<u64>,
    note: Option<String>,
}

const EVENTS: &str = "CREATE TABLE events (id UInt64, name String, digest FixedString(4), tags Array(String), \
    frames Nested(id String, cost UInt64), note Nullable(String)) ENGINE = MergeTree ORDER BY id";

fn event(id: u64) -> Event {
    let frames = id % 4;
    Event {
        id,
        name: format!("näme \0 {id}\n"),
        digest: [0, 255, b'\n', id.to_le_bytes()[0]],
        tags: (0..id % 3).map(|n| format!("tag{n}")).collect(),
        frame_ids: (0..frames).map(|n| format!("f{n}")).collect(),
        frame_costs: (0..frames).map(|n| n * 1_000_000_007).collect(),
        note: id.is_multiple_of(2).then(|| "'quoted' \\ \"text\"".to_owned()),
    }
}

#[tokio::test]
async fn typed_rows_with_arrays_and_nested_columns_come_back_as_they_went() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);
    client.query(EVENTS).execute().await.unwrap();
    let events: Vec<Event> = (0..10_000).map(event).collect();

    let mut insert = client.insert::<Event>("events").await.unwrap();
    for event in &events {
        insert.write(event).await.unwrap();
    }
    insert.end().await.unwrap();

    let read = client.query("SELECT ?fields FROM events ORDER BY id").fetch_all::<Event>().await.unwrap();
    assert!(read == events);
    drop(client);
    engine.close().await.unwrap();
}
