//! From a statement to placements: in which period, which minute, under which identifier. All of it is written down before anything is sent.

use std::collections::BTreeSet;

use ledger::{
    BillPeriodRow, CustomerRow, MeterRow, PlacementRow, StatementRow, SubscriptionState, SyncWaitRow,
};
use usage::{Hour, Timestamp};

use super::lease::Held;
use super::{Board, Payments, PaymentsError};
use crate::rules::identifier::{PlacementKey, parts};
use crate::rules::minute::{Place, Zone, allocate, minute_end};
use crate::rules::period::{BillPeriod, Billable, bill_period};
use crate::rules::placement::State;

/// Events may be 35 days old.
const BACK_US: i64 = 34 * 86_400_000_000;

/// What became of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planned {
    /// Nothing to do: no usage, or all of it is placed.
    Nothing,
    Placed(u64),
    Waits(&'static str),
}

struct Target<'a> {
    customer: &'a CustomerRow,
    stripe_customer: &'a str,
    meter: &'a MeterRow,
    stripe_meter: &'a str,
    event_name: &'a str,
}

impl Payments {
    /// Makes the placements that a statement lacks, or notes why not. `former` is the reason that is noted already.
    pub(super) async fn plan_statement(
        &self,
        held: &Held,
        board: &Board,
        statement: &StatementRow,
        former: Option<&str>,
        retry_refused: bool,
    ) -> Result<Planned, PaymentsError> {
        let existing =
            self.ledger().placement_by_statement(&statement.platform, &statement.statement_id).await?;
        let planned = match self.placements_lacking(board, statement, &existing, retry_refused).await? {
            Ok(rows) if rows.is_empty() => Planned::Nothing,
            Ok(rows) => {
                let mut tx = self.ledger().write().await?;
                tx.check_fence(&held.lease().await?).await?;
                for row in &rows {
                    self.ledger().placement_insert_in_txn(&mut tx, row).await?;
                }
                self.ledger().sync_wait_delete_in_txn(&mut tx, &statement.statement_id).await?;
                tx.commit().await?;
                return Ok(Planned::Placed(u64::try_from(rows.len()).unwrap_or(u64::MAX)));
            }
            Err(reason) => Planned::Waits(reason),
        };
        match planned {
            Planned::Waits(reason) if former == Some(reason) => return Ok(planned),
            // Nothing was placed and nothing waited, as after a crash between a page and its cursor, or for no usage.
            Planned::Nothing if former.is_none() => return Ok(planned),
            _ => {}
        }
        let mut tx = self.ledger().write().await?;
        tx.check_fence(&held.lease().await?).await?;
        match planned {
            Planned::Waits(reason) => {
                let wait = SyncWaitRow {
                    platform: statement.platform.clone(),
                    statement_id: statement.statement_id.clone(),
                    customer: statement.customer.clone(),
                    meter: statement.meter.clone(),
                    sum: statement.sum,
                    reason: reason.to_owned(),
                    since: tx.now(),
                };
                self.ledger().sync_wait_put_in_txn(&mut tx, &wait).await?;
            }
            Planned::Nothing | Planned::Placed(_) => {
                self.ledger().sync_wait_delete_in_txn(&mut tx, &statement.statement_id).await?;
            }
        }
        tx.commit().await?;
        Ok(planned)
    }

    async fn placements_lacking(
        &self,
        board: &Board,
        statement: &StatementRow,
        existing: &[PlacementRow],
        retry_refused: bool,
    ) -> Result<Result<Vec<PlacementRow>, &'static str>, PaymentsError> {
        let Ok(amounts) = parts(statement.sum) else { return Ok(Err("too_many_parts")) };
        let mut lacking = Vec::new();
        for (part, amount) in (0_u32..).zip(amounts) {
            let latest = existing.iter().filter(|row| row.part == part).max_by_key(|row| row.n);
            let n = match latest {
                None => 1,
                Some(row) => match State::parse(&row.state) {
                    Some(State::Refused) if !retry_refused => continue,
                    Some(state) if !state.is_live() => row.n.saturating_add(1),
                    _ => continue,
                },
            };
            lacking.push((part, amount, n));
        }
        if lacking.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let target = match target(board, statement) {
            Ok(target) => target,
            Err(reason) => return Ok(Err(reason)),
        };
        let now = self.ledger().now().await?;
        let bill = match self.period_of(statement, now).await? {
            Ok(found) => found,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut taken = BTreeSet::new();
        let mut rows = Vec::new();
        for (part, amount, n) in lacking {
            let place = match self.place(&target, statement, &bill, &mut taken, now).await? {
                Ok(place) => place,
                Err(reason) => return Ok(Err(reason)),
            };
            rows.push(self.row(&target, statement, &bill, place, (part, amount, n), now));
        }
        Ok(Ok(rows))
    }

    async fn period_of(
        &self,
        statement: &StatementRow,
        now: Timestamp,
    ) -> Result<Result<Bill, &'static str>, PaymentsError> {
        let (platform, customer, meter) = (&statement.platform, &statement.customer, &statement.meter);
        let Some(view) = self.ledger().subscription_view(platform, customer, meter).await? else {
            return Ok(Err("subscription_unread"));
        };
        if view.state == SubscriptionState::Ambiguous {
            return Ok(Err("ambiguous_subscription"));
        }
        let rows = self.ledger().bill_period_list(platform, customer, meter).await?;
        let grace = self.0.provider.account().invoice_grace_us;
        let periods: Vec<BillPeriod> = rows.iter().map(|row| bill_period_of(row, now, grace)).collect();
        let live = view.state == SubscriptionState::Live;
        Ok(match bill_period(statement.piece_start, statement.piece_end, &periods, live, now) {
            Billable::Own(period) => Ok(Bill { period, carried: false }),
            Billable::Carried(period) => Ok(Bill { period, carried: true }),
            Billable::Waits(reason) | Billable::Unbillable(reason) => Err(reason),
        })
    }

    /// A minute that nobody has. `taken` are those that this statement's other parts just got.
    async fn place(
        &self,
        target: &Target<'_>,
        statement: &StatementRow,
        Bill { period, carried }: &Bill,
        taken: &mut BTreeSet<Timestamp>,
        now: Timestamp,
    ) -> Result<Result<Taken, &'static str>, PaymentsError> {
        if !*carried {
            let (start, end) = (statement.piece_start, statement.piece_end);
            return self.place_in(target, start, end, Zone::Own, taken, now).await;
        }
        let from = period.start.max(now.checked_add_micros(-BACK_US).unwrap_or(period.start));
        let until = period.end.min(now);
        let mut hour = Hour::of(from);
        while hour.start() < until {
            let (start, end) = (hour.start().max(from), hour.end().min(period.end));
            if let Ok(place) = self.place_in(target, start, end, Zone::Carried, taken, now).await? {
                return Ok(Ok(place));
            }
            hour = hour.next();
        }
        // A minute is never later than now: the next hours of the period bring more.
        Ok(Err(if until < period.end { "no_minute_yet" } else { "minutes_exhausted" }))
    }

    async fn place_in(
        &self,
        target: &Target<'_>,
        start: Timestamp,
        end: Timestamp,
        zone: Zone,
        taken: &mut BTreeSet<Timestamp>,
        now: Timestamp,
    ) -> Result<Result<Taken, &'static str>, PaymentsError> {
        let account = &self.0.provider.account().id;
        // From the whole minute that the piece begins in: a boundary minute begins before its piece.
        let from = crate::rules::minute::floor_minute(start);
        let placed = self
            .ledger()
            .placement_in_minutes(account, target.stripe_customer, target.event_name, from, end)
            .await?;
        let mut used: BTreeSet<Timestamp> = placed.iter().map(|row| row.minute).collect();
        used.extend(taken.iter().copied());
        let Some(place) = allocate(start, end, zone, &used, now) else { return Ok(Err("minutes_exhausted")) };
        if !place.shared {
            taken.insert(place.minute);
            return Ok(Ok(Taken { place, slot: 0, before: 0 }));
        }
        let others: Vec<&PlacementRow> = placed.iter().filter(|row| row.minute == place.minute).collect();
        // One after the other: until the minute has shown the one before, nobody could tell them apart.
        let busy =
            others.iter().any(|row| State::parse(&row.state).is_none_or(State::is_live) && !row.settled);
        if busy || !taken.insert(place.minute) {
            return Ok(Err("minute_busy"));
        }
        let before = others.iter().filter(|row| row.settled).map(|row| u128::from(row.amount)).sum();
        let slot = others.iter().map(|row| row.slot).max().map_or(0, |slot| slot.saturating_add(1));
        Ok(Ok(Taken { place, slot, before }))
    }

    fn row(
        &self,
        target: &Target<'_>,
        statement: &StatementRow,
        Bill { period, carried }: &Bill,
        taken: Taken,
        (part, amount, n): (u32, u64, u32),
        now: Timestamp,
    ) -> PlacementRow {
        let account = &self.0.provider.account().id;
        let key = PlacementKey {
            account,
            platform: &statement.platform,
            customer: &statement.customer,
            meter: &statement.meter,
            piece_start: statement.piece_start,
            piece_end: statement.piece_end,
            revision: statement.revision,
            part,
            n,
        };
        PlacementRow {
            placement_id: key.placement_id(),
            platform: statement.platform.clone(),
            customer: target.customer.customer.clone(),
            meter: target.meter.meter.clone(),
            statement_id: statement.statement_id.clone(),
            statement_hash: statement.statement_hash,
            hour: statement.hour,
            piece_start: statement.piece_start,
            piece_end: statement.piece_end,
            revision: statement.revision,
            part,
            n,
            stripe_account: account.clone(),
            stripe_customer: target.stripe_customer.to_owned(),
            stripe_meter: target.stripe_meter.to_owned(),
            event_name: target.event_name.to_owned(),
            amount,
            bill_start: period.start,
            bill_end: period.end,
            carried: *carried,
            minute: taken.place.minute,
            event_at: taken.place.at,
            slot: taken.slot,
            minute_before: taken.before,
            identifier: key.identifier(),
            state: State::Planned.as_str().to_owned(),
            attempt: 0,
            first_attempt_at: None,
            last_attempt_at: None,
            exists_said: false,
            reason: None,
            request_id: None,
            seen: None,
            seen_at: None,
            without_at: None,
            settled: false,
            invoice_id: None,
            created_at: now,
            updated_at: now,
        }
    }
}

/// The period that bills a statement. Carried: it is not the one that the piece lies in.
struct Bill {
    period: BillPeriod,
    carried: bool,
}

#[derive(Clone, Copy)]
struct Taken {
    place: Place,
    slot: u32,
    before: u128,
}

fn target<'a>(board: &'a Board, statement: &StatementRow) -> Result<Target<'a>, &'static str> {
    let customer = board.customers.get(&statement.customer).ok_or("unlinked_customer")?;
    let stripe_customer = customer.stripe_customer.as_deref().ok_or("unlinked_customer")?;
    let (meter, remote) = board.meters.get(&statement.meter).ok_or("unknown_meter")?;
    let stripe_meter = meter.stripe_meter.as_deref().ok_or("unlinked_meter")?;
    let remote = remote.as_ref().ok_or("meter_missing_at_stripe")?;
    // Another aggregation or another feeder's event name would count something else than was placed.
    if !remote.active || !remote.sums_raw || remote.event_name != meter.event_name {
        return Err("meter_unfit");
    }
    Ok(Target { customer, stripe_customer, meter, stripe_meter, event_name: &meter.event_name })
}

/// A period is open until it is closed; one that ended without its draft in our hands may have been finalised already.
fn bill_period_of(row: &BillPeriodRow, now: Timestamp, grace_us: i64) -> BillPeriod {
    let unguarded = row.invoice_id.is_none() && now.micros_since(row.end) >= i128::from(grace_us);
    BillPeriod { start: row.start, end: row.end, closed: row.closed_at.is_some() || unguarded }
}

/// The whole minutes that answer for a period: its boundary minutes included at the start, excluded at the end.
pub(super) fn period_minutes(start: Timestamp, end: Timestamp) -> (Timestamp, Timestamp) {
    let floor = crate::rules::minute::floor_minute;
    let (from, to) = (floor(start), floor(end));
    (from, if to > from { to } else { minute_end(from) })
}
