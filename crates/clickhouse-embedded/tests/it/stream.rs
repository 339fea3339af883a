use std::time::Duration;

use crate::support::{ask, count, database, execute, open, text, until_gone, until_running};

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

#[tokio::test]
async fn a_result_of_half_a_gigabyte_passes_through_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);
    let read = async |rows: u64| {
        let sql = format!("SELECT number, repeat('x', 56) FROM numbers({rows})");
        let mut cursor = client.query(&sql).fetch_bytes("RowBinary").unwrap();
        let (mut bytes, mut peak) = (0_u64, 0);
        while let Some(piece) = cursor.next().await.unwrap() {
            bytes += piece.len() as u64;
            peak = peak.max(resident_bytes());
        }
        (bytes, peak)
    };
    read(500_000).await; // warm: caches and threads are there

    let before = resident_bytes();
    let (bytes, peak) = read(8_000_000).await;

    assert_eq!(bytes, 8_000_000 * 65);
    let growth = peak.saturating_sub(before);
    assert!(growth < 150_000_000, "grew by {growth} bytes");
}

#[tokio::test]
async fn an_error_half_way_is_an_error_and_not_a_short_result() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);

    let sql = "SELECT throwIf(number = 3000000, 'half way') AS x FROM numbers(5000000)";
    let mut cursor = client.query(sql).fetch::<u8>().unwrap();
    let mut rows = 0_u64;
    let error = loop {
        match cursor.next().await {
            Ok(Some(_)) => rows += 1,
            Ok(None) => panic!("ended quietly after {rows} rows"),
            Err(error) => break error,
        }
    };

    assert!(error.to_string().contains("half way"), "{error}");
    assert!(rows > 0, "the error was to come after the first rows");
}

#[tokio::test]
async fn a_program_that_knows_no_trailing_exceptions_sees_a_broken_answer() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let http = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
        .build(engine.connector());
    let sql = "SELECT throwIf(number = 3000000, 'half way') FROM numbers(5000000)";
    let request = http::Request::post("http://engine/")
        .body(http_body_util::Full::new(bytes::Bytes::from(sql)))
        .unwrap();
    let response = http.request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(http_body_util::BodyExt::collect(response.into_body()).await.is_err());

    // Asked to wait, the same is a status.
    let answer = ask(&engine, "?wait_end_of_query=1", &[], sql).await;
    assert_eq!(answer.status(), 500, "{}", text(&answer));
}

#[tokio::test]
async fn a_dropped_cursor_ends_its_statement() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);

    let mut cursor = client.query("SELECT number FROM system.numbers").fetch::<u64>().unwrap();
    for expected in 0..1000 {
        assert_eq!(cursor.next().await.unwrap(), Some(expected));
    }
    drop(cursor);

    until_gone(&client, "system.numbers").await;
}

#[tokio::test]
async fn a_statement_that_has_answered_nothing_yet_ends_with_its_client() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);
    execute(&client, "CREATE TABLE n (n UInt64) ENGINE = MergeTree ORDER BY n").await;
    let long = [
        "SELECT /* long */ sum(cityHash64(number)) FROM numbers(1000000000000)",
        "INSERT INTO n SELECT /* long */ cityHash64(number) FROM numbers(1000000000000) WHERE number % 1000000007 = 1",
    ];
    for sql in long {
        let asking = tokio::spawn(client.query(sql).execute());
        until_running(&client, "/* long */").await;
        asking.abort();
        until_gone(&client, "/* long */").await;
    }
}

#[tokio::test]
async fn pieces_of_every_format_join_to_what_one_answer_would_be() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let formats = [
        "TSV",
        "TSVRaw",
        "CSV",
        "JSONEachRow",
        "JSONCompactEachRow",
        "RowBinary",
        "RowBinaryWithNames",
        "RowBinaryWithNamesAndTypes",
        "TSVWithNames",
        "TSVWithNamesAndTypes",
        "CSVWithNames",
        "JSON",
        "JSONCompact",
        "Values",
        "JSONStringsEachRow",
        "LineAsString",
    ];
    for rows in [0, 3, 200_000] {
        for format in formats {
            // One thread: the order of rows is then the same twice.
            let sql = format!(
                "SELECT number AS n, toString(number) AS `a\nb` FROM numbers({rows}) FORMAT {format}"
            );
            let pieces = ask(&engine, "?max_threads=1", &[], sql.clone()).await;
            let whole = ask(&engine, "?max_threads=1&wait_end_of_query=1", &[], sql.clone()).await;
            assert_eq!(pieces.status(), whole.status(), "{sql}: {}", text(&pieces));
            let strip = |body: &[u8]| {
                // JSON tells how long it took.
                let text = String::from_utf8_lossy(body).into_owned();
                text.lines().filter(|line| !line.contains("elapsed")).collect::<Vec<_>>().join("\n")
            };
            if format.starts_with("JSON") {
                assert!(strip(pieces.body()) == strip(whole.body()), "{sql}");
            } else {
                assert!(pieces.body() == whole.body(), "{sql}");
            }
        }
    }
    // Native's blocks may be cut otherwise, so it is read back.
    let client = database(&engine);
    execute(&client, "CREATE TABLE n (n UInt64) ENGINE = MergeTree ORDER BY n").await;
    let native = ask(&engine, "", &[], "SELECT number AS n FROM numbers(200000) FORMAT Native").await;
    let stored =
        ask(&engine, "?database=t&query=INSERT%20INTO%20n%20FORMAT%20Native", &[], native.into_body()).await;
    assert_eq!(stored.status(), 200, "{}", text(&stored));
    assert_eq!(count(&client, "SELECT uniqExact(n) FROM n").await, 200_000);
}

#[tokio::test]
async fn an_answer_is_compressed_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    for sql in [
        "SELECT number FROM numbers(300000)",
        "SELECT number FROM numbers(300000) FORMAT JSON",
        "SELECT 1 WHERE 0",
    ] {
        let plain = ask(&engine, "?max_threads=1&output_format_write_statistics=0", &[], sql).await;
        let packed = ask(
            &engine,
            "?max_threads=1&output_format_write_statistics=0",
            &[("accept-encoding", "gzip, lz4")],
            sql,
        )
        .await;
        assert_eq!(crate::support::header(&packed, "content-encoding"), "lz4");
        let mut read = Vec::new();
        std::io::Read::read_to_end(
            &mut lz4_flex::frame::FrameDecoder::new(packed.body().as_ref()),
            &mut read,
        )
        .unwrap();
        assert!(read == plain.body().as_ref(), "{sql}");
    }
}

#[tokio::test]
async fn idle_cursors_do_not_stop_a_close() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = clickhouse_embedded::test_support::test_options(folder.path()).unwrap();
    options.close_grace = Duration::from_millis(100);
    let engine = clickhouse_embedded::Engine::open(options).await.unwrap();
    let client = crate::support::client(&engine);
    let mut cursors = Vec::new();
    for _ in 0..4 {
        let mut cursor = client.query("SELECT number FROM system.numbers").fetch::<u64>().unwrap();
        cursor.next().await.unwrap();
        cursors.push(cursor);
    }
    let closing = tokio::time::timeout(Duration::from_secs(40), engine.close());
    closing.await.expect("close hangs on an idle cursor").unwrap();
    assert!(client.query("SELECT 1").fetch_one::<u8>().await.is_err());
}
