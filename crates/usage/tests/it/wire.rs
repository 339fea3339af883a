use contextgraph_types as protocol;
use usage::{CustomerId, RequestId, TurnId, TurnReport};

use crate::sample;

/// Members, their order and their absence are the interface: a host compares what it stored with what it sends.
#[test]
fn a_report_is_written_as_the_published_example() {
    for golden in [sample::FULL, include_str!("golden/turn_report_least.json")] {
        let report = TurnReport::from_json(golden.as_bytes()).unwrap();
        assert_eq!(format!("{}\n", serde_json::to_string_pretty(&report).unwrap()), golden);
    }
}

#[test]
fn what_is_written_twice_is_the_same_bytes() {
    let report = sample::report();
    let again = TurnReport::from_json(&report.to_json()).unwrap();
    assert_eq!(report, again);
    assert_eq!(report.to_json(), again.to_json());
}

fn protocol_report() -> protocol::UsageReport {
    serde_json::from_value(serde_json::to_value(&sample::report().report).unwrap()).unwrap()
}

#[test]
fn our_usage_report_is_the_protocol_s_in_both_directions() {
    let theirs = protocol_report();
    assert!(theirs.is_consistent());
    let ours = serde_json::to_string(&sample::report().report).unwrap();
    assert_eq!(serde_json::to_string(&theirs).unwrap(), ours);
    let (customer, request) = (CustomerId::parse("acme").unwrap(), RequestId::parse("req-81").unwrap());
    let report = TurnReport::from_protocol(customer, request, TurnId::parse("7").unwrap(), &theirs).unwrap();
    assert_eq!(report.report, sample::report().report);
}

#[test]
fn our_consent_receipt_is_the_protocol_s() {
    let ours = serde_json::to_value(&sample::report().consents).unwrap();
    let theirs: Vec<protocol::ConsentReceipt> = serde_json::from_value(ours.clone()).unwrap();
    assert_eq!(serde_json::to_value(theirs).unwrap(), ours);
}

#[test]
fn a_report_of_a_host_in_this_process_with_a_bad_identity_is_refused_with_its_place() {
    let mut theirs = protocol_report();
    theirs.providers[1].provider_id.clear();
    theirs.providers[0].served_frames[1].frame.frame_id = "a\u{2028}b".to_owned();
    let (customer, request) = (CustomerId::parse("acme").unwrap(), RequestId::parse("req-81").unwrap());
    let refused =
        TurnReport::from_protocol(customer, request, TurnId::parse("7").unwrap(), &theirs).unwrap_err();
    assert_eq!(
        sample::codes(&refused),
        [
            ("id_control_character", "/report/providers/0/served_frames/1/frame/frame_id"),
            ("id_empty", "/report/providers/1/provider_id"),
        ]
    );
}
