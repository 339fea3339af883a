use std::net::SocketAddr;

use bytes::Bytes;
use clickhouse::Client;
use clickhouse_embedded::{EngineError, TcpAccess};
use http_body_util::Full;

use crate::support::{client, count, database, execute, open};

const ANY: &str = "127.0.0.1:0";

fn over_tcp(address: SocketAddr) -> Client {
    Client::default().with_url(format!("http://{address}"))
}

#[tokio::test]
async fn a_password_is_asked_over_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let server = engine.serve_tcp(ANY.parse().unwrap(), TcpAccess::new("reader", "s3cret")).await.unwrap();
    let client = over_tcp(server.local_addr());

    let right = client.clone().with_user("reader").with_password("s3cret");
    assert_eq!(count(&right, "SELECT toUInt64(1)").await, 1);
    execute(&right, "CREATE DATABASE made_over_tcp ENGINE = Atomic").await;
    for (user, password) in [("reader", "s3cre"), ("reader", ""), ("default", "s3cret"), ("", "")] {
        let wrong = client.clone().with_user(user).with_password(password);
        let error = wrong.query("SELECT 1").fetch_one::<u8>().await.unwrap_err();
        assert!(error.to_string().contains("Code: 516."), "{user}:{password}: {error}");
    }
    let error = client.query("SELECT 1").fetch_one::<u8>().await.unwrap_err();
    assert!(error.to_string().contains("Code: 516."), "{error}");

    let address = server.local_addr();
    server.shutdown().await;
    assert!(right.query("SELECT 1").fetch_one::<u8>().await.is_err());
    let again = engine.serve_tcp(address, TcpAccess::new("reader", "s3cret")).await.unwrap();
    again.shutdown().await;
}

#[tokio::test]
async fn basic_authorization_and_the_address_carry_the_password_too() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let server = engine.serve_tcp(ANY.parse().unwrap(), TcpAccess::new("u", "p")).await.unwrap();
    let http = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    let status = async |path: &str, authorization: &str| {
        let request = http::Request::post(format!("http://{}/{path}", server.local_addr()))
            .header("authorization", authorization)
            .body(Full::new(Bytes::from("SELECT 1")))
            .unwrap();
        http.request(request).await.unwrap().status().as_u16()
    };
    assert_eq!(status("", "Basic dTpw").await, 200); // u:p
    assert_eq!(status("", "Basic dTpx").await, 403); // u:q
    assert_eq!(status("?user=u&password=p", "").await, 200);
    assert_eq!(status("?user=u&password=q", "").await, 403);
}

#[tokio::test]
async fn read_only_access_reads_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    execute(&database(&engine), "CREATE TABLE n (n UInt64) ENGINE = MergeTree ORDER BY n").await;
    execute(&database(&engine), "INSERT INTO n VALUES (1)").await;
    let access = TcpAccess::new("reader", "s3cret").read_only();
    let server = engine.serve_tcp(ANY.parse().unwrap(), access).await.unwrap();
    let reader = over_tcp(server.local_addr()).with_user("reader").with_password("s3cret").with_database("t");

    for sql in [
        "SELECT n FROM n",
        "WITH 1 AS a SELECT a + n FROM n",
        "SHOW TABLES",
        "DESCRIBE n",
        "EXISTS n;;",
        "SELECT n FROM n;;",
        "EXPLAIN SELECT 1",
    ] {
        reader.query(sql).execute().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    reader.query("SELECT 1").with_setting("max_threads", "1").execute().await.unwrap();
    let refused = [
        "INSERT INTO n VALUES (2)",
        "INSERT INTO n SELECT 2",
        "CREATE TABLE m (n UInt64) ENGINE = Memory",
        "CREATE TEMPORARY TABLE m (n UInt64)",
        "DROP TABLE n",
        "TRUNCATE TABLE n",
        "ALTER TABLE n DELETE WHERE 1",
        "OPTIMIZE TABLE n",
        "SET max_threads = 1",
        "SYSTEM FLUSH LOGS",
        "KILL QUERY WHERE 1",
        "SELECT 1 SETTINGS readonly = 0",
        "SELECT * FROM file('/etc/hostname', 'LineAsString')",
        "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
        "SELECT 1; DROP TABLE n",
        "EXPLAIN INSERT INTO n VALUES (2)",
    ];
    for sql in refused {
        let answer = reader.query(sql).execute().await;
        assert!(answer.is_err() || sql.starts_with("EXPLAIN"), "{sql} was let through");
    }
    assert!(reader.query("DROP TABLE n").with_setting("readonly", "0").execute().await.is_err());
    assert_eq!(count(&database(&engine), "SELECT sum(n) FROM n").await, 1);
}

#[tokio::test]
async fn an_open_door_stands_on_loopback_only() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let outside = "0.0.0.0:0".parse().unwrap();
    let refused = engine.serve_tcp(outside, TcpAccess::open_on_loopback()).await;
    assert!(matches!(refused, Err(EngineError::OpenToTheNetwork { .. })));
    let refused = engine.serve_tcp(ANY.parse().unwrap(), TcpAccess::new("default", "")).await;
    assert!(matches!(refused, Err(EngineError::EmptyPassword)));
    let server = engine.serve_tcp(ANY.parse().unwrap(), TcpAccess::open_on_loopback()).await.unwrap();
    assert_eq!(count(&over_tcp(server.local_addr()), "SELECT toUInt64(1)").await, 1);
    assert_eq!(count(&client(&engine), "SELECT toUInt64(1)").await, 1);
}
