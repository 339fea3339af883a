//! The command as an operator types it: with a service running, with nobody running, and when it is wrong.

use contextmeter_tests::load::{Seed, turn};

use crate::{past_hour, world};

#[tokio::test]
async fn a_command_asks_the_running_service_and_opens_the_folder_only_when_nobody_does() {
    let world = world();
    let made = world.run_json("data", &["init", "--platform", "reseller"]).await;
    let key = made["key"].as_str().unwrap().to_owned();
    assert!(key.starts_with("cm_test_"), "{made}");

    let service = world.start("up", "data").await;
    let report = turn(&mut Seed::new(3), "acme", "req-1", "1", &past_hour(1));
    service.post_as(Some(&key), "/v1/reports", report.bytes()).await.expect(200);
    service.stored_tokens("reseller", u128::from(report.tokens)).await;
    service.sealed_tokens("reseller", u128::from(report.tokens)).await;
    world.run_json("data", &["seal", "--force", "--platform", "reseller"]).await;
    let running = world.run_json("data", &["statements", "--platform", "reseller"]).await;
    assert_eq!(running["data"].as_array().unwrap().len(), 1, "{running}");

    // A second process may not open the folder, and says who has it.
    let (code, _, err) = world.run("data", &["up"]).await;
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("has") && err.contains("open"), "{err}");

    assert_eq!(service.stop().await, 0);
    let alone = world.run_json("data", &["statements", "--platform", "reseller"]).await;
    assert_eq!(alone, running);

    let (code, _, err) = world.run("data", &["statements", "--platform", "nobody"]).await;
    assert_eq!(code, 1, "{err}");
    let (code, _, err) = world.run("data", &["frobnicate"]).await;
    assert_eq!(code, 2, "{err}");
}

#[tokio::test]
async fn a_wrong_setting_is_named_with_the_way_out() {
    let mut world = world();
    world.set("CONTEXTMETER_HTTP_LISSEN", "127.0.0.1:1");
    let (code, _, err) = world.run("data", &["up"]).await;
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("CONTEXTMETER_HTTP_LISSEN"), "{err}");
}
