//! One report that has something of everything, and ways to bend it.

use usage::{AuditPolicy, ErasureKey, PlatformId, Rejection, Timestamp, TurnReport};

pub(crate) const FULL: &str = include_str!("golden/turn_report_full.json");

pub(crate) fn report() -> TurnReport {
    TurnReport::from_json(FULL.as_bytes()).unwrap()
}

/// The sample with one piece of its text exchanged.
pub(crate) fn text(from: &str, to: &str) -> String {
    let text = compact();
    assert_eq!(text.matches(from).count(), 1, "`{from}` must stand once in {text}");
    text.replace(from, to)
}

pub(crate) fn compact() -> String {
    String::from_utf8(report().to_json()).unwrap()
}

pub(crate) fn now() -> Timestamp {
    Timestamp::parse_rfc3339("2026-11-30T12:00:30Z").unwrap()
}

pub(crate) fn audit(report: TurnReport) -> Result<usage::AuditedReport, Rejection> {
    usage::audit(report, &AuditPolicy::new(now()))
}

pub(crate) fn platform() -> PlatformId {
    PlatformId::parse("reseller").unwrap()
}

pub(crate) fn erasure() -> ErasureKey {
    ErasureKey::from_bytes(std::array::from_fn(|at| u8::try_from(at).unwrap()))
}

pub(crate) fn codes(rejection: &Rejection) -> Vec<(&'static str, &str)> {
    rejection.findings.iter().map(|finding| (finding.code, finding.pointer.as_str())).collect()
}
