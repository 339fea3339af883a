//! G10: what is wrong is refused with a code and a pointer, and nothing of it is kept.

use serde_json::{Value, json};

use crate::world::{World, report};

#[tokio::test(flavor = "multi_thread")]
async fn g10_bad_bodies_are_refused_and_nothing_is_kept() {
    let world = World::sqlite().await.with_tables().await;
    let room = world.open_with(|options| options.max_body_bytes = 2_000).await.unwrap();
    let changed = |pointer: &str, value: Value| {
        let mut report = report("1", &[900]);
        *report.pointer_mut(pointer).unwrap() = value;
        report.to_string()
    };
    let mut unknown_member = report("1", &[900]);
    unknown_member["colour"] = json!("red");
    let cases = [
        ("{".to_owned(), 400, "malformed_json"),
        (String::new(), 400, "malformed_json"),
        ("[]".to_owned(), 422, "invalid_report"),
        (unknown_member.to_string(), 422, "invalid_report"),
        (changed("/report/providers/0/token_cost", json!(901)), 422, "inconsistent_report"),
        (changed("/report/budget_consumed", json!(900.0)), 422, "invalid_report"),
        (changed("/report/as_of", json!("yesterday")), 422, "invalid_report"),
        (changed("/report/as_of", json!("2026-11-30T13:00:00Z")), 422, "invalid_report"),
        (changed("/customer_id", json!("")), 422, "invalid_report"),
        (changed("/customer_id", json!("x".repeat(3_000))), 413, "body_too_large"),
    ];
    for (body, status, code) in cases {
        let (got, problem) = room.call("POST", "/v1/reports", "application/json", body.clone()).await;
        assert_eq!((got, &problem["code"]), (status, &json!(code)), "{body}: {problem}");
        assert!(problem["detail"].is_string() && problem["retry"] == "never", "{problem}");
    }
    let (status, problem) =
        room.call("POST", "/v1/reports", "text/plain", report("1", &[1]).to_string()).await;
    assert_eq!((status, &problem["code"]), (415, &"unsupported_media_type".into()));
    assert_eq!(room.ingest.backlog().appended_seq, 0);
    assert_eq!(room.call("GET", "/v1/reports/req-1/1", "", "").await.0, 404);
    let (status, ready) = room.call("GET", "/readyz", "", "").await;
    assert_eq!(status, 200, "{ready}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_platform_takes_reports_of_linked_customers_only() {
    let world = World::sqlite().await.with_tables().await;
    let row = world.ledger().platform_get(&crate::world::platform()).await.unwrap();
    world.ledger().platform_update(&ledger::PlatformRow { strict_customers: true, ..row }).await.unwrap();
    let room = world.open().await;
    let (status, problem) = room.post(&report("1", &[1])).await;
    assert_eq!((status, &problem["code"]), (422, &"customer_unknown".into()), "{problem}");
    assert_eq!(room.ingest.backlog().appended_seq, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_whose_clock_is_wrong_is_not_ready() {
    let mut world = World::sqlite().await.with_tables().await;
    let now = usage::Clock::now(&world.clock);
    for (apart, expected) in [(1_900_000, 200), (2_100_000, 503), (-2_100_000, 503)] {
        world.room_clock = usage::ManualClock::new(now.checked_add_micros(apart).unwrap());
        let room = world.open().await;
        let (status, ready) = room.call("GET", "/readyz", "", "").await;
        assert_eq!(status, expected, "{apart}: {ready}");
        room.end().await;
    }
}
