//! What a customer's subscription does to its hours, by what the ledger knows of it.

use ledger::{BillPeriodRead, SubscriptionRead, SubscriptionState};
use usage::{CustomerId, MeterId, Timestamp};

use super::on_both;
use super::world::{MINUTE, NOON, Turn, World, noon, platform};

on_both!(
    g7_a_linked_customer_waits_until_its_subscription_was_read_after_the_hour,
    g7_a_known_boundary_cuts_the_hour_and_a_later_reading_moves_nothing,
    a_meter_that_the_payment_service_does_not_count_waits_for_no_reading,
);

fn meter() -> MeterId {
    MeterId::parse("context_tokens").unwrap()
}

fn globex() -> CustomerId {
    CustomerId::parse("globex").unwrap()
}

fn minute(minute: i64) -> Timestamp {
    Timestamp::from_micros(NOON + minute * MINUTE)
}

async fn link(world: &World) {
    world.ledger().customer_link(&platform("acme"), &globex(), "acct_1", "cus_1").await.unwrap();
}

async fn count_at_stripe(world: &World) {
    world.ledger().meter_set_stripe(&platform("acme"), &meter(), "mtr_1").await.unwrap();
}

async fn read(world: &World, at: Timestamp, periods: &[(i64, i64)]) {
    let period = |(start, end): &(i64, i64)| BillPeriodRead {
        item_id: "si_1".to_owned(),
        subscription_id: "sub_1".to_owned(),
        price_id: "price_1".to_owned(),
        start: minute(*start),
        end: minute(*end),
    };
    let read = SubscriptionRead {
        platform: platform("acme"),
        customer: globex(),
        meter: meter(),
        read_at: at,
        state: SubscriptionState::Live,
        periods: periods.iter().map(period).collect(),
    };
    world.ledger().subscription_record(&[read]).await.unwrap();
}

/// Each statement: customer, minutes of its piece after noon, revision, sum.
async fn shown(world: &World) -> Vec<(String, i64, i64, u32, u128)> {
    let minutes = |at: Timestamp| (at.as_micros() - NOON) / MINUTE;
    let statements = world.statements("acme").await;
    let rows = statements.iter();
    rows.map(|s| (s.customer.to_string(), minutes(s.piece_start), minutes(s.piece_end), s.revision, s.sum))
        .collect()
}

async fn g7_a_linked_customer_waits_until_its_subscription_was_read_after_the_hour(world: World) {
    count_at_stripe(&world).await;
    link(&world).await;
    let mut journal = world.journal("a").await;
    world.take(&mut journal, &[Turn::new("1", "globex", &[10]), Turn::new("2", "initech", &[7])]).await;
    read(&world, minute(59), &[(-600, 6000)]).await;
    world.settled(&[&journal]).await;

    // This process speaks to no payment service; what the ledger knows binds it all the same.
    let status = world.seal().await;
    assert_eq!((status.sealed[0].statements, status.sealed[0].deferred), (1, 1), "{status:?}");
    assert_eq!(shown(&world).await, [("initech".to_owned(), 0, 60, 1, 7)]);
    assert_eq!(
        world.ledger().hours_unsealed(&platform("acme"), noon(), noon().next()).await.unwrap(),
        [noon()]
    );
    assert_eq!(world.difference().await, None);
    world.clock.advance_micros(MINUTE);
    let again = world.seal().await;
    assert_eq!((again.sealed.len(), again.waiting[0].reason.as_str()), (0, "subscription_unread"));

    // Late usage of another customer makes a run that defers it once more; it loses nothing by that.
    world.take(&mut journal, &[Turn::new("3", "initech", &[2]), Turn::new("4", "globex", &[1])]).await;
    assert_eq!(world.seal().await.sealed[0].deferred, 1);
    read(&world, noon().end(), &[(-600, 6000)]).await;
    world.clock.advance_micros(2 * MINUTE);
    let status = world.seal().await;
    assert_eq!((status.sealed[0].statements, status.sealed[0].deferred), (1, 0), "{status:?}");
    let globex = ("globex".to_owned(), 0, 60, 1, 11);
    assert_eq!(shown(&world).await[1..], [("initech".to_owned(), 0, 60, 2, 2), globex]);
    assert_eq!(world.ledger().hours_unsealed(&platform("acme"), noon(), noon().next()).await.unwrap(), []);
    assert_eq!(world.difference().await, None, "what deferred runs counted is made again");
}

async fn g7_a_known_boundary_cuts_the_hour_and_a_later_reading_moves_nothing(world: World) {
    count_at_stripe(&world).await;
    link(&world).await;
    let mut journal = world.journal("a").await;
    let at = |turn: &str, minutes: i64, cost: u64| Turn {
        at: minute(minutes),
        ..Turn::new(turn, "globex", &[cost])
    };
    world.clock.set(minute(59));
    world.take(&mut journal, &[at("1", 19, 100), at("2", 20, 10), at("3", 40, 1)]).await;
    read(&world, noon().end(), &[(-600, 20), (20, 6000)]).await;
    world.settled(&[&journal]).await;
    world.seal().await;
    let first = ("globex".to_owned(), 0, 20, 1, 100);
    let second = ("globex".to_owned(), 20, 60, 1, 11);
    assert_eq!(shown(&world).await, [first.clone(), second.clone()]);

    // The subscription is seen to have changed inside the sealed hour: too late for its pieces.
    read(&world, noon().end().checked_add_micros(MINUTE).unwrap(), &[(20, 30), (30, 6000)]).await;
    world.take(&mut journal, &[at("4", 35, 5)]).await;
    world.clock.advance_micros(MINUTE);
    world.seal().await;
    assert_eq!(shown(&world).await, [first, second, ("globex".to_owned(), 20, 60, 2, 5)]);
    assert_eq!(world.difference().await, None);
}

async fn a_meter_that_the_payment_service_does_not_count_waits_for_no_reading(world: World) {
    link(&world).await;
    let mut journal = world.journal("a").await;
    world.take(&mut journal, &[Turn::new("1", "globex", &[10])]).await;
    world.settled(&[&journal]).await;
    assert_eq!(world.seal().await.sealed[0].deferred, 0);
    assert_eq!(shown(&world).await, [("globex".to_owned(), 0, 60, 1, 10)]);
}
