use crate::support::{ask, code, count, database, execute, header, open, text};

#[tokio::test]
async fn errors_carry_the_engines_code_and_a_status() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let cases = [
        ("?query=SELECT%20*%20FROM%20t.absent", "", 404, "60"),
        ("?database=absent&query=SELECT%201", "", 404, "81"),
        ("?query=SELECT%201&no_such_setting=1", "", 404, "115"),
        ("?query=SELECT%201&no%20such=1", "", 404, "115"),
        ("?query=SELECT%201&max_threads=many", "", 400, "27"),
        ("", "SELECT", 400, "62"),
        ("", "  -- nothing", 400, "62"),
        ("", "SELECT 1; SELECT 2", 400, "62"),
        ("", "SELECT 1 INTO OUTFILE '/tmp/x'", 501, "48"),
        ("?role=reader", "SELECT 1", 404, "511"),
        ("?query=SELECT%20throwIf(1)", "", 500, "395"),
        (
            "?query=SELECT%20sleepEachRow(1)%20FROM%20numbers(30)%20SETTINGS%20max_block_size%3D1&max_execution_time=1",
            "",
            408,
            "159",
        ),
    ];
    for (address, body, status, expected) in cases {
        let refused = ask(&engine, address, &[], body).await;
        assert_eq!(
            (refused.status().as_u16(), code(&refused)),
            (status, expected),
            "{address} {body}: {}",
            text(&refused)
        );
        assert!(
            text(&refused).starts_with(&format!("Code: {expected}. DB::Exception: ")),
            "{}",
            text(&refused)
        );
    }
}

#[tokio::test]
async fn the_official_client_reads_errors_and_binds_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let client = database(&engine);

    let error = client.query("SELECT 1 FROM absent").fetch_one::<u8>().await.unwrap_err();
    assert!(error.to_string().contains("Code: 60."), "{error}");
    let error =
        client.query("SELECT 1").with_setting("no_such_setting", "1").fetch_one::<u8>().await.unwrap_err();
    assert!(error.to_string().contains("Code: 115."), "{error}");

    let sql = "SELECT concat({text: String}, '|', toString({number: UInt64}), '|', toString(length({list: Array(String)})))";
    let query = client.query(sql).param("text", "it's \\ \n \0 ü").param("number", u64::MAX);
    let read = query.param("list", vec!["a'b", "c\\d"]).fetch_one::<String>().await.unwrap();
    assert_eq!(read, format!("it's \\ \n \0 ü|{}|2", u64::MAX));
    let read = client.query("SELECT ?").bind("'; DROP TABLE x").fetch_one::<String>().await.unwrap();
    assert_eq!(read, "'; DROP TABLE x");
    let read = client.query("SELECT ';;';;\n;").fetch_one::<String>().await.unwrap();
    assert_eq!(read, ";;");
}

#[tokio::test]
async fn parameters_and_settings_come_in_the_address_too() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;

    let sql = "SELECT {a: UInt8} + 1, getSetting('max_threads'), currentDatabase() FORMAT CSV";
    let answer = ask(&engine, "?param_a=41&max_threads=3&database=t", &[], sql).await;
    assert_eq!(text(&answer), "42,3,\"t\"\n");
    assert_eq!(header(&answer, "x-clickhouse-format"), "CSV");

    // A setting is its request's alone.
    let answer =
        ask(&engine, "", &[], "SELECT changed FROM system.settings WHERE name = 'max_threads'").await;
    assert_eq!(text(&answer), "0\n");
}

#[tokio::test]
async fn every_request_is_told_what_it_counted_and_its_query_id() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;

    let answer =
        ask(&engine, "?query_id=mine&wait_end_of_query=1", &[], "SELECT number FROM numbers(10)").await;

    assert_eq!(header(&answer, "x-clickhouse-query-id"), "mine");
    let summary: serde_json::Value = serde_json::from_str(header(&answer, "x-clickhouse-summary")).unwrap();
    assert_eq!((&summary["read_rows"], &summary["result_rows"]), (&"10".into(), &"10".into()));
}

#[tokio::test]
async fn a_get_reads_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let http = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
        .build::<_, http_body_util::Empty<bytes::Bytes>>(engine.connector());
    let get = async |address: &str| {
        let uri = format!("http://engine/{address}").parse().unwrap();
        http.get(uri).await.unwrap().status().as_u16()
    };
    assert_eq!(get("ping").await, 200);
    assert_eq!(get("").await, 200);
    assert_eq!(get("absent").await, 404);
    assert_eq!(get("?query=SELECT%201&max_threads=2").await, 200);
    assert_eq!(get("?query=CREATE%20DATABASE%20x").await, 403);
}

#[tokio::test]
async fn the_settings_that_make_money_tables_durable_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = clickhouse_embedded::test_support::test_options(folder.path()).unwrap();
    options.fsync = true;
    let engine = clickhouse_embedded::Engine::open(options).await.unwrap();
    let client = crate::support::client(&engine);
    execute(&client, "CREATE DATABASE t ENGINE = Atomic").await;
    let client = database(&engine);

    let names = "name IN ('fsync_after_insert', 'fsync_part_directory', 'min_rows_to_fsync_after_merge')";
    let sql = format!("SELECT count() FROM system.merge_tree_settings WHERE {names} AND value = '1'");
    assert_eq!(count(&client, &sql).await, 3);
    let table = "CREATE TABLE m (n UInt64) ENGINE = ReplacingMergeTree ORDER BY n SETTINGS \
                 fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1";
    execute(&client, table).await;
    execute(&client, "INSERT INTO m SELECT number FROM numbers(10)").await;
    execute(&client, "OPTIMIZE TABLE m FINAL").await;
    assert_eq!(count(&client, "SELECT count() FROM m").await, 10);
}
