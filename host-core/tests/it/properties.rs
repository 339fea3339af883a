use host_core::{FanOut, Host, protocol::ContextFrame, question};
use proptest::{collection::vec, prelude::*};
use usage::TurnReport;

use crate::support::{Scripted, audited, frame, turn_report};

/// A frame of a small world, so that identities meet: mostly honest, sometimes not.
fn any_frame() -> impl Strategy<Value = ContextFrame> {
    let id = prop_oneof![9 => "[abc]", 1 => Just(String::new()), 1 => Just("a\nb".to_owned())];
    let content = prop_oneof![8 => "[a-c]{0,24}", 2 => "[<&/\u{0}é\n]{0,8}"];
    let digest = prop_oneof![Just(None), Just(Some("sha256:00".to_owned())), Just(Some(String::new()))];
    let score = prop_oneof![8 => proptest::sample::select(vec![0.0, 0.25, 0.5, 1.0]), 1 => Just(f32::NAN)];
    let lie = prop_oneof![30 => Just(0u32), 1 => 1u32..50, 1 => Just(u32::MAX)];
    (id, content, digest, score, lie).prop_map(|(id, content, digest, score, lie)| {
        let mut frame = frame(&id, &content);
        frame.citation_label = Some("page".to_owned());
        frame.content_digest = digest;
        frame.score = score;
        frame.token_cost = frame.token_cost.saturating_add(lie);
        frame
    })
}

fn any_answers() -> impl Strategy<Value = Vec<Vec<ContextFrame>>> {
    vec(vec(any_frame(), 0..7), 1..5)
}

/// Registers provider 0, 1, … in the order given.
fn ask(answers: &[(usize, Vec<ContextFrame>)], tokens: u32, frames: u32) -> FanOut {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let host = answers.iter().fold(Host::builder(), |host, (provider, frames)| {
        host.provider(Scripted::serving(&format!("p{provider}"), frames.clone()))
    });
    runtime.block_on(host.build().unwrap().query_all(&question("q", tokens, frames)))
}

/// A report without the times, which differ from run to run.
fn timeless(answers: &FanOut) -> TurnReport {
    let mut report = turn_report(answers);
    report.legs.iter_mut().for_each(|leg| leg.elapsed_micros = 0);
    report
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_report_passes_the_audit_within_its_budget_and_accounts_for_every_frame(
        answers in any_answers(), tokens in 0u32..40, frames in 0u32..10,
    ) {
        let offered: Vec<_> = answers.iter().cloned().enumerate().collect();
        let fan_out = ask(&offered, tokens, frames);
        let report = audited(&fan_out);
        prop_assert!(report.tokens() <= u64::from(tokens));
        prop_assert!(report.frames() <= u64::from(frames));
        prop_assert!(report.warnings().iter().all(|warning| warning.code == "missing_digest"));
        for (provider, of_it) in report.report().report.providers.iter().zip(&answers) {
            prop_assert_eq!((provider.frames_served + provider.frames_rejected) as usize, of_it.len());
        }

        // The protocol's own types agree.
        let json = serde_json::to_vec(&report.report().report).unwrap();
        let theirs: host_core::protocol::UsageReport = serde_json::from_slice(&json).unwrap();
        prop_assert!(theirs.is_consistent() && theirs.within_budget());

        // What is billed is what is shown.
        let composition = fan_out.compose();
        let shown: u64 = composition.admitted.iter().map(|one| u64::from(one.token_cost)).sum();
        prop_assert_eq!(shown, report.tokens());
        prop_assert_eq!(composition.text.matches("<frame ").count(), composition.admitted.len());
    }

    #[test]
    fn the_order_of_arrival_decides_nothing(
        (answers, shuffled) in any_answers().prop_flat_map(|answers| {
            let inside: Vec<_> = answers.iter().cloned().enumerate()
                .map(|(provider, frames)| Just(frames).prop_shuffle().prop_map(move |frames| (provider, frames)))
                .collect();
            (Just(answers), inside.prop_shuffle())
        }),
        tokens in 0u32..40, frames in 0u32..10,
    ) {
        let straight: Vec<_> = answers.into_iter().enumerate().collect();
        let (one, other) = (ask(&straight, tokens, frames), ask(&shuffled, tokens, frames));
        prop_assert_eq!(one.compose(), other.compose());
        prop_assert_eq!(timeless(&one), timeless(&other));
    }
}
