//! Telling the receivers: signed, at least once, in no promised order.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::clock::rfc3339;
use crate::sandbox::Sandbox;
use crate::state::{Account, Kind, World, text};

const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// One event on its way to one receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) event: String,
    pub(crate) kind: String,
    pub(crate) url: String,
    pub(crate) secret: String,
    pub(crate) body: String,
    pub(crate) attempts: u32,
    pub(crate) state: DeliveryState,
    pub(crate) last: Option<String>,
    #[serde(skip)]
    pub(crate) not_before: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeliveryState {
    Waiting,
    Delivered,
    GivenUp,
}

/// `Stripe-Signature` for a body.
pub(crate) fn signature(secret: &str, at: i64, body: &str) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .map(|mac| mac.chain_update(format!("{at}.{body}").as_bytes()));
    // An HMAC takes a key of any length.
    let digest = mac.map(|mac| hex::encode(mac.finalize().into_bytes())).unwrap_or_default();
    format!("t={at},v1={digest}")
}

/// Puts each account's new events in the queue, once for each receiver and further copies as the settings ask.
pub(crate) fn enqueue(world: &mut World, fixed: Option<&WebhookTarget>) {
    let copies = world.settings.webhook_duplicates.saturating_add(1);
    let mut fresh = Vec::new();
    for account in world.accounts.all() {
        for (kind, id) in std::mem::take(&mut account.outgoing) {
            let Some(event) = account.get(kind, &id) else { continue };
            for (url, secret) in receivers(account, kind, event, fixed) {
                let body = body_of(kind, event).to_string();
                let delivery = Delivery {
                    event: id.clone(),
                    kind: text(event, "type"),
                    url,
                    secret,
                    body,
                    attempts: 0,
                    state: DeliveryState::Waiting,
                    last: None,
                    not_before: None,
                };
                fresh.extend(std::iter::repeat_n(delivery, copies as usize));
            }
        }
    }
    if world.settings.webhook_reorder {
        fresh.reverse();
    }
    world.deliveries.extend(fresh);
    const KEPT_MAX: usize = 10_000;
    while world.deliveries.len() > KEPT_MAX
        && world.deliveries.front().is_some_and(|first| first.state != DeliveryState::Waiting)
    {
        world.deliveries.pop_front();
    }
}

fn receivers(
    account: &Account,
    kind: Kind,
    event: &Value,
    fixed: Option<&WebhookTarget>,
) -> Vec<(String, String)> {
    let name = text(event, "type");
    // Endpoints of the first version take the events that carry their object; thin ones need an event destination, which the fixed target is.
    let wants = |endpoint: &&Value| {
        let enabled = endpoint["enabled_events"].as_array().map(Vec::as_slice).unwrap_or_default();
        kind == Kind::Event
            && endpoint["status"] == "enabled"
            && enabled.iter().any(|enabled| *enabled == name.as_str() || enabled == "*")
    };
    let endpoints = account.rows(Kind::WebhookEndpoint).filter(wants);
    let mut receivers: Vec<_> =
        endpoints.map(|endpoint| (text(endpoint, "url"), text(endpoint, "__secret"))).collect();
    receivers.extend(fixed.map(|target| (target.url.clone(), target.secret.clone())));
    receivers
}

/// A thin event leaves without its data.
fn body_of(kind: Kind, event: &Value) -> Value {
    let mut body = event.clone();
    if kind == Kind::ThinEvent
        && let Some(members) = body.as_object_mut()
    {
        members.remove("data");
        members.remove("reason");
    }
    body
}

/// A receiver that stands outside the API.
#[derive(Clone, Debug)]
pub struct WebhookTarget {
    /// Plain `http://`.
    pub url: String,
    /// `whsec_…`
    pub secret: String,
}

/// Sends what is due until the sandbox is dropped or told to stop.
pub(crate) async fn run(sandbox: Sandbox) {
    let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    loop {
        let wait = match next(&sandbox) {
            Next::Send(index, delivery, at) => {
                let outcome = send(&client, &delivery, at).await;
                settle(&sandbox, index, &delivery, outcome);
                continue;
            }
            Next::Wait(wait) => wait,
        };
        tokio::select! {
            () = sandbox.deliveries_changed() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

enum Next {
    Send(usize, Box<Delivery>, i64),
    Wait(Duration),
}

fn next(sandbox: &Sandbox) -> Next {
    sandbox.with(|world| {
        let now = Instant::now();
        let mut wait = Duration::from_secs(1);
        let waiting = world
            .deliveries
            .iter()
            .enumerate()
            .filter(|(_, delivery)| delivery.state == DeliveryState::Waiting);
        for (index, delivery) in waiting {
            match delivery.not_before.and_then(|at| at.checked_duration_since(now)) {
                Some(left) if !left.is_zero() => wait = wait.min(left),
                _ => return Next::Send(index, Box::new(delivery.clone()), world.clock.now()),
            }
        }
        Next::Wait(wait)
    })
}

async fn send(
    client: &Client<HttpConnector, Full<Bytes>>,
    delivery: &Delivery,
    at: i64,
) -> Result<u16, String> {
    let request = http::Request::post(&delivery.url)
        .header("content-type", "application/json; charset=utf-8")
        .header("user-agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
        .header("stripe-signature", signature(&delivery.secret, at, &delivery.body))
        .body(Full::new(Bytes::from(delivery.body.clone())))
        .map_err(|error| error.to_string())?;
    let exchange = async {
        let answer = client.request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        // The connection is used again only when the body was read.
        answer.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok(status)
    };
    tokio::time::timeout(ANSWER_WITHIN, exchange)
        .await
        .unwrap_or_else(|_| Err("no answer in time".to_owned()))
}

fn settle(sandbox: &Sandbox, index: usize, sent: &Delivery, outcome: Result<u16, String>) {
    sandbox.with(|world| {
        let attempts_max = world.settings.webhook_attempts_max;
        let pause = Duration::from_millis(world.settings.webhook_retry_millis);
        // The queue may have lost its oldest entries meanwhile.
        let at_index = |delivery: &&mut Delivery| delivery.event == sent.event && delivery.url == sent.url;
        let delivery = match world.deliveries.get_mut(index).filter(at_index) {
            Some(_) => world.deliveries.get_mut(index),
            None => world.deliveries.iter_mut().find(|delivery| {
                delivery.event == sent.event
                    && delivery.url == sent.url
                    && delivery.state == DeliveryState::Waiting
            }),
        };
        let Some(delivery) = delivery else { return };
        delivery.attempts += 1;
        let delivered = matches!(outcome, Ok(200..=299));
        delivery.last = Some(outcome.map_or_else(|error| error, |status| status.to_string()));
        if delivered {
            delivery.state = DeliveryState::Delivered;
        } else if delivery.attempts >= attempts_max {
            delivery.state = DeliveryState::GivenUp;
        } else {
            let doubled = 2_u32.saturating_pow(delivery.attempts.saturating_sub(1).min(10));
            delivery.not_before = Instant::now().checked_add(pause.saturating_mul(doubled));
        }
    });
}

/// A report that events taken with 200 were refused after.
pub(crate) fn error_report(
    account: &mut Account,
    meter: &str,
    code: &str,
    message: &str,
    identifier: &str,
    at: i64,
) {
    let id = crate::state::new_id("evt");
    let event = json!({
        "id": id, "object": "v2.core.event", "type": "v1.billing.meter.error_report_triggered", "created": rfc3339(at),
        "livemode": account.livemode, "context": null, "reason": null,
        "data": {
            "developer_message_summary": "There is 1 invalid event",
            "reason": { "error_count": 1, "error_types": [ { "code": code, "error_count": 1,
                "sample_errors": [ { "error_message": message, "request": { "identifier": identifier } } ] } ] },
            "validation_start": rfc3339(at), "validation_end": rfc3339(at.saturating_add(10)),
        },
        "related_object": { "id": meter, "type": "billing.meter", "url": format!("/v1/billing/meters/{meter}") },
    });
    account.emit_thin(event);
}

/// A report that an event named no meter.
pub(crate) fn no_meter_report(account: &mut Account, event_name: &str, identifier: &str, at: i64) {
    let id = crate::state::new_id("evt");
    let event = json!({
        "id": id, "object": "v2.core.event", "type": "v1.billing.meter.no_meter_found", "created": rfc3339(at),
        "livemode": account.livemode, "context": null, "reason": null,
        "data": {
            "developer_message_summary": "There is 1 invalid event",
            "reason": { "error_count": 1, "error_types": [ { "code": "no_meter", "error_count": 1,
                "sample_errors": [ { "error_message": format!("No meter was found matching event_name {event_name}."),
                    "request": { "identifier": identifier } } ] } ] },
            "validation_start": rfc3339(at), "validation_end": rfc3339(at.saturating_add(10)),
        },
    });
    account.emit_thin(event);
}

/// How the queue stands, for tests to wait on.
pub(crate) fn status(deliveries: &VecDeque<Delivery>) -> Value {
    let count = |state: DeliveryState| deliveries.iter().filter(|delivery| delivery.state == state).count();
    let shown: Vec<Value> = deliveries
        .iter()
        .map(|delivery| {
            json!({ "event": delivery.event, "type": delivery.kind, "url": delivery.url, "state": delivery.state,
                "attempts": delivery.attempts, "last": delivery.last })
        })
        .collect();
    json!({ "waiting": count(DeliveryState::Waiting), "delivered": count(DeliveryState::Delivered),
        "given_up": count(DeliveryState::GivenUp), "data": shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_hmac_of_time_and_body() {
        // Computed with `printf '%s' '1700000000.{"a":1}' | openssl dgst -sha256 -hmac whsec_test`.
        let expected = "t=1700000000,v1=38877139021993b830af32feea6e18a8da83eb2f6e49ee50bd9e4cf4ca4d3789";
        assert_eq!(signature("whsec_test", 1_700_000_000, "{\"a\":1}"), expected);
    }
}
