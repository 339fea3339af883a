use std::io::Write;

use bytes::Bytes;
use clickhouse::Row;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;

use crate::support::{ask, client, code, count, database, execute, header, open, text};

const INSERT: &str = "?database=t&query=INSERT%20INTO%20n(n)%20FORMAT%20RowBinary";

#[derive(Row, Serialize)]
struct Number {
    n: u64,
}

fn numbers(count: u64) -> Vec<u8> {
    (0..count).flat_map(u64::to_le_bytes).collect()
}

async fn table(client: &clickhouse::Client) {
    execute(client, "CREATE TABLE n (n UInt64) ENGINE = MergeTree ORDER BY n").await;
}

#[tokio::test]
async fn three_million_rows_are_one_block_and_one_part() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);
    table(&client).await;

    let stored = ask(&engine, INSERT, &[], numbers(3_000_000)).await;

    assert_eq!(stored.status(), 200, "{}", text(&stored));
    assert!(header(&stored, "x-clickhouse-summary").contains(r#""written_rows":"3000000""#));
    assert_eq!(count(&client, "SELECT count() FROM n").await, 3_000_000);
    assert_eq!(count(&client, "SELECT count() FROM system.parts WHERE database = 't' AND active").await, 1);
}

#[tokio::test]
async fn a_body_that_ends_inside_a_row_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);
    table(&client).await;
    let mut body = numbers(3_000_000);
    body.truncate(body.len() - 3);

    let refused = ask(&engine, INSERT, &[], body).await;

    assert_eq!((refused.status().as_u16(), code(&refused)), (400, "33"), "{}", text(&refused));
    assert_eq!(count(&client, "SELECT count() FROM n").await, 0);
}

#[tokio::test]
async fn a_client_that_leaves_half_way_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);
    table(&client).await;

    // The official client's insert, dropped without `end`.
    let mut insert = client.insert::<Number>("n").await.unwrap();
    for n in 0..2_000_000 {
        insert.write(&Number { n }).await.unwrap();
    }
    drop(insert);

    // A body that breaks off between two rows: at this point its bytes alone would make a valid insert.
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Frame<Bytes>, std::io::Error>>(4);
    let body = StreamBody::new(futures_util::stream::unfold(receiver, async |mut receiver| {
        let item = receiver.recv().await?;
        Some((item, receiver))
    }));
    let http = legacy::Client::builder(TokioExecutor::new()).build(engine.connector());
    let request = http::Request::post(format!("http://engine/{INSERT}")).body(body.boxed()).unwrap();
    let asking = tokio::spawn(http.request(request));
    for _ in 0..8 {
        sender.send(Ok(Frame::data(numbers(100_000).into()))).await.unwrap();
    }
    sender.send(Err(std::io::Error::other("gone"))).await.unwrap();
    assert!(asking.await.unwrap().is_err());

    crate::support::until_gone(&client, "INSERT").await;
    assert_eq!(count(&client, "SELECT count() FROM n").await, 0);
}

#[tokio::test]
async fn a_bad_row_is_refused_with_its_code_and_none_of_its_batch_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);
    table(&client).await;
    let address = "?database=t&query=INSERT%20INTO%20n%20FORMAT%20JSONEachRow";

    let refused = ask(&engine, address, &[], "{\"n\":1}\n{\"n\":\"two\"}\n{\"n\":3}\n").await;

    assert_eq!((refused.status().as_u16(), code(&refused)), (400, "27"), "{}", text(&refused));
    assert_eq!(count(&client, "SELECT count() FROM n").await, 0);
}

#[tokio::test]
async fn the_statement_may_stand_before_the_rows_in_the_body() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);
    table(&client).await;

    let mut body = b"INSERT INTO t.n FORMAT RowBinary\n".to_vec();
    body.extend(numbers(1_000_000)); // longer than what is read to find the statement
    for body in [body, b"INSERT INTO t.n (n) VALUES (1), (1 + 1), (';')".to_vec()] {
        let stored = ask(&engine, "", &[], body).await;
        let expected = if text(&stored).contains("Code") { 400 } else { 200 };
        assert_eq!(stored.status(), expected, "{}", text(&stored));
    }
    assert_eq!(count(&client, "SELECT count() FROM n").await, 1_000_000);
    assert_eq!(ask(&engine, "", &[], "INSERT INTO t.n VALUES (7), (1 + 1)").await.status(), 200);
    assert_eq!(count(&client, "SELECT count() FROM n").await, 1_000_002);
}

#[tokio::test]
async fn compressed_bodies_are_read_and_a_cut_one_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);
    table(&client).await;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&numbers(50_000)).unwrap();
    let gzip = gzip.finish().unwrap();
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(&numbers(50_000)).unwrap();
    let lz4 = lz4.finish().unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(
        std::io::Cursor::new(numbers(50_000)),
        ruzstd::encoding::CompressionLevel::Fastest,
    );

    let mut expected = 0;
    for (name, body) in [("gzip", gzip), ("lz4", lz4), ("zstd", zstd)] {
        for keep in [100, 90, 50, 1] {
            let body = body[..body.len() * keep / 100].to_vec();
            let answer = ask(&engine, INSERT, &[("content-encoding", name)], body).await;
            if keep == 100 {
                assert_eq!(answer.status(), 200, "{name}: {}", text(&answer));
                expected += 50_000;
            } else {
                assert_ne!(answer.status(), 200, "{name} cut to {keep} %");
            }
            assert_eq!(count(&client, "SELECT count() FROM n").await, expected, "{name} cut to {keep} %");
        }
    }
    let unknown = ask(&engine, INSERT, &[("content-encoding", "br")], "x").await;
    assert_eq!((unknown.status().as_u16(), code(&unknown)), (501, "48"));
}

#[tokio::test]
async fn what_came_back_in_native_blocks_goes_in_again() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);
    table(&client).await;

    let select = "?compress=1&query=SELECT%20number%20FROM%20numbers(300000)%20FORMAT%20RowBinary";
    let blocks = ask(&engine, select, &[], "").await.into_body();
    assert!(blocks.len() < 300_000 * 8);
    let insert = INSERT.replace('?', "?decompress=1&");
    let stored = ask(&engine, &insert, &[], blocks.clone()).await;
    assert_eq!(stored.status(), 200, "{}", text(&stored));
    assert_eq!(count(&client, "SELECT sum(n) FROM n").await, 299_999 * 150_000);

    let mut broken = blocks.to_vec();
    *broken.last_mut().unwrap() ^= 1;
    let refused = ask(&engine, &insert, &[], broken).await;
    assert_eq!((refused.status().as_u16(), code(&refused)), (400, "33"), "{}", text(&refused));
    assert_eq!(count(&client, "SELECT count() FROM n").await, 300_000);
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused_and_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = clickhouse_embedded::test_support::test_options(folder.path()).unwrap();
    options.max_body_bytes = 1_000_000;
    let engine = clickhouse_embedded::Engine::open(options).await.unwrap();
    execute(&client(&engine), "CREATE DATABASE t ENGINE = Atomic").await;
    let client = database(&engine);
    table(&client).await;

    let refused = ask(&engine, INSERT, &[], numbers(200_000)).await;

    assert_eq!((refused.status().as_u16(), code(&refused)), (413, "307"), "{}", text(&refused));
    assert_eq!(count(&client, "SELECT count() FROM n").await, 0);
}

#[tokio::test]
async fn views_are_fed_by_the_same_insert() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);
    table(&client).await;
    execute(&client, "CREATE TABLE total (k UInt8, s UInt64) ENGINE = SummingMergeTree ORDER BY k").await;
    execute(
        &client,
        "CREATE MATERIALIZED VIEW feed TO total AS SELECT 1 AS k, sum(n) AS s FROM n GROUP BY k",
    )
    .await;

    ask(&engine, INSERT, &[], numbers(1000)).await;

    assert_eq!(count(&client, "SELECT sum(s) FROM total").await, 499_500);
}
