use ledger::LedgerError;

use crate::both;

const MINUTE: i64 = 60_000_000;

#[tokio::test]
async fn one_holder_at_a_time_and_a_fence_that_only_grows() {
    let (ledgers, clock) = both().await;
    for test in &ledgers {
        let ledger = &test.ledger;
        let a = ledger.lease_acquire("seal", "a", MINUTE).await.unwrap().expect("it is free");
        assert!(
            ledger.lease_acquire("seal", "b", MINUTE).await.unwrap().is_none(),
            "{}: a has it",
            test.name
        );
        clock.advance_micros(MINUTE);
        let b = ledger.lease_acquire("seal", "b", MINUTE).await.unwrap().expect("a's has expired");
        assert!(b.fence > a.fence, "{}", test.name);
        ledger.lease_release(&b).await.unwrap();
        let again = ledger.lease_acquire("seal", "a", MINUTE).await.unwrap().expect("b gave it back");
        assert!(again.fence > b.fence, "{}", test.name);
    }
}

#[tokio::test]
async fn a_holder_who_slept_cannot_commit() {
    let (ledgers, clock) = both().await;
    for test in &ledgers {
        let ledger = &test.ledger;
        let slept = ledger.lease_acquire("seal", "a", MINUTE).await.unwrap().unwrap();
        let mut tx = ledger.write().await.unwrap();
        tx.check_fence(&slept).await.expect("it is still held");
        drop(tx);
        clock.advance_micros(2 * MINUTE);
        let other = ledger.lease_acquire("seal", "b", MINUTE).await.unwrap().unwrap();
        let mut tx = ledger.write().await.unwrap();
        let refused = tx.check_fence(&slept).await.unwrap_err();
        assert!(matches!(refused, LedgerError::FenceLost { .. }), "{}: {refused}", test.name);
        drop(tx);
        assert!(ledger.lease_renew(&slept, MINUTE).await.is_err(), "{}", test.name);
        ledger.lease_renew(&other, MINUTE).await.expect("its holder is awake");
    }
}

#[tokio::test]
async fn of_many_who_reach_for_a_lease_at_once_one_gets_it() {
    let (ledgers, _) = both().await;
    for test in &ledgers {
        let tries = (0..8).map(|n| {
            let ledger = test.ledger.clone();
            async move { ledger.lease_acquire("seal", &format!("worker-{n}"), MINUTE).await.unwrap() }
        });
        let taken = futures_util::future::join_all(tries).await.into_iter().flatten().count();
        assert_eq!(taken, 1, "{}", test.name);
    }
}
