//! The audit's rules, one row each: what is done to a good report, and what is said.

use contextgraph_types as protocol;
use proptest::prelude::*;
use usage::{AuditPolicy, Limits, ProviderId, Timestamp, TurnReport};

use crate::{random, sample};

type Row = (&'static str, fn(&mut TurnReport), &'static str, &'static [(&'static str, &'static str)]);

const INVALID: &str = "invalid_report";
const INCONSISTENT: &str = "inconsistent_report";
const CONSUMED: &str = "/report/budget_consumed";

const REFUSED: &[Row] = &[
    (
        "total says nothing",
        |r| r.report.budget_consumed = 0,
        INCONSISTENT,
        &[("budget_consumed_mismatch", CONSUMED)],
    ),
    (
        "a provider's total is inflated alone",
        |r| r.report.providers[0].token_cost += 1000,
        INCONSISTENT,
        &[("frame_sum_mismatch", "/report/providers/0/token_cost"), ("budget_consumed_mismatch", CONSUMED)],
    ),
    (
        "a provider's total and the whole are inflated together",
        |r| {
            r.report.providers[0].token_cost += 1000;
            r.report.budget_consumed += 1000;
        },
        INCONSISTENT,
        &[("frame_sum_mismatch", "/report/providers/0/token_cost")],
    ),
    (
        "everything is inflated together, above the budget",
        |r| {
            r.report.providers[0].served_frames[0].token_cost += 4000;
            r.report.providers[0].token_cost += 4000;
            r.report.budget_consumed += 4000;
        },
        INCONSISTENT,
        &[("cost_above_budget", "/report/providers/0/token_cost")],
    ),
    (
        "a frame is removed",
        |r| drop(r.report.providers[0].served_frames.pop()),
        INCONSISTENT,
        &[
            ("frames_served_mismatch", "/report/providers/0/frames_served"),
            ("frame_sum_mismatch", "/report/providers/0/token_cost"),
        ],
    ),
    (
        "frames are claimed that are not listed",
        |r| r.report.providers[2].frames_served = 3,
        INCONSISTENT,
        &[("frames_served_mismatch", "/report/providers/2/frames_served")],
    ),
    (
        "a frame names another provider",
        |r| r.report.providers[0].served_frames[1].frame.provider_id = ProviderId::parse("memory").unwrap(),
        INCONSISTENT,
        &[("foreign_frame_provider", "/report/providers/0/served_frames/1/frame/provider_id")],
    ),
    (
        "a provider stands twice",
        |r| {
            let again = r.report.providers[1].clone();
            r.report.budget_consumed += again.token_cost;
            r.report.providers.push(again);
        },
        INCONSISTENT,
        &[("duplicate_provider", "/report/providers/3/provider_id")],
    ),
    (
        "costs wrap round to the total",
        |r| {
            r.report.budget_requested = u64::MAX;
            for (provider, cost) in r.report.providers.iter_mut().zip([64, u64::MAX, 1]) {
                provider.token_cost = cost;
                provider.served_frames.truncate(1);
                provider.frames_served = u32::try_from(provider.served_frames.len()).unwrap();
                if let Some(frame) = provider.served_frames.first_mut() {
                    frame.token_cost = cost;
                }
            }
            r.report.budget_consumed = 64;
        },
        INCONSISTENT,
        &[("frame_sum_mismatch", "/report/providers/2/token_cost"), ("total_overflow", CONSUMED)],
    ),
    (
        "a provider's frames wrap round",
        |r| {
            let provider = &mut r.report.providers[0];
            provider.served_frames[0].token_cost = u64::MAX;
            provider.token_cost = 40;
            r.report.budget_consumed = 440;
        },
        INCONSISTENT,
        &[("total_overflow", "/report/providers/0/token_cost")],
    ),
    (
        "last tuesday",
        |r| r.report.as_of = "last tuesday".into(),
        INVALID,
        &[("as_of_invalid", "/report/as_of")],
    ),
    ("no time", |r| r.report.as_of.clear(), INVALID, &[("as_of_invalid", "/report/as_of")]),
    (
        "a leap second",
        |r| r.report.as_of = "2026-11-30T11:59:60Z".into(),
        INVALID,
        &[("as_of_invalid", "/report/as_of")],
    ),
    (
        "ten digits of a second",
        |r| r.report.as_of = "2026-11-30T11:59:59.0123456789Z".into(),
        INVALID,
        &[("as_of_invalid", "/report/as_of")],
    ),
    (
        "a bad time and a bad sum are both said",
        |r| {
            r.report.as_of = "never".into();
            r.report.budget_consumed = 1;
        },
        INVALID,
        &[("as_of_invalid", "/report/as_of"), ("budget_consumed_mismatch", CONSUMED)],
    ),
    (
        "a digest made in this process is empty",
        |r| r.report.providers[1].served_frames[0].frame.content_digest = Some(String::new()),
        INVALID,
        &[("digest_empty", "/report/providers/1/served_frames/0/frame/content_digest")],
    ),
    (
        "an epoch made in this process is too long",
        |r| r.origin.as_mut().unwrap().epoch = "e".repeat(Limits::NOTE_BYTES + 1),
        INVALID,
        &[("text_too_long", "/origin/epoch")],
    ),
    (
        "more legs than a report holds",
        |r| r.legs = vec![r.legs[0].clone(); Limits::LEGS + 1],
        INVALID,
        &[("too_many_items", "/legs")],
    ),
];

#[test]
fn each_tampering_has_its_own_code_and_place() {
    for (fear, tamper, overall, expected) in REFUSED {
        let mut report = sample::report();
        tamper(&mut report);
        let rejection = sample::audit(report).expect_err(fear);
        assert_eq!((rejection.code, sample::codes(&rejection)), (*overall, expected.to_vec()), "{fear}");
        assert!(rejection.findings.iter().all(|finding| finding.detail.ends_with('.')), "{rejection:?}");
    }
}

/// What a conformant host can produce, how, and what the audit says.
type Warned = (&'static str, fn(&mut TurnReport), &'static [(&'static str, &'static str)]);

const WARNED: &[Warned] = &[
    ("nothing", |_| {}, &[("missing_digest", "/report/providers/0/served_frames")]),
    (
        "the same identity twice",
        |r| {
            let provider = &mut r.report.providers[1];
            provider.served_frames.push(provider.served_frames[0].clone());
            provider.frames_served = 2;
            provider.token_cost *= 2;
            r.report.budget_consumed += 400;
        },
        &[
            ("missing_digest", "/report/providers/0/served_frames"),
            ("duplicate_frame_identity", "/report/providers/1/served_frames/1/frame"),
        ],
    ),
    (
        "three providers within the budget, the total above",
        |r| r.report.budget_requested = 1000,
        &[("missing_digest", "/report/providers/0/served_frames"), ("total_above_budget", CONSUMED)],
    ),
    (
        "more rejected than could ever be offered",
        |r| r.report.providers[1].frames_rejected = u32::MAX,
        &[
            ("missing_digest", "/report/providers/0/served_frames"),
            ("implausible_frames_rejected", "/report/providers/1/frames_rejected"),
        ],
    ),
    (
        "a digest is stripped",
        |r| r.report.providers[1].served_frames[0].frame.content_digest = None,
        &[
            ("missing_digest", "/report/providers/0/served_frames"),
            ("missing_digest", "/report/providers/1/served_frames"),
        ],
    ),
];

#[test]
fn what_a_conformant_host_can_produce_is_accepted_with_a_warning() {
    for (fear, change, expected) in WARNED {
        let mut report = sample::report();
        change(&mut report);
        let audited = sample::audit(report).expect(fear);
        let found: Vec<_> = audited.warnings().iter().map(|w| (w.code, w.pointer.as_str())).collect();
        assert_eq!(found, expected.to_vec(), "{fear}");
    }
}

#[test]
fn a_warning_stands_on_the_events_it_is_about() {
    let mut report = sample::report();
    report.report.budget_requested = 1000;
    let audited = sample::audit(report).unwrap();
    let record = usage::ReportRecord::build(&sample::platform(), &audited, &sample::erasure());
    let warnings: Vec<_> = record.events.iter().map(|event| event.warnings.join(" ")).collect();
    assert_eq!(warnings, ["missing_digest total_above_budget", "total_above_budget", "total_above_budget"]);
}

#[test]
fn a_good_report_has_its_totals_its_time_and_its_hour() {
    let audited = sample::audit(sample::report()).unwrap();
    assert_eq!((audited.tokens(), audited.frames()), (1341, 3));
    assert_eq!(audited.as_of().to_string(), "2026-11-30T12:00:00.25Z");
    assert_eq!(audited.hour().to_string(), "2026-11-30T12:00:00Z");
}

#[test]
fn ten_to_the_twelve_and_more_are_exact() {
    let mut report = sample::report();
    report.report.budget_requested = 999_999_999_999;
    report.report.providers.truncate(2);
    for provider in &mut report.report.providers {
        provider.served_frames.truncate(1);
        provider.frames_served = 1;
        provider.token_cost = 999_999_999_999;
        provider.served_frames[0].token_cost = 999_999_999_999;
    }
    report.report.budget_consumed = 1_999_999_999_998;
    assert_eq!(sample::audit(report).unwrap().tokens(), 1_999_999_999_998);
}

#[test]
fn the_accounting_time_is_held_to_both_limits_to_the_microsecond() {
    let now = sample::now();
    let policy = AuditPolicy::new(now);
    let at = |micros: i64| {
        let mut report = sample::report();
        report.report.as_of = now.checked_add_micros(micros).unwrap().to_string();
        usage::audit(report, &policy).map_err(|rejection| rejection.findings[0].code)
    };
    let (ahead, back) = (5 * 60 * 1_000_000, 30 * 24 * 3600 * 1_000_000);
    assert!(at(0).is_ok() && at(ahead).is_ok() && at(-back).is_ok());
    assert_eq!(at(ahead + 1).unwrap_err(), "as_of_in_future");
    assert_eq!(at(-back - 1).unwrap_err(), "as_of_too_old");
}

#[test]
fn a_late_repeat_can_be_recognised_before_its_age_is_judged() {
    let much_later = AuditPolicy::new(Timestamp::parse_rfc3339("2027-11-30T00:00:00Z").unwrap());
    let audited = usage::audit_content(sample::report()).unwrap();
    let refused = audited.check_time(&much_later).unwrap_err();
    assert_eq!(sample::codes(&refused), [("as_of_too_old", "/report/as_of")]);
    assert!(audited.check_time(&AuditPolicy::new(sample::now())).is_ok());
}

#[test]
fn extreme_clocks_and_limits_do_not_overflow() {
    for now in [Timestamp::MIN, Timestamp::MAX, Timestamp::from_micros(0)] {
        for limit in [i64::MIN, -1, 0, i64::MAX] {
            let policy = AuditPolicy { now, accept_back_micros: limit, accept_ahead_micros: limit };
            let _ = usage::audit(sample::report(), &policy);
        }
    }
}

#[test]
fn a_report_with_thousands_of_faults_answers_with_a_hundred() {
    let mut report = sample::report();
    let mut frame = report.report.providers[0].served_frames[0].clone();
    frame.frame.provider_id = ProviderId::parse("elsewhere").unwrap();
    report.report.providers[0].served_frames = vec![frame; 5000];
    let rejection = sample::audit(report).unwrap_err();
    assert_eq!(rejection.findings.len(), usage::Rejection::MAX_FINDINGS);
}

proptest! {
    #![proptest_config(random::config())]

    /// Nothing that a program can build makes it panic, and whatever it accepts the protocol's own check accepts too.
    #[test]
    fn whatever_is_accepted_adds_up(report in random::any_report()) {
        if let Ok(audited) = sample::audit(report.clone()) {
            let sum: u128 = report.report.providers.iter()
                .flat_map(|provider| &provider.served_frames)
                .map(|frame| u128::from(frame.token_cost))
                .sum();
            prop_assert_eq!(u128::from(audited.tokens()), sum);
            prop_assert_eq!(report.report.budget_consumed, audited.tokens());
            let text = serde_json::to_string(&report.report).unwrap();
            if let Ok(theirs) = serde_json::from_str::<protocol::UsageReport>(&text) {
                prop_assert!(theirs.is_consistent());
            }
        }
    }

    #[test]
    fn a_good_report_is_accepted(report in random::good_report()) {
        prop_assert!(usage::audit_content(report).is_ok());
    }
}
