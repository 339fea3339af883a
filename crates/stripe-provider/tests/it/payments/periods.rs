//! Periods that begin and end where subscriptions say, not where hours do.

use serde_json::json;

use crate::stripe::{DAY, START};
use crate::world::{HOUR, World, at};

#[tokio::test]
async fn g7_a_period_that_ends_inside_a_minute_bills_each_side_once() {
    // Before, at and after a minute's edge: the rest of the hour has no whole minute, or the part before it has none.
    for cut in [HOUR - 30, 30, 30 * 60 + 10, 30 * 60] {
        let world = World::new().await;
        world.set(cut);
        let acme = world.given_subscriber("acme-1").await;
        let mine = [
            world.given_piece("acme-1", (cut, HOUR), 1, 100).await,
            world.given_statement("acme-1", 5, 1, 1_000).await,
            world.given_piece("acme-1", (DAY, DAY + cut), 1, 10).await,
        ];
        let next = world.given_piece("acme-1", (DAY + cut, DAY + HOUR), 1, 7).await;
        world.set(DAY + cut + 60);
        let first = world.payments.guard_activate().await.unwrap();
        assert_eq!(first.found.len(), 1, "{cut}: {first:?}");
        world.set(DAY + HOUR + 900);
        world.payments.subscriptions_activate().await.unwrap();
        world.payments.guard_activate().await.unwrap();
        for statement in &mine {
            let row = world.placement(statement).await;
            assert_eq!(
                (row.bill_start, row.carried, row.state.as_str()),
                (at(START + cut), false, "delivered"),
                "{cut}"
            );
            assert!(
                row.event_at >= at(START + cut) && row.event_at < at(START + DAY + cut),
                "{cut}: {row:?}"
            );
        }
        let row = world.placement(&next).await;
        assert_eq!(
            (row.bill_start, row.carried, row.state.as_str()),
            (at(START + DAY + cut), false, "delivered"),
            "{cut}"
        );
        let row = world.ledger().invoice_get(&world.platform, &first.found[0]).await.unwrap().unwrap();
        assert_eq!((row.verdict.as_deref(), row.billed), (Some("matched"), Some(1_110)), "{cut}: {row:?}");
        assert_eq!(world.counted(&acme).await, 1_117, "{cut}");
    }
}

#[tokio::test]
async fn several_placements_share_a_boundary_minute_one_after_the_other() {
    let world = World::new().await;
    world.set(HOUR - 30);
    let acme = world.given_subscriber("acme-1").await;
    let first = world.given_piece("acme-1", (HOUR - 30, HOUR), 1, 100).await;
    let second = world.given_piece("acme-1", (HOUR - 30, HOUR), 2, 20).await;
    world.set(2 * HOUR);
    let done = world.sync().await;
    assert_eq!((done.planned, done.delivered), (1, 1), "{done:?}");
    assert_eq!(world.waits().await, [("minute_busy".to_owned(), 1)]);
    world.payments.reconcile_activate().await.unwrap();
    let done = world.sync().await;
    assert_eq!((done.planned, done.delivered, done.waiting), (1, 1, 0), "{done:?}");
    let (first, second) = (world.placement(&first).await, world.placement(&second).await);
    assert_eq!((first.minute, first.slot), (second.minute, 0));
    assert_eq!((second.slot, second.minute_before), (1, 100));
    let compared = world.payments.reconcile_activate().await.unwrap();
    assert_eq!((compared.equal, compared.drift_tokens.as_str()), (1, "0"), "{compared:?}");
    assert_eq!(world.counted(&acme).await, 120);
}

#[tokio::test]
async fn g8_usage_after_the_last_period_is_visible_as_unbillable() {
    let world = World::new().await;
    let acme = world.stripe.customer().await;
    let subscription = world.stripe.subscribe(&acme, &world.price).await;
    world
        .stripe
        .post(&format!("/v1/subscriptions/{subscription}"), &[("cancel_at_period_end", "true")])
        .await;
    world.link("acme-1", &acme).await;
    world.given_statement("acme-1", 0, 1, 900).await;
    world.set(DAY + 1_000);
    world.payments.subscriptions_activate().await.unwrap();
    let done = world.payments.guard_activate().await.unwrap();
    assert_eq!((done.finalized.len(), done.finalized[0].verdict.as_str()), (1, "matched"), "{done:?}");
    world.given_statement("acme-1", 0, 2, 5).await;
    world.set(DAY + 2 * HOUR);
    let done = world.sync().await;
    assert_eq!((done.planned, done.waiting), (0, 1), "{done:?}");
    assert_eq!(world.waits().await, [("subscription_ended".to_owned(), 1)]);
    assert_eq!(world.counted(&acme).await, 900);
}

#[tokio::test]
async fn g7_one_subscription_after_another_is_a_hand_over_and_each_bills_its_own() {
    let world = World::new().await;
    let acme = world.stripe.customer().await;
    let subscription = world.stripe.subscribe(&acme, &world.price).await;
    world
        .stripe
        .post(&format!("/v1/subscriptions/{subscription}"), &[("cancel_at_period_end", "true")])
        .await;
    world.link("acme-1", &acme).await;
    let before = world.given_statement("acme-1", 23, 1, 900).await;
    world.set(DAY);
    world.stripe.subscribe(&acme, &world.price).await;
    world.payments.guard_activate().await.unwrap();
    let after = world.given_statement("acme-1", 24, 1, 7).await;
    world.set(DAY + HOUR + 900);
    let read = world.payments.subscriptions_activate().await.unwrap();
    assert_eq!((read.live, read.ambiguous), (1, 0));
    let done = world.payments.guard_activate().await.unwrap();
    assert_eq!((done.finalized.len(), done.finalized[0].verdict.as_str()), (1, "matched"), "{done:?}");
    let (before, after) = (world.placement(&before).await, world.placement(&after).await);
    assert_eq!((before.bill_start, after.bill_start), (at(START), at(START + DAY)));
    assert!(!before.carried && !after.carried);
    assert_eq!(world.counted(&acme).await, 907);
}

#[tokio::test]
async fn a_price_that_changed_inside_the_period_holds_its_invoice() {
    let world = World::new().await;
    let acme = world.given_subscriber("acme-1").await;
    world.given_statement("acme-1", 0, 1, 900).await;
    world.set(HOUR + 900);
    world.sync().await;
    let meter = world.ledger().meter_list(&world.platform).await.unwrap()[0].stripe_meter.clone().unwrap();
    let other = world.stripe.price(&meter).await;
    let items = world.provider.clone();
    let items = billing::provider::PaymentProvider::subscription_items(&*items, &acme).await.unwrap();
    world.stripe.post(&format!("/v1/subscription_items/{}", items[0].item), &[("price", &other)]).await;
    world.payments.subscriptions_activate().await.unwrap();
    world.set(DAY + 1_000);
    world.payments.subscriptions_activate().await.unwrap();
    let done = world.payments.guard_activate().await.unwrap();
    assert_eq!((done.finalized.len(), done.held.len()), (0, 1), "{done:?}");
    assert_eq!(done.held[0].reason, "repriced");
    world.set(DAY + 10 * HOUR);
    let invoice = world.stripe.get(&format!("/v1/invoices/{}", done.held[0].invoice)).await;
    assert_eq!(invoice["status"], json!("draft"));
}

#[tokio::test]
async fn g7_only_who_was_not_read_since_the_hours_end_is_read_again() {
    for world in World::both().await {
        world.given_subscriber("acme-1").await;
        world.set(HOUR);
        world.given_subscriber("acme-2").await;
        let calls = || async { world.stripe.calls("GET", "/v1/subscriptions").await.len() };
        let before = calls().await;
        let read = world.payments.subscriptions_up_to(&world.platform, at(START + HOUR)).await.unwrap();
        assert_eq!(
            (read.customers, calls().await - before),
            (1, 1),
            "{}: the one that was linked an hour ago",
            world.name
        );
        let read = world.payments.subscriptions_up_to(&world.platform, at(START + HOUR)).await.unwrap();
        assert_eq!((read.customers, calls().await - before), (0, 1), "{}", world.name);
    }
}
