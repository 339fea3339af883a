use std::path::Path;

use bytes::Bytes;
use clickhouse::Client;
use clickhouse_embedded::{Engine, test_support::test_options};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;

pub async fn open(folder: &Path) -> Engine {
    let engine = Engine::open(test_options(folder).unwrap()).await.unwrap();
    client(&engine).query("CREATE DATABASE IF NOT EXISTS t ENGINE = Atomic").execute().await.unwrap();
    engine
}

pub fn client(engine: &Engine) -> Client {
    let http = legacy::Client::builder(TokioExecutor::new()).build(engine.connector());
    Client::with_http_client(http).with_url("http://engine")
}

pub fn database(engine: &Engine) -> Client {
    client(engine).with_database("t")
}

/// A request as any program would send it.
pub async fn ask(
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

pub fn text(response: &Response<Bytes>) -> &str {
    std::str::from_utf8(response.body()).unwrap()
}

pub fn header<'a>(response: &'a Response<Bytes>, name: &str) -> &'a str {
    response.headers().get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
}
