use usage::{Digest, FrameKey, ProviderId};
use usage_store::{FrameHit, FrameQuery};

use crate::world::{World, block, platform};

#[tokio::test]
async fn the_servings_of_a_frame_are_found_newest_first_page_by_page_and_none_twice() {
    let world = World::new().await;
    let store = world.store();
    store.migrate().await.unwrap();
    for n in 0..7u64 {
        // Twice in one event, and two events of one instant: the place and the event decide the order.
        let as_of = format!("2026-11-30T12:0{}:00Z", n / 2);
        let frames = [("intro", 10 + n), ("other", 1), ("intro", 20 + n)];
        store.insert(&block(&format!("req-{n}"), n + 1, &as_of, &frames)).await.unwrap();
    }
    let query = FrameQuery {
        provider: ProviderId::parse("docs".to_owned()).unwrap(),
        frame: FrameKey::parse("intro".to_owned()).unwrap(),
        digest: None,
        customer: None,
    };
    let all = store.frame_find(&platform(), &query, None, 100).await.unwrap();
    assert_eq!(all.len(), 14);
    assert!(all.is_sorted_by_key(|hit| std::cmp::Reverse(hit.as_of)));
    let mut paged: Vec<FrameHit> = Vec::new();
    loop {
        let after = paged.last().map(FrameHit::after);
        let page = store.frame_find(&platform(), &query, after.as_ref(), 3).await.unwrap();
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);

    let odd = FrameQuery { digest: Some(Digest::from_received("sha256:odd")), ..query.clone() };
    assert_eq!(store.frame_find(&platform(), &odd, None, 100).await.unwrap().len(), 14);
    let another = FrameQuery { digest: Some(Digest::from_received("sha256:even")), ..query };
    assert_eq!(store.frame_find(&platform(), &another, None, 100).await.unwrap(), []);
    world.engine.close().await.unwrap();
}
