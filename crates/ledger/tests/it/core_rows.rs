use ledger::{KeyRow, LedgerError, MeterRow, PlatformRow, SyncMode};
use usage::{CustomerId, Hour, MeterId, PlatformId};

use crate::{NOON, both};

fn platform(name: &str) -> PlatformId {
    PlatformId::parse(name).unwrap()
}

#[tokio::test]
async fn platforms_and_their_settings_come_back_as_they_were() {
    let (ledgers, _) = both().await;
    for test in &ledgers {
        let ledger = &test.ledger;
        let mut row = PlatformRow::new(platform("reseller"), true, NOON);
        ledger.platform_insert(&row).await.unwrap();
        let twice = ledger.platform_insert(&row).await.unwrap_err();
        assert!(matches!(twice, LedgerError::Conflict { .. }), "{}: {twice}", test.name);
        row.stripe_account = Some("acct_1".to_owned());
        row.sync_mode = SyncMode::Live;
        ledger.platform_update(&row).await.unwrap();
        assert_eq!(ledger.platform_get(&platform("reseller")).await.unwrap(), row);
        assert_eq!(ledger.platform_list().await.unwrap(), vec![row]);
        let none = ledger.platform_get(&platform("nobody")).await.unwrap_err();
        assert!(matches!(none, LedgerError::NotFound { .. }), "{}", test.name);
    }
}

#[tokio::test]
async fn a_key_is_revoked_once_by_its_own_platform() {
    let (ledgers, _) = both().await;
    for test in &ledgers {
        let ledger = &test.ledger;
        let key = KeyRow {
            key_id: "key_1".to_owned(),
            platform: platform("reseller"),
            livemode: false,
            secret_hash: [7; 32],
            label: "first".to_owned(),
            scopes: vec!["ingest".to_owned(), "read".to_owned()],
            created_at: NOON,
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        };
        ledger.key_insert(&key).await.unwrap();
        assert_eq!(ledger.key_snapshot().await.unwrap(), vec![key.clone()]);
        assert!(ledger.key_revoke(&platform("other"), "key_1").await.is_err(), "{}: another's", test.name);
        ledger.key_touch_many(&[("key_1".to_owned(), NOON)]).await.unwrap();
        ledger.key_revoke(&platform("reseller"), "key_1").await.unwrap();
        assert!(ledger.key_revoke(&platform("reseller"), "key_1").await.is_err(), "{}: twice", test.name);
        assert!(ledger.key_snapshot().await.unwrap().is_empty());
        let listed = &ledger.key_list(&platform("reseller")).await.unwrap()[0];
        assert_eq!((listed.revoked_at, listed.last_used_at), (Some(NOON), Some(NOON)), "{}", test.name);
    }
}

#[tokio::test]
async fn g9_one_stripe_customer_pays_for_one_customer_of_one_platform() {
    let (ledgers, _) = both().await;
    for test in &ledgers {
        let ledger = &test.ledger;
        let (acme, globex) = (CustomerId::parse("acme").unwrap(), CustomerId::parse("globex").unwrap());
        let linked = ledger.customer_link(&platform("one"), &acme, "acct_1", "cus_1").await.unwrap();
        assert_eq!(linked.stripe_customer.as_deref(), Some("cus_1"));
        for (taker, customer) in [("one", &globex), ("two", &acme)] {
            let taken =
                ledger.customer_link(&platform(taker), customer, "acct_1", "cus_1").await.unwrap_err();
            assert!(matches!(taken, LedgerError::Conflict { .. }), "{} {taker}: {taken}", test.name);
        }
        ledger.customer_link(&platform("two"), &acme, "acct_2", "cus_1").await.expect("another account's");
        assert_eq!(ledger.customer_list(&platform("one"), "", 10).await.unwrap().len(), 1);
        assert!(ledger.customer_get(&platform("two"), &globex).await.is_err());
    }
}

#[tokio::test]
async fn two_who_offer_an_erasure_key_at_once_get_the_same() {
    let (ledgers, _) = both().await;
    for test in &ledgers {
        let customer = CustomerId::parse("acme").unwrap();
        let offers =
            (0..6_u8).map(|n| {
                let (ledger, customer) = (test.ledger.clone(), customer.clone());
                async move {
                    ledger.erasure_key_get_or_create(&platform("one"), &customer, [n; 32]).await.unwrap()
                }
            });
        let keys = futures_util::future::join_all(offers).await;
        assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{}: {keys:?}", test.name);
    }
}

#[tokio::test]
async fn a_meter_is_never_edited_and_its_stripe_meter_is_noted() {
    let (ledgers, _) = both().await;
    for test in &ledgers {
        let ledger = &test.ledger;
        let meter = MeterRow {
            platform: platform("one"),
            meter: MeterId::parse("context_tokens").unwrap(),
            definition: "{}".to_owned(),
            definition_hash: [1; 32],
            event_name: "context_tokens".to_owned(),
            stripe_meter: None,
            effective_from: Hour::of(NOON),
            superseded_at: None,
        };
        ledger.meter_insert(&meter).await.unwrap();
        assert!(
            matches!(ledger.meter_insert(&meter).await, Err(LedgerError::Conflict { .. })),
            "{}",
            test.name
        );
        ledger.meter_set_stripe(&meter.platform, &meter.meter, "mtr_1").await.unwrap();
        assert_eq!(
            ledger.meter_list(&meter.platform).await.unwrap()[0].stripe_meter.as_deref(),
            Some("mtr_1")
        );
    }
}

#[tokio::test]
async fn a_record_is_appended_once_and_in_order() {
    let (ledgers, _) = both().await;
    for test in &ledgers {
        let ledger = &test.ledger;
        ledger.record_append("s", 1, b"one").await.unwrap();
        for wrong in [1, 3] {
            let refused = ledger.record_append("s", wrong, b"x").await.unwrap_err();
            assert!(matches!(refused, LedgerError::Conflict { .. }), "{} {wrong}: {refused}", test.name);
        }
        ledger.record_append("s", 2, b"two").await.unwrap();
        let bodies: Vec<Vec<u8>> =
            ledger.record_read("s", 0, 10).await.unwrap().into_iter().map(|r| r.body).collect();
        assert_eq!(bodies, [b"one".to_vec(), b"two".to_vec()], "{}", test.name);
    }
}

#[tokio::test]
async fn a_stream_is_begun_once_and_listed_for_its_owner_alone() {
    let (ledgers, _) = both().await;
    for test in &ledgers {
        let ledger = &test.ledger;
        for (owner, stream) in [("a", "a/2"), ("a", "a/1"), ("b", "b/1")] {
            ledger.record_stream_begin(owner, stream, stream.as_bytes()).await.unwrap();
        }
        let again = ledger.record_stream_begin("a", "a/1", b"other").await.unwrap_err();
        assert!(matches!(again, LedgerError::Conflict { .. }), "{}: {again}", test.name);
        ledger.record_append("a/1", 2, b"second").await.unwrap();
        ledger.record_append("c/1", 1, b"a stream that nobody began").await.unwrap();
        assert!(ledger.record_stream_begin("c", "c/1", b"x").await.is_err(), "{}", test.name);
        assert!(
            ledger.record_stream_list("c", "", 10).await.unwrap().is_empty(),
            "{}: half of it stays",
            test.name
        );
        let listed = ledger.record_stream_list("a", "", 10).await.unwrap();
        let bodies: Vec<(&str, &[u8])> =
            listed.iter().map(|(s, r)| (s.as_str(), r.body.as_slice())).collect();
        assert_eq!(bodies, [("a/1", b"a/1".as_slice()), ("a/2", b"a/2".as_slice())], "{}", test.name);
        assert_eq!(ledger.record_stream_list("a", "a/1", 10).await.unwrap().len(), 1, "{}", test.name);
        assert_eq!(ledger.record_stream_list("a", "", 1).await.unwrap().len(), 1, "{}", test.name);
    }
}
