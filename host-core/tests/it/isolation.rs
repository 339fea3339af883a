use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use host_core::{
    Host, HostError, Provider, ProviderError,
    protocol::{ContextQuery, ContextQueryResult, DataFlow, ErrorCode, ProviderInfo},
    question,
};
use usage::{LegOutcome, ProviderId};

use crate::support::{Scripted, audited, codes, frame, leg, provider_id};

fn good() -> Scripted {
    Scripted::serving("good", vec![frame("f", "four")])
}

#[tokio::test]
async fn an_error_a_panic_and_a_silence_of_others_leave_a_good_answer_whole() {
    let error = ProviderError::Answered { code: ErrorCode::Unavailable, message: "not\nnow".to_owned() };
    let host = Host::builder()
        .provider(Scripted::new("erring", move |_| std::future::ready(Err(error.clone()))))
        .provider(Scripted::new("panicking", |_| async { panic!("at the disco") }))
        .provider(Scripted::new("silent", |_| pending()))
        .provider(Scripted::serving("empty", vec![]))
        .provider(good())
        .deadline(Duration::from_millis(200))
        .build()
        .unwrap();
    let answers = host.query_all(&question("q", 100, 8)).await;
    let outcomes: Vec<_> = answers.legs().iter().map(|leg| (leg.provider_id.as_str(), leg.outcome)).collect();
    assert_eq!(
        outcomes,
        [
            ("empty", LegOutcome::Empty),
            ("erring", LegOutcome::Failed),
            ("good", LegOutcome::Served),
            ("panicking", LegOutcome::Panicked),
            ("silent", LegOutcome::TimedOut),
        ]
    );
    assert_eq!(answers.tokens(), 1);
    assert!(leg(&answers, "silent").elapsed >= Duration::from_millis(200));

    let report = audited(&answers).into_report();
    assert_eq!(report.report.providers.len(), 5);
    assert_eq!(report.legs[3].reasons, ["provider_panicked: at the disco"]);
    assert_eq!(
        report.legs[1].reasons,
        ["provider_failed: the provider answered with an error (unavailable): not now"]
    );
}

#[tokio::test]
async fn an_answer_that_blocked_beyond_the_deadline_is_not_taken() {
    let blocking = Scripted::new("blocking", |_| async {
        let (_open, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_millis(150));
        Ok(ContextQueryResult::unattested(vec![frame("late", "late")], false, None))
    });
    let host = Host::builder().provider(blocking).deadline(Duration::from_millis(30)).build().unwrap();
    let answers = host.query_all(&question("q", 100, 8)).await;
    assert_eq!(leg(&answers, "blocking").outcome, LegOutcome::TimedOut);
    assert_eq!(answers.tokens(), 0);
}

#[tokio::test]
async fn an_answer_in_time_counts_though_another_provider_held_the_thread_beyond_the_deadline() {
    let blocking = Scripted::new("zz-blocking", |_| async {
        let (_open, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_millis(150));
        Ok(ContextQueryResult::default())
    });
    let host = Host::builder()
        .provider(good())
        .provider(blocking)
        .deadline(Duration::from_millis(50))
        .build()
        .unwrap();
    let answers = host.query_all(&question("q", 100, 8)).await;
    assert_eq!(leg(&answers, "good").outcome, LegOutcome::Served);
    assert_eq!(leg(&answers, "zz-blocking").outcome, LegOutcome::TimedOut);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_thread_does_not_hold_up_the_others_where_there_is_another_one() {
    let (release, held) = mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let blocking = Scripted::new("blocking", move |_| {
        let _ = held.lock().unwrap().recv();
        std::future::ready(Ok(ContextQueryResult::default()))
    });
    let host = Host::builder()
        .provider(blocking)
        .provider(good())
        .deadline(Duration::from_millis(300))
        .build()
        .unwrap();
    let answers = host.query_all(&question("q", 100, 8)).await;
    assert_eq!(leg(&answers, "blocking").outcome, LegOutcome::TimedOut);
    assert_eq!(leg(&answers, "good").outcome, LegOutcome::Served);
    drop(release);
}

#[tokio::test]
async fn dropping_a_query_ends_its_calls() {
    struct Flag(Arc<AtomicBool>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (started, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (start, end) = (Arc::clone(&started), Arc::clone(&ended));
    let provider = Scripted::new("p", move |_| {
        start.store(true, Ordering::SeqCst);
        let flag = Flag(Arc::clone(&end));
        async move {
            let _flag = flag;
            pending().await
        }
    });
    let host = Host::builder().provider(provider).build().unwrap();
    let question = question("q", 100, 8);
    let mut query = Box::pin(host.query_all(&question));
    while !started.load(Ordering::SeqCst) {
        assert!(futures_util::poll!(&mut query).is_pending());
        tokio::task::yield_now().await;
    }
    drop(query);
    let limit = Instant::now() + Duration::from_secs(10);
    while !ended.load(Ordering::SeqCst) {
        assert!(Instant::now() < limit, "the call goes on");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn no_more_calls_are_under_way_than_the_host_has_places_for() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut host = Host::builder().capacity(2);
    for n in 0..8 {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        host = host.provider(Scripted::new(&format!("p{n}"), move |_| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(ContextQueryResult::default())
            }
        }));
    }
    let answers = host.build().unwrap().query_all(&question("q", 100, 8)).await;
    assert!(answers.legs().iter().all(|leg| leg.outcome == LegOutcome::Empty));
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[test]
fn two_providers_under_one_id_are_refused() {
    let built = Host::builder().provider(good()).provider(good()).build();
    assert_eq!(built.err(), Some(HostError::DuplicateProvider(provider_id("good"))));
}

#[tokio::test]
async fn a_provider_that_sends_data_away_is_not_asked_without_consent() {
    struct Away(ProviderId, Arc<AtomicUsize>, DataFlow);
    #[async_trait]
    impl Provider for Away {
        fn id(&self) -> &ProviderId {
            &self.0
        }
        fn info(&self) -> ProviderInfo {
            ProviderInfo { name: "away".to_owned(), version: "1".to_owned(), data_flow: self.2.clone() }
        }
        async fn query(&self, _: &ContextQuery) -> Result<ContextQueryResult, ProviderError> {
            self.1.fetch_add(1, Ordering::SeqCst);
            Ok(ContextQueryResult::default())
        }
    }
    let asked = Arc::new(AtomicUsize::new(0));
    let away = DataFlow { egress: true, ..DataFlow::default() };
    let lie = DataFlow {
        egress_scopes: vec![host_core::protocol::EgressScope::ThirdPartyIndex],
        ..DataFlow::default()
    };
    let host = Host::builder()
        .provider(Away(provider_id("away"), Arc::clone(&asked), away))
        .provider(Away(provider_id("lie"), Arc::clone(&asked), lie))
        .build()
        .unwrap();
    let answers = host.query_all(&question("q", 100, 8)).await;
    for leg in answers.legs() {
        assert_eq!((leg.outcome, codes(leg)), (LegOutcome::RefusedConsent, vec!["consent_missing"]));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}
