//! The same report again, and another one under the same key.

use proof::Signature;
use serde_json::Value;
use usage::{AcknowledgementBody, Position, ReportHash, RequestId, Timestamp, TurnId};

use crate::world::{World, noon, platform, report, report_at};

fn verify(turn: &str, report_hash: &str, acknowledgement: &Value) {
    let key = World::signer().verifying_key();
    assert_eq!(acknowledgement["kid"], key.kid());
    let body = AcknowledgementBody {
        platform: platform(),
        request_id: RequestId::parse("req-1").unwrap(),
        turn_id: TurnId::parse(turn).unwrap(),
        report_hash: ReportHash::parse(report_hash).unwrap(),
        position: Position {
            epoch: acknowledgement["epoch"].as_u64().unwrap(),
            seq: acknowledgement["seq"].as_u64().unwrap(),
        },
        at: Timestamp::parse_rfc3339(acknowledgement["at"].as_str().unwrap()).unwrap(),
    };
    let signature = Signature::from_base64(acknowledgement["signature"].as_str().unwrap()).unwrap();
    key.verify(&body.to_sign(), &signature).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn g2_a_repeat_has_the_first_acknowledgement_and_its_signature_verifies() {
    let world = World::sqlite().await.with_tables().await;
    let room = world.open().await;
    let (_, first) = room.post(&report("1", &[900])).await;
    world.clock.advance_micros(1_000_000);
    let (status, second) = room.post(&report("1", &[900])).await;
    assert_eq!((status, &second["status"]), (200, &"duplicate".into()));
    room.ingest.drained().await;
    let (_, third) = room.post(&report("1", &[900])).await; // its record is gone, its index entry stays
    for repeat in [&second, &third] {
        assert_eq!(repeat["acknowledgement"], first["acknowledgement"]);
        assert_eq!(repeat["events"], first["events"]);
    }
    let (status, shown) = room.call("GET", "/v1/reports/req-1/1", "", "").await;
    assert_eq!((status, &shown["stored"]), (200, &true.into()), "{shown}");
    assert_eq!(shown["acknowledgement"], first["acknowledgement"]);
    verify("1", shown["report_hash"].as_str().unwrap(), &first["acknowledgement"]);
    assert_eq!(world.balanced(noon()).await, (1, 900));
    assert_eq!(room.call("GET", "/v1/reports/req-1/2", "", "").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn g3_a_repeat_with_other_content_is_refused_with_a_diff_and_stores_nothing() {
    let world = World::sqlite().await.with_tables().await;
    let room = world.open().await;
    let (_, first) = room.post(&report("1", &[900])).await;
    let mut refusals = Vec::new();
    refusals.push(room.post(&report("1", &[901])).await);
    room.ingest.drained().await;
    refusals.push(room.post(&report("1", &[901])).await); // the first content now comes from the store
    for (status, problem) in &refusals {
        assert_eq!((*status, &problem["code"]), (409, &"report_conflict".into()), "{problem}");
        let differences = problem["differences"].as_array().unwrap();
        assert_eq!(problem["pointer"], differences[0]["pointer"]);
        let cost =
            differences.iter().find(|found| found["pointer"] == "/report/providers/0/token_cost").unwrap();
        assert_eq!((&cost["first"], &cost["second"]), (&900.into(), &901.into()));
    }
    assert_eq!(refusals[0].1["differences"], refusals[1].1["differences"]);
    room.ingest.drained().await;
    assert_eq!(world.balanced(noon()).await, (1, 900));
    assert_eq!(room.ingest.backlog().appended_seq, 1);
    let (_, again) = room.post(&report("1", &[900])).await;
    assert_eq!(again["acknowledgement"], first["acknowledgement"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn g2_of_many_at_once_one_is_accepted_and_one_content_stands() {
    let world = World::sqlite().await.with_tables().await;
    let room = world.open().await;
    let posts = (0..40u64).map(|at| {
        let (room, cost) = (&room, 100 + at % 2);
        async move { (cost, room.post(&report("1", &[cost])).await) }
    });
    let answers = futures_util::future::join_all(posts).await;
    let accepted: Vec<u64> = answers
        .iter()
        .filter(|(_, (_, answer))| answer["status"] == "accepted")
        .map(|(cost, _)| *cost)
        .collect();
    assert_eq!(accepted.len(), 1);
    for (cost, (status, answer)) in &answers {
        assert_eq!(*status, if *cost == accepted[0] { 200 } else { 409 }, "{answer}");
    }
    room.ingest.drained().await;
    assert_eq!(world.balanced(noon()).await, (1, u128::from(accepted[0])));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_repeat_is_a_duplicate_and_a_late_report_is_refused() {
    let world = World::sqlite().await.with_tables().await;
    let key = world.key().await;
    let room = world.open().await;
    room.refresh_keys().await;
    let (_, first) = room.post_as(&key, &report("1", &[5])).await;
    world.clock.advance_micros(31 * 86_400 * 1_000_000);
    room.refresh_keys().await;
    let (status, late) = room.post_as(&key, &report("1", &[5])).await;
    assert_eq!((status, &late["status"]), (200, &"duplicate".into()), "{late}");
    assert_eq!(late["acknowledgement"], first["acknowledgement"]);
    assert_eq!(room.post_as(&key, &report("1", &[6])).await.0, 409);
    let (status, problem) = room.post_as(&key, &report("new", &[5])).await;
    assert_eq!((status, &problem["findings"][0]["pointer"]), (422, &"/report/as_of".into()), "{problem}");
    // The operator may backfill; further back than the index reaches nobody may.
    let (status, problem) = room.post(&report_at("2", "2025-10-01T00:00:00Z", &[5])).await;
    assert_eq!((status, &problem["code"]), (422, &"invalid_report".into()), "{problem}");
    let (status, problem) = room.post(&report_at("3", "2027-10-01T00:00:00Z", &[5])).await;
    assert_eq!((status, &problem["findings"][0]["pointer"]), (422, &"/report/as_of".into()), "{problem}");
}
