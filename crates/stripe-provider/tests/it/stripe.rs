//! A sandbox on a loopback port, set up through its public routes as an operator would, and judged by its journal.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use stripe_provider::{StripeOptions, StripeProvider};
use stripe_sandbox::{Sandbox, SandboxOptions, Server};

/// 2026-11-30T00:00:00Z.
pub(crate) const START: i64 = 1_796_083_200;
pub(crate) const DAY: i64 = 86_400;
pub(crate) const KEY: &str = "sk_test_contextmeter";

pub(crate) struct Stripe {
    pub(crate) sandbox: Sandbox,
    pub(crate) base: String,
    http: reqwest::Client,
    _server: Server,
}

impl Stripe {
    pub(crate) async fn start() -> Self {
        let sandbox = Sandbox::new(SandboxOptions { start: Some(START), ..SandboxOptions::default() });
        let server =
            stripe_sandbox::serve(sandbox.clone(), SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let base = format!("http://{}", server.local_addr());
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { sandbox, base, http, _server: server }
    }

    pub(crate) fn options(&self) -> StripeOptions {
        StripeOptions {
            api_base: self.base.clone(),
            events_per_second: Some(10_000),
            ..StripeOptions::new(KEY)
        }
    }

    pub(crate) async fn provider(&self) -> StripeProvider {
        StripeProvider::connect(self.options()).await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, form: &[(&str, &str)]) -> Value {
        let body = serde_urlencoded::to_string(form).unwrap();
        let answer = self
            .http
            .post(format!("{}{path}", self.base))
            .bearer_auth(KEY)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body)
            .send()
            .await
            .unwrap();
        let status = answer.status();
        let value: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        assert!(status.is_success(), "{path}: {value}");
        value
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.http.get(format!("{}{path}", self.base)).bearer_auth(KEY).send().await.unwrap();
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }

    async fn control(&self, path: &str, body: &Value) -> Value {
        let answer = self
            .http
            .post(format!("{}/_sandbox{path}", self.base))
            .body(body.to_string())
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success(), "{path} {body}");
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }

    pub(crate) async fn fault(&self, fault: Value) {
        self.control("/faults", &fault).await;
    }

    pub(crate) async fn clear_faults(&self) {
        let answer = self.http.delete(format!("{}/_sandbox/faults", self.base)).send().await.unwrap();
        assert!(answer.status().is_success());
    }

    /// The next call that sends usage meets this.
    pub(crate) async fn fault_on_send(&self, kind: &str) {
        self.fault(json!({ "route": "POST /v1/billing/meter_events", "kind": kind })).await;
    }

    pub(crate) async fn settings(&self, change: Value) {
        self.control("/settings", &change).await;
    }

    pub(crate) fn set_now(&self, seconds: i64) {
        self.sandbox.set_now(seconds);
    }

    /// Calls that came, by method and path.
    pub(crate) async fn calls(&self, method: &str, path: &str) -> Vec<Value> {
        let journal = self.get(&format!("/_sandbox/journal?method={method}&path={path}")).await;
        journal["data"].as_array().unwrap().clone()
    }

    pub(crate) async fn sends(&self) -> Vec<Value> {
        self.calls("POST", "/v1/billing/meter_events").await
    }

    /// Events as they count.
    pub(crate) async fn events(&self) -> Vec<Value> {
        self.get("/_sandbox/meter_events").await["data"].as_array().unwrap().clone()
    }

    pub(crate) async fn customer(&self) -> String {
        self.post("/v1/customers", &[("name", "Acme")]).await["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn meter(&self, event_name: &str) -> String {
        let form = [
            ("display_name", "Context tokens"),
            ("event_name", event_name),
            ("default_aggregation[formula]", "sum"),
        ];
        self.post("/v1/billing/meters", &form).await["id"].as_str().unwrap().to_owned()
    }

    /// A tenth of a cent a token, metered, by the day.
    pub(crate) async fn price(&self, meter: &str) -> String {
        let product =
            self.post("/v1/products", &[("name", "Context")]).await["id"].as_str().unwrap().to_owned();
        let form = [
            ("currency", "usd"),
            ("product", &product),
            ("unit_amount_decimal", "0.1"),
            ("recurring[interval]", "day"),
            ("recurring[usage_type]", "metered"),
            ("recurring[meter]", meter),
        ];
        self.post("/v1/prices", &form).await["id"].as_str().unwrap().to_owned()
    }

    /// From now on, by the day.
    pub(crate) async fn subscribe(&self, customer: &str, price: &str) -> String {
        let form = [("customer", customer), ("items[0][price]", price)];
        self.post("/v1/subscriptions", &form).await["id"].as_str().unwrap().to_owned()
    }
}
