//! The web layer through its router.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;
use usage::{ManualClock, SharedClock, Timestamp};
use utoipa_axum::{router::OpenApiRouter, routes};
use web::{Auth, KeyRing, Readiness, StrictJson, WebOptions, codes, operator_hash, scope};

const OPERATOR: &str = "cm_operator_test";

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Echo {
    number: u64,
}

#[utoipa::path(post, path = "/echo", responses((status = 200)))]
async fn echo(Auth(caller, _): Auth<scope::Read>, StrictJson(body): StrictJson<Echo>) -> String {
    format!("{} {}", caller.platform, body.number)
}

#[utoipa::path(get, path = "/panics", responses((status = 200)))]
async fn panics() -> String {
    panic!("the secret cause")
}

#[utoipa::path(get, path = "/hangs", responses((status = 200)))]
async fn hangs() -> String {
    std::future::pending().await
}

struct World {
    router: Router,
    keyring: KeyRing,
    clock: ManualClock,
    test: ledger::testing::TestLedger,
}

impl World {
    async fn new() -> World {
        let clock = ManualClock::new(Timestamp::from_micros(1_796_040_000_000_000));
        let shared: SharedClock = Arc::new(clock.clone());
        let test = ledger::testing::sqlite(Some(Arc::clone(&shared))).await.unwrap();
        let keyring = KeyRing::new(test.ledger.clone(), Some(operator_hash(OPERATOR)), Arc::clone(&shared));
        keyring.refresh().await.unwrap();
        let routes = OpenApiRouter::new()
            .routes(routes!(echo))
            .routes(routes!(panics))
            .routes(routes!(hangs))
            .merge(web::admin::routes(keyring.clone(), shared));
        let options = WebOptions {
            max_body_bytes: 256,
            request_timeout: Duration::from_millis(200),
            ..WebOptions::default()
        };
        let router = web::app(routes, keyring.clone(), Readiness::default(), options);
        World { router, keyring, clock, test }
    }

    async fn call(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response =
            self.router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::String(text)))
    }

    async fn operator(&self, method: Method, path: &str, body: &str) -> (u16, Value) {
        let bearer = format!("Bearer {OPERATOR}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("contextmeter-platform", "reseller"),
            ("content-type", "application/json"),
        ];
        self.call(method, path, &headers, body).await
    }

    /// A platform with a key of the given scope.
    async fn key(&self, scope: &str) -> (String, String) {
        self.operator(Method::POST, "/v1/platforms", r#"{"platform_id":"reseller","livemode":false}"#).await;
        let (status, key) = self
            .operator(Method::POST, "/v1/keys", &format!(r#"{{"scopes":["{scope}"],"label":"t"}}"#))
            .await;
        assert_eq!(status, 201, "{key}");
        (key["key"].as_str().unwrap().to_owned(), key["key_id"].as_str().unwrap().to_owned())
    }

    async fn echo(&self, key: &str, body: &str) -> (u16, Value) {
        let bearer = format!("Bearer {key}");
        self.call(
            Method::POST,
            "/echo",
            &[("authorization", &bearer), ("content-type", "application/json")],
            body,
        )
        .await
    }
}

#[tokio::test]
async fn g10_every_rejection_is_a_problem_with_its_own_code_and_page() {
    let world = World::new().await;
    let (reader, _) = world.key("read").await;
    let (ingest, _) = world.key("ingest").await;
    let reader_bearer = format!("Bearer {reader}");
    let json = ("content-type", "application/json");
    let as_reader = [("authorization", reader_bearer.as_str()), json];
    let operator = format!("Bearer {OPERATOR}");
    let rows = [
        ("no key", world.call(Method::POST, "/echo", &[json], "{}").await, 401, "missing_key"),
        ("unknown key", world.echo("cm_test_0", "{}").await, 401, "unknown_key"),
        ("wrong scope", world.echo(&ingest, "{}").await, 403, "missing_scope"),
        (
            "a key where the operator is needed",
            world.call(Method::GET, "/v1/platforms", &as_reader, "").await,
            403,
            "operator_required",
        ),
        (
            "the operator without platform",
            world.call(Method::POST, "/echo", &[("authorization", &operator), json], "{}").await,
            400,
            "platform_required",
        ),
        ("no JSON", world.echo(&reader, "{").await, 400, "malformed_json"),
        ("two documents", world.echo(&reader, r#"{"number":1}{}"#).await, 400, "malformed_json"),
        ("unknown member", world.echo(&reader, r#"{"number":1,"more":2}"#).await, 422, "invalid_request"),
        ("a float", world.echo(&reader, r#"{"number":1.0}"#).await, 422, "invalid_request"),
        (
            "another media type",
            world
                .call(
                    Method::POST,
                    "/echo",
                    &[("authorization", &reader_bearer), ("content-type", "text/plain")],
                    "{}",
                )
                .await,
            415,
            "unsupported_media_type",
        ),
        ("too large", world.echo(&reader, &" ".repeat(300)).await, 413, "body_too_large"),
        ("no such route", world.call(Method::GET, "/nothing", &[], "").await, 404, "unknown_route"),
        ("wrong method", world.call(Method::GET, "/echo", &[], "").await, 405, "method_not_allowed"),
        ("a panic", world.call(Method::GET, "/panics", &[], "").await, 500, "internal"),
        ("no answer in time", world.call(Method::GET, "/hangs", &[], "").await, 503, "timeout"),
        ("no such page", world.call(Method::GET, "/errors/nothing", &[], "").await, 404, "not_found"),
    ];
    for (what, (status, body), expected, code) in rows {
        assert_eq!((status, body["code"].as_str()), (expected, Some(code)), "{what}: {body}");
        assert!(
            body["retry"].is_string() && body["request_id"].is_string() && body["title"].is_string(),
            "{what}: {body}"
        );
        assert!(
            !body.to_string().contains("secret cause"),
            "{what} tells the client what only the log may know"
        );
        let (status, page) = world.call(Method::GET, body["type"].as_str().unwrap(), &[], "").await;
        assert_eq!(status, 200, "{what}: {page}");
    }
    assert_eq!(world.echo(&reader, r#"{"number":7}"#).await, (200, Value::String("reseller 7".to_owned())));
}

#[tokio::test]
async fn g10_every_code_has_a_page_that_names_it_and_says_whether_a_retry_is_safe() {
    for code in codes::ALL {
        assert!(code.page.contains(&format!("`{}`, status {}", code.code, code.status)), "{}", code.code);
        assert!(code.page.contains("## Is a retry safe?"), "{}", code.code);
    }
}

#[tokio::test]
async fn a_revoked_key_stops_at_once_here_and_a_secret_is_shown_once() {
    let world = World::new().await;
    let (key, id) = world.key("read").await;
    assert!(key.starts_with("cm_test_") && key.len() == "cm_test_".len() + 64);
    assert_eq!(world.echo(&key, r#"{"number":1}"#).await.0, 200);
    let (_, listed) = world.operator(Method::GET, "/v1/keys", "").await;
    assert!(!listed.to_string().contains(&key), "{listed}");
    assert_eq!(world.operator(Method::DELETE, &format!("/v1/keys/{id}"), "").await.0, 200);
    assert_eq!(world.echo(&key, r#"{"number":1}"#).await.0, 401);
}

#[tokio::test]
async fn an_old_snapshot_serves_reports_longer_than_anything_else() {
    let world = World::new().await;
    let (reader, _) = world.key("read").await;
    world.test.ledger.close().await;
    world.clock.advance_micros(60_000_000);
    assert_eq!(world.echo(&reader, r#"{"number":1}"#).await.0, 200, "60 seconds are fresh");
    world.clock.advance_micros(1);
    let (status, body) = world.echo(&reader, r#"{"number":1}"#).await;
    assert_eq!((status, body["code"].as_str()), (503, Some("ledger_unavailable")), "{body}");
    assert!(world.keyring.refresh().await.is_err());
}

#[tokio::test]
async fn the_openapi_document_names_every_route() {
    let world = World::new().await;
    let (status, document) = world.call(Method::GET, "/openapi.json", &[], "").await;
    assert_eq!(status, 200);
    for path in ["/echo", "/v1/platforms", "/v1/keys", "/v1/keys/{key_id}"] {
        assert!(document["paths"][path].is_object(), "{path} in {document}");
    }
}
