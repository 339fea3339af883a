use serde_json::{Value, json};

use crate::desk::{Desk, NOON, id};

fn ids(page: &Value) -> Vec<String> {
    page["data"].as_array().unwrap().iter().map(id).collect()
}

#[tokio::test]
async fn a_list_is_walked_newest_first_both_ways() {
    let desk = Desk::at_noon();
    let mut made = Vec::new();
    for _ in 0..12 {
        made.push(desk.customer().await);
    }
    made.reverse();
    let first = desk.get("/v1/customers").await.ok();
    assert_eq!(
        (&first["object"], &first["url"], &first["has_more"]),
        (&json!("list"), &json!("/v1/customers"), &json!(true))
    );
    assert_eq!(ids(&first), made[..10], "ten by default");
    let rest = desk.get(&format!("/v1/customers?starting_after={}", made[9])).await.ok();
    assert_eq!((ids(&rest), &rest["has_more"]), (made[10..].to_vec(), &json!(false)));
    let back = desk.get(&format!("/v1/customers?ending_before={}&limit=3", made[5])).await.ok();
    assert_eq!((ids(&back), &back["has_more"]), (made[2..5].to_vec(), &json!(true)));
    let all = desk.get("/v1/customers?limit=100").await.ok();
    assert_eq!(ids(&all), made);
}

#[tokio::test]
async fn bad_cursors_and_limits_are_refused() {
    let desk = Desk::at_noon();
    let (a, b) = (desk.customer().await, desk.customer().await);
    for (query, code) in [
        (format!("starting_after={a}&ending_before={b}"), "resource_missing"),
        ("starting_after=cus_unknown".to_owned(), "resource_missing"),
        ("ending_before=cus_unknown".to_owned(), "resource_missing"),
        ("limit=0".to_owned(), "parameter_invalid_integer"),
        ("limit=101".to_owned(), "parameter_invalid_integer"),
        ("limit=many".to_owned(), "parameter_invalid_integer"),
        ("page=2".to_owned(), "parameter_unknown"),
    ] {
        desk.get(&format!("/v1/customers?{query}")).await.refused(400, Some(code));
    }
}

#[tokio::test]
async fn unknown_routes_and_ids_are_404() {
    let desk = Desk::at_noon();
    let table = [
        ("GET", "/v1/nothing", "Unrecognized request URL (GET: /v1/nothing)."),
        (
            "POST",
            "/v1/customers/cus_1/nothing",
            "Unrecognized request URL (POST: /v1/customers/cus_1/nothing).",
        ),
        ("GET", "/v1/customers/cus_1", "No such customer: 'cus_1'"),
        ("GET", "/v1/billing/meters/mtr_1", "No such meter: 'mtr_1'"),
        ("GET", "/v1/prices/price_1", "No such price: 'price_1'"),
        ("GET", "/v1/products/prod_1", "No such product: 'prod_1'"),
        ("GET", "/v1/subscriptions/sub_1", "No such subscription: 'sub_1'"),
        ("DELETE", "/v1/subscriptions/sub_1", "No such subscription: 'sub_1'"),
        ("GET", "/v1/subscription_items/si_1", "No such subscription_item: 'si_1'"),
        ("POST", "/v1/invoices/in_1/finalize", "No such invoice: 'in_1'"),
        ("GET", "/v1/invoices/in_1/lines", "No such invoice: 'in_1'"),
        ("GET", "/v1/invoiceitems/ii_1", "No such invoiceitem: 'ii_1'"),
        ("GET", "/v1/test_helpers/test_clocks/clock_1", "No such test_clock: 'clock_1'"),
        ("GET", "/v1/events/evt_1", "No such event: 'evt_1'"),
        ("GET", "/v1/webhook_endpoints/we_1", "No such webhook endpoint: 'we_1'"),
    ];
    for (method, path, message) in table {
        let said = desk.send(method, path, "", &[]).await.refused(404, Some("resource_missing"));
        assert!(said.starts_with(message), "{said}");
    }
}

#[tokio::test]
async fn lists_filter_by_time_and_member() {
    let desk = Desk::at_noon();
    let first = id(&desk.post("/v1/customers", "email=a@example.com").await.ok());
    desk.sandbox.set_now(NOON + 10);
    let second = id(&desk.post("/v1/customers", "email=b@example.com").await.ok());
    for (query, expected) in [
        (format!("created[gte]={}", NOON + 10), vec![second.clone()]),
        (format!("created[lt]={}", NOON + 10), vec![first.clone()]),
        (format!("created={NOON}"), vec![first.clone()]),
        ("email=b@example.com".to_owned(), vec![second.clone()]),
        ("email=c@example.com".to_owned(), vec![]),
    ] {
        assert_eq!(ids(&desk.get(&format!("/v1/customers?{query}")).await.ok()), expected, "{query}");
    }
}

#[tokio::test]
async fn customers_change_are_deleted_and_answer_as_what_is_left() {
    let desk = Desk::at_noon();
    let form = "name=Acme&metadata[platform]=p1&metadata[x]=1&address[city]=Oslo&description=d";
    let customer = desk.post("/v1/customers", form).await.ok();
    assert_eq!((&customer["address"]["city"], &customer["address"]["line1"]), (&json!("Oslo"), &Value::Null));
    let path = format!("/v1/customers/{}", id(&customer));
    let changed = desk.post(&path, "metadata[x]=&metadata[y]=2&description=").await.ok();
    assert_eq!(changed["metadata"], json!({ "platform": "p1", "y": "2" }));
    assert_eq!((&changed["name"], &changed["description"]), (&json!("Acme"), &Value::Null));
    assert_eq!(desk.post(&path, "metadata=").await.ok()["metadata"], json!({}));
    desk.delete(&path).await.ok();
    assert_eq!(
        desk.get(&path).await.ok(),
        json!({ "id": customer["id"], "object": "customer", "deleted": true })
    );
    desk.post(&path, "name=Again").await.refused(404, Some("resource_missing"));
    desk.delete(&path).await.refused(404, Some("resource_missing"));
    assert_eq!(ids(&desk.get("/v1/customers").await.ok()), Vec::<String>::new());
}

#[tokio::test]
async fn a_parameter_that_is_not_honoured_is_refused_rather_than_ignored() {
    let desk = Desk::at_noon();
    let said = desk.post("/v1/customers", "source=tok_visa").await;
    assert!(said.refused(400, Some("sandbox_not_implemented")).contains("source"));
}

#[tokio::test]
async fn prices_hold_their_rules() {
    let desk = Desk::at_noon();
    let meter = desk.meter("tokens").await;
    let idle = desk.meter("idle").await;
    desk.post(&format!("/v1/billing/meters/{idle}/deactivate"), "").await.ok();
    let product = id(&desk.post("/v1/products", "name=Tokens&unit_label=token").await.ok());
    let base = format!("currency=usd&product={product}");
    let metered = format!("{base}&recurring[interval]=month&recurring[usage_type]=metered");
    let tiers = "billing_scheme=tiered&tiers_mode=graduated";
    let table = [
        ("metered without a meter", format!("{metered}&unit_amount=1")),
        ("a meter at rest", format!("{metered}&unit_amount=1&recurring[meter]={idle}")),
        (
            "a meter for a licence",
            format!("{base}&unit_amount=1&recurring[interval]=month&recurring[meter]={meter}"),
        ),
        ("both amounts", format!("{base}&unit_amount=1&unit_amount_decimal=1")),
        ("no amount", base.clone()),
        ("thirteen decimals", format!("{base}&unit_amount_decimal=0.0000000000001")),
        ("an amount in words", format!("{base}&unit_amount_decimal=1e3")),
        ("a negative amount", format!("{base}&unit_amount=-1")),
        (
            "tiers without their scheme",
            format!("{base}&unit_amount=1&tiers[0][up_to]=inf&tiers[0][unit_amount]=1"),
        ),
        ("tiers without a last one", format!("{base}&{tiers}&tiers[0][up_to]=10&tiers[0][unit_amount]=1")),
        (
            "tiers that shrink",
            format!(
                "{base}&{tiers}&tiers[0][up_to]=10&tiers[0][unit_amount]=1&tiers[1][up_to]=9&tiers[1][unit_amount]=1&tiers[2][up_to]=inf&tiers[2][unit_amount]=1"
            ),
        ),
        (
            "packages of tiers",
            format!(
                "{base}&{tiers}&tiers[0][up_to]=inf&tiers[0][unit_amount]=1&transform_quantity[divide_by]=2&transform_quantity[round]=up"
            ),
        ),
        ("a price of nothing", "currency=usd&unit_amount=1".to_owned()),
        ("a currency of four letters", "currency=euro&unit_amount=1&product_data[name]=x".to_owned()),
    ];
    for (name, form) in table {
        assert_eq!(desk.post("/v1/prices", &form).await.status, 400, "{name}");
    }
    let decimal = desk
        .post("/v1/prices", &format!("{metered}&recurring[meter]={meter}&unit_amount_decimal=0.000000000001"))
        .await
        .ok();
    assert_eq!(
        (&decimal["unit_amount"], &decimal["unit_amount_decimal"]),
        (&Value::Null, &json!("0.000000000001"))
    );
    let whole = desk.post("/v1/prices", &format!("{base}&unit_amount_decimal=5.0")).await.ok();
    assert_eq!(
        (&whole["unit_amount"], &whole["unit_amount_decimal"], &whole["type"]),
        (&json!(5), &json!("5"), &json!("one_time"))
    );
    let form = format!(
        "{metered}&recurring[meter]={meter}&{tiers}&tiers[0][up_to]=10&tiers[0][unit_amount_decimal]=0.5&tiers[1][up_to]=inf&tiers[1][flat_amount]=7"
    );
    let tiered = desk.post("/v1/prices", &form).await.ok();
    assert_eq!(tiered.get("tiers"), None, "tiers show only when asked for");
    let shown = desk.get(&format!("/v1/prices/{}?expand[]=tiers&expand[]=product", id(&tiered))).await.ok();
    assert_eq!((&shown["tiers"][0]["up_to"], &shown["tiers"][1]["up_to"]), (&json!(10), &Value::Null));
    assert_eq!(
        (&shown["tiers"][1]["flat_amount"], &shown["product"]["unit_label"]),
        (&json!(7), &json!("token"))
    );
    let of_meter = desk.get(&format!("/v1/prices?recurring[meter]={meter}&limit=100")).await.ok();
    assert_eq!(of_meter["data"].as_array().unwrap().len(), 2);
}
