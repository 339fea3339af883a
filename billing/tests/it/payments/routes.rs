use ledger::{InvoiceLineRow, InvoiceRow, ReconciliationRow, SyncMode, SyncWaitRow};
use serde_json::json;
use usage::{CustomerId, Hour, MeterId, PlatformId, Timestamp};

use super::desk::{Desk, NOON};

fn acme() -> PlatformId {
    PlatformId::parse("acme").unwrap()
}

fn customer(id: &str) -> CustomerId {
    CustomerId::parse(id).unwrap()
}

fn meter() -> MeterId {
    MeterId::parse("context_tokens").unwrap()
}

const NOW: Timestamp = Timestamp::from_micros(NOON);

#[tokio::test]
async fn a_customer_is_linked_once_and_each_refusal_says_what_to_do() {
    let desk = Desk::new(true).await;
    let link = |to: &str| format!(r#"{{"stripe_customer":"{to}"}}"#);
    let (status, linked) = desk.acme("PUT", "/v1/customers/acme-1", &link("cus_1")).await;
    assert_eq!(
        (status, &linked["stripe_customer"], &linked["stripe_account"]),
        (200, &json!("cus_1"), &json!("acct_1"))
    );
    let (status, again) = desk.acme("PUT", "/v1/customers/acme-1", &link("cus_1")).await;
    assert_eq!((status, again), (200, linked), "the same again changes nothing");

    for (path, body, status, code) in [
        ("/v1/customers/acme-2", link("cus_1"), 409, "stripe_customer_taken"),
        ("/v1/customers/acme-2", link("cus_nobody"), 422, "invalid_value"),
        (
            "/v1/customers/acme-2",
            r#"{"stripe_customer":"cus_2","note":1}"#.to_owned(),
            422,
            "invalid_request",
        ),
        ("/v1/customers/a%00b", link("cus_2"), 422, "invalid_value"),
    ] {
        let (found, problem) = desk.acme("PUT", path, &body).await;
        assert_eq!((found, problem["code"].as_str()), (status, Some(code)), "{problem}");
    }
    let (status, problem) = desk.call("PUT", "/v1/customers/theirs", Some("other"), &link("cus_1")).await;
    assert_eq!(
        (status, problem["code"].as_str()),
        (409, Some("stripe_customer_taken")),
        "over all platforms: {problem}"
    );

    desk.acme("PUT", "/v1/customers/acme-2", &link("cus_2")).await;
    let (_, page) = desk.acme("GET", "/v1/customers?limit=1", "").await;
    assert_eq!(
        (page["data"][0]["customer_id"].as_str(), page["next"].as_str()),
        (Some("acme-1"), Some("acme-1"))
    );
    let (_, page) = desk.acme("GET", "/v1/customers?limit=1&after=acme-1", "").await;
    assert_eq!((page["data"][0]["customer_id"].as_str(), page["next"].as_str()), (Some("acme-2"), None));
    let (_, theirs) = desk.call("GET", "/v1/customers", Some("other"), "").await;
    assert_eq!(theirs["data"], json!([]), "g9: another platform sees nothing of it");
}

#[tokio::test]
async fn meters_are_made_sure_of_once() {
    let desk = Desk::new(true).await;
    let (_, before) = desk.acme("GET", "/v1/meters", "").await;
    assert_eq!(before["data"][0]["stripe_meter"], json!(null));
    for _ in 0..2 {
        let (status, meters) = desk.acme("POST", "/v1/meters", "{}").await;
        let meter = &meters["data"][0];
        assert_eq!(
            (status, &meter["meter_id"], &meter["quantity"], &meter["event_name"], &meter["stripe_meter"]),
            (200, &json!("context_tokens"), &json!("tokens"), &json!("context_tokens"), &json!("mtr_1")),
        );
    }
    let (_, shared) = desk.call("POST", "/v1/meters", Some("other"), "{}").await;
    assert_eq!(shared["data"][0]["stripe_meter"], "mtr_1", "one event name is one meter of the account");
}

#[tokio::test]
async fn what_waits_is_shown_with_its_reason_and_sync_answers_with_figures() {
    let desk = Desk::new(true).await;
    let mut tx = desk.ledger().write().await.unwrap();
    for number in 1..=3 {
        let row = SyncWaitRow {
            platform: acme(),
            statement_id: format!("stm_{number}"),
            customer: customer("acme-1"),
            meter: meter(),
            sum: 900,
            reason: "unlinked_customer".to_owned(),
            since: NOW,
        };
        desk.ledger().sync_wait_put_in_txn(&mut tx, &row).await.unwrap();
    }
    tx.commit().await.unwrap();
    let (status, shown) = desk.acme("GET", "/v1/sync?limit=2", "").await;
    assert_eq!((status, &shown["mode"], &shown["binding"]), (200, &json!("live"), &json!("bound")));
    assert_eq!(
        shown["waiting"],
        json!([{"reason": "unlinked_customer", "statements": 3, "since": NOW.to_string()}])
    );
    assert_eq!((shown["data"].as_array().unwrap().len(), &shown["next"]), (2, &json!("stm_2")));
    assert_eq!(shown["data"][0]["sum"], "900");

    desk.mode(SyncMode::Off).await;
    let (status, done) = desk.acme("POST", "/v1/sync", "{}").await;
    assert_eq!(status, 200, "{done}");
    for (figure, value) in [("planned", 0), ("delivered", 0), ("unknown", 0), ("waiting", 3), ("refused", 0)]
    {
        assert_eq!(done[figure], value, "{done}");
    }
    assert_eq!(
        (&done["platforms"][0]["mode"], done["platforms"].as_array().unwrap().len()),
        (&json!("off"), 1)
    );
    let (_, theirs) = desk.call("GET", "/v1/sync", Some("other"), "").await;
    assert_eq!((&theirs["waiting"], &theirs["data"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn reconciled_hours_are_listed_to_the_last_one() {
    let desk = Desk::new(true).await;
    let noon = Hour::of(NOW);
    for (name, hour) in [("a/1", noon), ("a/2", noon), ("a/3", noon), ("a/1", noon.previous())] {
        let row = ReconciliationRow {
            platform: acme(),
            customer: customer(name),
            meter: meter(),
            hour,
            placed: 900,
            seen: 890,
            unsettled: 1,
            checked_at: NOW,
        };
        desk.ledger().reconciliation_put(&row).await.unwrap();
    }
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let (status, page) = desk.acme("GET", &format!("/v1/reconciliation?limit=1{after}"), "").await;
        assert_eq!(status, 200, "{page}");
        let row = &page["data"][0];
        assert_eq!(
            (&row["placed"], &row["seen"], &row["drift_tokens"]),
            (&json!("900"), &json!("890"), &json!("10"))
        );
        seen.push(format!("{} {}", row["hour"].as_str().unwrap(), row["customer_id"].as_str().unwrap()));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={}", next.replace('/', "%2F")),
            None => break,
        }
    }
    let expected = [(noon, "a/1"), (noon, "a/2"), (noon, "a/3"), (noon.previous(), "a/1")];
    assert_eq!(seen, expected.map(|(hour, name)| format!("{hour} {name}")));
    let (status, problem) = desk.acme("GET", "/v1/reconciliation?after=x", "").await;
    assert_eq!((status, problem["code"].as_str()), (422, Some("invalid_value")));
    let (status, done) = desk.acme("POST", "/v1/reconciliation", "{}").await;
    assert_eq!((status, &done["placements"], &done["equal"]), (200, &json!(0), &json!(0)), "{done}");
    assert_eq!(done["drift_tokens"], "0", "hours without placements have nothing placed");
}

#[tokio::test]
async fn invoices_are_shown_with_their_lines_and_only_to_their_platform() {
    let desk = Desk::new(true).await;
    let row = InvoiceRow {
        platform: acme(),
        invoice_id: "in_1".to_owned(),
        customer: customer("acme-1"),
        stripe_customer: "cus_1".to_owned(),
        subscription_id: Some("sub_1".to_owned()),
        state: "finalized".to_owned(),
        reason: None,
        verdict: Some("matched".to_owned()),
        expected: Some(900),
        billed: Some(900),
        root: Some([0xab; 32]),
        created_at: NOW,
        found_at: NOW,
        finalizes_at: None,
        auto_advance_off_at: Some(NOW),
        closed_at: Some(NOW),
        finalised_at: Some(NOW),
        updated_at: NOW,
    };
    let line = InvoiceLineRow {
        platform: acme(),
        invoice_id: "in_1".to_owned(),
        line_id: "il_1".to_owned(),
        place: 0,
        item_id: Some("si_1".to_owned()),
        price_id: Some("price_1".to_owned()),
        meter: Some(meter()),
        quantity: Some(900),
        amount: 90,
        currency: "usd".to_owned(),
        period_start: Hour::of(NOW).previous().start(),
        period_end: NOW,
        description: None,
        last: true,
    };
    let mut tx = desk.ledger().write().await.unwrap();
    desk.ledger().invoice_put_in_txn(&mut tx, &row).await.unwrap();
    desk.ledger().invoice_lines_put_in_txn(&mut tx, &acme(), "in_1", &[line]).await.unwrap();
    tx.commit().await.unwrap();

    let (status, page) = desk.acme("GET", "/v1/invoices", "").await;
    assert_eq!((status, &page["next"]), (200, &json!(null)));
    let invoice = &page["data"][0];
    for (member, value) in [
        ("invoice_id", json!("in_1")),
        ("customer_id", json!("acme-1")),
        ("status", json!("finalized")),
        ("verdict", json!("matched")),
        ("period_start", json!("2026-11-30T11:00:00Z")),
        ("period_end", json!("2026-11-30T12:00:00Z")),
        ("root", json!("ab".repeat(32))),
    ] {
        assert_eq!(invoice[member], value, "{member}");
    }
    let line = &invoice["lines"][0];
    assert_eq!(
        (&line["line_id"], &line["quantity"], &line["amount"]),
        (&json!("il_1"), &json!("900"), &json!(90))
    );
    let (status, one) = desk.acme("GET", "/v1/invoices/in_1", "").await;
    assert_eq!((status, &one), (200, invoice));
    let (status, problem) = desk.call("GET", "/v1/invoices/in_1", Some("other"), "").await;
    assert_eq!((status, problem["code"].as_str()), (404, Some("not_found")));
    let (status, guarded) = desk.acme("POST", "/v1/invoices/guard", "{}").await;
    assert_eq!((status, &guarded["finalized"], &guarded["held"]), (200, &json!([]), &json!([])), "{guarded}");
}

#[tokio::test]
async fn finance_alone_may_and_the_body_is_strict() {
    let desk = Desk::new(true).await;
    let (read, finance) = (desk.key("read").await, desk.key("finance").await);
    for (method, path, body) in [
        ("GET", "/v1/customers", ""),
        ("PUT", "/v1/customers/acme-1", r#"{"stripe_customer":"cus_1"}"#),
        ("GET", "/v1/meters", ""),
        ("POST", "/v1/meters", "{}"),
        ("GET", "/v1/sync", ""),
        ("POST", "/v1/sync", "{}"),
        ("GET", "/v1/reconciliation", ""),
        ("POST", "/v1/reconciliation", "{}"),
        ("GET", "/v1/invoices", ""),
        ("POST", "/v1/invoices/guard", "{}"),
    ] {
        let (status, problem) = desk.call_as(&read, method, path, body).await;
        assert_eq!((status, problem["code"].as_str()), (403, Some("missing_scope")), "{method} {path}");
        let (status, answer) = desk.call_as(&finance, method, path, body).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        if body == "{}" {
            let (status, problem) = desk.call_as(&finance, method, path, r#"{"force":true}"#).await;
            assert_eq!((status, problem["code"].as_str()), (422, Some("invalid_request")), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_service_that_is_away_and_one_that_is_not_there_are_told_apart() {
    let desk = Desk::new(true).await;
    *desk.service.away.lock().unwrap() = true;
    for (method, path, body) in [
        ("POST", "/v1/meters", "{}"),
        ("PUT", "/v1/customers/a", r#"{"stripe_customer":"cus_1"}"#),
        ("POST", "/v1/invoices/guard", "{}"),
    ] {
        let (status, problem) = desk.acme(method, path, body).await;
        assert_eq!(
            (status, problem["code"].as_str(), problem["retry"].as_str()),
            (503, Some("stripe_unavailable"), Some("after")),
            "{path}"
        );
    }
    let bare = Desk::new(false).await;
    for (method, path, body) in [
        ("POST", "/v1/meters", "{}"),
        ("PUT", "/v1/customers/a", r#"{"stripe_customer":"cus_1"}"#),
        ("POST", "/v1/sync", "{}"),
    ] {
        let (status, problem) = bare.acme(method, path, body).await;
        assert_eq!((status, problem["code"].as_str()), (409, Some("payments_off")), "{path}");
    }
    let (status, shown) = bare.acme("GET", "/v1/sync", "").await;
    assert_eq!((status, &shown["binding"]), (200, &json!("payments_off")));
}
