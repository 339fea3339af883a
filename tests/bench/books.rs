//! Events stored, against the engine's own insert of the same rows; and then the same hour sealed, against the engine's own sum of it.

use std::time::Duration;

use billing::{Billing, BillingDeps, SealRequest};
use contextmeter_tests::load::{Seed, turn};
use ledger::HourCount;
use tokio::time::Instant;
use usage::{
    AuditPolicy, Clock as _, ErasureKey, Hour, PlatformId, Position, ReportRecord, Timestamp, TurnReport,
    audit,
};
use usage_store::{EventRow, ReportBlock, ReportRow};

use crate::{
    place::{AS_OF, NOON, Place},
    table::{Rate, Row},
};

const BLOCKS: usize = 10;
const BLOCK_EVENTS: usize = 10_000;
const CUSTOMERS: u64 = 1_000;
const SUMS: u32 = 5;

/// What a journal of one epoch would have.
struct Usage {
    platform: PlatformId,
    epoch: u64,
    seq: u64,
    turns: u64,
    seed: Seed,
    count: HourCount,
}

pub(crate) async fn measure(place: &Place) -> [Row; 2] {
    let (platform, _) = place.platform("books").await;
    let epoch = place.ledger.epoch_open("bench", None).await.expect("an epoch").epoch;
    let count =
        HourCount { platform: platform.clone(), hour: hour(), seq: 0, events: 0, tokens: 0, frames: 0 };
    let mut usage = Usage { platform, epoch, seq: 0, turns: 0, seed: Seed::new(2), count };
    [store(place, &mut usage).await, seal(place, &usage).await]
}

/// Block by block, one side after the other, so that both meet the same merges in the background.
async fn store(place: &Place, usage: &mut Usage) -> Row {
    let (mut ours, mut limit) = (Rate::default(), Rate::default());
    for number in 0..BLOCKS {
        let block = usage.block(place);
        let (first, last) = (block.events[0].seq, usage.seq);
        let events = u64::try_from(block.events.len()).expect("a number of events");
        let start = Instant::now();
        place.store.insert(&block).await.expect("a block is stored");
        ours.add(events, start.elapsed());

        let of = format!("WHERE epoch = {} AND", usage.epoch);
        for (table, position) in [("usage_events", "seq"), ("reports", "last_seq")] {
            let copy = format!(
                "CREATE TABLE {table}_{number} ENGINE = Memory AS SELECT * FROM {table} \
                 {of} {position} BETWEEN {first} AND {last}"
            );
            place.sql(&copy).await;
        }
        let start = Instant::now();
        for table in ["usage_events", "reports"] {
            place.sql(&format!("INSERT INTO {table} SELECT * FROM {table}_{number}")).await;
        }
        limit.add(events, start.elapsed());
        for table in ["usage_events", "reports"] {
            place.sql(&format!("DROP TABLE {table}_{number}")).await;
        }
    }
    Row {
        what: "events stored in blocks of 10 000, with their reports",
        unit: "events/s",
        ours,
        limit,
        named: "the engine's INSERT … SELECT of the same rows from memory into the same tables",
    }
}

async fn seal(place: &Place, usage: &Usage) -> Row {
    for table in ["usage_events", "event_keys", "reports"] {
        place.sql(&format!("OPTIMIZE TABLE {table} FINAL")).await;
    }
    place.clock.set(hour().end().checked_add_micros(3_600_000_000).expect("an hour later"));
    let counts = std::slice::from_ref(&usage.count);
    let told = place.ledger.epoch_confirm(usage.epoch, usage.seq, place.clock.now(), counts).await;
    told.expect("the ledger is told");

    let mut limit = Rate::default();
    let sum = format!(
        "SELECT count(), sum(tokens) FROM usage_events FINAL WHERE platform = '{}' AND hour = {}",
        usage.platform,
        hour().index()
    );
    for _ in 0..SUMS {
        let start = Instant::now();
        let text = place.sql(&sum).await;
        limit.add(usage.count.events, start.elapsed());
        assert_eq!(text.trim(), format!("{}\t{}", usage.count.events, usage.count.tokens));
    }

    let billing = Billing::new(BillingDeps {
        ledger: place.ledger.clone(),
        store: place.store.clone(),
        clock: place.shared_clock(),
        head_signer: place.signer.clone(),
        payments: None,
    });
    let request = SealRequest { platform: Some(usage.platform.clone()), hour: Some(hour()), force: true };
    let start = Instant::now();
    let status = billing.seal_activate(request).await.expect("a run of sealing");
    let took: Duration = start.elapsed();
    let statements = status.sealed.first().map(|sealed| sealed.statements);
    assert_eq!(statements, usize::try_from(CUSTOMERS).ok(), "the hour is sealed: {status:?}");
    Row {
        what: "events sealed into statements of 1 000 customers, one hour of 100 000",
        unit: "events/s",
        ours: Rate { done: usage.count.events, took },
        limit,
        named: "the engine's count and sum of the hour with FINAL",
    }
}

impl Usage {
    fn block(&mut self, place: &Place) -> ReportBlock {
        let now = place.clock.now();
        let mut block = ReportBlock::default();
        while block.events.len() < BLOCK_EVENTS {
            self.turns += 1;
            let customer = format!("customer-{:04}", self.turns % CUSTOMERS);
            let turn = turn(&mut self.seed, &customer, "req-books", &self.turns.to_string(), AS_OF);
            let report = TurnReport::from_json(&turn.bytes()).expect("a report");
            let audited = audit(report, &AuditPolicy::new(now)).expect("a report that balances");
            let record = ReportRecord::build(&self.platform, &audited, &ErasureKey::from_bytes([5; 32]));
            let first = self.seq + 1;
            for event in &record.events {
                self.seq += 1;
                let position = Position { epoch: self.epoch, seq: self.seq };
                block.events.push(EventRow::new(event, position, now));
                self.count.seq = self.seq;
                self.count.events += 1;
                self.count.tokens += u128::from(event.tokens);
                self.count.frames += u64::from(event.frames_served);
            }
            block.reports.push(ReportRow::new(&record, self.epoch, first, self.seq, now));
        }
        block
    }
}

fn hour() -> Hour {
    Hour::of(Timestamp::from_micros(NOON))
}
