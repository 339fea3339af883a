use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::json;

use crate::desk::{Desk, NOON, id};

#[tokio::test]
async fn a_request_without_a_good_key_is_401() {
    let desk = Desk::at_noon();
    let none = desk.with_key("").get("/v1/customers").await;
    assert!(none.refused(401, None).starts_with("You did not provide an API key."));
    assert_eq!(none.header("www-authenticate"), Some("Bearer realm=\"Stripe\""));
    for key in ["pk_test_desk", "sk_desk", "sk_test_", "hello"] {
        assert!(
            desk.with_key(key)
                .get("/v1/customers")
                .await
                .refused(401, None)
                .starts_with("Invalid API Key provided: "),
            "{key}"
        );
    }
    desk.settings(json!({ "expired_keys": ["sk_test_desk"] })).await;
    desk.get("/v1/customers").await.refused(401, Some("api_key_expired"));
    let basic = format!("Basic {}", BASE64_STANDARD.encode("sk_test_desk_2:"));
    desk.with_key("").send("GET", "/v1/customers", "", &[("authorization", &basic)]).await.ok();
}

#[tokio::test]
async fn modes_are_apart_and_say_where_an_id_is() {
    let desk = Desk::at_noon();
    let live = desk.with_key("sk_live_desk");
    let customer = live.customer().await;
    assert_eq!(live.get(&format!("/v1/customers/{customer}")).await.ok()["livemode"], true);
    let said = desk.get(&format!("/v1/customers/{customer}")).await.refused(404, Some("resource_missing"));
    assert_eq!(
        said,
        format!(
            "No such customer: '{customer}'; a similar object exists in live mode, but a test mode key was used to make this request."
        )
    );
    desk.meter("tokens").await;
    live.meter("tokens").await;
    let said = desk.event(&customer, "a", "1", NOON).await.refused(400, Some("resource_missing"));
    assert!(said.contains("a similar object exists in live mode"));
}

#[tokio::test]
async fn accounts_are_apart_and_a_rolled_key_keeps_its_account() {
    let desk = Desk::at_noon();
    let customer = desk.customer().await;
    let other = desk.with_key("sk_test_other");
    assert_eq!(
        other.get(&format!("/v1/customers/{customer}")).await.refused(404, Some("resource_missing")),
        format!("No such customer: '{customer}'")
    );
    let rolled = desk.with_key("rk_test_desk_2026");
    assert_eq!(id(&rolled.get(&format!("/v1/customers/{customer}")).await.ok()), customer);
    for (key, account) in
        [("sk_test_desk", "acct_desk"), ("sk_live_desk", "acct_desk"), ("sk_test_other", "acct_other")]
    {
        assert_eq!(desk.with_key(key).get("/v1/account").await.ok()["id"], account);
    }
}
