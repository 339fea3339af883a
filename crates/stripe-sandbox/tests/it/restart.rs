use serde_json::json;
use stripe_sandbox::{Sandbox, SandboxOptions};

use crate::desk::{DAY, Desk, NOON, event_form};

#[tokio::test]
async fn a_sandbox_with_a_file_is_the_same_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let options = SandboxOptions {
        start: Some(NOON),
        state_file: Some(folder.path().join("stripe.json")),
        ..SandboxOptions::default()
    };
    let desk = Desk::of(Sandbox::open(options.clone()).unwrap());
    let (customer, meter) = (desk.customer().await, desk.meter("tokens").await);
    let price = desk.price(&meter, "1").await;
    desk.subscription(&customer, &price).await;
    desk.settings(json!({ "integer_only": true })).await;
    let form = event_form(&customer, "a", "10", NOON);
    desk.post_keyed("/v1/billing/meter_events", &form, "a/1").await.ok();
    let before = desk.get("/v1/customers").await.ok();
    drop(desk);

    let desk = Desk::of(Sandbox::open(options).unwrap());
    assert_eq!(desk.get("/v1/customers").await.ok(), before);
    assert!(desk.post_keyed("/v1/billing/meter_events", &form, "a/1").await.replayed(), "the key is known");
    desk.post("/v1/billing/meter_events", &form).await.refused(400, None);
    assert_eq!(desk.sum(&meter, &customer, NOON, NOON + 60).await, Some(10.0));
    assert_eq!(desk.get("/_sandbox/settings").await.ok()["integer_only"], true);
    desk.sandbox.set_now(NOON + 30 * DAY);
    assert_eq!(desk.only_invoice(&customer).await["total"], 10);
}

#[test]
fn a_broken_file_is_an_error_and_not_an_empty_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stripe.json");
    std::fs::write(&path, "{\"clock\":").unwrap();
    assert!(Sandbox::open(SandboxOptions { state_file: Some(path), ..SandboxOptions::default() }).is_err());
}
