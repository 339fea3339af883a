use std::collections::BTreeMap;

use ledger::{EpochState, HourCount};
use usage::{Hour, PlatformId};

use crate::{NOON, both};

fn count(seq: u64, events: u64, tokens: u128) -> HourCount {
    HourCount {
        platform: PlatformId::parse("reseller").unwrap(),
        hour: Hour::of(NOON),
        seq,
        events,
        tokens,
        frames: events,
    }
}

#[tokio::test]
async fn an_epoch_moves_forward_only_and_its_folder_closes_the_one_before() {
    let (ledgers, clock) = both().await;
    for test in &ledgers {
        let ledger = &test.ledger;
        let first = ledger.epoch_open("folder", None).await.unwrap();
        ledger.epoch_confirm(first.epoch, 10, NOON, &[]).await.unwrap();
        ledger.epoch_confirm(first.epoch, 7, NOON, &[]).await.unwrap();
        assert_eq!(ledger.epoch_list().await.unwrap()[0].confirmed_seq, 10, "{}", test.name);
        clock.advance_micros(1);
        let second = ledger.epoch_open("folder", Some((first.epoch, 12))).await.unwrap();
        assert!(second.epoch > first.epoch);
        let rows = ledger.epoch_list().await.unwrap();
        assert_eq!((rows[0].state, rows[0].end_seq), (EpochState::Closed, Some(12)), "{}", test.name);
        assert!(ledger.epoch_confirm(99, 1, NOON, &[]).await.is_err(), "an epoch that nobody opened");
    }
}

#[tokio::test]
async fn a_cut_reads_every_epoch_and_a_new_one_is_taken_only_when_something_moved() {
    let (ledgers, _) = both().await;
    for test in &ledgers {
        let ledger = &test.ledger;
        let a = ledger.epoch_open("a", None).await.unwrap().epoch;
        let b = ledger.epoch_open("b", None).await.unwrap().epoch;
        ledger.epoch_confirm(a, 5, NOON, &[]).await.unwrap();
        let first = ledger.cut_take().await.unwrap();
        assert_eq!(first.positions, BTreeMap::from([(a, 5), (b, 0)]), "{}", test.name);
        assert_eq!(ledger.cut_take().await.unwrap(), first, "{}: nothing moved", test.name);
        ledger.epoch_confirm(b, 3, NOON, &[]).await.unwrap();
        let second = ledger.cut_take().await.unwrap();
        assert!(second.cut_id > first.cut_id);
        assert_eq!((second.seq(a), second.seq(b), second.seq(77)), (5, 3, 0));
        assert_eq!(ledger.cut_get(first.cut_id).await.unwrap(), first, "{}: a cut never changes", test.name);
    }
}

#[tokio::test]
async fn counts_are_as_of_the_cut_and_told_twice_they_are_the_same() {
    let (ledgers, _) = both().await;
    for test in &ledgers {
        let ledger = &test.ledger;
        let a = ledger.epoch_open("a", None).await.unwrap().epoch;
        let big = u128::from(u64::MAX) + 5;
        ledger.epoch_confirm(a, 5, NOON, &[count(5, 5, 900)]).await.unwrap();
        let cut = ledger.cut_take().await.unwrap();
        ledger.epoch_confirm(a, 9, NOON, &[count(9, 9, big)]).await.unwrap();
        ledger.epoch_confirm(a, 9, NOON, &[count(9, 9, big)]).await.unwrap();
        let platform = PlatformId::parse("reseller").unwrap();
        let then = ledger.epoch_counts_at(&platform, Hour::of(NOON), &cut).await.unwrap();
        assert_eq!(then[&a].tokens, 900, "{}", test.name);
        let now = ledger.cut_take().await.unwrap();
        assert_eq!(
            ledger.epoch_counts_latest(&now).await.unwrap(),
            vec![(a, count(9, 9, big))],
            "{}",
            test.name
        );
    }
}

#[tokio::test]
async fn cuts_taken_at_once_are_monotone() {
    let (ledgers, _) = both().await;
    for test in &ledgers {
        let epoch = test.ledger.epoch_open("a", None).await.unwrap().epoch;
        let takers = (1..=12_u64).map(|n| {
            let ledger = test.ledger.clone();
            async move {
                ledger.epoch_confirm(epoch, n, NOON, &[]).await.unwrap();
                ledger.cut_take().await.unwrap()
            }
        });
        let mut cuts = futures_util::future::join_all(takers).await;
        cuts.sort_by_key(|cut| cut.cut_id);
        for pair in cuts.windows(2) {
            assert!(pair[0].seq(epoch) <= pair[1].seq(epoch), "{}: {pair:?}", test.name);
        }
    }
}
