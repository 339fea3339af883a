//! The routes behind keys of two platforms, over each ledger.

use std::sync::Arc;

use axum::{Router, body::Body};
use delegation::Delegation;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use ledger::testing::TestLedger;
use serde_json::Value;
use tower::ServiceExt as _;
use usage::{ManualClock, SharedClock, Timestamp};
use utoipa_axum::router::OpenApiRouter;
use web::{KeyRing, Readiness, WebOptions, operator_hash};

const OPERATOR: &str = "cm_operator_test";

pub(crate) struct World {
    pub(crate) name: &'static str,
    pub(crate) clock: ManualClock,
    pub(crate) test: TestLedger,
    shared: SharedClock,
    keyring: KeyRing,
    router: Router,
}

/// An answer: status, the header that says whether it is a repeat, body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) replayed: Option<String>,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn code(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or(""))
    }
}

impl World {
    /// A world on each ledger, with the platforms `reseller` and `other`.
    pub(crate) async fn each() -> Vec<World> {
        let clock = ManualClock::new(Timestamp::from_micros(1_796_040_000_000_000));
        let shared: SharedClock = Arc::new(clock.clone());
        let mut worlds = Vec::new();
        for test in ledger::testing::ledgers(Some(Arc::clone(&shared))).await.unwrap() {
            let keyring =
                KeyRing::new(test.ledger.clone(), Some(operator_hash(OPERATOR)), Arc::clone(&shared));
            keyring.refresh().await.unwrap();
            let router = router(&test, &keyring, &shared);
            let (name, clock, shared) = (test.name, clock.clone(), Arc::clone(&shared));
            let world = World { name, clock, test, shared, keyring, router };
            for platform in ["reseller", "other"] {
                let body = format!(r#"{{"platform_id":"{platform}","livemode":false}}"#);
                let made = world.call(platform, Method::POST, "/v1/platforms", &body).await;
                assert_eq!(made.status, 201, "{made:?}");
            }
            worlds.push(world);
        }
        worlds
    }

    /// The same ledger behind another process: nothing is shared with the first.
    pub(crate) fn second_router(&self) -> Router {
        router(&self.test, &self.keyring, &self.shared)
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("reseller", Method::POST, path, &body.to_string()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("reseller", Method::GET, path, "").await
    }

    /// As the operator for a platform.
    pub(crate) async fn call(&self, platform: &str, method: Method, path: &str, body: &str) -> Answer {
        send(self.router.clone(), OPERATOR, platform, method, path, body).await
    }

    /// A key of the platform `reseller` with one scope.
    pub(crate) async fn key(&self, scope: &str) -> String {
        let made = self.post("/v1/keys", serde_json::json!({"scopes": [scope], "label": scope})).await;
        made.body["key"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn call_with(&self, key: &str, method: Method, path: &str, body: &str) -> Answer {
        send(self.router.clone(), key, "reseller", method, path, body).await
    }
}

pub(crate) async fn post_to(router: Router, path: &str, body: Value) -> Answer {
    send(router, OPERATOR, "reseller", Method::POST, path, &body.to_string()).await
}

fn router(test: &TestLedger, keyring: &KeyRing, clock: &SharedClock) -> Router {
    let delegation = Delegation::new(test.ledger.clone(), Arc::clone(clock));
    let routes = OpenApiRouter::new()
        .merge(delegation.routes())
        .merge(web::admin::routes(keyring.clone(), Arc::clone(clock)));
    web::app(routes, keyring.clone(), Readiness::default(), WebOptions::default())
}

async fn send(router: Router, key: &str, platform: &str, method: Method, path: &str, body: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {key}"))
        .header("contextmeter-platform", platform)
        .header("content-type", "application/json")
        .body(Body::from(body.to_owned()))
        .unwrap();
    let response = router.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let replayed = response.headers().get("contextmeter-replayed").map(|v| v.to_str().unwrap().to_owned());
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    Answer { status, replayed, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) }
}
