use serde_json::json;

use crate::desk::{DAY, Desk, NOON, event_form, fault, id};

const EVENTS: &str = "/v1/billing/meter_events";

async fn desk() -> (Desk, String, String) {
    let desk = Desk::at_noon();
    let customer = desk.customer().await;
    let meter = desk.meter("tokens").await;
    (desk, customer, meter)
}

#[tokio::test]
async fn the_same_key_and_parameters_get_the_same_answer() {
    let desk = Desk::at_noon();
    let first = desk.post_keyed("/v1/customers", "name=Acme", "k1").await;
    let again = desk.post_keyed("/v1/customers", "name=Acme", "k1").await;
    assert_eq!(first.text, again.text);
    assert!(!first.replayed() && again.replayed());
    assert_eq!(again.header("original-request"), first.header("request-id"));
    assert_eq!(again.header("idempotency-key"), Some("k1"));
    assert_eq!(desk.get("/v1/customers").await.ok()["data"].as_array().unwrap().len(), 1);
    desk.sandbox.set_now(NOON + DAY);
    let tomorrow = desk.post_keyed("/v1/customers", "name=Acme", "k1").await;
    assert!(!tomorrow.replayed(), "a key is kept for a day");
    assert_ne!(id(&tomorrow.ok()), id(&first.ok()));
}

#[tokio::test]
async fn the_same_key_with_other_parameters_or_another_route_is_refused() {
    let desk = Desk::at_noon();
    desk.post_keyed("/v1/customers", "name=Acme", "k1").await.ok();
    for (path, form) in [("/v1/customers", "name=Other"), ("/v1/products", "name=Acme")] {
        let said = desk.post_keyed(path, form, "k1").await;
        assert_eq!(
            said.refused(400, None),
            "Keys for idempotent requests can only be used with the same parameters they were first used with. \
             Try using a key other than 'k1' if you meant to execute a different request."
        );
        assert_eq!(said.body["error"]["type"], "idempotency_error");
    }
    desk.post_keyed("/v1/customers", "name=Acme", &"k".repeat(256)).await.refused(400, None);
}

#[tokio::test]
async fn a_key_whose_request_still_runs_is_in_use() {
    let (desk, customer, _) = desk().await;
    desk.fault(json!({ "route": format!("POST {EVENTS}"), "kind": "delay_ms", "ms": 300, "commit": false }))
        .await;
    let form = event_form(&customer, "a", "1", NOON);
    let (first, second) =
        tokio::join!(desk.post_keyed(EVENTS, &form, "k"), desk.post_keyed(EVENTS, &form, "k"));
    first.ok();
    second.refused(409, Some("idempotency_key_in_use"));
    assert_eq!(second.header("stripe-should-retry"), Some("true"));
    assert!(desk.post_keyed(EVENTS, &form, "k").await.replayed(), "the refusal was not kept");
}

#[tokio::test]
async fn what_failed_before_the_work_is_not_kept_under_the_key() {
    let (desk, customer, _) = desk().await;
    let bad = event_form(&customer, "a", "NaN", NOON);
    desk.post_keyed(EVENTS, &bad, "k1").await.refused(400, None);
    assert!(!desk.post_keyed(EVENTS, &bad, "k1").await.replayed());
    desk.post_keyed(EVENTS, "event_name=tokens", "k2").await.refused(400, Some("parameter_missing"));
    desk.with_key("").post_keyed(EVENTS, &bad, "k3").await.refused(401, None);
    desk.fault(json!({ "route": "*", "kind": "rate_limit", "reason": "global-rate" })).await;
    desk.fault(json!({ "route": format!("POST {EVENTS}"), "kind": "rate_limit", "reason": "global-rate" }))
        .await;
    let good = event_form(&customer, "a", "1", NOON);
    let limited = desk.post_keyed(EVENTS, &good, "k1").await;
    limited.refused(429, Some("rate_limit"));
    assert_eq!(limited.header("stripe-rate-limited-reason"), Some("global-rate"));
    for key in ["k1", "k2", "k3"] {
        let said = desk.post_keyed(EVENTS, &event_form(&customer, key, "1", NOON), key).await;
        assert_eq!((said.status, said.replayed()), (200, false), "{key}");
    }
}

#[tokio::test]
async fn a_lock_timeout_an_endpoint_limit_and_a_500_are_pinned_for_a_day() {
    let (desk, customer, meter) = desk().await;
    let table = [
        ("lock_timeout", 429, Some("lock_timeout"), Some("true")),
        ("rate_limit", 429, Some("rate_limit"), None),
        ("fail_before", 500, None, None),
        ("fail_after_commit", 500, None, None),
    ];
    for (kind, status, code, should_retry) in table {
        desk.fault(fault(&format!("POST {EVENTS}"), kind)).await;
        let form = event_form(&customer, kind, "1", NOON);
        let first = desk.post_keyed(EVENTS, &form, kind).await;
        first.refused(status, code);
        assert_eq!(first.header("stripe-should-retry"), should_retry, "{kind}");
        let again = desk.post_keyed(EVENTS, &form, kind).await;
        again.refused(status, code);
        assert!(again.replayed(), "{kind}");
        let fresh = desk.post_keyed(EVENTS, &form, &format!("{kind}/2")).await;
        if kind == "fail_after_commit" {
            assert_eq!(
                fresh.refused(400, None),
                "An event already exists with identifier fail_after_commit."
            );
        } else {
            fresh.ok();
        }
    }
    assert_eq!(desk.sum(&meter, &customer, NOON, NOON + 60).await, Some(4.0), "each event counts once");
}

#[tokio::test]
async fn keys_of_accounts_and_modes_are_apart() {
    let desk = Desk::at_noon();
    desk.post_keyed("/v1/customers", "name=Acme", "k").await.ok();
    for key in ["sk_live_desk", "sk_test_other"] {
        let said = desk.with_key(key).post_keyed("/v1/customers", "name=Else", "k").await;
        assert!(!said.replayed());
        said.ok();
    }
}
