//! What needs a socket: webhooks, dropped connections, clients that go away.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use stripe_sandbox::{Sandbox, SandboxOptions, Server, WebhookTarget, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::desk::{DAY, Desk, HOUR, NOON, event_form};

const LOOPBACK: &str = "127.0.0.1:0";

/// One raw exchange; none when the connection closed without an answer.
async fn raw(at: SocketAddr, method: &str, path: &str, form: &str) -> Option<String> {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk_test_desk\r\nconnection: close\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    (!answer.is_empty()).then_some(answer)
}

async fn served(options: SandboxOptions) -> (Desk, Server) {
    let sandbox = Sandbox::new(options);
    let server = serve(sandbox.clone(), LOOPBACK.parse().unwrap()).await.unwrap();
    (Desk::of(sandbox), server)
}

fn standing() -> SandboxOptions {
    SandboxOptions { start: Some(NOON), ..SandboxOptions::default() }
}

#[tokio::test]
async fn a_dropped_connection_hides_an_effect_that_happened() {
    let (desk, server) = served(standing()).await;
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    let form = event_form(&customer, "a", "10", NOON);
    for (commit, sum) in [(false, None), (true, Some(10.0))] {
        desk.fault(
            json!({ "route": "POST /v1/billing/meter_events", "kind": "drop_connection", "commit": commit }),
        )
        .await;
        assert_eq!(raw(server.local_addr(), "POST", "/v1/billing/meter_events", &form).await, None);
        assert_eq!(desk.sum(&meter, &customer, NOON, NOON + 60).await, sum);
    }
    let again = raw(server.local_addr(), "POST", "/v1/billing/meter_events", &form).await.unwrap();
    assert!(
        again.starts_with("HTTP/1.1 400") && again.contains("An event already exists with identifier a."),
        "{again}"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn a_client_that_goes_away_frees_its_key_and_its_lock() {
    let (desk, server) = served(standing()).await;
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    desk.fault(json!({ "route": "POST /v1/billing/meter_events", "kind": "delay_ms", "ms": 60_000 })).await;
    let form = event_form(&customer, "a", "10", NOON);
    let exchange = raw(server.local_addr(), "POST", "/v1/billing/meter_events", &form);
    tokio::time::timeout(Duration::from_millis(300), exchange).await.unwrap_err();
    assert_eq!(
        desk.sum(&meter, &customer, NOON, NOON + 60).await,
        Some(10.0),
        "the stalled call had its effect"
    );
    let mut said = desk.event(&customer, "b", "1", NOON).await;
    for _ in 0..200 {
        if said.status == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        said = desk.event(&customer, "b", "1", NOON).await;
    }
    said.ok();
    server.shutdown().await;
}

/// A receiver that hands on what comes and answers as it is told.
struct Receiver {
    url: String,
    inbox: mpsc::UnboundedReceiver<(Option<String>, String)>,
}

async fn receiver(refusals: usize) -> Receiver {
    let (outbox, inbox) = mpsc::unbounded_channel();
    let left = Arc::new(std::sync::atomic::AtomicUsize::new(refusals));
    let take = move |State(()): State<()>, headers: HeaderMap, body: String| {
        let (outbox, left) = (outbox.clone(), left.clone());
        async move {
            let refuse = left
                .fetch_update(
                    std::sync::atomic::Ordering::SeqCst,
                    std::sync::atomic::Ordering::SeqCst,
                    |left| left.checked_sub(1),
                )
                .is_ok();
            if refuse {
                return StatusCode::INTERNAL_SERVER_ERROR;
            }
            let signature = headers.get("stripe-signature").map(|value| value.to_str().unwrap().to_owned());
            outbox.send((signature, body)).unwrap();
            StatusCode::OK
        }
    };
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let url = format!("http://{}/hooks", listener.local_addr().unwrap());
    let router = Router::new().route("/hooks", axum::routing::post(take)).with_state(());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Receiver { url, inbox }
}

impl Receiver {
    async fn next(&mut self, secret: &str) -> Value {
        let (signature, body) = tokio::time::timeout(Duration::from_secs(20), self.inbox.recv())
            .await
            .expect("a delivery")
            .unwrap();
        verify(&signature.expect("a signature"), secret, &body);
        serde_json::from_str(&body).unwrap()
    }
}

fn verify(header: &str, secret: &str, body: &str) {
    let (time, signature) = header.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    let mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap().chain_update(format!("{time}.{body}"));
    assert_eq!(signature, hex::encode(mac.finalize().into_bytes()));
}

#[tokio::test]
async fn events_are_delivered_signed_and_again_until_they_are_taken() {
    let mut receiver = receiver(2).await;
    let webhook = WebhookTarget { url: receiver.url.clone(), secret: "whsec_one".into() };
    let (desk, server) = served(SandboxOptions { webhook: Some(webhook), ..standing() }).await;
    desk.settings(json!({ "webhook_retry_millis": 1 })).await;
    let customer = desk.customer().await;
    let event = receiver.next("whsec_one").await;
    assert_eq!(
        (&event["type"], &event["data"]["object"]["id"]),
        (&json!("customer.created"), &json!(customer))
    );
    let shown = desk.get(&format!("/v1/events/{}", event["id"].as_str().unwrap())).await.ok();
    assert_eq!(shown, event);
    server.shutdown().await;
}

#[tokio::test]
async fn an_endpoint_gets_what_it_named_signed_with_its_own_secret() {
    let mut receiver = receiver(0).await;
    let (desk, server) = served(standing()).await;
    let form = format!("url={}&enabled_events[]=invoice.created&enabled_events[]=invoice.paid", receiver.url);
    let endpoint = desk.post("/v1/webhook_endpoints", &form).await.ok();
    let secret = endpoint["secret"].as_str().unwrap().to_owned();
    let path = format!("/v1/webhook_endpoints/{}", endpoint["id"].as_str().unwrap());
    assert_eq!(desk.get(&path).await.ok().get("secret"), None, "the secret is said once");
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    let price = desk.price(&meter, "1").await;
    desk.subscription(&customer, &price).await;
    desk.sandbox.set_now(NOON + 30 * DAY + HOUR);
    assert_eq!(receiver.next(&secret).await["type"], "invoice.created");
    assert_eq!(receiver.next(&secret).await["type"], "invoice.paid");
    desk.delete(&path).await.ok();
    desk.get(&path).await.refused(404, Some("resource_missing"));
    server.shutdown().await;
}

#[tokio::test]
async fn a_thin_event_carries_no_data() {
    let mut receiver = receiver(0).await;
    let webhook = WebhookTarget { url: receiver.url.clone(), secret: "whsec_one".into() };
    let (desk, server) = served(SandboxOptions { webhook: Some(webhook), ..standing() }).await;
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    desk.fault(json!({ "route": "POST /v1/billing/meter_events", "kind": "accept_then_reject" })).await;
    desk.event(&customer, "a", "1", NOON).await.ok();
    let mut seen = receiver.next("whsec_one").await;
    while seen["object"] != "v2.core.event" {
        seen = receiver.next("whsec_one").await;
    }
    assert_eq!((&seen["related_object"]["id"], seen.get("data")), (&json!(meter), None));
    server.shutdown().await;
}

#[tokio::test]
async fn duplicates_and_another_order_come_when_asked() {
    let mut receiver = receiver(0).await;
    let webhook = WebhookTarget { url: receiver.url.clone(), secret: "whsec_one".into() };
    let (desk, server) = served(SandboxOptions { webhook: Some(webhook), ..standing() }).await;
    desk.settings(json!({ "webhook_duplicates": 1, "webhook_reorder": true })).await;
    // The meter is made so that two events are queued in one step: the period's end and its invoice.
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    let price = desk.price(&meter, "1").await;
    desk.subscription(&customer, &price).await;
    let mut seen = Vec::new();
    for _ in 0..8 {
        seen.push(receiver.next("whsec_one").await["type"].as_str().unwrap().to_owned());
    }
    desk.sandbox.set_now(NOON + 30 * DAY);
    let mut rolled = Vec::new();
    for _ in 0..4 {
        rolled.push(receiver.next("whsec_one").await["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        rolled,
        [
            "invoice.created",
            "invoice.created",
            "customer.subscription.updated",
            "customer.subscription.updated"
        ]
    );
    seen.dedup();
    assert_eq!(seen.len(), 4, "each twice: {seen:?}");
    server.shutdown().await;
}

#[tokio::test]
async fn shutting_down_frees_the_address() {
    let (_, server) = served(standing()).await;
    let at = server.local_addr();
    assert!(raw(at, "GET", "/v1/customers", "").await.unwrap().starts_with("HTTP/1.1 200"));
    server.shutdown().await;
    TcpListener::bind(at).await.unwrap();
}
