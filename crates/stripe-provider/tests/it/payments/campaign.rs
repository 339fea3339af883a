//! Many customers, faults at random from a seed, workers that end at any call: in the end each token is counted once.

use std::collections::BTreeMap;

use billing::payments::{PaymentsError, SyncRequest};
use serde_json::json;

use crate::world::{HOUR, World};

const KINDS: [&str; 8] = [
    "fail_before",
    "fail_after_commit",
    "drop_connection",
    "html_502",
    "lock_timeout",
    "rate_limit",
    "accept_then_reject",
    "none",
];

/// A small generator, so that a seed says the whole run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

async fn campaign(seed: u64) {
    let world = World::new().await;
    let mut dice = Dice(seed);
    let mut customers = BTreeMap::new();
    for number in 0..5 {
        let name = format!("acme-{number}");
        customers.insert(name.clone(), (world.given_subscriber(&name).await, 0_u128));
    }
    let mut statements = Vec::new();
    for index in 0..8 {
        for (name, (_, sum)) in &mut customers {
            for revision in 1..=1 + u32::try_from(dice.below(2)).unwrap() {
                let amount = u128::from(1 + dice.below(1_000_000));
                statements.push(world.given_statement(name, index, revision, amount).await);
                *sum += amount;
            }
        }
        world.set((index + 1) * HOUR + 900);
        for turn in 1..=3 {
            let kind = KINDS[usize::try_from(dice.below(8)).unwrap()];
            if kind != "none" {
                let fault = json!({ "route": "POST /v1/billing/meter_events", "kind": kind, "count": 1 + dice.below(4), "skip": dice.below(4) });
                world.stripe.fault(fault).await;
            }
            let worker = world.second_worker();
            let pause = std::time::Duration::from_millis(dice.below(120));
            // A worker that ends at any await: what it noted is all that the next one has.
            let _ = tokio::time::timeout(pause, worker.sync_activate(SyncRequest::default())).await;
            drop(worker);
            // Its lease runs out.
            world.set((index + 1) * HOUR + 900 + turn * 70);
        }
        match world.payments.sync_activate(SyncRequest::default()).await {
            Ok(_) | Err(PaymentsError::Busy) => {}
            Err(error) => panic!("{seed}: {error}"),
        }
    }
    world.stripe.clear_faults().await;
    for round in 0..8 {
        world.set((10 + round) * HOUR);
        world.sync().await;
        world.payments.reconcile_activate().await.unwrap();
    }
    let compared = world.payments.reconcile_activate().await.unwrap();
    assert_eq!((compared.drift_tokens.as_str(), compared.hours_open), ("0", 0), "{seed}: {compared:?}");
    for (name, (stripe_customer, sum)) in &customers {
        assert_eq!(world.counted(stripe_customer).await, *sum, "{seed}: {name}");
    }
    for statement in &statements {
        let all = world.placements(statement).await;
        let delivered = all.iter().filter(|row| row.state == "delivered" && row.settled).count();
        assert_eq!(delivered, 1, "{seed}: {all:?}");
        assert!(all.iter().all(|row| row.state == "delivered" || row.state == "absent"), "{seed}: {all:?}");
    }
    let sends = world.stripe.sends().await;
    assert!(
        sends.len() > statements.len() && sends.iter().any(|send| !send["fault"].is_null()),
        "{seed}: faults were met"
    );
}

#[tokio::test]
async fn g6_whatever_fails_and_whoever_ends_each_token_is_counted_once() {
    for seed in 1..=6 {
        campaign(seed).await;
    }
}
