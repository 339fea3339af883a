//! Reports from a seed: good ones, and ones that any program could build.

use proptest::{collection::vec, option, prelude::*, test_runner::Config};
use usage::{
    CustomerId, FrameId, FrameKey, HostId, Leg, LegOutcome, Origin, ProviderId, ProviderUsage, RequestId,
    ServedFrame, TurnId, TurnReport, UsageReport,
};

/// A failing case prints its input and its seed; nothing is written beside the tests.
pub(crate) fn config() -> Config {
    Config { cases: 256, failure_persistence: None, ..Config::default() }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,3}", "[ -~]{1,12}", "\\PC{1,8}"]
        .prop_filter("an identity", |text| CustomerId::parse(text.as_str()).is_ok())
}

fn cost() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..5000u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn frame(provider: String) -> impl Strategy<Value = FrameId> {
    let owner = prop_oneof![9 => Just(provider), 1 => text()];
    (owner, text(), option::of("(sha256:[0-9a-f]{64}|[ -~]{0,6})")).prop_map(
        |(owner, frame, content_digest)| FrameId {
            provider_id: ProviderId::parse(owner).unwrap(),
            frame_id: FrameKey::parse(frame).unwrap(),
            content_digest,
        },
    )
}

fn provider() -> impl Strategy<Value = ProviderUsage> {
    text().prop_flat_map(|id| {
        let frames = vec(
            (frame(id.clone()), cost()).prop_map(|(frame, token_cost)| ServedFrame { frame, token_cost }),
            0..5,
        );
        (Just(id), any::<u32>(), any::<u32>(), cost(), frames, any::<bool>()).prop_map(
            |(id, served, rejected, cost, served_frames, honest)| {
                let sum = served_frames.iter().try_fold(0u64, |sum, frame| sum.checked_add(frame.token_cost));
                ProviderUsage {
                    provider_id: ProviderId::parse(id).unwrap(),
                    frames_served: if honest { u32::try_from(served_frames.len()).unwrap() } else { served },
                    frames_rejected: rejected,
                    token_cost: sum.filter(|_| honest).unwrap_or(cost),
                    served_frames,
                }
            },
        )
    })
}

fn leg() -> impl Strategy<Value = Leg> {
    (text(), vec(".{0,5}", 0..2), any::<u64>()).prop_map(|(provider, reasons, elapsed_micros)| Leg {
        provider_id: ProviderId::parse(provider).unwrap(),
        outcome: LegOutcome::TimedOut,
        reasons,
        rejected: Vec::new(),
        elapsed_micros,
    })
}

/// Anything that the types allow.
pub(crate) fn any_report() -> impl Strategy<Value = TurnReport> {
    let origin = option::of((text(), ".{0,9}", any::<u64>()).prop_map(|(host, epoch, seq)| Origin {
        host_id: HostId::parse(host).unwrap(),
        epoch,
        seq,
    }));
    let as_of = prop_oneof![Just("2026-11-30T12:00:00Z".to_owned()), "[0-9TZ:.+-]{0,30}"];
    let ids = (text(), text(), text(), origin);
    (ids, cost(), cost(), as_of, vec(provider(), 0..4), any::<bool>(), vec(leg(), 0..2)).prop_map(
        |((customer, request, turn, origin), requested, consumed, as_of, providers, honest, legs)| {
            let sum = providers.iter().try_fold(0u64, |sum, provider| sum.checked_add(provider.token_cost));
            let report = UsageReport {
                budget_requested: if honest { u64::MAX } else { requested },
                budget_consumed: sum.filter(|_| honest).unwrap_or(consumed),
                as_of,
                providers,
            };
            TurnReport {
                customer_id: CustomerId::parse(customer).unwrap(),
                request_id: RequestId::parse(request).unwrap(),
                turn_id: TurnId::parse(turn).unwrap(),
                origin,
                report,
                consents: Vec::new(),
                legs,
            }
        },
    )
}

/// A report that is right: any other made so.
pub(crate) fn good_report() -> impl Strategy<Value = TurnReport> {
    (any_report(), 0..2_000_000_000i64).prop_map(|(mut report, seconds)| {
        report.origin = None;
        report.legs.clear();
        report.report.as_of = usage::Timestamp::from_unix_seconds(seconds).unwrap().to_string();
        let mut total = 0;
        for (at, provider) in report.report.providers.iter_mut().enumerate() {
            provider.provider_id = ProviderId::parse(format!("{at} {}", provider.provider_id)).unwrap();
            provider.token_cost = 0;
            for served in &mut provider.served_frames {
                served.token_cost %= 1 << 40;
                provider.token_cost += served.token_cost;
                served.frame.provider_id = provider.provider_id.clone();
                served.frame.content_digest =
                    served.frame.content_digest.take().filter(|digest| !digest.is_empty());
            }
            provider.frames_served = u32::try_from(provider.served_frames.len()).unwrap();
            total += provider.token_cost;
        }
        report.report.budget_requested = total;
        report.report.budget_consumed = total;
        report
    })
}

/// JSON of any shape, often nearly a report.
pub(crate) fn any_json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        "customer_id",
        "report",
        "providers",
        "origin",
        "served_frames",
        "frame",
        "token_cost",
        ".{0,4}"
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name.clone(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
