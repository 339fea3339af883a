use usage::{EventId, Hour, Timestamp};
use usage_store::{StoreError, UsageFilter};

use crate::world::{World, block, platform};

#[tokio::test]
async fn a_store_without_our_tables_is_unavailable_and_asks_for_patience() {
    let world = World::new().await;
    let error =
        world.store().insert(&block("req", 1, "2026-11-30T12:00:00Z", &[("a", 5)])).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    world.engine.close().await.unwrap();
}

#[tokio::test]
async fn migrations_run_twice_and_by_two_at_once() {
    let world = World::new().await;
    let (one, other) = (world.store(), world.store());
    let (first, second) = tokio::join!(one.migrate(), other.migrate());
    assert_eq!(first.unwrap().version, second.unwrap().version);
    let again = one.migrate().await.unwrap();
    assert!(again.applied.is_empty(), "{again:?}");
    one.ping().await.unwrap();
    world.engine.close().await.unwrap();
}

#[tokio::test]
async fn a_block_that_is_sent_again_counts_once_and_one_over_two_months_is_not_stored_at_all() {
    let world = World::new().await;
    let store = world.store();
    store.migrate().await.unwrap();
    let good = block("req-1", 1, "2026-11-30T12:00:00Z", &[("a", 5), ("b", 7)]);
    for _ in 0..3 {
        store.insert(&good).await.unwrap();
    }
    let mut two_months = block("req-2", 2, "2026-11-30T12:30:00Z", &[("a", 100)]);
    two_months.events.extend(block("req-3", 3, "2026-12-01T00:00:00Z", &[("a", 200)]).events);
    let error = store.insert(&two_months).await.unwrap_err();
    assert!(!error.is_retryable(), "{error}");

    let hour = Hour::of(Timestamp::parse_rfc3339("2026-11-30T12:00:00Z").unwrap());
    let all = UsageFilter {
        from: hour,
        until: Hour::from_index(hour.index() + 100).unwrap(),
        customer: None,
        provider: None,
    };
    let total = store.usage_total(&platform(), &all).await.unwrap();
    assert_eq!((total.events, total.tokens, total.frames), (1, 12, 2));
    let event = EventId(good.events[0].event_id);
    let copies = store.event_get(&platform(), event).await.unwrap();
    assert_eq!(copies, good.events, "what is read is what was written");
    assert_eq!(copies[0].to_event().unwrap().recompute_content_hash().0, good.events[0].content_hash);
    world.engine.close().await.unwrap();
}
