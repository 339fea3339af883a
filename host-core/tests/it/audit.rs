use host_core::{
    FanOut,
    protocol::{ContentRef, ContextFrame, FrameKind, Provenance, Representation},
    question,
};
use usage::LegOutcome;

use crate::support::{Scripted, ask, audited, codes, frame, leg, sized};

/// What one provider's answer comes to, with 1000 tokens and 8 frames.
async fn judge(frames: Vec<ContextFrame>) -> FanOut {
    ask(&question("q", 1000, 8), vec![Scripted::serving("p", frames)]).await
}

fn costing(id: &str, content: &str, cost: u32) -> ContextFrame {
    ContextFrame { token_cost: cost, ..frame(id, content) }
}

#[tokio::test]
async fn a_lie_about_the_budget_rejects_the_whole_answer() {
    let long = "x".repeat(40_000);
    for (frames, codes_expected) in [
        (vec![costing("liar", &long, 1), frame("honest", "abcd")], vec!["answer_dishonest", "cost_mismatch"]),
        (vec![costing("liar", "abcd", 900)], vec!["cost_mismatch"]),
        (vec![costing("liar", "文脈図", 1)], vec!["cost_mismatch"]),
        (vec![costing("liar", "", 1)], vec!["cost_mismatch"]),
        (vec![sized("a", 500), sized("b", 501)], vec!["over_budget"]),
        ((0..9).map(|n| sized(&format!("f{n}"), 1)).collect(), vec!["too_many_frames"]),
        ((0..4).map(|n| costing(&format!("f{n}"), "", u32::MAX)).collect(), vec!["cost_mismatch"]),
    ] {
        let offered = frames.len();
        let answers = judge(frames).await;
        let leg = leg(&answers, "p");
        assert_eq!(leg.outcome, LegOutcome::Rejected);
        let mut codes = codes(leg);
        codes.sort_unstable();
        assert_eq!(codes, codes_expected);
        assert_eq!((answers.tokens(), leg.served.len(), leg.rejected.len()), (0, 0, offered));
        assert_eq!(audited(&answers).report().legs[0].rejected.len(), offered);
        assert!(answers.compose().text.is_empty());
    }
}

#[tokio::test]
async fn the_limits_themselves_are_within_the_budget() {
    for frames in [
        vec![sized("a", 500), sized("b", 500)],
        (0..8).map(|n| sized(&format!("f{n}"), 1)).collect(),
        vec![frame("cjk", "文脈図"), frame("empty", "")],
    ] {
        let (offered, cost) =
            (frames.len(), frames.iter().map(|frame| u64::from(frame.token_cost)).sum::<u64>());
        let answers = judge(frames).await;
        assert_eq!((answers.frames(), answers.tokens()), (offered, cost));
        assert_eq!(leg(&answers, "p").outcome, LegOutcome::Served);
        assert_eq!(audited(&answers).tokens(), cost);
    }
}

#[tokio::test]
async fn the_same_frame_again_is_billed_and_shown_once() {
    let answers =
        judge(vec![sized("a", 100), sized("a", 100), ContextFrame { score: 0.9, ..sized("a", 100) }]).await;
    let leg = leg(&answers, "p");
    assert_eq!((answers.tokens(), leg.served.len(), leg.rejected.len()), (100, 1, 2));
    assert_eq!(codes(leg), ["duplicate"]);
    assert_eq!(answers.compose().text.matches("<frame ").count(), 1);
    assert!(audited(&answers).warnings().iter().all(|warning| warning.code != "duplicate_frame_identity"));
}

#[tokio::test]
async fn one_identity_with_two_contents_is_billed_for_neither() {
    for frames in [vec![frame("a", "one"), frame("a", "two")], vec![frame("a", "two"), frame("a", "one")]] {
        let answers = judge(frames).await;
        assert_eq!(codes(leg(&answers, "p")), ["identity_conflict"]);
        assert_eq!(answers.tokens(), 0);
    }
}

#[tokio::test]
async fn what_is_wrong_with_one_frame_rejects_that_frame() {
    let file = |digest: Option<&str>| Provenance {
        kind: "file".to_owned(),
        uri: None,
        range: None,
        digest: digest.map(str::to_owned),
        method: None,
        by: None,
    };
    let handle = ContentRef { provider_id: "other".to_owned(), uri: "x:1".to_owned(), expires_at: None };
    let bad = || frame("bad", "abcd");
    for (code, frame) in [
        ("score_invalid", ContextFrame { score: f32::NAN, ..bad() }),
        ("score_invalid", ContextFrame { score: 1.5, ..bad() }),
        ("title_missing", ContextFrame { title: " ".to_owned(), ..bad() }),
        ("citation_missing", ContextFrame { citation_label: None, ..bad() }),
        ("time_invalid", ContextFrame { valid_from: Some("last tuesday".to_owned()), ..bad() }),
        ("not_valid_then", ContextFrame { valid_from: Some("2026-09-01T00:00:00Z".to_owned()), ..bad() }),
        ("not_valid_then", ContextFrame { valid_to: Some("2026-07-01T00:00:00Z".to_owned()), ..bad() }),
        ("file_digest_invalid", ContextFrame { provenance: vec![file(Some("sha256:abc"))], ..bad() }),
        ("representation_not_asked", ContextFrame { representation: Representation::Compact, ..bad() }),
        ("representation_invalid", ContextFrame { canonical_content_hash: Some("h".to_owned()), ..bad() }),
        ("foreign_provider", ContextFrame { content_ref: Some(handle), ..bad() }),
        ("kind_not_asked", ContextFrame { kind: FrameKind::Memory, ..bad() }),
        ("id_empty", ContextFrame { id: String::new(), ..bad() }),
        ("id_control_character", ContextFrame { id: "a\nb".to_owned(), ..bad() }),
        ("digest_invalid", ContextFrame { content_digest: Some(String::new()), ..bad() }),
    ] {
        let mut query = question("q", 1000, 8);
        query.kinds = vec![FrameKind::Doc];
        query.as_of = Some("2026-07-01T00:00:00Z".to_owned());
        let frames = vec![frame, sized("good", 3)];
        let answers = ask(&query, vec![Scripted::serving("p", frames)]).await;
        assert_eq!(codes(leg(&answers, "p")), [code]);
        assert_eq!(
            (answers.tokens(), answers.frames(), leg(&answers, "p").rejected.len()),
            (3, 1, 1),
            "{code}"
        );
        audited(&answers);
    }
}

#[tokio::test]
async fn what_is_only_unusual_is_served() {
    for frame in [
        ContextFrame { score: -0.0, ..frame("a", "abcd") },
        ContextFrame { kind: FrameKind::from_wire("trajectory"), ..frame("a", "abcd") },
        // A digest is the provider's word; it need not be that of the inline content.
        ContextFrame { content_digest: Some("blake3:00".to_owned()), ..frame("a", "abcd") },
    ] {
        assert_eq!(judge(vec![frame]).await.tokens(), 1);
    }
}

#[tokio::test]
async fn the_budget_is_one_for_all_providers_and_the_rest_is_accounted_for() {
    let providers = || ["a", "b", "c"].map(|id| Scripted::serving(id, vec![sized("f", 400)]));
    let answers = ask(&question("q", 1000, 8), providers().into()).await;
    assert_eq!((answers.tokens(), answers.frames()), (800, 2));
    assert_eq!(codes(leg(&answers, "c")), ["budget_spent"]);
    assert_eq!(leg(&answers, "c").outcome, LegOutcome::Rejected);
    assert!(audited(&answers).warnings().iter().all(|warning| warning.code != "total_above_budget"));

    let answers = ask(&question("q", 2000, 2), providers().into()).await;
    assert_eq!(answers.frames(), 2);
}

#[tokio::test]
async fn every_provider_has_its_turn_before_one_has_a_second() {
    let greedy = (0..4).map(|n| ContextFrame { score: 1.0, ..sized(&format!("g{n}"), 250) }).collect();
    let modest = vec![ContextFrame { score: 0.1, ..sized("m", 250) }];
    let answers =
        ask(&question("q", 1000, 8), vec![Scripted::serving("a", greedy), Scripted::serving("b", modest)])
            .await;
    assert_eq!((leg(&answers, "a").served.len(), leg(&answers, "b").served.len()), (3, 1));
}
