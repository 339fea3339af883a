//! What is not known is held, and decided by what the minute shows.

use ledger::PlacementRow;
use serde_json::json;

use crate::world::{EVENT_NAME, HOUR, World};

/// A statement of 900 that is ready to be told.
async fn given() -> (World, String, String) {
    let world = World::new().await;
    let acme = world.given_subscriber("acme-1").await;
    let statement = world.given_statement("acme-1", 0, 1, 900).await;
    world.set(HOUR + 900);
    (world, acme, statement)
}

async fn reread(world: &World) -> billing::payments::ReconcileStatus {
    world.payments.reconcile_activate().await.unwrap()
}

#[tokio::test]
async fn g6_an_answer_that_is_lost_is_asked_for_again_with_the_same_identifier_and_counts_once() {
    for fault in ["drop_connection", "fail_after_commit", "fail_before", "html_502"] {
        let (world, acme, statement) = given().await;
        world.stripe.fault_on_send(fault).await;
        let done = world.sync().await;
        assert_eq!((done.planned, done.delivered, done.unknown), (1, 1, 0), "{fault}: {done:?}");
        assert_eq!(world.counted(&acme).await, 900, "{fault}");
        let sends = world.stripe.sends().await;
        assert_eq!(sends.len(), 2, "{fault}");
        assert_eq!(sends[0]["params"], sends[1]["params"], "{fault}");
        assert_ne!(
            sends[0]["idempotency_key"], sends[1]["idempotency_key"],
            "{fault}: a kept failure must not come back"
        );
        assert_eq!(world.placement(&statement).await.attempt, 2, "{fault}");
        let compared = reread(&world).await;
        assert_eq!((compared.drift_tokens.as_str(), compared.hours_open), ("0", 0), "{fault}: {compared:?}");
    }
}

#[tokio::test]
async fn an_outcome_that_stays_unknown_is_held_and_is_never_counted_as_delivered() {
    let (world, acme, statement) = given().await;
    world
        .stripe
        .fault(json!({ "route": "POST /v1/billing/meter_events", "kind": "fail_before", "count": 3 }))
        .await;
    let done = world.sync().await;
    assert_eq!((done.delivered, done.unknown), (0, 1), "{done:?}");
    let compared = reread(&world).await;
    assert_eq!((compared.missing, compared.drift_tokens.as_str()), (1, "900"), "{compared:?}");
    assert_eq!(world.placement(&statement).await.state, "unknown");
    // A day later the service may have forgotten the identifier: the same again is no longer safe. The minute decides, after two readings.
    world.set(22 * HOUR);
    world.sync().await;
    assert_eq!(world.placement(&statement).await.state, "unknown", "one reading says nothing yet");
    world.set(22 * HOUR + 120);
    let done = world.sync().await;
    assert_eq!(world.stripe.sends().await.len(), 3, "{done:?}");
    assert_eq!(world.placement(&statement).await.state, "absent");
    let done = world.sync().await;
    assert_eq!((done.planned, done.delivered), (1, 1), "{done:?}");
    assert_successor(&world, &statement).await;
    assert_eq!(world.counted(&acme).await, 900);
}

#[tokio::test]
async fn a_limiter_or_a_lock_is_no_outcome_and_the_same_follows_later() {
    for fault in ["lock_timeout", "rate_limit"] {
        let (world, acme, statement) = given().await;
        world.stripe.fault_on_send(fault).await;
        let done = world.sync().await;
        assert_eq!((done.delivered, done.not_taken), (0, 1), "{fault}: {done:?}");
        assert_eq!(world.placement(&statement).await.state, "planned", "{fault}");
        assert_eq!(world.sync().await.delivered, 1, "{fault}");
        assert_eq!(world.counted(&acme).await, 900, "{fault}");
    }
}

#[tokio::test]
async fn g6_an_identifier_that_exists_with_another_amount_is_a_mismatch_and_is_never_sent_again() {
    let (world, acme, statement) = given().await;
    world
        .stripe
        .fault(json!({ "route": "POST /v1/billing/meter_events", "kind": "fail_before", "count": 3 }))
        .await;
    world.sync().await;
    let placement = world.placement(&statement).await;
    let form = [
        ("event_name", EVENT_NAME.to_owned()),
        ("identifier", placement.identifier.clone()),
        ("payload[stripe_customer_id]", acme.clone()),
        ("payload[value]", "901".to_owned()),
        ("timestamp", placement.event_at.as_unix_seconds_floor().to_string()),
    ];
    let form: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
    world.stripe.post("/v1/billing/meter_events", &form).await;
    let done = world.sync().await;
    assert_eq!((done.delivered, done.identifier_mismatch), (0, 1), "{done:?}");
    assert_eq!(world.placement(&statement).await.state, "identifier_mismatch");
    let sent = world.stripe.sends().await.len();
    assert_eq!(world.sync().await.planned, 0);
    assert_eq!(world.stripe.sends().await.len(), sent);
    let compared = reread(&world).await;
    assert_eq!((compared.identifier_mismatch, compared.drift_tokens.as_str()), (1, "1"), "{compared:?}");
}

#[tokio::test]
async fn an_identifier_that_exists_and_is_not_summed_yet_is_unknown_until_its_minute_shows_it() {
    let (world, acme, statement) = given().await;
    world.stripe.settings(json!({ "aggregation_lag_seconds": 300 })).await;
    world.stripe.fault_on_send("fail_after_commit").await;
    let done = world.sync().await;
    assert_eq!((done.delivered, done.unknown), (0, 1), "{done:?}");
    let placement = world.placement(&statement).await;
    assert!(placement.exists_said);
    let sent = world.stripe.sends().await.len();
    world.set(HOUR + 1_500);
    let done = world.sync().await;
    assert_eq!(done.delivered, 1, "{done:?}");
    assert_eq!(world.stripe.sends().await.len(), sent, "what exists is not sent again");
    assert_eq!(world.counted(&acme).await, 900);
}

#[tokio::test]
async fn an_event_that_was_taken_and_never_counted_is_placed_anew_by_evidence() {
    for world in World::both().await {
        let acme = world.given_subscriber("acme-1").await;
        let statement = world.given_statement("acme-1", 0, 1, 900).await;
        world.set(HOUR + 900);
        world
            .stripe
            .fault(json!({ "route": "POST /v1/billing/meter_events", "kind": "accept_then_reject", "code": "meter_event_invalid_value" }))
            .await;
        assert_eq!(world.sync().await.delivered, 1);
        for (minutes, missing, absent) in [(0, 1, 0), (30, 1, 0), (61, 1, 0), (63, 0, 1)] {
            world.set(HOUR + 900 + minutes * 60);
            let compared = reread(&world).await;
            assert_eq!(
                (compared.missing, compared.absent),
                (missing, absent),
                "{} {minutes}: {compared:?}",
                world.name
            );
            assert_eq!(compared.drift_tokens, "900", "{}", world.name);
        }
        let done = world.sync().await;
        assert_eq!((done.planned, done.delivered), (1, 1), "{}: {done:?}", world.name);
        assert_successor(&world, &statement).await;
        let compared = reread(&world).await;
        assert_eq!(
            (compared.equal, compared.drift_tokens.as_str(), compared.hours_open),
            (1, "0", 0),
            "{}",
            world.name
        );
        assert_eq!(world.counted(&acme).await, 900);
    }
}

async fn assert_successor(world: &World, statement: &str) {
    let mut all = world.placements(statement).await;
    all.sort_by_key(|row| row.n);
    let [first, second]: [PlacementRow; 2] = all.try_into().unwrap();
    assert_eq!((first.state.as_str(), second.state.as_str(), second.n), ("absent", "delivered", 2));
    assert_ne!(first.identifier, second.identifier);
    assert_ne!(first.minute, second.minute, "a minute of its own");
    assert_eq!(first.amount, second.amount);
}

#[tokio::test]
async fn a_process_that_ended_during_the_call_leaves_an_unknown_that_the_next_one_resolves() {
    for taken in [true, false] {
        let (world, acme, statement) = given().await;
        world.platform_change(|row| row.sync_mode = ledger::SyncMode::Live).await;
        let fault = if taken { "drop_connection" } else { "fail_before" };
        world
            .stripe
            .fault(json!({ "route": "POST /v1/billing/meter_events", "kind": fault, "count": 3 }))
            .await;
        world.sync().await;
        // As a process leaves it that ends between its note of the attempt and the note of the answer.
        let row = world.placement(&statement).await;
        let ended = PlacementRow { state: "sending".to_owned(), attempt: row.attempt + 1, ..row.clone() };
        let mut tx = world.ledger().write().await.unwrap();
        world.ledger().placement_update_in_txn(&mut tx, &ended, &row.state, row.attempt).await.unwrap();
        tx.commit().await.unwrap();

        let done = world.sync().await;
        assert_eq!(done.delivered, 1, "{taken}: {done:?}");
        assert_eq!(world.counted(&acme).await, 900, "{taken}");
    }
}

#[tokio::test]
async fn what_the_service_refuses_stays_visible_and_goes_again_only_when_a_person_says_so() {
    let (world, acme, statement) = given().await;
    let meter = world.ledger().meter_list(&world.platform).await.unwrap()[0].stripe_meter.clone().unwrap();
    world.stripe.fault(json!({ "route": "POST /v1/billing/meter_events", "kind": "rate_limit", "count": 1, "reason": "global-rate" })).await;
    world.sync().await;
    world.stripe.post(&format!("/v1/billing/meters/{meter}/deactivate"), &[]).await;
    let done = world.sync().await;
    assert_eq!((done.refused, done.delivered), (1, 0), "{done:?}");
    assert_eq!(world.placement(&statement).await.state, "refused");
    world.stripe.post(&format!("/v1/billing/meters/{meter}/reactivate"), &[]).await;
    assert_eq!(world.sync().await.planned, 0);
    let request = billing::payments::SyncRequest { platform: None, retry_refused: true };
    let done = world.payments.sync_activate(request).await.unwrap();
    assert_eq!((done.planned, done.delivered), (1, 1), "{done:?}");
    assert_eq!(world.counted(&acme).await, 900);
}
