use ledger::{Ledger, LedgerOptions};

use crate::both;

#[tokio::test]
async fn migrations_run_twice_and_by_many_at_once() {
    let (ledgers, _) = both().await;
    for test in &ledgers {
        let again = test.ledger.migrate().await.unwrap();
        assert!(again.applied.is_empty(), "{}: {again:?}", test.name);
    }
    let server = ledger::testing::PostgresServer::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite://{}", folder.path().join("l.sqlite").display());
    for url in [sqlite, server.database("fresh").await.unwrap()] {
        let runs = (0..3).map(|_| {
            let url = url.clone();
            async move {
                Ledger::open(LedgerOptions::new(url)).await.unwrap().migrate().await.unwrap().applied.len()
            }
        });
        let mut applied = futures_util::future::join_all(runs).await;
        applied.sort_unstable();
        assert_eq!(applied[..2], [0, 0], "{url}: one of three applied all of them");
        assert!(applied[2] > 0, "{url}");
    }
}

#[tokio::test]
async fn the_ledgers_own_clock_is_near_ours_and_never_a_float() {
    let server = ledger::testing::PostgresServer::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite://{}", folder.path().join("l.sqlite").display());
    for url in [sqlite, server.database("clock").await.unwrap()] {
        let ledger = Ledger::open(LedgerOptions::new(url.clone())).await.unwrap();
        let ours = usage::Clock::now(&usage::SystemClock).as_micros();
        let theirs = ledger.now().await.unwrap().as_micros();
        assert!((theirs - ours).abs() < 60_000_000, "{url}: {theirs} and {ours}");
        ledger.ping().await.unwrap();
    }
}
