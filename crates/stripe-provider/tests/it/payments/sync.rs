//! From statements to events, once.

use billing::payments::{PaymentsError, SyncRequest};
use ledger::SyncMode;
use serde_json::json;

use crate::statements::{Statement, commit};
use crate::stripe::START;
use crate::world::{EVENT_NAME, HOUR, World, at, hour, id};

#[tokio::test]
async fn g6_each_statement_is_told_once_and_its_minute_shows_it() {
    for world in World::both().await {
        let acme = world.given_subscriber("acme-1").await;
        let first = world.given_statement("acme-1", 0, 1, 900).await;
        let second = world.given_statement("acme-1", 1, 1, 100).await;
        world.given_statement("acme-1", 1, 2, 0).await;
        world.set(2 * HOUR + 900);

        let done = world.sync().await;
        assert_eq!((done.planned, done.delivered, done.waiting), (2, 2, 0), "{}: {done:?}", world.name);
        let sends = world.stripe.sends().await;
        assert_eq!(sends.len(), 2, "{}: nothing is sent of zero", world.name);
        for (send, (statement, hour, value)) in sends.iter().zip([(&first, 0, "900"), (&second, 1, "100")]) {
            let placement = world.placement(statement).await;
            let params = &send["params"];
            assert_eq!(params["identifier"], placement.identifier, "{}", world.name);
            assert_eq!(params["event_name"], EVENT_NAME);
            assert_eq!(
                params["timestamp"],
                (START + hour * HOUR).to_string(),
                "the first minute of its own hour"
            );
            assert_eq!(params["payload"], json!({ "stripe_customer_id": acme, "value": value }));
            assert_eq!(send["idempotency_key"], format!("{}/1", placement.identifier));
            assert_eq!(placement.state, "delivered");
            assert!(placement.request_id.is_some());
        }

        let again = world.sync().await;
        assert_eq!((again.planned, again.delivered), (0, 0), "{}", world.name);
        assert_eq!(world.stripe.sends().await.len(), 2, "{}", world.name);

        let compared = world.payments.reconcile_activate().await.unwrap();
        assert_eq!(
            (compared.placements, compared.equal, compared.drift_tokens.as_str()),
            (2, 2, "0"),
            "{}",
            world.name
        );
        assert_eq!(compared.hours_open, 0, "{}: {compared:?}", world.name);
        let nothing_left = world.payments.reconcile_activate().await.unwrap();
        assert_eq!(nothing_left.placements, 0, "{}", world.name);
        assert_eq!(world.counted(&acme).await, 1_000);
    }
}

#[tokio::test]
async fn a_sum_beyond_fifteen_digits_is_told_in_parts_that_add_up() {
    let world = World::new().await;
    let acme = world.given_subscriber("acme-1").await;
    let sum = 2_000_000_000_000_001;
    let statement = world.given_statement("acme-1", 0, 1, sum).await;
    world.set(HOUR + 900);
    let done = world.sync().await;
    assert_eq!((done.planned, done.delivered), (3, 3));
    let placements = world.placements(&statement).await;
    let minutes: std::collections::BTreeSet<_> = placements.iter().map(|row| row.minute).collect();
    assert_eq!(minutes.len(), 3, "each part has a minute of its own");
    assert_eq!(world.counted(&acme).await, sum);
    let compared = world.payments.reconcile_activate().await.unwrap();
    assert_eq!((compared.equal, compared.drift_tokens.as_str()), (3, "0"));
}

#[tokio::test]
async fn off_sends_nothing_and_shadow_counts_what_it_would_send() {
    let world = World::new().await;
    world.given_subscriber("acme-1").await;
    world.given_statement("acme-1", 0, 1, 900).await;
    world.set(HOUR + 900);
    for (mode, would_place) in [(SyncMode::Off, 0), (SyncMode::Shadow, 1)] {
        world.platform_change(|row| row.sync_mode = mode).await;
        let done = world.sync().await;
        assert_eq!(done.planned, 0);
        assert_eq!(
            (done.platforms[0].mode.as_str(), done.platforms[0].would_place),
            (mode.as_str(), would_place)
        );
    }
    assert!(world.stripe.sends().await.is_empty());
    world.platform_change(|row| row.sync_mode = SyncMode::Live).await;
    assert_eq!(world.sync().await.delivered, 1, "nothing was passed over meanwhile");
}

#[tokio::test]
async fn g9_nothing_is_sent_for_a_platform_of_another_account_or_mode() {
    let world = World::new().await;
    world.given_subscriber("acme-1").await;
    world.given_statement("acme-1", 0, 1, 900).await;
    world.set(HOUR + 900);
    for (account, binding) in [(None, "not_bound"), (Some("acct_other".to_owned()), "other_account")] {
        world.platform_change(|row| row.stripe_account = account).await;
        let done = world.sync().await;
        assert_eq!((done.planned, done.platforms[0].binding.as_str()), (0, binding));
        let refused = world.payments.meters_ensure(&world.platform).await.unwrap_err();
        assert!(matches!(refused, PaymentsError::Unbound(_)), "{refused}");
    }
    assert!(world.stripe.sends().await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_placed_waits_under_its_reason_and_goes_when_that_is_over() {
    let world = World::new().await;
    let statement = world.given_statement("acme-1", 0, 1, 900).await;
    world.set(HOUR + 900);
    world.sync().await;
    assert_eq!(world.waits().await, [("unlinked_customer".to_owned(), 1)]);

    let acme = world.stripe.customer().await;
    world.link("acme-1", &acme).await;
    world.sync().await;
    assert_eq!(world.waits().await, [("no_subscription".to_owned(), 1)]);

    // From now on: the usage lies before its first period and is carried into it, into minutes that are for that.
    world.stripe.subscribe(&acme, &world.price).await;
    world.payments.subscriptions_activate().await.unwrap();
    world.sync().await;
    assert_eq!(world.waits().await, [("no_minute_yet".to_owned(), 1)]);
    assert!(world.stripe.sends().await.is_empty());

    world.set(HOUR + 50 * 60);
    let done = world.sync().await;
    assert_eq!((done.delivered, done.waiting), (1, 0), "{done:?}");
    let placement = world.placement(&statement).await;
    assert!(placement.carried);
    assert!(
        placement.minute >= at(START + HOUR + 900) && placement.minute <= at(START + HOUR + 50 * 60),
        "{placement:?}"
    );
    assert_eq!(world.counted(&acme).await, 900);
}

#[tokio::test]
async fn g7_two_subscriptions_that_bill_the_same_meter_stop_the_customer_and_no_other() {
    let world = World::new().await;
    let twice = world.given_subscriber("twice").await;
    let once = world.given_subscriber("once").await;
    world.stripe.subscribe(&twice, &world.price).await;
    world.given_statement("twice", 0, 1, 900).await;
    world.given_statement("once", 0, 1, 700).await;
    world.set(HOUR + 900);
    let read = world.payments.subscriptions_activate().await.unwrap();
    assert_eq!((read.customers, read.live, read.ambiguous), (2, 1, 1));
    let done = world.sync().await;
    assert_eq!((done.delivered, done.waiting), (1, 1), "{done:?}");
    assert_eq!(world.waits().await, [("ambiguous_subscription".to_owned(), 1)]);
    assert_eq!((world.counted(&twice).await, world.counted(&once).await), (0, 700));
}

#[tokio::test]
async fn of_two_workers_one_works_and_each_call_of_a_customer_and_meter_is_alone() {
    let world = World::new().await;
    let other = world.second_worker();
    world.stripe.settings(json!({ "meter_event_millis": 5 })).await;
    for number in 0..4 {
        let customer = format!("acme-{number}");
        world.given_subscriber(&customer).await;
        for hour in 0..5 {
            world.given_statement(&customer, hour, 1, 10).await;
        }
    }
    world.set(6 * HOUR);
    let (one, two) = tokio::join!(
        world.payments.sync_activate(SyncRequest::default()),
        other.sync_activate(SyncRequest::default())
    );
    let delivered: Vec<u64> =
        [&one, &two].iter().filter_map(|done| done.as_ref().ok()).map(|done| done.delivered).collect();
    assert_eq!(delivered.iter().sum::<u64>(), 20, "{one:?} {two:?}");
    for done in [one, two] {
        assert!(matches!(done, Ok(_) | Err(PaymentsError::Busy)), "{done:?}");
    }
    let sends = world.stripe.sends().await;
    assert_eq!(sends.len(), 20);
    assert!(sends.iter().all(|send| send["concurrent"] == 1), "one call in flight per customer and meter");
}

#[tokio::test]
async fn a_stripe_customer_pays_for_one_customer_and_a_link_that_was_billed_stays() {
    for world in World::both().await {
        let acme = world.given_subscriber("acme-1").await;
        world.link("acme-1", &acme).await;
        let taken = world.payments.customer_link(&world.platform, &id("acme-2"), &acme).await.unwrap_err();
        assert!(
            matches!(taken, PaymentsError::Ledger(ledger::LedgerError::Conflict { .. })),
            "{}: {taken:?}",
            world.name
        );
        let other = world.stripe.customer().await;
        let moved = world.payments.customer_link(&world.platform, &id("acme-1"), &other).await.unwrap_err();
        assert!(
            matches!(moved, PaymentsError::Ledger(ledger::LedgerError::Conflict { .. })),
            "{}: {moved:?}",
            world.name
        );
        let nobody =
            world.payments.customer_link(&world.platform, &id("acme-3"), "cus_nobody").await.unwrap_err();
        assert!(matches!(nobody, PaymentsError::NoCustomer(_)), "{}: {nobody:?}", world.name);
        // Nothing was read of this one yet: a slip can be put right.
        world.link("acme-4", &other).await;
        let right = world.stripe.customer().await;
        world.link("acme-4", &right).await;
    }
}

#[tokio::test]
async fn a_statement_whose_run_is_not_recorded_beside_the_usage_is_not_sent_nor_what_follows_it() {
    for world in World::both().await {
        world.given_subscriber("acme-1").await;
        let piece = (at(START), at(START + HOUR));
        let statement = Statement {
            platform: world.platform.clone(),
            customer: id("acme-1"),
            meter: world.meter.clone(),
            hour: hour(0),
            piece,
            revision: 1,
            sum: 900,
        };
        let (run, _) = commit(world.ledger(), statement).await;
        world.set(2 * HOUR + 900);
        assert_eq!(world.sync().await.planned, 0, "{}", world.name);
        world.ledger().seal_run_recorded(&run).await.unwrap();
        assert_eq!(world.sync().await.delivered, 1, "{}", world.name);
    }
}
