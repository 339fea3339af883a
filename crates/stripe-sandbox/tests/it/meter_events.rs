//! What is taken as usage and what is not, row by row.

use serde_json::json;

use crate::desk::{DAY, Desk, HOUR, NOON, event_form};

const EVENTS: &str = "/v1/billing/meter_events";

async fn desk() -> (Desk, String, String) {
    let desk = Desk::at_noon();
    let customer = desk.customer().await;
    let meter = desk.meter("tokens").await;
    (desk, customer, meter)
}

#[tokio::test]
async fn each_bad_event_is_refused_by_its_rule_and_leaves_no_usage() {
    let (desk, customer, _) = desk().await;
    let gone = desk.customer().await;
    desk.delete(&format!("/v1/customers/{gone}")).await.ok();
    let idle = desk.meter("idle").await;
    desk.post(&format!("/v1/billing/meters/{idle}/deactivate"), "").await.ok();
    let form = |customer: &str, value: &str, at: i64| event_form(customer, "x", value, at);
    let table: Vec<(&str, String, Option<&str>, String)> = vec![
        (
            "35 days and a second old",
            form(&customer, "1", NOON - 35 * DAY - 1),
            None,
            format!(
                "The event timestamp cannot be more than 35 days in past. Expected a timestamp greater than or equal to {}.",
                NOON - 35 * DAY
            ),
        ),
        (
            "more than five minutes ahead",
            form(&customer, "1", NOON + 301),
            None,
            format!(
                "The event timestamp cannot be more than 5 minutes in the future. Expected a timestamp less than or equal to {}.",
                NOON + 300
            ),
        ),
        (
            "no such meter",
            form(&customer, "1", NOON).replace("tokens", "nothing"),
            None,
            "No active meter found for event name \"nothing\".".into(),
        ),
        (
            "a meter at rest",
            form(&customer, "1", NOON).replace("tokens", "idle"),
            None,
            "No active meter found for event name \"idle\".".into(),
        ),
        (
            "no customer in the payload",
            "event_name=tokens&payload[value]=1".into(),
            None,
            "Customer mapping key stripe_customer_id not found in payload.".into(),
        ),
        (
            "an unknown customer",
            form("cus_unknown", "1", NOON),
            Some("resource_missing"),
            "No such customer: 'cus_unknown'".into(),
        ),
        (
            "a deleted customer",
            form(&gone, "1", NOON),
            Some("resource_missing"),
            format!("No such customer: '{gone}'"),
        ),
        (
            "no value in the payload",
            format!("event_name=tokens&payload[stripe_customer_id]={customer}"),
            None,
            "Value key value not found in payload.".into(),
        ),
        (
            "sixteen digits",
            form(&customer, "1000000000000000", NOON),
            None,
            "The value in the event payload can have at most 15 digits. Received 1000000000000000.".into(),
        ),
        (
            "sixteen digits with a point",
            form(&customer, "1.000000000000001", NOON),
            None,
            "The value in the event payload can have at most 15 digits. Received 1.000000000000001.".into(),
        ),
        (
            "an unknown parameter",
            format!("{}&color=red", form(&customer, "1", NOON)),
            Some("parameter_unknown"),
            "Received unknown parameter: color".into(),
        ),
        (
            "no event name",
            "payload[value]=1".into(),
            Some("parameter_missing"),
            "Missing required param: event_name.".into(),
        ),
        (
            "no payload",
            "event_name=tokens".into(),
            Some("parameter_missing"),
            "Missing required param: payload.".into(),
        ),
        (
            "a time that is no number",
            format!(
                "event_name=tokens&payload[stripe_customer_id]={customer}&payload[value]=1&timestamp=now"
            ),
            Some("parameter_invalid_integer"),
            "Invalid integer: now".into(),
        ),
        (
            "an identifier of 101 characters",
            event_form(&customer, &"i".repeat(101), "1", NOON),
            None,
            "Invalid string: identifier must be at most 100 characters".into(),
        ),
    ];
    for (name, form, code, message) in table {
        assert_eq!(desk.post(EVENTS, &form).await.refused(400, code), message, "{name}");
    }
    for value in ["NaN", "1e3", "", "ten", "0x10", "1,5"] {
        desk.post(EVENTS, &form(&customer, value, NOON)).await.refused(400, None);
    }
    assert_eq!(desk.taken().await, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn the_edges_of_the_time_window_are_inside() {
    let (desk, customer, _) = desk().await;
    desk.event(&customer, "old", "1", NOON - 35 * DAY).await.ok();
    desk.event(&customer, "ahead", "1", NOON + 300).await.ok();
}

#[tokio::test]
async fn fifteen_digits_a_decimal_zero_and_a_negative_count() {
    let (desk, customer, meter) = desk().await;
    for (place, value) in ["999999999999999", "0.5", "0", "-10"].into_iter().enumerate() {
        desk.event(&customer, &place.to_string(), value, NOON).await.ok();
    }
    let sum = desk.sum(&meter, &customer, NOON, NOON + 60).await;
    assert_eq!(sum, Some(999_999_999_999_989.5));
    desk.settings(json!({ "integer_only": true })).await;
    desk.event(&customer, "half", "0.5", NOON).await.refused(400, None);
    desk.event(&customer, "one", "1", NOON).await.ok();
}

#[tokio::test]
async fn an_identifier_counts_once_for_a_day_and_then_again() {
    let (desk, customer, meter) = desk().await;
    let other = desk.customer().await;
    desk.event(&customer, "w1", "100", NOON).await.ok();
    for (name, customer, value) in [
        ("the same again", &customer, "100"),
        ("other amount", &customer, "7"),
        ("other customer", &other, "100"),
    ] {
        let again = desk.event(customer, "w1", value, NOON).await;
        assert_eq!(again.refused(400, None), "An event already exists with identifier w1.", "{name}");
        assert_eq!(again.header("stripe-should-retry"), Some("false"), "{name}");
    }
    assert_eq!(desk.sum(&meter, &customer, NOON, NOON + 60).await, Some(100.0));
    desk.sandbox.set_now(NOON + DAY - 1);
    desk.event(&customer, "w1", "100", NOON).await.refused(400, None);
    desk.sandbox.set_now(NOON + DAY);
    desk.event(&customer, "w1", "100", NOON).await.ok();
    assert_eq!(
        desk.sum(&meter, &customer, NOON, NOON + 60).await,
        Some(200.0),
        "the double count that a worker must not cause"
    );
}

#[tokio::test]
async fn the_identifier_window_can_be_longer() {
    let (desk, customer, _) = desk().await;
    desk.settings(json!({ "identifier_window_seconds": 3 * DAY })).await;
    desk.event(&customer, "w1", "100", NOON).await.ok();
    desk.sandbox.set_now(NOON + 2 * DAY);
    desk.event(&customer, "w1", "100", NOON).await.refused(400, None);
}

#[tokio::test]
async fn an_event_without_identifier_or_time_gets_both() {
    let (desk, customer, _) = desk().await;
    let event = desk
        .post(EVENTS, &format!("event_name=tokens&payload[stripe_customer_id]={customer}&payload[value]=1"))
        .await
        .ok();
    assert_eq!(event["timestamp"], NOON);
    assert!(!event["identifier"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn a_cancelled_event_stops_counting_and_its_identifier_stays_taken() {
    let (desk, customer, meter) = desk().await;
    desk.event(&customer, "a", "10", NOON).await.ok();
    desk.event(&customer, "b", "1", NOON).await.ok();
    let cancel = "event_name=tokens&type=cancel&cancel[identifier]=a";
    let adjusted = desk.post("/v1/billing/meter_event_adjustments", cancel).await.ok();
    assert_eq!((&adjusted["status"], &adjusted["cancel"]["identifier"]), (&json!("pending"), &json!("a")));
    assert_eq!(desk.sum(&meter, &customer, NOON, NOON + 60).await, Some(1.0));
    desk.event(&customer, "a", "10", NOON).await.refused(400, None);
    desk.post("/v1/billing/meter_event_adjustments", cancel).await.refused(400, None);
    for form in [
        "event_name=tokens&type=cancel&cancel[identifier]=zzz",
        "event_name=other&type=cancel&cancel[identifier]=b",
    ] {
        desk.post("/v1/billing/meter_event_adjustments", form).await.refused(400, Some("resource_missing"));
    }
    desk.sandbox.set_now(NOON + 24 * HOUR + 1);
    desk.post("/v1/billing/meter_event_adjustments", "event_name=tokens&type=cancel&cancel[identifier]=b")
        .await
        .refused(400, None);
}

#[tokio::test]
async fn an_event_taken_with_200_may_be_refused_after_with_a_report() {
    let (desk, customer, meter) = desk().await;
    desk.fault(json!({ "route": "POST /v1/billing/meter_events", "kind": "accept_then_reject", "code": "meter_event_invalid_value" })).await;
    desk.event(&customer, "a", "10", NOON).await.ok();
    desk.event(&customer, "b", "5", NOON).await.ok();
    assert_eq!(desk.sum(&meter, &customer, NOON, NOON + 60).await, Some(5.0));
    let thin = desk.get("/_sandbox/thin_events").await.ok()["data"][0].clone();
    let report = desk.get(&format!("/v2/core/events/{}", thin["id"].as_str().unwrap())).await.ok();
    assert_eq!(report["related_object"]["id"], meter.as_str());
    let kind = &report["data"]["reason"]["error_types"][0];
    assert_eq!(
        (&kind["code"], &kind["sample_errors"][0]["request"]["identifier"]),
        (&json!("meter_event_invalid_value"), &json!("a"))
    );
}

#[tokio::test]
async fn an_unknown_customer_may_be_taken_and_reported() {
    let (desk, _, meter) = desk().await;
    desk.settings(json!({ "unknown_customer": "accept_then_report" })).await;
    desk.event("cus_unknown", "a", "10", NOON).await.ok();
    let thin = desk.get("/_sandbox/thin_events").await.ok()["data"][0].clone();
    assert_eq!(thin["related_object"]["id"], meter.as_str());
    assert_eq!(thin["data"]["reason"]["error_types"][0]["code"], "meter_event_customer_not_found");
}

#[tokio::test]
async fn a_second_call_for_a_customer_and_meter_meets_the_first() {
    let (desk, customer, _) = desk().await;
    let other = desk.customer().await;
    for (mode, status, code) in [("lock_timeout", 429, Some("lock_timeout")), ("conflict", 409, None)] {
        desk.settings(json!({ "concurrency_mode": mode, "meter_event_millis": 300 })).await;
        let names = ["1", "2", "3"].map(|place| format!("{mode}{place}"));
        let (first, second, third) = tokio::join!(
            desk.event(&customer, &names[0], "1", NOON),
            desk.event(&customer, &names[1], "1", NOON),
            desk.event(&other, &names[2], "1", NOON),
        );
        first.ok();
        second.refused(status, code);
        assert_eq!(second.header("stripe-should-retry"), Some("true"));
        third.ok();
    }
    desk.settings(json!({ "concurrency_mode": "off" })).await;
    let (first, second) =
        tokio::join!(desk.event(&customer, "off1", "1", NOON), desk.event(&customer, "off2", "1", NOON));
    first.ok();
    second.ok();
    let journal = desk.get("/_sandbox/journal?path=/v1/billing/meter_events").await.ok();
    let entries = journal["data"].as_array().unwrap().iter();
    let seen: Vec<_> = entries
        .map(|entry| (entry["status"].as_u64().unwrap(), entry["concurrent"].as_u64().unwrap()))
        .collect();
    let expected = [(200, 1), (429, 2), (200, 1), (200, 1), (409, 2), (200, 1), (200, 1), (200, 2)];
    assert_eq!(seen, expected, "the journal says how many ran at once");
}

#[tokio::test]
async fn usage_shows_after_the_lag_and_so_does_its_cancellation() {
    let (desk, customer, meter) = desk().await;
    desk.settings(json!({ "aggregation_lag_seconds": 30 })).await;
    desk.event(&customer, "a", "10", NOON).await.ok();
    let sum = async || desk.sum(&meter, &customer, NOON, NOON + 60).await;
    assert_eq!(sum().await, None);
    desk.sandbox.set_now(NOON + 30);
    assert_eq!(sum().await, Some(10.0));
    desk.post("/v1/billing/meter_event_adjustments", "event_name=tokens&type=cancel&cancel[identifier]=a")
        .await
        .ok();
    assert_eq!(sum().await, Some(10.0));
    desk.sandbox.set_now(NOON + 60);
    assert_eq!(sum().await, None);
}

#[tokio::test]
async fn the_price_api_of_old_is_gone() {
    let desk = Desk::at_noon();
    desk.post("/v1/subscription_items/si_1/usage_records", "quantity=1")
        .await
        .refused(404, Some("resource_missing"));
}
