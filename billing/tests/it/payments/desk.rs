//! The routes behind the web layer, with two platforms and the operator's token.

use std::sync::Arc;

use axum::{Router, body::Body, http::Request};
use billing::payments::Payments;
use http_body_util::BodyExt as _;
use ledger::testing::TestLedger;
use ledger::{Ledger, PlatformRow, SyncMode};
use serde_json::Value;
use tower::ServiceExt as _;
use usage::{ManualClock, PlatformId, SharedClock, Timestamp};
use web::{KeyRing, Readiness, WebOptions, operator_hash};

use super::service::Service;

const OPERATOR: &str = "cm_operator_test";
pub(crate) const NOON: i64 = 1_796_040_000_000_000;

pub(crate) struct Desk {
    router: Router,
    keyring: KeyRing,
    pub(crate) service: Arc<Service>,
    test: TestLedger,
}

impl Desk {
    /// Platforms `acme` and `other` of the service's account, `acme` live. With or without a payment service.
    pub(crate) async fn new(payments: bool) -> Desk {
        let clock: SharedClock = Arc::new(ManualClock::new(Timestamp::from_micros(NOON)));
        let test = ledger::testing::sqlite(Some(Arc::clone(&clock))).await.unwrap();
        let service = Arc::new(Service::new(&["cus_1", "cus_2"]));
        let keyring = KeyRing::new(test.ledger.clone(), Some(operator_hash(OPERATOR)), Arc::clone(&clock));
        keyring.refresh().await.unwrap();
        let payments = payments.then(|| Payments::new(test.ledger.clone(), service.clone()));
        let routes = billing::http::payments_routes(test.ledger.clone(), payments)
            .merge(web::admin::routes(keyring.clone(), clock));
        let router = web::app(routes, keyring.clone(), Readiness::default(), WebOptions::default());
        let desk = Desk { router, keyring, service, test };
        for platform in ["acme", "other"] {
            let body = format!(
                r#"{{"platform_id":"{platform}","livemode":false,"stripe_account":"acct_1","sync_mode":"live"}}"#
            );
            let (status, made) = desk.call("POST", "/v1/platforms", None, &body).await;
            assert_eq!(status, 201, "{made}");
        }
        desk
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.test.ledger
    }

    pub(crate) async fn platform(&self) -> PlatformRow {
        self.ledger().platform_get(&PlatformId::parse("acme").unwrap()).await.unwrap()
    }

    pub(crate) async fn mode(&self, mode: SyncMode) {
        let row = PlatformRow { sync_mode: mode, ..self.platform().await };
        self.ledger().platform_update(&row).await.unwrap();
    }

    /// A key of `acme` with one scope.
    pub(crate) async fn key(&self, scope: &str) -> String {
        let (status, made) =
            self.call("POST", "/v1/keys", Some("acme"), &format!(r#"{{"scopes":["{scope}"]}}"#)).await;
        assert_eq!(status, 201, "{made}");
        self.keyring.refresh().await.unwrap();
        made["key"].as_str().unwrap().to_owned()
    }

    /// As the operator, on a platform.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        platform: Option<&str>,
        body: &str,
    ) -> (u16, Value) {
        let mut request = Request::builder().header("authorization", format!("Bearer {OPERATOR}"));
        if let Some(platform) = platform {
            request = request.header("contextmeter-platform", platform);
        }
        self.send(request, method, path, body).await
    }

    pub(crate) async fn call_as(&self, key: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
        self.send(Request::builder().header("authorization", format!("Bearer {key}")), method, path, body)
            .await
    }

    pub(crate) async fn acme(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        self.call(method, path, Some("acme"), body).await
    }

    async fn send(
        &self,
        request: axum::http::request::Builder,
        method: &str,
        path: &str,
        body: &str,
    ) -> (u16, Value) {
        let request = request.method(method).uri(path).header("content-type", "application/json");
        let response =
            self.router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }
}
