//! What happens by itself: periods end, invoices finalise, subscriptions that are to end do.
//!
//! Each step happens at its own instant and in order of time, however far the clock jumped.

use serde_json::Value;

use super::invoices::{Draft, Span};
use super::{Account, Kind, text};
use crate::clock::Interval;
use crate::faults::Settings;

/// Nothing is due before `next` while the tables are as they were.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdleMemo {
    changes: u64,
    next: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Finalise(String),
    Roll(String),
}

impl Account {
    /// Does all that is due. Says whether anything was.
    pub(crate) fn run_due(&mut self, settings: &Settings, base_now: i64) -> bool {
        if self.idle.changes == self.billing_changes() && base_now < self.idle.next {
            return false;
        }
        let mut any = false;
        loop {
            let (due, next) = self.next_due(base_now);
            let Some((at, due, clocked)) = due else {
                self.idle = IdleMemo { changes: self.billing_changes(), next };
                return any;
            };
            any = true;
            // A clocked customer's usage is summed in real time, however far its clock jumped: the race that users of test clocks meet.
            let seen_until = if clocked { base_now } else { at } - settings.aggregation_lag_seconds;
            match due {
                Due::Roll(id) => self.roll(&id, at, settings, seen_until),
                Due::Finalise(id) => {
                    let refused = self.invoice_finalize(&id, at, settings, seen_until, true).is_err();
                    if refused && let Some(invoice) = self.table(Kind::Invoice).get_mut(&id) {
                        invoice["automatically_finalizes_at"] = Value::Null;
                    }
                }
            }
        }
    }

    fn billing_changes(&mut self) -> u64 {
        [Kind::Customer, Kind::Subscription, Kind::SubscriptionItem, Kind::Invoice, Kind::TestClock]
            .into_iter()
            .map(|kind| self.table(kind).changes())
            .sum()
    }

    /// The earliest step that is due, and when the next one is for customers without a test clock.
    fn next_due(&self, base_now: i64) -> (Option<(i64, Due, bool)>, i64) {
        let mut first: Option<(i64, Due, bool)> = None;
        let mut next = i64::MAX;
        let mut weigh = |at: i64, due: Due, customer: &str| {
            let now = self.now_of(customer, base_now);
            let clocked =
                self.get(Kind::Customer, customer).is_some_and(|customer| customer["test_clock"].is_string());
            if at > now {
                if !clocked {
                    next = next.min(at);
                }
                return;
            }
            let candidate = (at, due, clocked);
            if first.as_ref().is_none_or(|first| candidate < *first) {
                first = Some(candidate);
            }
        };
        for subscription in
            self.rows(Kind::Subscription).filter(|subscription| subscription["status"] == "active")
        {
            let ends = subscription["cancel_at"]
                .as_i64()
                .into_iter()
                .chain(subscription["__period_end"].as_i64())
                .min();
            if let Some(at) = ends {
                weigh(at, Due::Roll(text(subscription, "id")), &text(subscription, "customer"));
            }
        }
        for invoice in self
            .rows(Kind::Invoice)
            .filter(|invoice| invoice["status"] == "draft" && invoice["auto_advance"] == true)
        {
            if let Some(at) = invoice["automatically_finalizes_at"].as_i64() {
                weigh(at, Due::Finalise(text(invoice, "id")), &text(invoice, "customer"));
            }
        }
        (first, next)
    }

    pub(crate) fn items_of(&self, subscription: &str) -> Vec<Value> {
        self.rows(Kind::SubscriptionItem)
            .filter(|item| item["subscription"] == subscription)
            .cloned()
            .collect()
    }

    pub(crate) fn is_metered(&self, item: &Value) -> bool {
        self.get(Kind::Price, &text(item, "price"))
            .is_some_and(|price| price["recurring"]["usage_type"] == "metered")
    }

    /// The spans of the metered items, from where each counts to `end`.
    pub(crate) fn metered_spans(&self, subscription: &str, end: i64) -> Vec<Span> {
        let items = self.items_of(subscription);
        let metered = items.iter().filter(|item| self.is_metered(item));
        metered
            .map(|item| Span {
                item: text(item, "id"),
                price: text(item, "price"),
                start: item["__usage_from"]
                    .as_i64()
                    .or_else(|| item["current_period_start"].as_i64())
                    .unwrap_or(end),
                end,
            })
            .collect()
    }

    /// A period ends: its usage on a draft invoice, the next period begins, or the subscription ends.
    fn roll(&mut self, id: &str, at: i64, settings: &Settings, seen_until: i64) {
        let Some(subscription) = self.get(Kind::Subscription, id).cloned() else { return };
        let period_start = subscription["__period_start"].as_i64().unwrap_or(at);
        let ends = subscription["cancel_at"].as_i64().is_some_and(|cancel_at| cancel_at <= at)
            || (subscription["cancel_at_period_end"] == true
                && subscription["__period_end"].as_i64().is_some_and(|end| end <= at));
        let metered = self.metered_spans(id, at);
        let next_end = interval_of(&subscription)
            .zip(subscription["billing_cycle_anchor"].as_i64())
            .and_then(|(interval, anchor)| interval.next_after(anchor, at));
        let mut fixed = Vec::new();
        match next_end {
            Some(next_end) if !ends => {
                for item in self.items_of(id) {
                    self.item_begin_period(&text(&item, "id"), at, next_end);
                    if !self.is_metered(&item) {
                        // A licensed price is always computable: it was when the item was made.
                        fixed
                            .extend(self.licensed_lines(&item, (at, next_end), settings).unwrap_or_default());
                    }
                }
                if let Some(row) = self.table(Kind::Subscription).get_mut(id) {
                    row["__period_start"] = at.into();
                    row["__period_end"] = next_end.into();
                    let changed = row.clone();
                    self.emit("customer.subscription.updated", &changed, at);
                }
            }
            _ => self.end_subscription(id, at),
        }
        if metered.is_empty() && fixed.is_empty() {
            return;
        }
        let draft = Draft {
            customer: text(&subscription, "customer"),
            subscription: Some(id.to_owned()),
            reason: "subscription_cycle",
            currency: text(&subscription, "currency"),
            at,
            period: (period_start, at),
            metered,
            fixed,
            auto_advance: true,
        };
        self.invoice_open_draft(draft, settings, seen_until);
    }

    fn item_begin_period(&mut self, item: &str, start: i64, end: i64) {
        if let Some(item) = self.table(Kind::SubscriptionItem).get_mut(item) {
            item["current_period_start"] = start.into();
            item["current_period_end"] = end.into();
            item["__usage_from"] = Value::Null;
        }
    }

    pub(crate) fn end_subscription(&mut self, id: &str, at: i64) {
        let Some(row) = self.table(Kind::Subscription).get_mut(id) else { return };
        row["status"] = "canceled".into();
        row["ended_at"] = at.into();
        if row["canceled_at"].is_null() {
            row["canceled_at"] = at.into();
        }
        let ended = row.clone();
        self.emit("customer.subscription.deleted", &ended, at);
    }
}

pub(crate) fn interval_of(subscription: &Value) -> Option<Interval> {
    Interval::parse(subscription["__interval"].as_str()?, subscription["__interval_count"].as_i64()?)
}
