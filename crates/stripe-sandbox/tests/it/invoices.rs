//! From the end of a period to a paid invoice.

use serde_json::{Value, json};

use crate::desk::{DAY, Desk, HOUR, NOON, id};

const END: i64 = NOON + 30 * DAY;

struct Shop {
    desk: Desk,
    customer: String,
    price: String,
}

async fn shop() -> Shop {
    let desk = Desk::at_noon();
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    let price = desk.price(&meter, "0.05").await;
    desk.subscription(&customer, &price).await;
    Shop { desk, customer, price }
}

async fn event_types(desk: &Desk) -> Vec<String> {
    let events = desk.get("/v1/events?type=invoice.*&limit=100").await.ok();
    events["data"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_draft_is_made_at_the_end_and_finalised_after_the_grace_with_what_came_meanwhile() {
    let Shop { desk, customer, price } = shop().await;
    desk.event(&customer, "in time", "10", NOON).await.ok();
    desk.sandbox.set_now(END);
    let draft = desk.only_invoice(&customer).await;
    assert_eq!(
        (&draft["status"], &draft["total"], &draft["automatically_finalizes_at"]),
        (&json!("draft"), &json!(1), &json!(END + HOUR))
    );
    let line = &draft["lines"]["data"][0];
    assert_eq!(line["period"], json!({ "start": NOON, "end": END }));
    assert_eq!(
        (&line["pricing"]["price_details"]["price"], &line["pricing"]["unit_amount_decimal"]),
        (&json!(price), &json!("0.05"))
    );
    assert_eq!(
        line["parent"]["subscription_item_details"]["subscription"],
        draft["parent"]["subscription_details"]["subscription"]
    );
    assert_eq!((&line["quantity"], &line["quantity_decimal"]), (&json!(10), &json!("10")));
    desk.event(&customer, "late", "20", END - 1).await.ok();
    desk.event(&customer, "next period", "1000", END).await.ok();
    assert_eq!(desk.only_invoice(&customer).await["total"], 1, "a draft is as it was computed");
    desk.sandbox.set_now(END + HOUR - 1);
    assert_eq!(desk.only_invoice(&customer).await["status"], "draft");
    desk.sandbox.set_now(END + HOUR);
    let paid = desk.only_invoice(&customer).await;
    assert_eq!(
        (&paid["status"], &paid["total"], &paid["amount_paid"]),
        (&json!("paid"), &json!(2), &json!(2)),
        "30 × 0.05 = 1.5, half up"
    );
    assert_eq!(
        (&paid["lines"]["data"][0]["quantity"], &paid["lines"]["data"][0]["id"]),
        (&json!(30), &line["id"])
    );
    assert_eq!(
        event_types(&desk).await,
        ["invoice.created", "invoice.finalized", "invoice.paid", "invoice.payment_succeeded"]
    );
    desk.event(&customer, "too late", "5000", END - 1).await.ok();
    assert_eq!(desk.only_invoice(&customer).await["total"], 2, "what comes after is on no invoice");
}

#[tokio::test]
async fn a_guarded_draft_waits_for_its_finaliser_who_gets_the_quantity_of_that_instant() {
    let Shop { desk, customer, .. } = shop().await;
    desk.sandbox.set_now(END);
    let path = format!("/v1/invoices/{}", id(&desk.only_invoice(&customer).await));
    let guarded = desk.post(&path, "auto_advance=false").await.ok();
    assert_eq!(
        (&guarded["auto_advance"], &guarded["automatically_finalizes_at"]),
        (&json!(false), &Value::Null)
    );
    desk.sandbox.set_now(END + 3 * DAY);
    desk.event(&customer, "very late", "100", END - 1).await.ok();
    assert_eq!(desk.get(&path).await.ok()["status"], "draft");
    desk.post(&path, "metadata[root]=abc").await.ok();
    let open = desk.post(&format!("{path}/finalize"), "").await.ok();
    assert_eq!(
        (&open["status"], &open["total"], &open["metadata"]["root"]),
        (&json!("open"), &json!(5), &json!("abc"))
    );
    assert_eq!(open["status_transitions"]["finalized_at"], END + 3 * DAY);
    desk.post(&format!("{path}/finalize"), "").await.refused(400, Some("invoice_not_editable"));
    desk.post(&path, "description=late").await.refused(400, Some("invoice_not_editable"));
    desk.post(&path, "metadata[head]=def").await.ok();
    let paid = desk.post(&format!("{path}/pay"), "").await.ok();
    assert_eq!((&paid["status"], &paid["amount_remaining"]), (&json!("paid"), &json!(0)));
    desk.post(&format!("{path}/pay"), "").await.refused(400, Some("invoice_already_paid"));
    desk.post(&format!("{path}/void"), "").await.refused(400, Some("invoice_not_editable"));
}

#[tokio::test]
async fn an_idle_period_has_an_invoice_of_nothing_and_each_period_has_one() {
    let Shop { desk, customer, .. } = shop().await;
    // Usage cannot be put into a period that has not come.
    desk.event(&customer, "a", "20", END + DAY).await.refused(400, None);
    desk.sandbox.set_now(END + 31 * DAY + 2 * HOUR);
    let invoices = desk.get(&format!("/v1/invoices?customer={customer}")).await.ok();
    let seen: Vec<_> = invoices["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| (i["total"].as_i64().unwrap(), i["status"].as_str().unwrap()))
        .collect();
    assert_eq!(seen, [(0, "paid"), (0, "paid")]);
}

#[tokio::test]
async fn a_longer_grace_holds_longer() {
    let Shop { desk, customer, .. } = shop().await;
    desk.settings(json!({ "grace_seconds": 6 * HOUR })).await;
    desk.sandbox.set_now(END + 5 * HOUR);
    assert_eq!(desk.only_invoice(&customer).await["status"], "draft");
    desk.sandbox.set_now(END + 6 * HOUR);
    assert_eq!(desk.only_invoice(&customer).await["status"], "paid");
}

#[tokio::test]
async fn finalisation_counts_only_what_was_aggregated() {
    let Shop { desk, customer, .. } = shop().await;
    desk.settings(json!({ "aggregation_lag_seconds": 120 })).await;
    desk.sandbox.set_now(END + HOUR - 121);
    desk.event(&customer, "in time", "100", END - 1).await.ok();
    desk.sandbox.set_now(END + HOUR - 60);
    desk.event(&customer, "within the lag", "1000", END - 1).await.ok();
    desk.sandbox.set_now(END + HOUR);
    assert_eq!(desk.only_invoice(&customer).await["total"], 5);
}

#[tokio::test]
async fn tiers_give_lines_that_share_an_item_and_pages_of_them() {
    let desk = Desk::at_noon();
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    let mut tiers = String::new();
    for place in 0..11 {
        tiers.push_str(&format!(
            "&tiers[{place}][up_to]={}&tiers[{place}][unit_amount_decimal]=0.5",
            (place + 1) * 10
        ));
    }
    let form = format!(
        "currency=usd&product_data[name]=Tokens&recurring[interval]=month&recurring[usage_type]=metered&recurring[meter]={meter}\
         &billing_scheme=tiered&tiers_mode=graduated{tiers}&tiers[11][up_to]=inf&tiers[11][unit_amount]=1&tiers[11][flat_amount]=100"
    );
    let price = id(&desk.post("/v1/prices", &form).await.ok());
    desk.subscription(&customer, &price).await;
    desk.event(&customer, "a", "113", NOON).await.ok();
    desk.sandbox.set_now(END + HOUR);
    let invoice = desk.only_invoice(&customer).await;
    assert_eq!((&invoice["total"], &invoice["lines"]["has_more"]), (&json!(11 * 5 + 3 + 100), &json!(true)));
    assert_eq!(invoice["lines"]["data"].as_array().unwrap().len(), 10);
    let path = format!("/v1/invoices/{}/lines", id(&invoice));
    let all = desk.get(&format!("{path}?limit=100")).await.ok();
    let quantity: u64 =
        all["data"].as_array().unwrap().iter().map(|line| line["quantity"].as_u64().unwrap()).sum();
    assert_eq!((quantity, all["data"].as_array().unwrap().len()), (113, 13));
    let rest = desk.get(&format!("{path}?starting_after={}", id(&all["data"][9]))).await.ok();
    assert_eq!((rest["data"].as_array().unwrap().len(), &rest["has_more"]), (3, &json!(false)));
}

#[tokio::test]
async fn packages_show_what_was_used_or_what_is_paid_for() {
    for (show, quantity) in [("usage", 150), ("packages", 3)] {
        let desk = Desk::at_noon();
        desk.settings(json!({ "transform_line_quantity": show })).await;
        let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
        let form = format!(
            "currency=usd&product_data[name]=Minutes&recurring[interval]=month&recurring[usage_type]=metered&recurring[meter]={meter}\
             &unit_amount=1000&transform_quantity[divide_by]=60&transform_quantity[round]=up"
        );
        let price = id(&desk.post("/v1/prices", &form).await.ok());
        desk.subscription(&customer, &price).await;
        desk.event(&customer, "a", "150", NOON).await.ok();
        desk.sandbox.set_now(END);
        let invoice = desk.only_invoice(&customer).await;
        assert_eq!(
            (&invoice["total"], &invoice["lines"]["data"][0]["quantity"]),
            (&json!(3000), &json!(quantity)),
            "{show}"
        );
    }
}

#[tokio::test]
async fn corrections_below_zero_bill_nothing_and_decimals_are_exact() {
    let Shop { desk, customer, .. } = shop().await;
    desk.event(&customer, "a", "10", NOON).await.ok();
    desk.event(&customer, "b", "-30", NOON).await.ok();
    desk.sandbox.set_now(END);
    let draft = desk.only_invoice(&customer).await;
    assert_eq!((&draft["total"], &draft["lines"]["data"][0]["quantity_decimal"]), (&json!(0), &json!("0")));
    desk.event(&customer, "c", "50.5", END - 1).await.ok();
    desk.sandbox.set_now(END + HOUR);
    let paid = desk.only_invoice(&customer).await;
    let line = &paid["lines"]["data"][0];
    assert_eq!(
        (&paid["total"], &line["quantity"], &line["quantity_decimal"]),
        (&json!(2), &json!(30), &json!("30.5")),
        "30.5 × 0.05 = 1.525"
    );
}

#[tokio::test]
async fn a_preview_shows_the_period_so_far_and_stores_nothing() {
    let Shop { desk, customer, .. } = shop().await;
    desk.event(&customer, "a", "100", NOON).await.ok();
    let preview = desk.post("/v1/invoices/create_preview", &format!("customer={customer}")).await.ok();
    assert_eq!((&preview["total"], &preview["lines"]["data"][0]["quantity"]), (&json!(5), &json!(100)));
    assert_eq!(desk.get(&format!("/v1/invoices?customer={customer}")).await.ok()["data"], json!([]));
    let other = desk.customer().await;
    desk.post("/v1/invoices/create_preview", &format!("customer={other}"))
        .await
        .refused(404, Some("invoice_upcoming_none"));
}

#[tokio::test]
async fn waiting_invoice_items_go_on_the_next_invoice_and_a_credit_is_carried() {
    let Shop { desk, customer, .. } = shop().await;
    let item = desk
        .post("/v1/invoiceitems", &format!("customer={customer}&currency=usd&amount=-50&description=Credit"))
        .await
        .ok();
    desk.event(&customer, "a", "600", NOON).await.ok();
    desk.sandbox.set_now(END + HOUR);
    let first = desk.only_invoice(&customer).await;
    assert_eq!(
        (&first["total"], &first["amount_due"], &first["ending_balance"]),
        (&json!(-20), &json!(0), &json!(-20))
    );
    assert_eq!(desk.get(&format!("/v1/invoiceitems/{}", id(&item))).await.ok()["invoice"], first["id"]);
    desk.event(&customer, "b", "1000", END + HOUR).await.ok();
    desk.sandbox.set_now(END + 31 * DAY + HOUR);
    let second = desk.get(&format!("/v1/invoices?customer={customer}")).await.ok()["data"][0].clone();
    assert_eq!(
        (&second["total"], &second["amount_due"], &second["starting_balance"]),
        (&json!(50), &json!(30), &json!(-20))
    );
    assert_eq!(desk.get(&format!("/v1/customers/{customer}")).await.ok()["balance"], 0);
    desk.delete(&format!("/v1/invoiceitems/{}", id(&item))).await.refused(400, Some("invoice_not_editable"));
}

#[tokio::test]
async fn a_one_off_invoice_is_made_filled_finalised_and_voided() {
    let Shop { desk, customer, .. } = shop().await;
    let invoice = desk.post("/v1/invoices", &format!("customer={customer}&metadata[k]=v")).await.ok();
    assert_eq!(
        (&invoice["billing_reason"], &invoice["auto_advance"], &invoice["metadata"]["k"]),
        (&json!("manual"), &json!(false), &json!("v"))
    );
    let path = format!("/v1/invoices/{}", id(&invoice));
    let form = format!("customer={customer}&invoice={}&unit_amount_decimal=0.5&quantity=3", id(&invoice));
    let item = desk.post("/v1/invoiceitems", &form).await.ok();
    assert_eq!(item["amount"], 2);
    assert_eq!(desk.get(&path).await.ok()["total"], 2);
    desk.delete(&format!("/v1/invoiceitems/{}", id(&item))).await.ok();
    assert_eq!(desk.get(&path).await.ok()["total"], 0);
    desk.post("/v1/invoiceitems", &format!("customer={customer}&invoice={}&amount=700", id(&invoice)))
        .await
        .ok();
    assert_eq!(desk.post(&format!("{path}/finalize"), "").await.ok()["status"], "open");
    assert_eq!(desk.post(&format!("{path}/void"), "").await.ok()["status"], "void");
    desk.delete(&path).await.refused(400, Some("invoice_not_editable"));
    let other = desk.post("/v1/invoices", &format!("customer={customer}")).await.ok();
    desk.delete(&format!("/v1/invoices/{}", id(&other))).await.ok();
    desk.get(&format!("/v1/invoices/{}", id(&other))).await.refused(404, Some("resource_missing"));
    let open = desk.get("/v1/invoices?status=void").await.ok();
    assert_eq!(open["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_draft_without_usage_is_guarded_like_any_other() {
    let Shop { desk, customer, .. } = shop().await;
    desk.sandbox.set_now(END);
    let draft = desk.only_invoice(&customer).await;
    desk.post(&format!("/v1/invoices/{}", id(&draft)), "auto_advance=false").await.ok();
    desk.sandbox.set_now(END + 2 * HOUR);
    assert_eq!(desk.only_invoice(&customer).await["status"], "draft");
    let again = desk.post(&format!("/v1/invoices/{}", id(&draft)), "auto_advance=true").await.ok();
    assert_eq!(again["automatically_finalizes_at"], END + 2 * HOUR);
    assert_eq!(desk.only_invoice(&customer).await["status"], "paid");
}
