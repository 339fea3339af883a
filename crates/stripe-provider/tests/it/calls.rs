//! The trait, call by call.

use std::collections::BTreeMap;

use billing::provider::{
    InvoiceStatus, MeterEvent, NewCustomer, NewMeter, PaymentError, PaymentProvider as _, SendOutcome,
};
use serde_json::json;
use stripe_provider::{StripeOptions, StripeProvider};
use usage::Timestamp;

use crate::stripe::{DAY, START, Stripe};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(seconds).unwrap()
}

fn event(customer: &str, value: u64, identifier: &str, attempt: u32) -> MeterEvent {
    MeterEvent {
        event_name: "tokens".into(),
        customer: customer.into(),
        value,
        identifier: identifier.into(),
        at: at(START),
        idempotency_key: format!("{identifier}/{attempt}"),
    }
}

#[tokio::test]
async fn the_account_and_mode_come_from_the_key() {
    let stripe = Stripe::start().await;
    let provider = stripe.provider().await;
    assert!(provider.account().id.starts_with("acct_"));
    assert!(!provider.account().livemode);

    let keyless = StripeOptions { api_base: stripe.base.clone(), ..StripeOptions::new("whatever") };
    assert!(matches!(StripeProvider::connect(keyless).await, Err(PaymentError::Refused { .. })));
}

#[tokio::test]
async fn an_event_is_taken_once_and_its_minute_says_so_exactly() {
    let stripe = Stripe::start().await;
    let provider = stripe.provider().await;
    let customer = stripe.customer().await;
    let meter = stripe.meter("tokens").await;
    // 15 digits, odd: a float would still hold it, a sum of two would not.
    let value = 999_999_999_999_999;

    let first = provider.meter_event_send(&event(&customer, value, "cm1_a", 1)).await;
    assert!(matches!(first, SendOutcome::Delivered { request: Some(_) }), "{first:?}");
    assert_eq!(
        provider.meter_event_send(&event(&customer, value, "cm1_a", 2)).await,
        SendOutcome::AlreadyExists
    );
    assert_eq!(
        provider.meter_summary(&meter, &customer, at(START), at(START + 60)).await.unwrap(),
        u128::from(value)
    );
    assert_eq!(provider.meter_summary(&meter, &customer, at(START + 60), at(START + 120)).await.unwrap(), 0);

    let call = &stripe.sends().await[0];
    assert_eq!(call["idempotency_key"], "cm1_a/1");
    assert!(call["stripe_version"].as_str().is_some_and(|version| version.starts_with("2026-")), "{call}");
}

#[tokio::test]
async fn each_fault_of_a_send_has_its_own_outcome() {
    let stripe = Stripe::start().await;
    let provider = stripe.provider().await;
    let customer = stripe.customer().await;
    stripe.meter("tokens").await;
    for (fault, expected) in [
        ("fail_before", "unknown"),
        ("fail_after_commit", "unknown"),
        ("drop_connection", "unknown"),
        ("html_502", "unknown"),
        ("lock_timeout", "not taken"),
        ("rate_limit", "not taken"),
    ] {
        stripe.fault_on_send(fault).await;
        let outcome = provider.meter_event_send(&event(&customer, 1, &format!("cm1_{fault}"), 1)).await;
        let found = match outcome {
            SendOutcome::Unknown { .. } => "unknown",
            SendOutcome::NotTaken { .. } => "not taken",
            ref other => panic!("{fault}: {other:?}"),
        };
        assert_eq!(found, expected, "{fault}");
    }
    let unknown_customer = provider.meter_event_send(&event("cus_nobody", 1, "cm1_x", 1)).await;
    assert!(matches!(unknown_customer, SendOutcome::Refused { .. }), "{unknown_customer:?}");
}

#[tokio::test]
async fn no_answer_at_all_is_not_taken() {
    let stripe = Stripe::start().await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let options =
        StripeOptions { api_base: format!("http://{}", closed.local_addr().unwrap()), ..stripe.options() };
    drop(closed);
    let client = stripe_provider::StripeClient::new(&options).unwrap();
    let request = stripe_client_core::RequestBuilder::new(stripe_client_core::StripeMethod::Get, "/account");
    let failure = client.call(request, None).await.unwrap_err();
    assert!(matches!(failure, stripe_provider::StripeFailure::NotConnected(_)), "{failure:?}");
}

#[tokio::test]
async fn meters_customers_and_prices_are_found_and_made() {
    let stripe = Stripe::start().await;
    let provider = stripe.provider().await;
    let made = provider
        .meter_create(&NewMeter {
            display_name: "Tokens".into(),
            event_name: "tokens".into(),
            idempotency_key: "meter/tokens".into(),
        })
        .await
        .unwrap();
    assert!(made.active && made.sums_raw && !made.livemode);
    let counting = [("display_name", "c"), ("event_name", "c"), ("default_aggregation[formula]", "count")];
    stripe.post("/v1/billing/meters", &counting).await;
    let meters = provider.meter_list().await.unwrap();
    assert_eq!(meters.len(), 2);
    assert!(meters.iter().all(|meter| meter.sums_raw == (meter.event_name == "tokens")));

    let new = NewCustomer {
        name: "Acme".into(),
        metadata: BTreeMap::new(),
        idempotency_key: "customer/acme".into(),
    };
    let customer = provider.customer_create(&new).await.unwrap();
    assert_eq!(provider.customer_create(&new).await.unwrap().id, customer.id, "the key makes one customer");
    assert!(provider.customer_get(&customer.id).await.unwrap().is_some());
    assert!(provider.customer_get("cus_nobody").await.unwrap().is_none());
    assert!(provider.customer_get("cus/../evil").await.is_err(), "an id never leaves its place in the path");

    let price = stripe.price(&made.id).await;
    let price = provider.price_get(&price).await.unwrap();
    assert_eq!((price.meter, price.transformed), (Some(made.id), false));
}

#[tokio::test]
async fn lists_are_read_to_their_end() {
    let stripe = Stripe::start().await;
    let provider = stripe.provider().await;
    for number in 0..103 {
        stripe.meter(&format!("meter_{number}")).await;
    }
    assert_eq!(provider.meter_list().await.unwrap().len(), 103);
}

#[tokio::test]
async fn a_read_meets_a_passing_fault_and_goes_on() {
    let stripe = Stripe::start().await;
    let provider = stripe.provider().await;
    stripe.meter("tokens").await;
    stripe.fault(json!({ "route": "GET /v1/billing/meters", "kind": "html_502" })).await;
    assert_eq!(provider.meter_list().await.unwrap().len(), 1);
    stripe.fault(json!({ "route": "GET /v1/billing/meters", "kind": "html_502", "count": 3 })).await;
    assert!(matches!(provider.meter_list().await, Err(PaymentError::Unknown { .. })));
}

#[tokio::test]
async fn a_period_and_its_draft_invoice_are_read_and_taken_into_our_hands() {
    let stripe = Stripe::start().await;
    let provider = stripe.provider().await;
    let customer = stripe.customer().await;
    let meter = stripe.meter("tokens").await;
    let price = stripe.price(&meter).await;
    let subscription = stripe.subscribe(&customer, &price).await;

    let items = provider.subscription_items(&customer).await.unwrap();
    assert_eq!(items.len(), 1);
    let item = &items[0];
    assert_eq!(
        (&item.subscription, &item.meter, &item.price, item.live),
        (&subscription, &meter, &price, true)
    );
    assert_eq!((item.period_start, item.period_end), (at(START), at(START + DAY)));

    let sent = provider.meter_event_send(&event(&customer, 900, "cm1_a", 1)).await;
    assert!(matches!(sent, SendOutcome::Delivered { .. }));
    stripe.set_now(START + DAY + 60);
    let drafts = provider.invoice_drafts().await.unwrap();
    assert_eq!(drafts.len(), 1, "{drafts:?}");
    let draft = &drafts[0];
    assert_eq!(
        (&draft.customer, draft.subscription.as_ref(), draft.auto_advance),
        (&customer, Some(&subscription), true)
    );
    assert_eq!(draft.automatically_finalizes_at, Some(at(START + DAY + 3_600)));

    assert!(!provider.invoice_auto_advance_off(&draft.id, &BTreeMap::new()).await.unwrap().auto_advance);
    stripe.set_now(START + DAY + 7_200);
    assert_eq!(
        provider.invoice_get(&draft.id).await.unwrap().status,
        InvoiceStatus::Draft,
        "only we finalise"
    );
    let root = BTreeMap::from([("contextmeter_root".to_owned(), "ab".to_owned())]);
    assert_eq!(provider.invoice_metadata_set(&draft.id, &root).await.unwrap().metadata, root);
    assert_eq!(provider.invoice_finalize(&draft.id, false).await.unwrap().status, InvoiceStatus::Final);
    let lines = provider.invoice_lines(&draft.id).await.unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!(
        (lines[0].quantity, lines[0].item.as_ref(), lines[0].price.as_ref()),
        (Some(900), Some(&item.item), Some(&price))
    );
    assert_eq!((lines[0].period_start, lines[0].period_end), (at(START), at(START + DAY)));
    assert!(provider.invoice_drafts().await.unwrap().is_empty());
}
