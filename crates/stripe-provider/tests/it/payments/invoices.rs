//! A period's end: the draft comes into our hands, and is finalised if and only if the service counts what was placed.

use billing::payments::GuardStatus;
use serde_json::{Value, json};

use crate::stripe::{DAY, START};
use crate::world::{EVENT_NAME, HOUR, World, at, hour, id};

async fn guard(world: &World) -> GuardStatus {
    world.payments.guard_activate().await.unwrap()
}

/// Every hour's usage told, and the period over since `after` seconds.
async fn given_told(world: &World, after: i64) -> String {
    let acme = world.given_subscriber("acme-1").await;
    world.given_statement("acme-1", 0, 1, 900).await;
    world.given_statement("acme-1", 23, 1, 100).await;
    world.set(DAY + after);
    world.payments.subscriptions_activate().await.unwrap();
    world.sync().await;
    acme
}

async fn invoice(world: &World, id: &str) -> Value {
    world.stripe.get(&format!("/v1/invoices/{id}")).await
}

fn reasons(status: &GuardStatus) -> Vec<&str> {
    status.held.iter().chain(&status.waiting).map(|open| open.reason.as_str()).collect()
}

#[tokio::test]
async fn g8_a_draft_is_taken_first_and_finalised_with_the_root_when_all_agrees() {
    for world in World::both().await {
        given_told(&world, 60).await;
        // Right after the period's end late usage may still come: the draft is only taken.
        let first = guard(&world).await;
        assert_eq!((first.found.len(), reasons(&first)), (1, vec!["lateness"]), "{}: {first:?}", world.name);
        let draft = &first.found[0];
        assert_eq!(invoice(&world, draft).await["auto_advance"], json!(false), "{}", world.name);
        assert_eq!(first.short_grace, std::slice::from_ref(draft), "an hour of grace is short");

        world.set(DAY + 1_000);
        let second = guard(&world).await;
        assert_eq!(second.finalized.len(), 1, "{}: {second:?}", world.name);
        assert_eq!((&second.finalized[0].invoice, second.finalized[0].verdict.as_str()), (draft, "matched"));

        let row = world.ledger().invoice_get(&world.platform, draft).await.unwrap().unwrap();
        assert_eq!((row.state.as_str(), row.expected, row.billed), ("finalized", Some(1_000), Some(1_000)));
        let theirs = invoice(&world, draft).await;
        assert_eq!(theirs["status"], "paid", "{}: collected as without us: {theirs}", world.name);
        let root: String = row.root.unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(theirs["metadata"]["contextmeter_root"], root);
        assert_eq!(theirs["metadata"]["contextmeter_platform"], "acme");

        let lines = world.ledger().invoice_lines(&world.platform, draft).await.unwrap();
        assert_eq!(
            (lines.len(), lines[0].quantity, lines[0].amount, lines[0].last),
            (1, Some(1_000), 100, true)
        );
        let behind =
            world.ledger().placements_for_invoice_line(&world.platform, &lines[0].line_id).await.unwrap();
        assert_eq!(behind.iter().map(|row| row.amount).collect::<Vec<_>>(), [900, 100]);
        for placement in &behind {
            let line = world
                .ledger()
                .invoice_line_for_placement(&world.platform, &placement.placement_id)
                .await
                .unwrap();
            assert_eq!(line.unwrap().line_id, lines[0].line_id, "{}: both ways", world.name);
        }
        let writes = world.stripe.calls("POST", &format!("/v1/invoices/{draft}")).await;
        assert_eq!(writes[0]["params"]["auto_advance"], "false", "{}: the first act", world.name);
        let nothing = guard(&world).await;
        assert!(
            nothing.finalized.is_empty() && nothing.found.is_empty() && reasons(&nothing).is_empty(),
            "{nothing:?}"
        );
    }
}

#[tokio::test]
async fn a_draft_without_usage_is_finalised_too() {
    let world = World::new().await;
    world.given_subscriber("acme-1").await;
    world.set(DAY + 1_000);
    let done = guard(&world).await;
    assert_eq!(done.finalized.len(), 1, "{done:?}");
    assert_eq!(done.finalized[0].verdict, "matched");
}

#[tokio::test]
async fn usage_that_somebody_else_sent_holds_the_invoice_and_it_is_never_finalised() {
    let world = World::new().await;
    let acme = given_told(&world, 1_000).await;
    let time = (START + 5 * HOUR).to_string();
    let form = [
        ("event_name", EVENT_NAME),
        ("identifier", "not-ours"),
        ("payload[stripe_customer_id]", &acme),
        ("payload[value]", "7"),
        ("timestamp", &time),
    ];
    world.stripe.post("/v1/billing/meter_events", &form).await;
    let early = guard(&world).await;
    assert_eq!(reasons(&early), ["summary_differs"]);
    assert!(early.held.is_empty(), "sums lag: it is not due yet");
    world.set(DAY + 3_700);
    let late = guard(&world).await;
    assert_eq!((late.held.len(), late.held[0].reason.as_str()), (1, "summary_differs"));
    world.set(DAY + 20 * HOUR);
    assert_eq!(invoice(&world, &late.held[0].invoice).await["status"], "draft");
}

#[tokio::test]
async fn sums_that_lag_are_waited_for() {
    let world = World::new().await;
    world.stripe.settings(json!({ "aggregation_lag_seconds": 600 })).await;
    given_told(&world, 1_000).await;
    let early = guard(&world).await;
    assert_eq!(reasons(&early), ["unsettled_placements"]);
    world.set(DAY + 1_700);
    let late = guard(&world).await;
    assert_eq!(late.finalized.len(), 1, "{late:?}");
    assert_eq!(late.finalized[0].verdict, "matched");
}

#[tokio::test]
async fn late_usage_after_the_period_was_closed_is_carried_into_the_next_and_marked() {
    let world = World::new().await;
    let acme = given_told(&world, 1_000).await;
    assert_eq!(guard(&world).await.finalized.len(), 1);
    let late = world.given_statement("acme-1", 3, 2, 50).await;
    world.set(DAY + 2 * HOUR);
    assert_eq!(world.sync().await.delivered, 1);
    let placement = world.placement(&late).await;
    assert!(placement.carried);
    assert_eq!((placement.bill_start, placement.minute), (at(START + DAY), at(START + DAY + 40 * 60)));

    world.set(2 * DAY + 1_000);
    world.payments.subscriptions_activate().await.unwrap();
    let done = guard(&world).await;
    assert_eq!((done.finalized.len(), done.finalized[0].verdict.as_str()), (1, "matched"), "{done:?}");
    let rows = world.ledger().bill_period_list(&world.platform, &id("acme-1"), &world.meter).await.unwrap();
    let sums: Vec<_> = rows.iter().filter_map(|row| row.placements_sum).collect();
    assert_eq!(sums, [1_000, 50], "each period has its own root and sum");
    assert_eq!(world.counted(&acme).await, 1_050);
}

#[tokio::test]
async fn what_was_not_sent_when_its_period_closed_goes_to_the_next() {
    let world = World::new().await;
    world.given_subscriber("acme-1").await;
    let statement = world.given_statement("acme-1", 0, 1, 900).await;
    world.set(DAY + 60);
    world.payments.subscriptions_activate().await.unwrap();
    // The service takes no usage until after the invoice is due.
    let refuse = |count: i64| json!({ "route": "POST /v1/billing/meter_events", "kind": "rate_limit", "reason": "global-rate", "count": count });
    world.stripe.fault(refuse(3)).await;
    world.sync().await;
    assert_eq!(guard(&world).await.found.len(), 1);
    assert_eq!(world.placement(&statement).await.state, "planned");
    world.set(DAY + 3_700);
    let done = guard(&world).await;
    assert_eq!((done.finalized.len(), done.finalized[0].verdict.as_str()), (1, "matched"), "{done:?}");
    world.set(DAY + 2 * HOUR);
    let done = world.sync().await;
    assert_eq!(done.delivered, 1, "{done:?}");
    let all = world.placements(&statement).await;
    assert_eq!(all.iter().map(|row| row.state.as_str()).collect::<Vec<_>>(), ["unsendable", "delivered"]);
    assert_eq!(all[1].bill_start, at(START + DAY));
    assert!(
        world
            .stripe
            .sends()
            .await
            .iter()
            .all(|send| send["status"] != 200 || send["params"]["identifier"] == all[1].identifier)
    );
}

#[tokio::test]
async fn an_unknown_outcome_holds_the_invoice_until_evidence() {
    let world = World::new().await;
    world.given_subscriber("acme-1").await;
    world.given_statement("acme-1", 0, 1, 900).await;
    world.set(DAY + 1_000);
    world.payments.subscriptions_activate().await.unwrap();
    world
        .stripe
        .fault(json!({ "route": "POST /v1/billing/meter_events", "kind": "fail_before", "count": 6 }))
        .await;
    world.sync().await;
    let first = guard(&world).await;
    assert_eq!((first.finalized.len(), reasons(&first)), (0, vec!["unsettled_placements"]), "{first:?}");
    world.set(DAY + 1_100);
    let done = guard(&world).await;
    assert_eq!((done.finalized.len(), done.finalized[0].verdict.as_str()), (1, "matched"), "{done:?}");
}

#[tokio::test]
async fn an_ambiguous_customers_invoices_are_held() {
    let world = World::new().await;
    let acme = given_told(&world, 0).await;
    world.stripe.subscribe(&acme, &world.price).await;
    world.payments.subscriptions_activate().await.unwrap();
    world.set(DAY + 1_000);
    let done = guard(&world).await;
    assert_eq!((done.finalized.len(), done.held.len()), (0, 1), "{done:?}");
    assert_eq!(reasons(&done), ["ambiguous_subscription"]);
}

#[tokio::test]
async fn an_invoice_that_somebody_else_finalised_is_compared_and_its_period_closed() {
    let world = World::new().await;
    given_told(&world, 60).await;
    let draft = guard(&world).await.found.remove(0);
    world.stripe.post(&format!("/v1/invoices/{draft}/finalize"), &[]).await;
    let done = guard(&world).await;
    assert_eq!((done.finalized.len(), done.finalized[0].verdict.as_str()), (1, "matched"), "{done:?}");
    let rows = world.ledger().bill_period_list(&world.platform, &id("acme-1"), &world.meter).await.unwrap();
    assert!(rows[0].closed_at.is_some() && rows[0].start == hour(0).start());
}

#[tokio::test]
async fn an_invoice_of_something_else_is_not_ours_to_touch() {
    let world = World::new().await;
    let acme = world.given_subscriber("acme-1").await;
    let other = world.stripe.meter("coffee").await;
    let price = world.stripe.price(&other).await;
    world.stripe.subscribe(&acme, &price).await;
    world.set(DAY + 60);
    let done = guard(&world).await;
    assert_eq!(done.found.len(), 1, "{done:?}");
    let drafts = world.stripe.get("/v1/invoices?status=draft").await;
    let drafts: Vec<&Value> = drafts["data"].as_array().unwrap().iter().collect();
    assert_eq!(drafts.len(), 2);
    for draft in drafts {
        let ours = draft["id"] == done.found[0].as_str();
        assert_eq!(draft["auto_advance"] == true, !ours, "{draft}");
    }
}

#[tokio::test]
async fn a_draft_that_a_person_keeps_from_advancing_is_finalised_and_not_collected() {
    let world = World::new().await;
    given_told(&world, 60).await;
    let drafts = world.stripe.get("/v1/invoices?status=draft").await;
    let draft = drafts["data"][0]["id"].as_str().unwrap().to_owned();
    world.stripe.post(&format!("/v1/invoices/{draft}"), &[("auto_advance", "false")]).await;
    guard(&world).await;
    world.set(DAY + 1_000);
    assert_eq!(guard(&world).await.finalized.len(), 1);
    assert_eq!(invoice(&world, &draft).await["status"], "open");
}
