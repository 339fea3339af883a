//! A client of the sandbox in process, and the few objects that every test needs.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use serde_json::{Value, json};
use stripe_sandbox::{Sandbox, SandboxOptions};
use tower::ServiceExt as _;

use crate::schema;

/// 2026-11-30T12:00:00Z
pub(crate) const NOON: i64 = 1_796_040_000;
pub(crate) const HOUR: i64 = 3_600;
pub(crate) const DAY: i64 = 86_400;

/// One API key at one sandbox whose clock stands.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) sandbox: Sandbox,
    router: Router,
    key: String,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Desk {
    pub(crate) fn at_noon() -> Self {
        Self::of(Sandbox::new(SandboxOptions { start: Some(NOON), ..SandboxOptions::default() }))
    }

    pub(crate) fn of(sandbox: Sandbox) -> Self {
        Self { router: sandbox.router(), sandbox, key: "sk_test_desk".to_owned() }
    }

    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    pub(crate) async fn post(&self, path: &str, form: &str) -> Said {
        self.send("POST", path, form, &[]).await
    }

    pub(crate) async fn post_keyed(&self, path: &str, form: &str, key: &str) -> Said {
        self.send("POST", path, form, &[("idempotency-key", key)]).await
    }

    pub(crate) async fn get(&self, path: &str) -> Said {
        self.send("GET", path, "", &[]).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Said {
        self.send("DELETE", path, "", &[]).await
    }

    pub(crate) async fn post_json(&self, path: &str, body: &Value) -> Said {
        self.send("POST", path, &body.to_string(), &[("content-type", "application/json")]).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &str, headers: &[(&str, &str)]) -> Said {
        let mut request =
            Request::builder().method(method).uri(path).header("stripe-version", "2026-10-28.endive");
        if !self.key.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.key));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
        let json = serde_json::from_str::<Value>(&text);
        let status = parts.status.as_u16();
        if let Ok(json) = &json {
            schema::check(method, path.split('?').next().unwrap(), status, json);
            if !path.starts_with("/_sandbox") {
                assert!(parts.headers["request-id"].to_str().unwrap().starts_with("req_"));
                assert_eq!(parts.headers["stripe-version"], "2026-10-28.endive");
            }
        }
        Said { status, headers: parts.headers, text, body: json.unwrap_or_default() }
    }

    /// Puts a fault in place.
    pub(crate) async fn fault(&self, fault: Value) {
        self.post_json("/_sandbox/faults", &fault).await.ok();
    }

    pub(crate) async fn settings(&self, settings: Value) {
        self.post_json("/_sandbox/settings", &settings).await.ok();
    }

    /// Each event that the sandbox took, as it is counted.
    pub(crate) async fn taken(&self) -> Vec<Value> {
        self.get("/_sandbox/meter_events").await.ok()["data"].as_array().unwrap().clone()
    }

    pub(crate) async fn customer(&self) -> String {
        id(&self.post("/v1/customers", "name=Acme").await.ok())
    }

    pub(crate) async fn meter(&self, event_name: &str) -> String {
        let form = format!("display_name=Tokens&event_name={event_name}&default_aggregation[formula]=sum");
        id(&self.post("/v1/billing/meters", &form).await.ok())
    }

    pub(crate) async fn price(&self, meter: &str, unit_amount_decimal: &str) -> String {
        let form = format!(
            "currency=usd&unit_amount_decimal={unit_amount_decimal}&product_data[name]=Tokens&recurring[interval]=month\
             &recurring[usage_type]=metered&recurring[meter]={meter}"
        );
        id(&self.post("/v1/prices", &form).await.ok())
    }

    pub(crate) async fn subscription(&self, customer: &str, price: &str) -> Value {
        self.post("/v1/subscriptions", &format!("customer={customer}&items[0][price]={price}")).await.ok()
    }

    pub(crate) async fn event(&self, customer: &str, identifier: &str, value: &str, timestamp: i64) -> Said {
        self.post("/v1/billing/meter_events", &event_form(customer, identifier, value, timestamp)).await
    }

    /// The sum of one customer and meter in `[start, end)`; none where there is no summary.
    pub(crate) async fn sum(&self, meter: &str, customer: &str, start: i64, end: i64) -> Option<f64> {
        let path = format!(
            "/v1/billing/meters/{meter}/event_summaries?customer={customer}&start_time={start}&end_time={end}"
        );
        self.get(&path).await.ok()["data"][0]["aggregated_value"].as_f64()
    }

    pub(crate) async fn only_invoice(&self, customer: &str) -> Value {
        let invoices = self.get(&format!("/v1/invoices?customer={customer}")).await.ok();
        let invoices = invoices["data"].as_array().unwrap();
        assert_eq!(invoices.len(), 1, "{invoices:#?}");
        invoices[0].clone()
    }
}

/// Events of the meter `tokens`.
pub(crate) fn event_form(customer: &str, identifier: &str, value: &str, timestamp: i64) -> String {
    format!(
        "event_name=tokens&identifier={identifier}&timestamp={timestamp}&payload[stripe_customer_id]={customer}&payload[value]={value}"
    )
}

pub(crate) fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}

impl Said {
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text);
        self.body.clone()
    }

    /// The message of a refusal with this status and code.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: Option<&str>) -> String {
        let error = &self.body["error"];
        assert_eq!((self.status, error["code"].as_str()), (status, code), "{}", self.text);
        error["message"].as_str().unwrap().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn replayed(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }
}

pub(crate) fn fault(route: &str, kind: &str) -> Value {
    json!({ "route": route, "kind": kind })
}
