//! A platform that bills through the sandbox: a real ledger, the real client, and one clock for all.

use std::sync::Arc;

use billing::payments::{Payments, SyncRequest, SyncStatus};
use ledger::testing::TestLedger;
use ledger::{Ledger, MeterRow, PlacementRow, PlatformRow, SyncMode};
use serde_json::Value;
use stripe_provider::StripeProvider;
use usage::{
    CustomerId, EventKind, Hour, ManualClock, MeterDefinition, MeterFilter, MeterId, PlatformId, Quantity,
    Timestamp,
};

use crate::statements::{Statement, seal};
use crate::stripe::{START, Stripe};

pub(crate) const HOUR: i64 = 3_600;
pub(crate) const EVENT_NAME: &str = "context_tokens";

pub(crate) struct World {
    pub(crate) name: &'static str,
    pub(crate) stripe: Stripe,
    pub(crate) payments: Payments,
    pub(crate) platform: PlatformId,
    pub(crate) price: String,
    pub(crate) meter: MeterId,
    pub(crate) provider: Arc<StripeProvider>,
    clock: ManualClock,
    test: TestLedger,
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(seconds).unwrap()
}

/// The hour of the period, from 0.
pub(crate) fn hour(index: i64) -> Hour {
    Hour::of(at(START + index * HOUR))
}

pub(crate) fn id(customer: &str) -> CustomerId {
    CustomerId::parse(customer).unwrap()
}

impl World {
    /// On SQLite.
    pub(crate) async fn new() -> World {
        let clock = ManualClock::new(at(START));
        let test = ledger::testing::sqlite(Some(Arc::new(clock.clone()))).await.unwrap();
        World::over(test, clock).await
    }

    /// On each database, each with a clock of its own.
    pub(crate) async fn both() -> Vec<World> {
        let clock = ManualClock::new(at(START));
        let postgres = ledger::testing::postgres(Some(Arc::new(clock.clone()))).await.unwrap();
        vec![World::new().await, World::over(postgres, clock).await]
    }

    async fn over(test: TestLedger, clock: ManualClock) -> World {
        let stripe = Stripe::start().await;
        let provider = Arc::new(stripe.provider().await);
        let platform = PlatformId::parse("acme").unwrap();
        let mut row = PlatformRow::new(platform.clone(), false, at(START));
        row.stripe_account = Some(billing::provider::PaymentProvider::account(&*provider).id.clone());
        row.sync_mode = SyncMode::Live;
        test.ledger.platform_insert(&row).await.unwrap();
        let meter = MeterId::parse("context_tokens").unwrap();
        test.ledger.meter_insert(&meter_row(&platform, &meter)).await.unwrap();
        let payments = Payments::new(test.ledger.clone(), provider.clone());
        let made = payments.meters_ensure(&platform).await.unwrap();
        let price = stripe.price(made[0].stripe_meter.as_deref().unwrap()).await;
        World { name: test.name, stripe, payments, platform, price, meter, provider, clock, test }
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.test.ledger
    }

    /// Another process over the same ledger and account.
    pub(crate) fn second_worker(&self) -> Payments {
        Payments::new(self.test.ledger.clone(), self.provider.clone())
    }

    /// Seconds after the start of the period.
    pub(crate) fn set(&self, seconds: i64) {
        self.clock.set(at(START + seconds));
        self.stripe.set_now(START + seconds);
    }

    pub(crate) async fn platform_change(&self, change: impl FnOnce(&mut PlatformRow)) {
        let mut row = self.ledger().platform_get(&self.platform).await.unwrap();
        change(&mut row);
        self.ledger().platform_update(&row).await.unwrap();
    }

    /// A customer with a daily subscription from now on, linked. Gives back its Stripe customer.
    pub(crate) async fn given_subscriber(&self, customer: &str) -> String {
        let stripe_customer = self.stripe.customer().await;
        self.stripe.subscribe(&stripe_customer, &self.price).await;
        self.link(customer, &stripe_customer).await;
        stripe_customer
    }

    pub(crate) async fn link(&self, customer: &str, stripe_customer: &str) {
        self.payments.customer_link(&self.platform, &id(customer), stripe_customer).await.unwrap();
    }

    /// A committed statement over a whole hour of the period.
    pub(crate) async fn given_statement(
        &self,
        customer: &str,
        hour: i64,
        revision: u32,
        sum: u128,
    ) -> String {
        self.given_piece(customer, (hour * HOUR, (hour + 1) * HOUR), revision, sum).await
    }

    /// A committed statement over a piece of an hour, in seconds after the start of the period.
    pub(crate) async fn given_piece(
        &self,
        customer: &str,
        piece: (i64, i64),
        revision: u32,
        sum: u128,
    ) -> String {
        let piece = (at(START + piece.0), at(START + piece.1));
        let statement = Statement {
            platform: self.platform.clone(),
            customer: id(customer),
            meter: self.meter.clone(),
            hour: Hour::of(piece.0),
            piece,
            revision,
            sum,
        };
        seal(self.ledger(), statement).await
    }

    pub(crate) async fn sync(&self) -> SyncStatus {
        self.payments.sync_activate(SyncRequest::default()).await.unwrap()
    }

    pub(crate) async fn placements(&self, statement: &str) -> Vec<PlacementRow> {
        self.ledger().placement_by_statement(&self.platform, statement).await.unwrap()
    }

    pub(crate) async fn placement(&self, statement: &str) -> PlacementRow {
        let mut all = self.placements(statement).await;
        assert_eq!(all.len(), 1, "{}: {all:?}", self.name);
        all.remove(0)
    }

    /// Why the statements of the platform wait.
    pub(crate) async fn waits(&self) -> Vec<(String, u64)> {
        let waits = self.ledger().sync_wait_summary(&self.platform).await.unwrap();
        waits.into_iter().map(|row| (row.reason, row.count)).collect()
    }

    /// What counts at the payment service, for a Stripe customer.
    pub(crate) async fn counted(&self, stripe_customer: &str) -> u128 {
        self.events_of(stripe_customer)
            .await
            .iter()
            .map(|event| event["value"].as_str().unwrap().parse::<u128>().unwrap())
            .sum()
    }

    pub(crate) async fn events_of(&self, stripe_customer: &str) -> Vec<Value> {
        let all = self.stripe.events().await;
        all.into_iter()
            .filter(|event| event["customer"] == stripe_customer && event["state"] == "counted")
            .collect()
    }
}

fn meter_row(platform: &PlatformId, meter: &MeterId) -> MeterRow {
    let definition = MeterDefinition {
        meter_id: meter.clone(),
        filter: MeterFilter { kind: EventKind::Context, providers: None },
        quantity: Quantity::Tokens,
    };
    MeterRow {
        platform: platform.clone(),
        meter: meter.clone(),
        definition_hash: definition.definition_hash(),
        definition: serde_json::to_string(&definition).unwrap(),
        event_name: EVENT_NAME.to_owned(),
        stripe_meter: None,
        effective_from: hour(0),
        superseded_at: None,
    }
}
