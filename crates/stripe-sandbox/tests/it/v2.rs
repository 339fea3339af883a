use serde_json::{Value, json};

use crate::desk::{DAY, Desk, NOON};

const EVENTS: &str = "/v2/billing/meter_events";

async fn desk() -> (Desk, String, String) {
    let desk = Desk::at_noon();
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    (desk, customer, meter)
}

fn event(customer: &str, identifier: &str, value: &str) -> Value {
    json!({ "event_name": "tokens", "identifier": identifier, "timestamp": "2026-11-30T12:00:00Z",
        "payload": { "stripe_customer_id": customer, "value": value } })
}

#[tokio::test]
async fn each_bad_event_has_its_code() {
    let (desk, customer, _) = desk().await;
    let idle = desk.meter("idle").await;
    desk.post(&format!("/v1/billing/meters/{idle}/deactivate"), "").await.ok();
    let with = |member: &str, value: Value| {
        let mut event = event(&customer, "x", "1");
        event[member] = value;
        event
    };
    let table = [
        ("no_meter", with("event_name", json!("nothing"))),
        ("archived_meter", with("event_name", json!("idle"))),
        ("payload_no_customer_defined", with("payload", json!({ "value": "1" }))),
        ("payload_no_value_defined", with("payload", json!({ "stripe_customer_id": customer }))),
        ("payload_invalid_value", event(&customer, "x", "1e3")),
        ("timestamp_too_far_in_past", with("timestamp", json!("2026-10-01T00:00:00Z"))),
        ("timestamp_in_future", with("timestamp", json!("2026-11-30T13:00:00Z"))),
        ("invalid_timestamp", with("timestamp", json!("yesterday"))),
        ("parameter_unknown", with("color", json!("red"))),
    ];
    for (code, event) in table {
        desk.post_json(EVENTS, &event).await.refused(400, Some(code));
    }
    assert_eq!(desk.taken().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_duplicate_has_a_code_in_the_second_version_only() {
    let (desk, customer, meter) = desk().await;
    let taken = desk.post_json(EVENTS, &event(&customer, "a", "10")).await.ok();
    assert_eq!(taken["timestamp"], "2026-11-30T12:00:00Z");
    let again = desk
        .post_json(EVENTS, &event(&customer, "a", "10"))
        .await
        .refused(400, Some("duplicate_meter_event"));
    assert_eq!(again, "A meter event with a duplicate identifier has already been submitted.");
    desk.event(&customer, "a", "10", NOON).await.refused(400, None);
    assert_eq!(desk.sum(&meter, &customer, NOON, NOON + 60).await, Some(10.0));
    let cancel = json!({ "event_name": "tokens", "type": "cancel", "cancel": { "identifier": "a" } });
    desk.post_json("/v2/billing/meter_event_adjustments", &cancel).await.ok();
    assert_eq!(desk.sum(&meter, &customer, NOON, NOON + 60).await, None);
}

#[tokio::test]
async fn concurrent_calls_are_409() {
    let (desk, customer, _) = desk().await;
    desk.settings(json!({ "meter_event_millis": 300 })).await;
    let (a, b) = (event(&customer, "a", "1"), event(&customer, "b", "1"));
    let (first, second) = tokio::join!(desk.post_json(EVENTS, &a), desk.post_json(EVENTS, &b));
    first.ok();
    second.refused(409, Some("too_many_concurrent_requests"));
}

#[tokio::test]
async fn a_stream_takes_all_and_reports_what_is_wrong() {
    let (desk, customer, meter) = desk().await;
    let session = desk.post_json("/v2/billing/meter_event_session", &json!({})).await.ok();
    assert_eq!(session["expires_at"], "2026-11-30T12:15:00Z");
    let stream = desk.with_key(session["authentication_token"].as_str().unwrap());
    let mut nameless = event(&customer, "c", "1");
    nameless["event_name"] = json!("nothing");
    let events = json!({ "events": [event(&customer, "a", "10"), event("cus_unknown", "b", "1"), nameless, event(&customer, "a", "10")] });
    stream.post_json("/v2/billing/meter_event_stream", &events).await.ok();
    assert_eq!(desk.sum(&meter, &customer, NOON, NOON + 60).await, Some(10.0));
    let thin = desk.get("/_sandbox/thin_events").await.ok();
    let kinds: Vec<&str> =
        thin["data"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["v1.billing.meter.error_report_triggered", "v1.billing.meter.no_meter_found"]);
    for event in thin["data"].as_array().unwrap() {
        desk.get(&format!("/v2/core/events/{}", event["id"].as_str().unwrap())).await.ok();
    }
    let many: Vec<Value> = (0..101).map(|place| event(&customer, &place.to_string(), "1")).collect();
    stream
        .post_json("/v2/billing/meter_event_stream", &json!({ "events": many }))
        .await
        .refused(400, Some("invalid_request"));
    desk.sandbox.set_now(NOON + DAY);
    stream
        .post_json("/v2/billing/meter_event_stream", &events)
        .await
        .refused(401, Some("billing_meter_event_session_expired"));
}
