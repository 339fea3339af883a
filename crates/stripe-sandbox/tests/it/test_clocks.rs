use serde_json::json;

use crate::desk::{DAY, Desk, HOUR, NOON, id};

const START: i64 = 1_700_006_400; // 2023-11-15T00:00:00Z
const END: i64 = START + 30 * DAY;

async fn clocked(desk: &Desk) -> (String, String) {
    let clock =
        id(&desk.post("/v1/test_helpers/test_clocks", &format!("frozen_time={START}&name=t")).await.ok());
    let customer = id(&desk.post("/v1/customers", &format!("test_clock={clock}")).await.ok());
    (clock, customer)
}

async fn advance(desk: &Desk, clock: &str, to: i64) {
    let path = format!("/v1/test_helpers/test_clocks/{clock}");
    let said = desk.post(&format!("{path}/advance"), &format!("frozen_time={to}")).await.ok();
    assert_eq!(
        (&said["status"], &said["status_details"]["advancing"]["target_frozen_time"]),
        (&json!("advancing"), &json!(to))
    );
    let ready = desk.get(&path).await.ok();
    assert_eq!((&ready["status"], &ready["frozen_time"]), (&json!("ready"), &json!(to)));
}

#[tokio::test]
async fn a_clocked_customer_lives_in_its_own_time_from_usage_to_invoice() {
    let desk = Desk::at_noon();
    let (clock, customer) = clocked(&desk).await;
    let meter = desk.meter("tokens").await;
    let price = desk.price(&meter, "1").await;
    let subscription = desk.subscription(&customer, &price).await;
    assert_eq!(subscription["items"]["data"][0]["current_period_end"], END);
    desk.event(&customer, "real time", "1", NOON).await.refused(400, None);
    desk.event(&customer, "a", "10", START).await.ok();
    advance(&desk, &clock, END + 60).await;
    desk.event(&customer, "b", "5", END - 60).await.ok();
    let draft = desk.only_invoice(&customer).await;
    assert_eq!(
        (&draft["status"], &draft["total"], &draft["created"]),
        (&json!("draft"), &json!(10), &json!(END))
    );
    assert_eq!(draft["test_clock"], clock.as_str());
    advance(&desk, &clock, END + HOUR).await;
    let paid = desk.only_invoice(&customer).await;
    assert_eq!((&paid["status"], &paid["total"]), (&json!("paid"), &json!(15)));
    assert_eq!(desk.get("/v1/invoices?status=paid").await.ok()["data"][0]["id"], paid["id"]);
    desk.settings(json!({ "hide_clocked_invoices": true })).await;
    assert_eq!(desk.get("/v1/invoices?status=paid").await.ok()["data"], json!([]));
    desk.sandbox.set_now(NOON + 90 * DAY);
    desk.only_invoice(&customer).await;
}

#[tokio::test]
async fn the_window_of_events_can_be_that_of_real_time() {
    let desk = Desk::at_noon();
    let (_, customer) = clocked(&desk).await;
    desk.meter("tokens").await;
    desk.settings(json!({ "event_window_clock": "base" })).await;
    desk.event(&customer, "a", "1", START).await.refused(400, None);
    desk.event(&customer, "a", "1", NOON).await.ok();
}

#[tokio::test]
async fn lists_hide_clocked_customers_unless_the_clock_is_named() {
    let desk = Desk::at_noon();
    let (clock, customer) = clocked(&desk).await;
    let plain = desk.customer().await;
    let ids = |page: serde_json::Value| -> Vec<String> {
        page["data"].as_array().unwrap().iter().map(id).collect()
    };
    assert_eq!(ids(desk.get("/v1/customers").await.ok()), [plain]);
    assert_eq!(
        ids(desk.get(&format!("/v1/customers?test_clock={clock}")).await.ok()),
        std::slice::from_ref(&customer)
    );
    desk.get(&format!("/v1/customers/{customer}")).await.ok();
    let meter = desk.meter("tokens").await;
    let price = desk.price(&meter, "1").await;
    let subscription = id(&desk.subscription(&customer, &price).await);
    assert_eq!(ids(desk.get("/v1/subscriptions").await.ok()), Vec::<String>::new());
    for query in [format!("customer={customer}"), format!("test_clock={clock}")] {
        assert_eq!(
            ids(desk.get(&format!("/v1/subscriptions?{query}")).await.ok()),
            std::slice::from_ref(&subscription),
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_clock_has_its_limits() {
    let desk = Desk::at_noon();
    let (clock, customer) = clocked(&desk).await;
    for _ in 0..2 {
        desk.post("/v1/customers", &format!("test_clock={clock}")).await.ok();
    }
    desk.post("/v1/customers", &format!("test_clock={clock}")).await.refused(400, None);
    desk.post("/v1/customers", "test_clock=clock_x").await.refused(400, Some("resource_missing"));
    let meter = desk.meter("tokens").await;
    for place in 1..=4 {
        let price = desk.price(&meter, &place.to_string()).await;
        let said =
            desk.post("/v1/subscriptions", &format!("customer={customer}&items[0][price]={price}")).await;
        assert_eq!(said.status, if place < 4 { 200 } else { 400 }, "three subscriptions");
    }
    let path = format!("/v1/test_helpers/test_clocks/{clock}/advance");
    for (name, to) in [("back", START - 1), ("nowhere", START), ("three months", START + 92 * DAY)] {
        assert_eq!(desk.post(&path, &format!("frozen_time={to}")).await.status, 400, "{name}");
    }
    desk.with_key("sk_live_desk")
        .post("/v1/test_helpers/test_clocks", &format!("frozen_time={START}"))
        .await
        .refused(400, None);
}

#[tokio::test]
async fn a_jump_over_the_grace_leaves_no_time_to_guard_and_a_lag_loses_the_usage() {
    let desk = Desk::at_noon();
    let (clock, customer) = clocked(&desk).await;
    let meter = desk.meter("tokens").await;
    let price = desk.price(&meter, "1").await;
    desk.subscription(&customer, &price).await;
    desk.settings(json!({ "aggregation_lag_seconds": 30 })).await;
    desk.event(&customer, "a", "10", START).await.ok();
    advance(&desk, &clock, END + 2 * HOUR).await;
    let paid = desk.only_invoice(&customer).await;
    assert_eq!(
        (&paid["status"], &paid["total"]),
        (&json!("paid"), &json!(0)),
        "the clock ran ahead of the aggregation"
    );
}

#[tokio::test]
async fn a_deleted_clock_takes_its_customers_along() {
    let desk = Desk::at_noon();
    let (clock, customer) = clocked(&desk).await;
    let path = format!("/v1/test_helpers/test_clocks/{clock}");
    assert_eq!(desk.get("/v1/test_helpers/test_clocks").await.ok()["data"].as_array().unwrap().len(), 1);
    desk.delete(&path).await.ok();
    desk.get(&path).await.refused(404, Some("resource_missing"));
    assert_eq!(desk.get(&format!("/v1/customers/{customer}")).await.ok()["deleted"], true);
}
