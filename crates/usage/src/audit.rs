mod checks;

use std::{fmt, sync::Arc};

use serde::Serialize;

use crate::{Hour, Timestamp, TurnReport};

/// One fault, or one warning: what, where and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable and in snake case.
    pub code: &'static str,
    /// RFC 6901, into the report as it was posted.
    pub pointer: String,
    /// A sentence for the sender.
    pub detail: String,
}

/// Why a report was not taken. It has at least one finding and at most [`Rejection::MAX_FINDINGS`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejection {
    /// `malformed_json` (not JSON), `invalid_report` (not the shape, or a value out of its bounds) or `inconsistent_report` (its
    /// figures contradict each other).
    pub code: &'static str,
    pub findings: Vec<Finding>,
}

impl Rejection {
    pub const MAX_FINDINGS: usize = 100;

    pub(crate) fn of(code: &'static str, findings: Vec<Finding>) -> Option<Self> {
        (!findings.is_empty()).then_some(Self { code, findings })
    }

    /// The same faults of a report that stood below another document's member, such as `/data` of a CloudEvent.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        for finding in &mut self.findings {
            finding.pointer.insert_str(0, prefix);
        }
        self
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code)?;
        match self.findings.first() {
            None => Ok(()),
            Some(first) => write!(f, ": {} at `{}`", first.code, first.pointer),
        }
    }
}

impl std::error::Error for Rejection {}

/// Adds a finding unless there are enough; the text is only made when it is kept.
pub(crate) fn push(
    findings: &mut Vec<Finding>,
    code: &'static str,
    pointer: String,
    detail: impl FnOnce() -> String,
) {
    if findings.len() < Rejection::MAX_FINDINGS {
        findings.push(Finding { code, pointer, detail: detail() });
    }
}

/// How far from now a report's accounting time may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditPolicy {
    pub now: Timestamp,
    pub accept_back_micros: i64,
    pub accept_ahead_micros: i64,
}

impl AuditPolicy {
    /// 30 days back, five minutes ahead.
    pub fn new(now: Timestamp) -> Self {
        Self { now, accept_back_micros: 30 * 24 * 3600 * 1_000_000, accept_ahead_micros: 5 * 60 * 1_000_000 }
    }
}

/// A report whose every figure was checked. Only the audit makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditedReport {
    report: Arc<TurnReport>,
    as_of: Timestamp,
    tokens: u64,
    frames: u64,
    warnings: Vec<Finding>,
    /// Which provider of the list each warning is about; none: the report as a whole.
    warned: Vec<Option<usize>>,
}

impl AuditedReport {
    pub fn report(&self) -> &TurnReport {
        &self.report
    }

    pub fn into_report(self) -> TurnReport {
        Arc::unwrap_or_clone(self.report)
    }

    /// The accounting time, cut to the microsecond.
    pub fn as_of(&self) -> Timestamp {
        self.as_of
    }

    /// The window in which it is billed.
    pub fn hour(&self) -> Hour {
        Hour::of(self.as_of)
    }

    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Frames served, over all providers.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// What a conformant host can produce but a person may want to look at.
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }

    /// The warnings' codes that belong on the event of one provider, each once.
    pub(crate) fn warnings_of(&self, provider: usize) -> Vec<String> {
        let mut codes: Vec<String> = Vec::new();
        for (finding, about) in self.warnings.iter().zip(&self.warned) {
            if about.is_none_or(|at| at == provider) && !codes.iter().any(|code| code == finding.code) {
                codes.push(finding.code.to_owned());
            }
        }
        codes
    }

    /// Whether its accounting time may be accepted now. Apart from the rest, so that a late repeat of a stored report can still
    /// be recognised as one.
    pub fn check_time(&self, policy: &AuditPolicy) -> Result<(), Rejection> {
        let mut findings = Vec::new();
        checks::time(self.as_of, policy, &mut findings);
        Rejection::of("invalid_report", findings).map_or(Ok(()), Err)
    }
}

/// The whole audit: content, then time.
pub fn audit(report: TurnReport, policy: &AuditPolicy) -> Result<AuditedReport, Rejection> {
    checks::run(report, Some(policy))
}

/// The audit without the question whether the accounting time is recent enough.
pub fn audit_content(report: TurnReport) -> Result<AuditedReport, Rejection> {
    checks::run(report, None)
}
