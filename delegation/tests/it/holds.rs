//! `/v1/holds`: what nobody knows waits for a person.

use http::Method;
use serde_json::{Value, json};

use crate::{
    routes::{open, reserve},
    world::World,
};

async fn hold(world: &World, delegation: &str, attempt: &str, tokens: u64) {
    reserve(world, delegation, attempt, tokens).await;
    let path = format!("/v1/delegations/{delegation}/reservations/{attempt}/unknown");
    let held = world.post(&path, json!({"reason": "the provider hung up"})).await;
    assert_eq!((held.status, held.body["phase"].as_str()), (200, Some("held")), "{} {held:?}", world.name);
}

/// All holds, page by page.
async fn holds(world: &World, limit: u32) -> Vec<String> {
    let mut found = Vec::new();
    let mut after = String::new();
    loop {
        let page = world.get(&format!("/v1/holds?limit={limit}{after}")).await.body;
        let data = page["data"].as_array().unwrap_or_else(|| panic!("{page}"));
        assert!(data.len() <= usize::try_from(limit).unwrap());
        found.extend(data.iter().map(|hold| hold["hold_id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return found,
        }
    }
}

#[tokio::test]
async fn g11_what_nobody_knows_is_held_whole_until_a_person_decides() {
    for world in World::each().await {
        open(&world, "group", 100).await;
        hold(&world, "group", "a", 60).await;
        hold(&world, "group", "b", 40).await;
        world.clock.advance_micros(400 * 86_400_000_000);
        let late =
            world.post("/v1/delegations/group/reservations", json!({"attempt_id": "c", "tokens": 1})).await;
        assert_eq!(late.code(), (402, "budget_exhausted"), "{}: no clock frees anything", world.name);

        let listed = world.get("/v1/holds").await.body;
        assert_eq!(
            listed["data"][0],
            json!({"hold_id": "group~a", "delegation_id": "group", "attempt_id": "a", "customer_id": "acme",
                "tokens": 60, "reason": "the provider hung up", "since": listed["data"][0]["since"]}),
            "{}",
            world.name
        );
        let decision = json!({"outcome": "settled", "tokens": 25, "decided_by": "ana", "reason": "their invoice says so"});
        let decided = world.post("/v1/holds/group~a/resolution", decision.clone()).await;
        assert_eq!((decided.status, decided.body["phase"].as_str()), (200, Some("settled")), "{decided:?}");
        assert_eq!(
            (decided.body["used_tokens"].as_u64(), decided.body["decided_by"].as_str()),
            (Some(25), Some("ana"))
        );
        let again = world.post("/v1/holds/group~a/resolution", decision).await;
        assert_eq!((&again.body, again.replayed.as_deref()), (&decided.body, Some("true")));
        let other = json!({"outcome": "released", "decided_by": "ana", "reason": "their invoice says so"});
        let conflict = world.post("/v1/holds/group~a/resolution", other.clone()).await;
        assert_eq!(
            (conflict.code(), conflict.body["first"]["tokens"].as_u64()),
            ((409, "attempt_conflict"), Some(25))
        );

        assert_eq!(world.post("/v1/holds/group~b/resolution", other).await.body["phase"], "released");
        assert_eq!(holds(&world, 10).await, Vec::<String>::new(), "{}", world.name);
        let shown = world.get("/v1/delegations/group").await.body;
        assert_eq!((&shown["settled"], &shown["available"]), (&json!("25"), &json!("75")), "{}", world.name);
    }
}

#[tokio::test]
async fn only_what_is_held_is_a_persons_to_decide() {
    let world = World::each().await.remove(0);
    open(&world, "group", 100).await;
    reserve(&world, "group", "a", 60).await;
    let decision = json!({"outcome": "released", "decided_by": "ana", "reason": "tidying"});
    for id in ["group~a", "group~none", "none~a", "group", "~", "group~a~a"] {
        let answer = world.post(&format!("/v1/holds/{id}/resolution"), decision.clone()).await;
        assert_eq!(answer.code(), (404, "not_found"), "{id}");
    }
    let shown = world.get("/v1/delegations/group").await.body;
    assert_eq!(shown["reserved"], Value::from("60"));
    let by_evidence = json!({"tokens": 9, "evidence": {"reference": "receipt"}});
    hold(&world, "group", "b", 10).await;
    world.post("/v1/delegations/group/reservations/b/settlement", by_evidence).await;
    let late =
        world.call("reseller", Method::POST, "/v1/holds/group~b/resolution", &decision.to_string()).await;
    assert_eq!((late.code(), late.body["phase"].as_str()), ((409, "attempt_ended"), Some("settled")));
}

#[tokio::test]
async fn every_hold_is_on_one_page_whatever_its_size() {
    for world in World::each().await {
        let mut expected = Vec::new();
        // More budgets than one page looks into, most of them without a hold.
        for i in 0..103 {
            let id = format!("g-{i:03}");
            open(&world, &id, 100).await;
            if [0, 1, 60, 102].contains(&i) {
                for attempt in ["a", "b", "c"] {
                    hold(&world, &id, attempt, 1).await;
                    expected.push(format!("{id}~{attempt}"));
                }
            }
        }
        for limit in [1, 2, 3, 4, 100] {
            assert_eq!(holds(&world, limit).await, expected, "{} {limit}", world.name);
        }
    }
}
