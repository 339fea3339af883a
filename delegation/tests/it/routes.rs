//! `/v1/delegations` through the router, over both ledgers.

use delegation::rules::ATTEMPTS_MAX;
use http::Method;
use serde_json::{Value, json};

use crate::world::{World, post_to};

const GROUP: &str = "/v1/delegations/group";
const RESERVATIONS: &str = "/v1/delegations/group/reservations";

pub(crate) async fn open(world: &World, id: &str, limit: u64) {
    let body = json!({"delegation_id": id, "customer_id": "acme", "limit_tokens": limit});
    let opened = world.post("/v1/delegations", body).await;
    assert_eq!(opened.status, 201, "{} {opened:?}", world.name);
}

pub(crate) async fn reserve(world: &World, id: &str, attempt: &str, tokens: u64) {
    let body = json!({"attempt_id": attempt, "tokens": tokens});
    let reserved = world.post(&format!("/v1/delegations/{id}/reservations"), body).await;
    assert_eq!(reserved.status, 201, "{} {reserved:?}", world.name);
}

fn sums(budget: &Value) -> [&str; 4] {
    ["reserved", "held", "settled", "available"].map(|member| budget[member].as_str().unwrap())
}

#[tokio::test]
async fn tokens_are_reserved_before_and_settled_after() {
    for world in World::each().await {
        open(&world, "group", 1_000).await;
        reserve(&world, "group", "try-1", 600).await;
        let refused = world.post(RESERVATIONS, json!({"attempt_id": "try-2", "tokens": 401})).await;
        assert_eq!(refused.code(), (402, "budget_exhausted"), "{}", world.name);
        assert_eq!(
            (refused.body["available"].as_str(), refused.body["pointer"].as_str()),
            (Some("400"), Some("/tokens"))
        );

        world.clock.advance_micros(1_000_000);
        let evidence = json!({"reference": "receipt-1", "digest": format!("sha256:{}", "ab".repeat(32))});
        let path = format!("{RESERVATIONS}/try-1/settlement");
        let settled = world.post(&path, json!({"tokens": 450, "evidence": evidence})).await;
        assert_eq!((settled.status, settled.replayed.as_deref()), (200, Some("false")), "{settled:?}");
        assert_eq!(
            (settled.body["phase"].as_str(), settled.body["used_tokens"].as_u64()),
            (Some("settled"), Some(450))
        );
        assert_eq!(sums(&settled.body["delegation"]), ["0", "0", "450", "550"]);

        reserve(&world, "group", "try-2", 550).await;
        let released = world
            .post(&format!("{RESERVATIONS}/try-2/release"), json!({"evidence": {"reference": "never sent"}}))
            .await;
        assert_eq!(
            (released.body["phase"].as_str(), released.body["used_tokens"].as_u64()),
            (Some("released"), Some(0))
        );

        let shown = world.get(GROUP).await;
        assert_eq!(sums(&shown.body), ["0", "0", "450", "550"], "{} {shown:?}", world.name);
        assert_eq!(shown.body["revision"], 5);
        let listed = world.get(&format!("{RESERVATIONS}?limit=1")).await;
        assert_eq!(
            (listed.body["data"][0]["attempt_id"].as_str(), listed.body["next"].as_str()),
            (Some("try-1"), Some("try-1"))
        );
        let rest = world.get(&format!("{RESERVATIONS}?after=try-1")).await;
        assert_eq!((rest.body["data"].as_array().unwrap().len(), &rest.body["next"]), (1, &Value::Null));
    }
}

#[tokio::test]
async fn the_same_command_again_has_the_same_answer_whatever_happened_since() {
    for world in World::each().await {
        let group = json!({"delegation_id": "group", "customer_id": "acme", "limit_tokens": 100});
        let settlement = json!({"tokens": 7, "evidence": {"reference": "receipt"}});
        let steps = [
            (
                "/v1/delegations".to_owned(),
                group,
                json!({"delegation_id": "group", "customer_id": "acme", "limit_tokens": 101}),
                "delegation_conflict",
            ),
            (
                RESERVATIONS.to_owned(),
                json!({"attempt_id": "a", "tokens": 40}),
                json!({"attempt_id": "a", "tokens": 41}),
                "attempt_conflict",
            ),
            (
                format!("{RESERVATIONS}/a/unknown"),
                json!({"reason": "hung up"}),
                json!({"reason": "gone"}),
                "attempt_conflict",
            ),
            (
                format!("{RESERVATIONS}/a/settlement"),
                settlement,
                json!({"tokens": 8, "evidence": {"reference": "receipt"}}),
                "attempt_conflict",
            ),
        ];
        let mut first = Vec::new();
        for (path, body, _, _) in &steps {
            world.clock.advance_micros(5);
            first.push(world.post(path, body.clone()).await);
        }
        for ((path, body, other, code), first) in steps.iter().zip(&first) {
            assert_eq!(first.replayed.as_deref(), Some("false"), "{} {path} {first:?}", world.name);
            let again = world.post(path, body.clone()).await;
            assert_eq!((again.status, &again.body), (first.status, &first.body), "{} {path}", world.name);
            assert_eq!(again.replayed.as_deref(), Some("true"), "{} {path}", world.name);
            let conflict = world.post(path, other.clone()).await;
            assert_eq!(conflict.code(), (409, *code), "{} {path}", world.name);
            assert_eq!(&conflict.body["first"], body, "{} {path}", world.name);
        }
        let ended =
            world.post(&format!("{RESERVATIONS}/a/release"), json!({"evidence": {"reference": "x"}})).await;
        assert_eq!((ended.code(), ended.body["phase"].as_str()), ((409, "attempt_ended"), Some("settled")));
        assert_eq!(world.get(GROUP).await.body["revision"], 4, "{}: a refusal stores nothing", world.name);
    }
}

#[tokio::test]
async fn many_at_once_through_two_processes_never_pass_the_limit() {
    for world in World::each().await {
        open(&world, "group", 100).await;
        let routers = [world.second_router(), world.second_router()];
        let mut running = Vec::new();
        for i in 0..16 {
            let router = routers[i % 2].clone();
            running.push(tokio::spawn(async move {
                let body = json!({"attempt_id": format!("try-{i}"), "tokens": 10});
                // A busy budget says: the same again.
                loop {
                    let answer = post_to(router.clone(), RESERVATIONS, body.clone()).await;
                    if answer.code() != (503, "busy") {
                        return answer;
                    }
                }
            }));
        }
        let mut statuses = Vec::new();
        for task in running {
            statuses.push(task.await.unwrap().status);
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [vec![201; 10], vec![402; 6]].concat(), "{}", world.name);
        let shown = world.get(GROUP).await;
        assert_eq!(sums(&shown.body), ["100", "0", "0", "0"], "{}", world.name);
        assert_eq!(shown.body["revision"], 11);
    }
}

#[tokio::test]
async fn g9_another_platforms_budget_is_not_there() {
    for world in World::each().await {
        open(&world, "group", 100).await;
        reserve(&world, "group", "a", 40).await;
        let reason = json!({"reason": "hung up"}).to_string();
        let evidence = json!({"tokens": 1, "evidence": {"reference": "x"}}).to_string();
        let release = json!({"evidence": {"reference": "x"}}).to_string();
        let resolution = json!({"outcome": "released", "decided_by": "eve", "reason": "mine"}).to_string();
        assert_eq!(
            world.post(&format!("{RESERVATIONS}/a/unknown"), json!({"reason": "hung up"})).await.status,
            200
        );
        let before = world.get(GROUP).await;
        for (method, path, body) in [
            (Method::GET, GROUP.to_owned(), ""),
            (Method::GET, RESERVATIONS.to_owned(), ""),
            (Method::POST, RESERVATIONS.to_owned(), r#"{"attempt_id":"b","tokens":1}"#),
            (Method::POST, format!("{RESERVATIONS}/a/unknown"), &reason),
            (Method::POST, format!("{RESERVATIONS}/a/settlement"), &evidence),
            (Method::POST, format!("{RESERVATIONS}/a/release"), &release),
            (Method::POST, "/v1/holds/group~a/resolution".to_owned(), &resolution),
        ] {
            let answer = world.call("other", method, &path, body).await;
            assert_eq!(answer.code(), (404, "not_found"), "{} {path}", world.name);
        }
        for path in ["/v1/delegations", "/v1/holds"] {
            assert_eq!(
                world.call("other", Method::GET, path, "").await.body["data"],
                json!([]),
                "{} {path}",
                world.name
            );
        }
        assert_eq!(world.get(GROUP).await, before, "{}", world.name);
        // The other platform may use the same name for its own.
        let body = json!({"delegation_id": "group", "customer_id": "theirs", "limit_tokens": 5}).to_string();
        assert_eq!(world.call("other", Method::POST, "/v1/delegations", &body).await.status, 201);
        assert_eq!(world.get(GROUP).await, before, "{}", world.name);
    }
}

#[tokio::test]
async fn each_route_asks_for_its_scope() {
    let world = World::each().await.remove(0);
    open(&world, "group", 100).await;
    let rows = [
        (Method::POST, "/v1/delegations", "finance"),
        (Method::GET, "/v1/delegations", "read"),
        (Method::GET, GROUP, "read"),
        (Method::GET, RESERVATIONS, "read"),
        (Method::POST, RESERVATIONS, "ingest"),
        (Method::POST, "/v1/delegations/group/reservations/a/settlement", "ingest"),
        (Method::POST, "/v1/delegations/group/reservations/a/unknown", "ingest"),
        (Method::POST, "/v1/delegations/group/reservations/a/release", "ingest"),
        (Method::GET, "/v1/holds", "finance"),
        (Method::POST, "/v1/holds/group~a/resolution", "finance"),
    ];
    for scope in ["ingest", "backfill", "read", "support", "finance", "admin"] {
        let key = world.key(scope).await;
        for (method, path, needs) in &rows {
            let answer = world.call_with(&key, method.clone(), path, "{}").await;
            let expected = *needs != scope;
            assert_eq!(
                answer.code() == (403, "missing_scope"),
                expected,
                "{scope} {method} {path}: {answer:?}"
            );
        }
    }
    let nobody = world.call_with("cm_test_0", Method::GET, "/v1/holds", "").await;
    assert_eq!(nobody.code(), (401, "unknown_key"));
}

#[tokio::test]
async fn g10_bad_input_names_its_place_and_stores_nothing() {
    let world = World::each().await.remove(0);
    open(&world, "group", 100).await;
    reserve(&world, "group", "a", 40).await;
    let (open, settle) = ("/v1/delegations", "/v1/delegations/group/reservations/a/settlement");
    let resolve = "/v1/holds/group~a/resolution";
    let rows = [
        (open, r#"{"delegation_id":"g","customer_id":"acme"}"#, "invalid_request", None),
        (
            open,
            r#"{"delegation_id":"a/b","customer_id":"acme","limit_tokens":1}"#,
            "invalid_request",
            Some("/delegation_id"),
        ),
        (
            open,
            r#"{"delegation_id":"g","customer_id":"","limit_tokens":1}"#,
            "invalid_request",
            Some("/customer_id"),
        ),
        (
            open,
            r#"{"delegation_id":"g","customer_id":"acme","limit_tokens":0}"#,
            "invalid_value",
            Some("/limit_tokens"),
        ),
        (
            open,
            r#"{"delegation_id":"g","customer_id":"acme","limit_tokens":-1}"#,
            "invalid_request",
            Some("/limit_tokens"),
        ),
        (
            open,
            r#"{"delegation_id":"g","customer_id":"acme","limit_tokens":1.0}"#,
            "invalid_request",
            Some("/limit_tokens"),
        ),
        (
            open,
            r#"{"delegation_id":"g","customer_id":"acme","limit_tokens":18446744073709551616}"#,
            "invalid_request",
            Some("/limit_tokens"),
        ),
        (
            open,
            r#"{"delegation_id":"g","customer_id":"acme","limit_tokens":1,"more":1}"#,
            "invalid_request",
            Some("/more"),
        ),
        (RESERVATIONS, r#"{"attempt_id":"b","tokens":0}"#, "invalid_value", Some("/tokens")),
        (RESERVATIONS, r#"{"attempt_id":"b~c","tokens":1}"#, "invalid_request", Some("/attempt_id")),
        (settle, r#"{"tokens":1}"#, "invalid_request", None),
        (settle, r#"{"evidence":{"reference":"x"}}"#, "invalid_request", None),
        (settle, r#"{"tokens":null,"evidence":{"reference":"x"}}"#, "invalid_request", Some("/tokens")),
        (
            settle,
            r#"{"tokens":1,"evidence":{"reference":""}}"#,
            "invalid_request",
            Some("/evidence/reference"),
        ),
        (
            settle,
            r#"{"tokens":1,"evidence":{"reference":"x","digest":"abc"}}"#,
            "invalid_request",
            Some("/evidence/digest"),
        ),
        (
            resolve,
            r#"{"outcome":"settled","decided_by":"ana","reason":"x"}"#,
            "invalid_value",
            Some("/tokens"),
        ),
        (
            resolve,
            r#"{"outcome":"released","tokens":0,"decided_by":"ana","reason":"x"}"#,
            "invalid_value",
            Some("/tokens"),
        ),
        (
            resolve,
            r#"{"outcome":"released","decided_by":"ana","reason":" "}"#,
            "invalid_request",
            Some("/reason"),
        ),
        (
            resolve,
            r#"{"outcome":"forgotten","decided_by":"ana","reason":"x"}"#,
            "invalid_request",
            Some("/outcome"),
        ),
    ];
    for (path, body, code, pointer) in rows {
        let answer = world.call("reseller", Method::POST, path, body).await;
        assert_eq!(answer.code(), (422, code), "{path} {body}: {answer:?}");
        if let Some(pointer) = pointer {
            assert_eq!(answer.body["pointer"].as_str(), Some(pointer), "{path} {body}: {answer:?}");
        }
        assert_eq!(world.get(answer.body["type"].as_str().unwrap()).await.status, 200, "the page of {code}");
    }
    for path in ["/v1/delegations?after=a%2Fb", "/v1/holds?after=nothing", "/v1/holds?limit=0"] {
        assert_eq!(world.get(path).await.code(), (422, "invalid_value"), "{path}");
    }
    for path in ["/v1/delegations/none", "/v1/delegations/no%20ne", "/v1/delegations/none/reservations"] {
        assert_eq!(world.get(path).await.code(), (404, "not_found"), "{path}");
    }
    assert_eq!(world.get("/v1/delegations").await.body["data"].as_array().unwrap().len(), 1);
    assert_eq!(world.get(GROUP).await.body["revision"], 2);
}

#[tokio::test]
async fn budgets_are_listed_in_pages() {
    for world in World::each().await {
        for id in ["c", "a", "b"] {
            open(&world, id, 10).await;
        }
        let page = world.get("/v1/delegations?limit=2").await.body;
        let ids = |page: &Value| -> Vec<String> {
            let data = page["data"].as_array().unwrap();
            data.iter().map(|item| item["delegation_id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(
            (ids(&page), page["next"].as_str()),
            (vec!["a".to_owned(), "b".to_owned()], Some("b")),
            "{}",
            world.name
        );
        let rest = world.get("/v1/delegations?limit=2&after=b").await.body;
        assert_eq!((ids(&rest), &rest["next"]), (vec!["c".to_owned()], &Value::Null), "{}", world.name);
    }
}

#[tokio::test]
async fn a_platform_that_takes_known_customers_alone_opens_no_budget_for_others() {
    let world = World::each().await.remove(0);
    let platform = usage::PlatformId::parse("reseller").unwrap();
    let row = world.test.ledger.platform_get(&platform).await.unwrap();
    world.test.ledger.platform_update(&ledger::PlatformRow { strict_customers: true, ..row }).await.unwrap();
    let body = json!({"delegation_id": "group", "customer_id": "stranger", "limit_tokens": 10});
    let refused = world.post("/v1/delegations", body).await;
    assert_eq!(
        (refused.code(), refused.body["pointer"].as_str()),
        ((422, "customer_unknown"), Some("/customer_id"))
    );
}

#[tokio::test]
async fn a_record_that_was_changed_is_an_error_and_not_a_budget() {
    for world in World::each().await {
        open(&world, "group", 100).await;
        let stream = "delegation/reseller/group";
        let first = world.test.ledger.record_read(stream, 0, 10).await.unwrap().remove(0);
        // A copy of another budget's history under this one's name, and a record that does not follow.
        world
            .test
            .ledger
            .record_stream_begin("delegation/reseller", "delegation/reseller/copy", &first.body)
            .await
            .unwrap();
        assert_eq!(world.get("/v1/delegations/copy").await.code(), (500, "internal"), "{}", world.name);
        assert_eq!(world.get("/v1/delegations").await.code(), (500, "internal"), "{}", world.name);
        let stray = json!({"prev": "0".repeat(64), "at": "2026-11-30T12:00:00Z", "key": "k",
            "event": {"kind": "reserved", "attempt": "a", "tokens": 1}});
        world.test.ledger.record_append(stream, 2, stray.to_string().as_bytes()).await.unwrap();
        let broken = world.get(GROUP).await;
        assert_eq!(broken.code(), (500, "internal"), "{}", world.name);
        assert!(!broken.body.to_string().contains("follow"), "the cause is for the log");
    }
}

#[tokio::test]
async fn a_full_budget_is_read_whole_and_says_so() {
    let world = World::each().await.remove(0);
    open(&world, "group", 1_000_000).await;
    let stream = "delegation/reseller/group";
    let mut last = world.test.ledger.record_read(stream, 0, 1).await.unwrap().remove(0).body;
    for i in 0..ATTEMPTS_MAX {
        let prev = sha256(&last);
        last = json!({"prev": prev, "at": "2026-11-30T12:00:00Z", "key": "k",
            "event": {"kind": "reserved", "attempt": format!("try-{i}"), "tokens": 1}})
        .to_string()
        .into_bytes();
        world.test.ledger.record_append(stream, u64::try_from(i + 2).unwrap(), &last).await.unwrap();
    }
    let more = world.post(RESERVATIONS, json!({"attempt_id": "more", "tokens": 1})).await;
    assert_eq!(more.code(), (409, "delegation_full"));
    let held = world.post(&format!("{RESERVATIONS}/try-4095/unknown"), json!({"reason": "hung up"})).await;
    assert_eq!((held.status, held.body["delegation"]["held"].as_str()), (200, Some("1")), "{held:?}");
    // More than was reserved for one attempt closes the budget; a repeat is answered all the same.
    let over = json!({"tokens": 2, "evidence": {"reference": "x"}});
    let settled = world.post(&format!("{RESERVATIONS}/try-0/settlement"), over).await;
    assert_eq!(
        (settled.body["overrun_tokens"].as_u64(), settled.body["delegation"]["closed"].as_bool()),
        (Some(1), Some(true))
    );
    let closed = world.post(RESERVATIONS, json!({"attempt_id": "more", "tokens": 1})).await;
    assert_eq!(closed.code(), (409, "delegation_closed"));
    let repeat = world.post(RESERVATIONS, json!({"attempt_id": "try-9", "tokens": 1})).await;
    assert_eq!((repeat.status, repeat.replayed.as_deref()), (201, Some("true")));
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    hex::encode(sha2::Sha256::digest(bytes))
}
