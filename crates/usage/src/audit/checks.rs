use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{AuditPolicy, AuditedReport, Finding, Rejection, push};
use crate::{
    FrameId, Limits, ProviderUsage, Timestamp, TurnReport,
    report::{check_digest, check_note},
};

/// Collects what is wrong. The overall code is `inconsistent_report` when every fault is one of figures against each other.
#[derive(Default)]
struct Audit {
    findings: Vec<Finding>,
    malformed: bool,
    warnings: Vec<Finding>,
    warned: Vec<Option<usize>>,
}

impl Audit {
    /// A value that is wrong by itself.
    fn invalid(&mut self, code: &'static str, pointer: String, detail: impl FnOnce() -> String) {
        self.malformed = true;
        push(&mut self.findings, code, pointer, detail);
    }

    /// Values that contradict each other.
    fn contradiction(&mut self, code: &'static str, pointer: String, detail: impl FnOnce() -> String) {
        push(&mut self.findings, code, pointer, detail);
    }

    /// Each code once a provider, so that none is crowded out and their number is bounded by that of the providers.
    fn warn(&mut self, provider: Option<usize>, code: &'static str, pointer: String, detail: String) {
        self.warnings.push(Finding { code, pointer, detail });
        self.warned.push(provider);
    }
}

pub(super) fn run(report: TurnReport, policy: Option<&AuditPolicy>) -> Result<AuditedReport, Rejection> {
    let mut audit = Audit::default();
    let as_of = as_of(&report, policy, &mut audit);
    side_texts(&report, &mut audit);
    sizes(&report, &mut audit);
    providers_once(&report, &mut audit);
    for (at, provider) in report.report.providers.iter().enumerate() {
        one_provider(at, provider, report.report.budget_requested, &mut audit);
    }
    let (tokens, frames) = totals(&report, &mut audit);
    let overall = if audit.malformed { "invalid_report" } else { "inconsistent_report" };
    match (Rejection::of(overall, audit.findings), as_of) {
        (None, Some(as_of)) => Ok(AuditedReport {
            report: Arc::new(report),
            as_of,
            tokens,
            frames,
            warnings: audit.warnings,
            warned: audit.warned,
        }),
        (Some(rejection), _) => Err(rejection),
        // An unreadable time always left a finding; without one there is nothing that could be accounted.
        (None, None) => {
            let detail = "The accounting time is not readable.".to_owned();
            let finding = Finding { code: "as_of_invalid", pointer: "/report/as_of".to_owned(), detail };
            Err(Rejection { code: "invalid_report", findings: vec![finding] })
        }
    }
}

fn as_of(report: &TurnReport, policy: Option<&AuditPolicy>, audit: &mut Audit) -> Option<Timestamp> {
    match Timestamp::parse_rfc3339(&report.report.as_of) {
        Ok(as_of) => {
            if let Some(policy) = policy {
                let before = audit.findings.len();
                time(as_of, policy, &mut audit.findings);
                audit.malformed |= audit.findings.len() > before;
            }
            Some(as_of)
        }
        Err(error) => {
            audit.invalid("as_of_invalid", "/report/as_of".to_owned(), || {
                format!(
                    "The accounting time cannot be read ({}); send RFC 3339 such as 2026-11-30T12:00:00Z.",
                    error.reason
                )
            });
            None
        }
    }
}

pub(super) fn time(as_of: Timestamp, policy: &AuditPolicy, findings: &mut Vec<Finding>) {
    let after_now = as_of.micros_since(policy.now);
    let pointer = || "/report/as_of".to_owned();
    if after_now > i128::from(policy.accept_ahead_micros) {
        push(findings, "as_of_in_future", pointer(), || {
            format!(
                "The accounting time {as_of} is ahead of our clock, {}; check the host's clock.",
                policy.now
            )
        });
    }
    if -after_now > i128::from(policy.accept_back_micros) {
        push(findings, "as_of_too_old", pointer(), || {
            let days = policy.accept_back_micros / 86_400_000_000;
            format!(
                "The accounting time {as_of} is more than {days} days back; post it with a key of scope backfill."
            )
        });
    }
}

/// Texts that the types leave free. A report that was read from JSON has passed this already; one made in Rust has not.
fn side_texts(report: &TurnReport, audit: &mut Audit) {
    let note = |audit: &mut Audit, pointer: String, text: &str| {
        if let Err((code, says)) = check_note(text, Limits::NOTE_BYTES) {
            audit.invalid(code, pointer, || format!("Here {says}."));
        }
    };
    if let Some(origin) = &report.origin {
        note(audit, "/origin/epoch".to_owned(), &origin.epoch);
    }
    for (at, consent) in report.consents.iter().enumerate() {
        let members = [
            ("scope", Some(&consent.scope)),
            ("provider_name", Some(&consent.provider_name)),
            ("provider_version", Some(&consent.provider_version)),
            ("grantor/id", Some(&consent.grantor.id)),
            ("granted_at", Some(&consent.granted_at)),
            ("expires_at", consent.expires_at.as_ref()),
        ];
        for (member, text) in members {
            if let Some(text) = text {
                note(audit, format!("/consents/{at}/{member}"), text);
            }
        }
    }
    for (at, leg) in report.legs.iter().enumerate() {
        for (reason_at, reason) in leg.reasons.iter().enumerate() {
            note(audit, format!("/legs/{at}/reasons/{reason_at}"), reason);
        }
        for (frame_at, frame) in leg.rejected.iter().enumerate() {
            digest(frame, audit, || format!("/legs/{at}/rejected/{frame_at}"));
        }
    }
}

fn digest(frame: &FrameId, audit: &mut Audit, pointer: impl FnOnce() -> String) {
    if let Some(text) = &frame.content_digest
        && let Err((code, says)) = check_digest(text, Limits::DIGEST_BYTES)
    {
        audit.invalid(code, format!("{}/content_digest", pointer()), || format!("Here {says}."));
    }
}

fn sizes(report: &TurnReport, audit: &mut Audit) {
    let providers = &report.report.providers;
    let frames: usize =
        providers.iter().map(|provider| provider.served_frames.len()).fold(0, usize::saturating_add);
    let rejected: usize = report.legs.iter().map(|leg| leg.rejected.len()).fold(0, usize::saturating_add);
    let reasons = report.legs.iter().map(|leg| leg.reasons.len()).max().unwrap_or(0);
    let rows = [
        ("too_many_providers", "/report/providers", providers.len(), Limits::PROVIDERS),
        ("too_many_frames", "/report/providers", frames, Limits::FRAMES),
        ("too_many_items", "/consents", report.consents.len(), Limits::CONSENTS),
        ("too_many_items", "/legs", report.legs.len(), Limits::LEGS),
        ("too_many_items", "/legs", reasons, Limits::REASONS_PER_LEG),
        ("too_many_items", "/legs", rejected, Limits::REJECTED),
    ];
    for (code, pointer, found, max) in rows {
        if found > max {
            audit.invalid(code, pointer.to_owned(), || {
                format!("There are {found}, more than the {max} that one report may hold.")
            });
        }
    }
}

fn providers_once(report: &TurnReport, audit: &mut Audit) {
    let mut seen = HashMap::new();
    for (at, provider) in report.report.providers.iter().enumerate() {
        if let Some(first) = seen.insert(&provider.provider_id, at) {
            audit.contradiction("duplicate_provider", format!("/report/providers/{at}/provider_id"), || {
                format!("Provider {} already stands at place {first}; a provider appears once, with all its frames.", provider.provider_id)
            });
        }
    }
}

fn one_provider(at: usize, provider: &ProviderUsage, budget: u64, audit: &mut Audit) {
    let here = format!("/report/providers/{at}");
    if usize::try_from(provider.frames_served) != Ok(provider.served_frames.len()) {
        audit.contradiction("frames_served_mismatch", format!("{here}/frames_served"), || {
            format!(
                "It says {} but {} frames are listed.",
                provider.frames_served,
                provider.served_frames.len()
            )
        });
    }
    let mut sum = Some(0u64);
    let mut identities = HashSet::with_capacity(provider.served_frames.len());
    let mut without_digest = 0usize;
    let (mut repeated, mut repeats) = (None, 0usize);
    for (frame_at, served) in provider.served_frames.iter().enumerate() {
        let place = || format!("{here}/served_frames/{frame_at}");
        sum = sum.and_then(|sum| sum.checked_add(served.token_cost));
        if served.frame.provider_id != provider.provider_id {
            audit.contradiction("foreign_frame_provider", format!("{}/frame/provider_id", place()), || {
                format!(
                    "The frame names provider {}, but stands below {}.",
                    served.frame.provider_id, provider.provider_id
                )
            });
        }
        digest(&served.frame, audit, || format!("{}/frame", place()));
        without_digest += usize::from(served.frame.content_digest.is_none());
        if !identities.insert((&served.frame.frame_id, &served.frame.content_digest)) {
            repeated.get_or_insert(frame_at);
            repeats += 1;
        }
    }
    match sum {
        None => audit.contradiction("total_overflow", format!("{here}/token_cost"), || {
            "The costs of the frames add up to more than 64 bits hold.".to_owned()
        }),
        Some(sum) if sum != provider.token_cost => {
            audit.contradiction("frame_sum_mismatch", format!("{here}/token_cost"), || {
                format!("It says {} but the frames add up to {sum}.", provider.token_cost)
            });
        }
        Some(_) => {}
    }
    if provider.token_cost > budget {
        audit.contradiction("cost_above_budget", format!("{here}/token_cost"), || {
            format!(
                "{} is more than the {budget} that were requested; a host rejects such an answer whole.",
                provider.token_cost
            )
        });
    }
    if let Some(first) = repeated {
        let detail = format!(
            "An identity that stands here already comes again, {repeats} times in all; each time is billed."
        );
        audit.warn(
            Some(at),
            "duplicate_frame_identity",
            format!("{here}/served_frames/{first}/frame"),
            detail,
        );
    }
    if without_digest > 0 {
        let detail =
            format!("{without_digest} frames have no content digest, so nobody can verify them later.");
        audit.warn(Some(at), "missing_digest", format!("{here}/served_frames"), detail);
    }
    if usize::try_from(provider.frames_rejected).map_or(true, |rejected| rejected > Limits::FRAMES) {
        let detail = format!(
            "{} rejected frames are more than a report could list; look at the host.",
            provider.frames_rejected
        );
        audit.warn(Some(at), "implausible_frames_rejected", format!("{here}/frames_rejected"), detail);
    }
}

/// Tokens and frames over all providers. Zero where a finding says that there is no such number.
fn totals(report: &TurnReport, audit: &mut Audit) -> (u64, u64) {
    let usage = &report.report;
    let tokens = usage.providers.iter().try_fold(0u64, |sum, provider| sum.checked_add(provider.token_cost));
    // At most 2^32 providers' worth of 32-bit counts could reach 64 bits; the list is far shorter.
    let frames = usage
        .providers
        .iter()
        .try_fold(0u64, |sum, provider| sum.checked_add(u64::from(provider.frames_served)));
    match tokens {
        None => audit.contradiction("total_overflow", "/report/budget_consumed".to_owned(), || {
            "The costs of the providers add up to more than 64 bits hold.".to_owned()
        }),
        Some(sum) if sum != usage.budget_consumed => {
            audit.contradiction("budget_consumed_mismatch", "/report/budget_consumed".to_owned(), || {
                format!("It says {} but the providers add up to {sum}.", usage.budget_consumed)
            });
        }
        Some(sum) => {
            if sum > usage.budget_requested {
                let detail = format!(
                    "{sum} is more than the {} that were requested of each provider.",
                    usage.budget_requested
                );
                audit.warn(None, "total_above_budget", "/report/budget_consumed".to_owned(), detail);
            }
        }
    }
    (tokens.unwrap_or(0), frames.unwrap_or(0))
}
