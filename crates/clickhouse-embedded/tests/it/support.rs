use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use clickhouse::Client;
use clickhouse_embedded::Engine;
use clickhouse_embedded::test_support::test_options;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;

pub(crate) async fn open(folder: &Path) -> Engine {
    let engine = Engine::open(test_options(folder).unwrap()).await.unwrap();
    execute(&client(&engine), "CREATE DATABASE IF NOT EXISTS t ENGINE = Atomic").await;
    engine
}

pub(crate) fn client(engine: &Engine) -> Client {
    let http = legacy::Client::builder(TokioExecutor::new()).build(engine.connector());
    Client::with_http_client(http).with_url("http://engine")
}

pub(crate) fn database(engine: &Engine) -> Client {
    client(engine).with_database("t")
}

pub(crate) async fn execute(client: &Client, sql: &str) {
    client.query(sql).execute().await.unwrap();
}

pub(crate) async fn count(client: &Client, sql: &str) -> u64 {
    client.query(sql).fetch_one::<u64>().await.unwrap()
}

/// A request as any program would send it.
pub(crate) async fn ask(
    engine: &Engine,
    address: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Response<Bytes> {
    let http = legacy::Client::builder(TokioExecutor::new()).build(engine.connector());
    let mut request = Request::post(format!("http://engine/{address}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = http.request(request.body(Full::new(body.into())).unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    Response::from_parts(head, body.collect().await.unwrap().to_bytes())
}

pub(crate) fn text(response: &Response<Bytes>) -> &str {
    std::str::from_utf8(response.body()).unwrap()
}

pub(crate) fn header<'a>(response: &'a Response<Bytes>, name: &str) -> &'a str {
    response.headers().get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
}

pub(crate) fn code(response: &Response<Bytes>) -> &str {
    header(response, "x-clickhouse-exception-code")
}

/// Waits until no other statement contains `word`; an answer that never comes is a failure.
pub(crate) async fn until_gone(client: &Client, word: &str) {
    let sql =
        "SELECT count() FROM system.processes WHERE query LIKE ? AND query NOT LIKE '%system.processes%'";
    for _ in 0..500 {
        let left: u64 = client.query(sql).bind(format!("%{word}%")).fetch_one().await.unwrap();
        if left == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("a statement with {word} still runs");
}

pub(crate) async fn until_running(client: &Client, word: &str) {
    let sql =
        "SELECT count() FROM system.processes WHERE query LIKE ? AND query NOT LIKE '%system.processes%'";
    for _ in 0..500 {
        let left: u64 = client.query(sql).bind(format!("%{word}%")).fetch_one().await.unwrap();
        if left > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no statement with {word} runs");
}
