use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use host_core::{Host, Provider, ProviderError, StdioOptions, StdioProvider, protocol::ErrorCode, question};
use usage::LegOutcome;

use crate::support::{leg, provider_id};

fn fixture(mode: &str) -> StdioOptions {
    StdioOptions::new(env!("CARGO_BIN_EXE_host-core-fixture")).arg(mode)
}

async fn spawn(mode: &str) -> StdioProvider {
    StdioProvider::spawn(provider_id("fixture"), fixture(mode)).await.unwrap()
}

/// The ids of the frames of an answer; an answer is always about its own question.
async fn ids(provider: &StdioProvider, goal: &str) -> Result<Vec<String>, ProviderError> {
    let answer = provider.query(&question(goal, 1000, 8)).await?;
    Ok(answer.frames.into_iter().map(|frame| frame.id).collect())
}

/// Asks and gives up.
async fn give_up(provider: &StdioProvider, goal: &str) {
    let asked = tokio::time::timeout(Duration::from_millis(200), ids(provider, goal)).await;
    assert!(asked.is_err(), "{asked:?}");
}

#[tokio::test]
async fn a_late_reply_never_reaches_the_next_query() {
    for mode in ["plain", "correlated"] {
        let provider = spawn(mode).await;
        give_up(&provider, "hold").await;
        for goal in ["beta", "gamma"] {
            assert_eq!(ids(&provider, goal).await.unwrap(), [format!("answer-to-{goal}")], "{mode}");
        }
    }
}

#[tokio::test]
async fn a_second_reply_is_never_taken_for_the_next_answer() {
    let provider = spawn("plain").await;
    assert_eq!(ids(&provider, "double").await.unwrap(), ["double"]);
    assert_eq!(ids(&provider, "beta").await.unwrap(), ["answer-to-beta"]);

    let provider = spawn("correlated").await;
    assert_eq!(ids(&provider, "double").await.unwrap(), ["double"]);
    // The child may be found out only while the next query is on its way; then that one fails, and the one after has a new child.
    let next = ids(&provider, "beta").await;
    assert!(next.as_ref().map_or(true, |ids| ids[0] == "answer-to-beta"), "{next:?}");
    let after = ids(&provider, "gamma").await;
    assert!(after.as_ref().map_or(true, |ids| ids[0] == "answer-to-gamma"), "{after:?}");
    assert_eq!(ids(&provider, "delta").await.unwrap(), ["answer-to-delta"]);
}

#[tokio::test]
async fn a_child_without_correlation_answers_one_query_unless_told_otherwise() {
    let provider = spawn("plain").await;
    assert_ne!(pid(&provider).await, pid(&provider).await);
    let options = StdioOptions { reuse_without_correlation: true, ..fixture("plain") };
    let provider = StdioProvider::spawn(provider_id("fixture"), options).await.unwrap();
    assert_eq!(pid(&provider).await, pid(&provider).await);
    give_up(&provider, "hold").await;
    assert_eq!(ids(&provider, "beta").await.unwrap(), ["answer-to-beta"]);
}

#[tokio::test]
async fn a_broken_link_fails_at_once_and_the_next_query_has_a_new_child() {
    let start = Instant::now();
    let provider = spawn("correlated").await;
    for goal in ["garbage", "bad-utf8", "huge", "wrong-id"] {
        let failed = ids(&provider, goal).await;
        assert!(matches!(failed, Err(ProviderError::Protocol { .. })), "{goal}: {failed:?}");
        assert_eq!(ids(&provider, "beta").await.unwrap(), ["answer-to-beta"], "after {goal}");
    }
    let failed = ids(&provider, "die").await;
    assert!(matches!(failed, Err(ProviderError::Link { .. })), "{failed:?}");
    assert_eq!(ids(&provider, "beta").await.unwrap(), ["answer-to-beta"]);
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn an_error_is_the_querys_and_leaves_the_link() {
    let provider = spawn("correlated").await;
    let pid = pid(&provider).await;
    let error = ids(&provider, "error").await;
    let expected = ProviderError::Answered { code: ErrorCode::Unavailable, message: "not now".to_owned() };
    assert_eq!(error, Err(expected));
    assert_eq!(self::pid(&provider).await, pid);
}

#[tokio::test]
async fn queries_at_once_each_get_their_own_answer() {
    for mode in ["plain", "correlated"] {
        let provider = spawn(mode).await;
        let goals: Vec<_> = (0..40).map(|n| format!("goal-{n}")).collect();
        let asked = goals.iter().map(|goal| ids(&provider, goal));
        for (goal, ids) in goals.iter().zip(futures_util::future::join_all(asked).await) {
            assert_eq!(ids.unwrap(), [format!("answer-to-{goal}")], "{mode}");
        }
    }
}

#[tokio::test]
async fn a_large_query_that_was_given_up_is_not_spliced_with_the_next() {
    let provider = spawn("not-reading").await;
    give_up(&provider, &"x".repeat(600_000)).await;
    // Its child does not read either, but what it gets is whole: nothing of the first query reaches it.
    give_up(&provider, "beta").await;

    let provider = spawn("correlated").await;
    let large = ids(&provider, &"y".repeat(600_000)).await.unwrap();
    assert_eq!(large, [format!("answer-to-{}", "y".repeat(40))]);
}

#[tokio::test]
async fn a_child_that_does_not_shake_hands_is_no_provider() {
    let failed = |mode| async move {
        let options = StdioOptions { handshake_timeout: Duration::from_millis(300), ..fixture(mode) };
        StdioProvider::spawn(provider_id("fixture"), options).await.err().unwrap()
    };
    assert!(matches!(failed("bad-version").await, ProviderError::Protocol { .. }));
    assert!(matches!(failed("scope-lie").await, ProviderError::Protocol { .. }));
    assert!(matches!(failed("silent-handshake").await, ProviderError::Link { .. }));
    let absent = StdioProvider::spawn(provider_id("fixture"), StdioOptions::new("/no/such/program")).await;
    assert!(matches!(absent, Err(ProviderError::Link { .. })));
}

#[tokio::test]
async fn a_child_that_never_answers_is_one_leg_of_many() {
    let host = Host::builder()
        .provider(StdioProvider::spawn(provider_id("silent"), fixture("not-reading")).await.unwrap())
        .provider(StdioProvider::spawn(provider_id("talking"), fixture("plain")).await.unwrap())
        .deadline(Duration::from_millis(500))
        .build()
        .unwrap();
    let answers = host.query_all(&question("beta", 1000, 8)).await;
    assert_eq!(leg(&answers, "silent").outcome, LegOutcome::TimedOut);
    assert_eq!(leg(&answers, "talking").outcome, LegOutcome::Served);
}

#[tokio::test]
async fn dropping_the_provider_kills_its_child() {
    let provider = spawn("correlated").await;
    let process = PathBuf::from(format!("/proc/{}/stat", pid(&provider).await));
    assert!(process.exists());
    drop(provider);
    let limit = Instant::now() + Duration::from_secs(10);
    // A killed child is gone, or waits as a zombie (Z) for its parent.
    while std::fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < limit, "the child lives");
        tokio::task::yield_now().await;
    }
}

async fn pid(provider: &StdioProvider) -> u32 {
    let answer = provider.query(&question("pid", 1000, 8)).await.unwrap();
    answer.frames[0].content.as_deref().unwrap().parse().unwrap()
}
