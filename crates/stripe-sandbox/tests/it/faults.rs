use serde_json::json;

use crate::desk::{Desk, NOON, event_form, fault};

const EVENTS: &str = "/v1/billing/meter_events";

#[tokio::test]
async fn each_fault_meets_its_route_as_often_as_asked() {
    let desk = Desk::at_noon();
    let (customer, _) = (desk.customer().await, desk.meter("tokens").await);
    desk.fault(json!({ "route": format!("POST {EVENTS}"), "kind": "fail_before", "count": 2, "skip": 1 }))
        .await;
    let mut statuses = Vec::new();
    for place in 0..4 {
        statuses.push(desk.event(&customer, &place.to_string(), "1", NOON).await.status);
        assert_eq!(desk.get("/v1/customers").await.status, 200);
    }
    assert_eq!(statuses, [200, 500, 500, 200]);
    assert_eq!(desk.get("/_sandbox/faults").await.ok(), json!([]));
}

#[tokio::test]
async fn a_fault_can_wait_for_one_request_of_many() {
    let desk = Desk::at_noon();
    let (customer, _) = (desk.customer().await, desk.meter("tokens").await);
    desk.fault(json!({ "route": format!("POST {EVENTS}"), "kind": "fail_before", "containing": "needle" }))
        .await;
    desk.event(&customer, "hay", "1", NOON).await.ok();
    desk.event(&customer, "needle", "1", NOON).await.refused(500, None);
    desk.fault(fault("*", "fail_before")).await;
    desk.sandbox.set_now(NOON + 1);
    desk.delete("/_sandbox/faults").await.ok();
    desk.event(&customer, "needle", "1", NOON).await.ok();
}

#[tokio::test]
async fn a_proxys_page_is_no_json_and_says_nothing_of_the_work() {
    let desk = Desk::at_noon();
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    for (identifier, commit, sum) in [("a", false, None), ("b", true, Some(1.0))] {
        desk.fault(json!({ "route": format!("POST {EVENTS}"), "kind": "html_502", "commit": commit })).await;
        let said = desk.event(&customer, identifier, "1", NOON).await;
        assert_eq!((said.status, said.header("content-type")), (502, Some("text/html")));
        assert!(said.text.contains("502 Bad Gateway"));
        assert_eq!(desk.sum(&meter, &customer, NOON, NOON + 60).await, sum);
    }
}

#[tokio::test]
async fn the_rate_is_limited_over_all_routes_when_asked() {
    let desk = Desk::at_noon();
    desk.settings(json!({ "rate_limit_per_second": 2 })).await;
    let mut refused = None;
    for _ in 0..20 {
        let said = desk.get("/v1/customers").await;
        if said.status == 429 {
            refused = Some(said);
            break;
        }
    }
    let refused = refused.expect("twenty requests in less than ten seconds");
    refused.refused(429, Some("rate_limit"));
    assert_eq!(refused.header("stripe-rate-limited-reason"), Some("global-rate"));
    assert_eq!(refused.header("stripe-should-retry"), None, "official clients do not retry a limit");
}

#[tokio::test]
async fn the_journal_holds_each_request_and_its_answer() {
    let desk = Desk::at_noon();
    let (customer, _) = (desk.customer().await, desk.meter("tokens").await);
    desk.delete("/_sandbox/journal").await.ok();
    let form = event_form(&customer, "a", "1", NOON);
    desk.post_keyed(EVENTS, &form, "a/1").await.ok();
    desk.post_keyed(EVENTS, &form, "a/1").await.ok();
    desk.post_keyed(EVENTS, &form, "a/2").await.refused(400, None);
    desk.get("/v1/customers").await.ok();
    let journal = desk.get(&format!("/_sandbox/journal?path={EVENTS}")).await.ok();
    let rows = journal["data"].as_array().unwrap();
    let seen: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["idempotency_key"].as_str().unwrap(),
                row["status"].as_u64().unwrap(),
                row["replayed"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(seen, [("a/1", 200, false), ("a/1", 200, true), ("a/2", 400, false)]);
    assert_eq!(
        (&rows[0]["account"], &rows[0]["params"]["payload"]["value"]),
        (&json!("acct_desk"), &json!("1"))
    );
    assert_eq!(rows[0]["stripe_version"], "2026-10-28.endive");
}

#[tokio::test]
async fn a_bad_fault_or_setting_is_refused() {
    let desk = Desk::at_noon();
    for (path, body) in [
        ("/_sandbox/faults", json!({ "route": "*", "kind": "explode" })),
        ("/_sandbox/faults", json!({ "route": "*", "kind": "fail_before", "times": 3 })),
        ("/_sandbox/faults", json!({ "route": "", "kind": "fail_before" })),
        ("/_sandbox/settings", json!({ "color": "red" })),
        ("/_sandbox/settings", json!({ "concurrency_mode": "maybe" })),
        ("/_sandbox/clock", json!({})),
    ] {
        assert_eq!(desk.post_json(path, &body).await.status, 400, "{path} {body}");
    }
    assert_eq!(desk.get("/_sandbox/else").await.status, 404);
    assert_eq!(desk.get("/_sandbox/clock").await.ok(), json!({ "now": NOON, "real": false }));
}
