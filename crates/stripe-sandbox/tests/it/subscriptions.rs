use serde_json::{Value, json};

use crate::desk::{DAY, Desk, HOUR, NOON, event_form, id};

async fn desk() -> (Desk, String, String, String) {
    let desk = Desk::at_noon();
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    let price = desk.price(&meter, "1").await;
    (desk, customer, meter, price)
}

#[tokio::test]
async fn items_carry_the_period_and_the_price() {
    let (desk, customer, meter, price) = desk().await;
    let subscription = desk.subscription(&customer, &price).await;
    let item = &subscription["items"]["data"][0];
    assert_eq!(
        (&item["current_period_start"], &item["current_period_end"]),
        (&json!(NOON), &json!(NOON + 30 * DAY))
    );
    assert_eq!((&item["price"]["recurring"]["meter"], item.get("quantity")), (&json!(meter), None));
    assert_eq!(
        (&subscription["billing_mode"]["type"], &subscription["latest_invoice"]),
        (&json!("flexible"), &Value::Null)
    );
    let path = format!(
        "/v1/subscriptions/{}?expand[]=customer&expand[]=items.data.price.product",
        id(&subscription)
    );
    let shown = desk.get(&path).await.ok();
    assert_eq!(
        (&shown["customer"]["name"], &shown["items"]["data"][0]["price"]["product"]["name"]),
        (&json!("Acme"), &json!("Tokens"))
    );
}

#[tokio::test]
async fn bad_items_are_refused() {
    let (desk, customer, meter, price) = desk().await;
    let yearly = id(&desk
        .post("/v1/prices", &format!("currency=usd&unit_amount=1&product_data[name]=Y&recurring[interval]=year&recurring[usage_type]=metered&recurring[meter]={meter}"))
        .await
        .ok());
    let once = id(&desk.post("/v1/prices", "currency=usd&unit_amount=1&product_data[name]=O").await.ok());
    let retired = desk.price(&meter, "2").await;
    desk.post(&format!("/v1/prices/{retired}"), "active=false").await.ok();
    let table = [
        ("no customer", format!("items[0][price]={price}")),
        ("no item", format!("customer={customer}")),
        ("a quantity of usage", format!("customer={customer}&items[0][price]={price}&items[0][quantity]=1")),
        ("the price twice", format!("customer={customer}&items[0][price]={price}&items[1][price]={price}")),
        ("two intervals", format!("customer={customer}&items[0][price]={price}&items[1][price]={yearly}")),
        ("a price for once", format!("customer={customer}&items[0][price]={once}")),
        ("a retired price", format!("customer={customer}&items[0][price]={retired}")),
        (
            "an anchor in the past",
            format!("customer={customer}&items[0][price]={price}&billing_cycle_anchor={}", NOON - 1),
        ),
        (
            "an anchor too far ahead",
            format!("customer={customer}&items[0][price]={price}&billing_cycle_anchor={}", NOON + 31 * DAY),
        ),
        (
            "a start ahead",
            format!("customer={customer}&items[0][price]={price}&backdate_start_date={}", NOON + 1),
        ),
        ("a trial", format!("customer={customer}&items[0][price]={price}&trial_period_days=3")),
    ];
    for (name, form) in table {
        assert_eq!(desk.post("/v1/subscriptions", &form).await.status, 400, "{name}");
    }
    assert_eq!(desk.get("/v1/subscriptions?status=all").await.ok()["data"], json!([]));
}

#[tokio::test]
async fn an_anchor_on_a_whole_hour_cuts_the_first_period_there() {
    let (desk, customer, _, price) = desk().await;
    let first_of_december = NOON + 12 * HOUR;
    for anchor in [
        format!("billing_cycle_anchor={first_of_december}"),
        "billing_cycle_anchor_config[day_of_month]=1&billing_cycle_anchor_config[hour]=0&billing_cycle_anchor_config[minute]=0&billing_cycle_anchor_config[second]=0".to_owned(),
    ] {
        let form = format!("customer={customer}&items[0][price]={price}&{anchor}");
        let subscription = desk.post("/v1/subscriptions", &form).await.ok();
        let item = &subscription["items"]["data"][0];
        assert_eq!((&subscription["billing_cycle_anchor"], &item["current_period_end"]), (&json!(first_of_december), &json!(first_of_december)));
    }
    desk.sandbox.set_now(first_of_december);
    let running = desk.get(&format!("/v1/subscriptions?customer={customer}")).await.ok();
    for subscription in running["data"].as_array().unwrap() {
        let item = &subscription["items"]["data"][0];
        let period = (&item["current_period_start"], &item["current_period_end"]);
        assert_eq!(period, (&json!(first_of_december), &json!(first_of_december + 31 * DAY)));
    }
}

#[tokio::test]
async fn cancelling_at_once_loses_the_usage_unless_it_is_invoiced_now() {
    let (desk, customer, _, price) = desk().await;
    for (invoice_now, invoices) in [("false", 0), ("true", 1)] {
        let subscription = id(&desk.subscription(&customer, &price).await);
        desk.event(&customer, invoice_now, "10", NOON).await.ok();
        desk.sandbox.set_now(NOON + HOUR);
        let ended = desk
            .send("DELETE", &format!("/v1/subscriptions/{subscription}?invoice_now={invoice_now}"), "", &[])
            .await
            .ok();
        assert_eq!((&ended["status"], &ended["ended_at"]), (&json!("canceled"), &json!(NOON + HOUR)));
        let list = desk.get(&format!("/v1/invoices?subscription={subscription}")).await.ok();
        assert_eq!(list["data"].as_array().unwrap().len(), invoices, "invoice_now={invoice_now}");
        desk.delete(&format!("/v1/subscriptions/{subscription}"))
            .await
            .refused(404, Some("resource_missing"));
        desk.sandbox.set_now(NOON + 2 * HOUR);
    }
    let ended = desk.get("/v1/subscriptions?status=canceled").await.ok();
    assert_eq!(ended["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn cancelling_at_the_periods_end_bills_its_usage_and_can_be_taken_back() {
    let (desk, customer, _, price) = desk().await;
    let path = format!("/v1/subscriptions/{}", id(&desk.subscription(&customer, &price).await));
    let to_end = desk.post(&path, "cancel_at_period_end=true").await.ok();
    assert_eq!((&to_end["cancel_at"], &to_end["status"]), (&json!(NOON + 30 * DAY), &json!("active")));
    assert_eq!(desk.post(&path, "cancel_at_period_end=false").await.ok()["cancel_at"], Value::Null);
    desk.post(&path, "cancel_at_period_end=true&metadata[why]=moved").await.ok();
    desk.event(&customer, "a", "10", NOON).await.ok();
    desk.sandbox.set_now(NOON + 30 * DAY);
    let ended = desk.get(&path).await.ok();
    assert_eq!(
        (&ended["status"], &ended["ended_at"], &ended["metadata"]["why"]),
        (&json!("canceled"), &json!(NOON + 30 * DAY), &json!("moved"))
    );
    assert_eq!(desk.only_invoice(&customer).await["total"], 10);
    desk.sandbox.set_now(NOON + 90 * DAY);
    desk.only_invoice(&customer).await;
}

#[tokio::test]
async fn a_cancellation_at_an_instant_shortens_the_period() {
    let (desk, customer, _, price) = desk().await;
    let subscription = desk.subscription(&customer, &price).await;
    let at = NOON + 10 * DAY;
    desk.post(&format!("/v1/subscriptions/{}", id(&subscription)), &format!("cancel_at={at}")).await.ok();
    desk.event(&customer, "a", "10", NOON).await.ok();
    desk.sandbox.set_now(at + DAY);
    let invoice = desk.only_invoice(&customer).await;
    assert_eq!(
        (&invoice["created"], &invoice["lines"]["data"][0]["period"]["end"], &invoice["total"]),
        (&json!(at), &json!(at), &json!(10))
    );
}

#[tokio::test]
async fn another_price_bills_the_old_usage_in_flexible_mode_and_loses_it_in_classic() {
    let (desk, _, meter, price) = desk().await;
    let dearer = desk.price(&meter, "3").await;
    let mut now = NOON;
    for (mode, total) in [("flexible", 10 + 6), ("classic", 6)] {
        let customer = desk.customer().await;
        let form = format!("customer={customer}&items[0][price]={price}&billing_mode[type]={mode}");
        let subscription = desk.post("/v1/subscriptions", &form).await.ok();
        let item = id(&subscription["items"]["data"][0]);
        desk.event(&customer, &format!("{mode}1"), "10", now).await.ok();
        desk.sandbox.set_now(now + HOUR);
        let changed =
            desk.post(&format!("/v1/subscription_items/{item}"), &format!("price={dearer}")).await.ok();
        assert_eq!(changed["price"]["id"], dearer.as_str());
        desk.event(&customer, &format!("{mode}2"), "2", now + HOUR).await.ok();
        now += 31 * DAY + 2 * HOUR;
        desk.sandbox.set_now(now);
        assert_eq!(desk.only_invoice(&customer).await["total"], total, "{mode}");
    }
}

#[tokio::test]
async fn items_come_and_go() {
    let (desk, customer, meter, price) = desk().await;
    let subscription = id(&desk.subscription(&customer, &price).await);
    let second = desk.price(&meter, "2").await;
    let item = desk
        .post("/v1/subscription_items", &format!("subscription={subscription}&price={second}"))
        .await
        .ok();
    assert_eq!(item["current_period_start"], NOON);
    desk.post("/v1/subscription_items", &format!("subscription={subscription}&price={second}"))
        .await
        .refused(400, None);
    let list = desk.get(&format!("/v1/subscription_items?subscription={subscription}")).await.ok();
    assert_eq!(list["data"].as_array().unwrap().len(), 2);
    desk.delete(&format!("/v1/subscription_items/{}", id(&item))).await.ok();
    let last = id(&list["data"][1]);
    desk.delete(&format!("/v1/subscription_items/{last}")).await.refused(400, None);
}

#[tokio::test]
async fn a_backdated_start_bills_earlier_usage_by_mode() {
    let (desk, _, _, price) = desk().await;
    for (mode, at_once) in [("flexible", 1), ("classic", 0)] {
        let customer = desk.customer().await;
        desk.post("/v1/billing/meter_events", &event_form(&customer, mode, "10", NOON - DAY)).await.ok();
        let form = format!(
            "customer={customer}&items[0][price]={price}&billing_mode[type]={mode}&backdate_start_date={}",
            NOON - 2 * DAY
        );
        desk.post("/v1/subscriptions", &form).await.ok();
        let list = desk.get(&format!("/v1/invoices?customer={customer}")).await.ok();
        let totals: Vec<_> = list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|invoice| invoice["total"].as_i64().unwrap())
            .collect();
        assert_eq!(totals, vec![10; at_once], "{mode}");
    }
    desk.sandbox.set_now(NOON + 30 * DAY);
    let drafts = desk.get("/v1/invoices?status=draft").await.ok();
    let mut totals: Vec<_> =
        drafts["data"].as_array().unwrap().iter().map(|invoice| invoice["total"].as_i64().unwrap()).collect();
    totals.sort_unstable();
    assert_eq!(totals, [0, 10], "classic bills it with the next cycle, flexible never twice");
}

#[tokio::test]
async fn a_licence_is_billed_in_advance() {
    let (desk, customer, _, _) = desk().await;
    let seat = id(&desk
        .post("/v1/prices", "currency=usd&unit_amount=500&product_data[name]=Seat&recurring[interval]=month")
        .await
        .ok());
    let form =
        format!("customer={customer}&items[0][price]={seat}&items[0][quantity]=3&expand[]=latest_invoice");
    let subscription = desk.post("/v1/subscriptions", &form).await.ok();
    let invoice = &subscription["latest_invoice"];
    assert_eq!(
        (&invoice["status"], &invoice["total"], &invoice["billing_reason"]),
        (&json!("paid"), &json!(1500), &json!("subscription_create"))
    );
    desk.sandbox.set_now(NOON + 30 * DAY);
    let draft = desk.get("/v1/invoices?status=draft").await.ok();
    assert_eq!(
        (&draft["data"][0]["total"], &draft["data"][0]["lines"]["data"][0]["period"]["start"]),
        (&json!(1500), &json!(NOON + 30 * DAY))
    );
}
