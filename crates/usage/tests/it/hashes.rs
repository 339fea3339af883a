use proptest::prelude::*;
use serde_json::Value;
use usage::{Digest, ErasureKey, ReportHash, ReportRecord, Salt, TurnReport, report_diff};

use crate::{random, sample};

fn hash(report: TurnReport) -> ReportHash {
    let audited = usage::audit_content(report).unwrap();
    ReportRecord::build(&sample::platform(), &audited, &sample::erasure()).report_hash
}

#[test]
fn the_same_report_is_the_same_record_however_it_was_written() {
    let first = sample::report();
    let spaced = serde_json::to_vec_pretty(&first).unwrap();
    let second = TurnReport::from_json(&spaced).unwrap();
    let other_time =
        TurnReport::from_json(sample::text("12:00:00.25Z", "14:00:00.2500009+02:00").as_bytes()).unwrap();
    assert_eq!(hash(first.clone()), hash(second));
    assert_eq!(hash(first.clone()), hash(other_time.clone()), "the same microsecond");
    assert_eq!(report_diff(&first, &other_time), []);
}

#[test]
fn origin_consents_and_legs_are_outside_every_hash() {
    let mut bare = sample::report();
    bare.origin = None;
    bare.consents.clear();
    bare.legs.clear();
    assert_eq!(hash(bare.clone()), hash(sample::report()));
    assert_eq!(report_diff(&bare, &sample::report()), []);
}

/// One row for each member that the report hash binds.
#[test]
fn a_change_of_any_single_member_changes_the_report_hash_and_is_named_by_the_diff() {
    type Change = fn(&mut TurnReport);
    let rows: &[(&str, Change)] = &[
        ("/customer_id", |r| r.customer_id = "other".parse().unwrap()),
        ("/report/budget_requested", |r| r.report.budget_requested += 1),
        ("/report/as_of", |r| r.report.as_of = "2026-11-30T12:00:00.250001Z".into()),
        ("/report/providers/0/provider_id", |r| rename(r, 0)),
        ("/report/providers/0/frames_rejected", |r| r.report.providers[0].frames_rejected += 1),
        ("/report/providers/0/served_frames/0/frame/frame_id", |r| {
            r.report.providers[0].served_frames[0].frame.frame_id = "intrO".parse().unwrap();
        }),
        ("/report/providers/0/served_frames/0/frame/content_digest", |r| {
            r.report.providers[0].served_frames[0].frame.content_digest = None;
        }),
        ("/report/providers/1/served_frames/0/frame/content_digest", |r| {
            r.report.providers[1].served_frames[0].frame.content_digest = Some("blake3:af13".into());
        }),
        ("/report/providers/0/served_frames/0/token_cost", |r| {
            r.report.providers[0].served_frames[0].token_cost -= 1;
            r.report.providers[0].served_frames[1].token_cost += 1;
        }),
        ("/report/budget_consumed", |r| {
            r.report.budget_consumed += 1;
            r.report.providers[1].token_cost += 1;
            r.report.providers[1].served_frames[0].token_cost += 1;
        }),
        ("/report/providers/2", |r| drop(r.report.providers.pop())),
        ("/report/providers/1/provider_id", |r| r.report.providers.swap(1, 2)),
        ("/report/providers/0/served_frames/0/frame/frame_id", |r| {
            r.report.providers[0].served_frames.swap(0, 1)
        }),
    ];
    let first = sample::report();
    for (pointer, change) in rows {
        let mut second = first.clone();
        change(&mut second);
        assert_ne!(hash(first.clone()), hash(second.clone()), "{pointer}");
        let differences = report_diff(&first, &second);
        assert!(differences.iter().any(|found| found.pointer == *pointer), "{pointer}: {differences:?}");
    }
}

fn rename(report: &mut TurnReport, at: usize) {
    let provider = &mut report.report.providers[at];
    provider.provider_id = "docs2".parse().unwrap();
    for served in &mut provider.served_frames {
        served.frame.provider_id = provider.provider_id.clone();
    }
}

#[test]
fn a_difference_shows_both_values_and_there_are_never_more_than_fifty() {
    let first = sample::report();
    let mut second = first.clone();
    second.report.budget_requested = 5000;
    let differences = report_diff(&first, &second);
    let [only] = differences.as_slice() else { panic!("{differences:?}") };
    assert_eq!(
        (&only.pointer[..], &only.first, &only.second),
        ("/report/budget_requested", &Value::from(4096), &Value::from(5000))
    );
    let frame = first.report.providers[0].served_frames[0].clone();
    second.report.providers[0].served_frames = vec![frame; 200];
    assert_eq!(report_diff(&first, &second).len(), 50);
}

#[test]
fn another_erasure_key_gives_other_commitments_and_the_same_event() {
    let audited = usage::audit_content(sample::report()).unwrap();
    let build =
        |key: u8| ReportRecord::build(&sample::platform(), &audited, &ErasureKey::from_bytes([key; 32]));
    let (one, other) = (build(1), build(2));
    assert_eq!(one.report_key, other.report_key);
    assert_eq!(one.events[0].event_id, other.events[0].event_id);
    assert_ne!(one.events[0].frames[0].commitment, other.events[0].frames[0].commitment);
    assert_ne!(one.report_hash, other.report_hash);
}

#[test]
fn equal_frames_of_an_event_have_unequal_commitments() {
    let mut report = sample::report();
    let again = report.report.providers[1].served_frames[0].clone();
    report.report.providers[1].served_frames.push(again);
    report.report.providers[1].frames_served = 2;
    report.report.providers[1].token_cost = 800;
    report.report.budget_consumed += 400;
    let audited = usage::audit_content(report).unwrap();
    let record = ReportRecord::build(&sample::platform(), &audited, &sample::erasure());
    let frames = &record.events[1].frames;
    assert_ne!(frames[0].commitment, frames[1].commitment);
}

#[test]
fn a_host_recomputes_a_commitment_from_the_salt_in_the_answer() {
    let audited = usage::audit_content(sample::report()).unwrap();
    let record = ReportRecord::build(&sample::platform(), &audited, &sample::erasure());
    for event in &record.events {
        assert_eq!(event.salt, Salt::of_event(&sample::erasure(), event.event_id));
        assert_eq!(event.recompute_content_hash(), event.content_hash);
        for (frame, place) in event.frames.iter().zip(0u32..) {
            let digest = frame.digest.as_ref().map(Digest::to_received);
            let again = usage::frame_commitment(
                event.salt,
                place,
                &event.provider_id,
                &frame.frame_id,
                digest.as_deref(),
            );
            assert_eq!(again, frame.commitment);
        }
    }
}

#[test]
fn a_report_without_providers_is_a_record_without_events() {
    let least = TurnReport::from_json(include_bytes!("golden/turn_report_least.json")).unwrap();
    let audited = usage::audit_content(least).unwrap();
    let record = ReportRecord::build(&sample::platform(), &audited, &sample::erasure());
    assert!(record.events.is_empty());
}

#[test]
fn a_digest_comes_back_as_it_was_received() {
    let lower = format!("sha256:{}", "0f".repeat(32));
    assert_eq!(Digest::from_received(&lower), Digest::Sha256([0x0f; 32]));
    let odd = [
        "sha256:",
        "sha256:0f",
        "SHA256:00",
        "x",
        &lower.replace('f', "F"),
        &format!("{lower}0"),
        &lower[..70],
    ];
    for text in odd.into_iter().chain([&lower[..]]) {
        assert_eq!(Digest::from_received(text).to_received(), text);
    }
}

proptest! {
    #![proptest_config(random::config())]

    #[test]
    fn reading_what_was_written_changes_nothing(report in random::good_report()) {
        let again = TurnReport::from_json(&report.to_json()).unwrap();
        prop_assert_eq!(&again, &report);
        prop_assert_eq!(hash(again), hash(report));
    }

    #[test]
    fn no_json_makes_the_reader_or_the_audit_panic(value in random::any_json(), cut in any::<prop::sample::Index>()) {
        let text = value.to_string();
        let _ = TurnReport::from_json(text.as_bytes());
        let _ = TurnReport::from_json(&text.as_bytes()[..cut.index(text.len() + 1)]);
        let inside = sample::text("\"as_of\":\"2026-11-30T12:00:00.25Z\"", &format!("\"as_of\":{text}"));
        if let Ok(report) = TurnReport::from_json(inside.as_bytes()) {
            let _ = sample::audit(report);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut body = sample::compact().into_bytes();
        let at = at.index(body.len());
        body[at] = byte;
        if let Ok(report) = TurnReport::from_json(&body) {
            let _ = sample::audit(report);
        }
    }

    /// Two good reports of the same turn have the same hash only when nothing that is billed differs.
    #[test]
    fn reports_that_differ_have_hashes_that_differ(first in random::good_report(), second in random::good_report()) {
        let mut second = second;
        second.request_id = first.request_id.clone();
        second.turn_id = first.turn_id.clone();
        prop_assert_eq!(hash(first.clone()) == hash(second.clone()), report_diff(&first, &second).is_empty());
    }
}
