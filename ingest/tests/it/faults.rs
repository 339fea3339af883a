//! A store that refuses, forgets to answer, or is asked again after a crash.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{
    proxy::holds,
    world::{World, noon, report},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_the_store_refuses_is_quarantined_and_the_rest_goes_on() {
    let (world, proxy) = World::proxied().await;
    proxy.refuse(|_| Some(210)); // a connection that fails: everything waits for one block
    let room = world.open().await;
    for turn in ["a", "b", "poison", "c", "d"] {
        let mut report = report(turn, &[1]);
        report["request_id"] = turn.into();
        assert_eq!(room.post(&report).await.0, 200);
    }
    proxy.refuse(|body| holds(body, "poison").then_some(117));
    room.ingest.drained().await;
    let backlog = room.ingest.backlog();
    assert_eq!((backlog.appended_seq, backlog.confirmed_seq), (5, 5));
    for (turn, stored) in [("b", true), ("poison", false), ("c", true)] {
        let (status, shown) = room.call("GET", &format!("/v1/reports/{turn}/{turn}"), "", "").await;
        assert_eq!((status, &shown["stored"]), (200, &stored.into()), "{turn}: {shown}");
    }
    assert_eq!(world.balanced(noon()).await, (4, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_does_not_blame_the_rows_is_waited_out() {
    let (world, proxy) = World::proxied().await;
    let room = world.open().await;
    let tries = AtomicU64::new(0);
    proxy.refuse(move |_| (tries.fetch_add(1, Ordering::Relaxed) < 3).then_some(243)); // the disk is full
    assert_eq!(room.post(&report("1", &[9])).await.0, 200);
    room.ingest.drained().await;
    assert_eq!(world.balanced(noon()).await, (1, 9));
    assert_eq!(proxy.inserts().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn g2_after_a_crash_the_same_block_is_sent_again_whatever_was_accepted_since() {
    let (world, proxy) = World::proxied().await;
    proxy.refuse(|_| Some(210));
    let room = world.open().await;
    for turn in ["1", "2"] {
        assert_eq!(room.post(&report(turn, &[1])).await.0, 200);
    }
    while proxy.inserts().is_empty() {
        tokio::task::yield_now().await;
    }
    for turn in ["3", "4"] {
        assert_eq!(room.post(&report(turn, &[1])).await.0, 200);
    }
    let first = proxy.inserts()[0].clone();
    room.end().await;
    let seen = proxy.inserts().len();
    proxy.refuse(|_| None);
    let room = world.open_with(|options| options.block_rows = 1).await.unwrap();
    room.ingest.drained().await;
    assert_eq!(proxy.inserts()[seen], first);
    assert_eq!(world.balanced(noon()).await, (4, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn g2_an_insert_whose_answer_was_lost_is_counted_once() {
    let (world, proxy) = World::proxied().await;
    let room = world.open().await;
    proxy.lose_answers(2);
    assert_eq!(room.post(&report("1", &[9])).await.0, 200);
    room.ingest.drained().await;
    assert_eq!(proxy.inserts().len(), 3);
    assert_eq!(world.balanced(noon()).await, (1, 9));
}
