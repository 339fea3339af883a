//! G10: bad input gets a problem with its own code, a pointer, what to do, and a page; nothing of it is stored.

use contextmeter_tests::{
    Answer,
    load::{Seed, turn},
    world::send,
};
use serde_json::{Value, json};

use crate::{past_hour, world};

fn good() -> Value {
    turn(&mut Seed::new(1), "acme", "req-1", "1", &past_hour(5)).body
}

fn with(pointer: &str, value: Value) -> Vec<u8> {
    let mut body = good();
    *body.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is in the report")) = value;
    serde_json::to_vec(&body).unwrap()
}

fn without(member: &str) -> Vec<u8> {
    let mut body = good();
    body.as_object_mut().unwrap().remove(member);
    serde_json::to_vec(&body).unwrap()
}

#[tokio::test]
async fn g10_bad_input_is_refused_with_its_own_code_and_page_and_nothing_is_stored() {
    let mut world = world();
    world.set("CONTEXTMETER_HTTP_MAX_BODY_BYTES", "65536");
    let service = world.start("up", "data").await;
    let key = service.given_platform("reseller", &["ingest", "read"]).await;
    let reader = service.given_platform("reseller", &["read"]).await;

    // what is wrong, the answer, its status, its code
    let mut rows: Vec<(&str, Answer, u16, &str)> = Vec::new();
    let post = async |body: Vec<u8>| service.post_as(Some(&key), "/v1/reports", body).await;
    rows.push(("malformed JSON", post(b"{\"customer_id\":".to_vec()).await, 400, "malformed_json"));
    rows.push((
        "no key",
        service.post_as(None, "/v1/reports", with("/turn_id", json!("1"))).await,
        401,
        "missing_key",
    ));
    rows.push((
        "unknown key",
        service.post_as(Some("cm_test_nobody"), "/v1/reports", with("/turn_id", json!("1"))).await,
        401,
        "unknown_key",
    ));
    rows.push((
        "a key without the scope",
        service.post_as(Some(&reader), "/v1/reports", with("/turn_id", json!("1"))).await,
        403,
        "missing_scope",
    ));
    rows.push(("missing customer", post(without("customer_id")).await, 422, "invalid_report"));
    rows.push(("empty identity", post(with("/request_id", json!(""))).await, 422, "invalid_report"));
    rows.push((
        "total that its parts do not have",
        post(with("/report/budget_consumed", json!(1))).await,
        422,
        "inconsistent_report",
    ));
    rows.push(("oversized body", post(vec![b' '; 70_000]).await, 413, "body_too_large"));
    rows.push(("unknown route", service.get_as(Some(&key), "/v1/nothing").await, 404, "unknown_route"));
    let delete = service.request(reqwest::Method::DELETE, "/v1/reports", Some(&key));
    rows.push(("wrong method", send(delete).await, 405, "method_not_allowed"));

    for (what, answer, status, code) in rows {
        assert_eq!(answer.status, status, "{what}: {}", answer.body);
        assert_eq!(answer.content_type, "application/problem+json", "{what}");
        assert_eq!(answer.body["code"], code, "{what}: {}", answer.body);
        assert!(answer.body["retry"].is_string(), "{what} says whether a retry is safe: {}", answer.body);
        let page = service.get_as(None, &format!("/errors/{code}")).await;
        assert_eq!(page.status, 200, "the page of {code}");
    }
    let pointer = post(without("customer_id")).await.body["pointer"].clone();
    assert!(pointer.is_string(), "a finding has a pointer: {pointer}");

    let usage = service.operator_get("reseller", "/v1/usage").await.expect(200);
    assert_eq!(usage["total"]["tokens"], "0", "{usage}");
    assert_eq!(service.stop().await, 0);
}
