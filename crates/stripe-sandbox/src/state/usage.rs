//! Meter events and what they sum to.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decimal::Decimal;

#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Usage {
    events: Vec<MeterEvent>,
    #[serde(skip)]
    by_identifier: HashMap<String, usize>,
    #[serde(skip)]
    by_meter_customer: HashMap<(String, String), Vec<usize>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MeterEvent {
    pub(crate) identifier: String,
    pub(crate) event_name: String,
    pub(crate) meter: String,
    pub(crate) customer: String,
    pub(crate) value: Decimal,
    /// When the usage was, in the customer's time.
    pub(crate) timestamp: i64,
    /// When it came, by the sandbox's clock.
    pub(crate) received_at: i64,
    pub(crate) state: EventState,
    /// By the sandbox's clock.
    pub(crate) cancelled_at: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventState {
    Counted,
    Cancelled,
    /// Taken with 200, refused later.
    Rejected,
}

impl Usage {
    pub(crate) fn push(&mut self, event: MeterEvent) {
        self.index(&event, self.events.len());
        self.events.push(event);
    }

    pub(crate) fn reindex(&mut self) {
        self.by_identifier.clear();
        self.by_meter_customer.clear();
        let events = std::mem::take(&mut self.events);
        for (at, event) in events.iter().enumerate() {
            self.index(event, at);
        }
        self.events = events;
    }

    fn index(&mut self, event: &MeterEvent, at: usize) {
        self.by_identifier.insert(event.identifier.clone(), at);
        self.by_meter_customer.entry((event.meter.clone(), event.customer.clone())).or_default().push(at);
    }

    pub(crate) fn all(&self) -> &[MeterEvent] {
        &self.events
    }

    /// The last event with this identifier.
    pub(crate) fn by_identifier(&self, identifier: &str) -> Option<&MeterEvent> {
        self.events.get(*self.by_identifier.get(identifier)?)
    }

    pub(crate) fn cancel(&mut self, identifier: &str, at: i64) {
        if let Some(event) = self.by_identifier.get(identifier).and_then(|at| self.events.get_mut(*at)) {
            event.state = EventState::Cancelled;
            event.cancelled_at = Some(at);
        }
    }

    /// What the meter says for a customer in `[start, end)`, of events received up to `seen_until`. None when there is no event.
    pub(crate) fn aggregate(
        &self,
        meter: &Value,
        customer: &str,
        start: i64,
        end: i64,
        seen_until: i64,
    ) -> Option<Decimal> {
        let key = (super::text(meter, "id"), customer.to_owned());
        let events = self
            .by_meter_customer
            .get(&key)?
            .iter()
            .filter_map(|at| self.events.get(*at))
            .filter(|event| event.counts(seen_until) && (start..end).contains(&event.timestamp));
        let events = pre_aggregated(meter, events.collect());
        if events.is_empty() {
            return None;
        }
        Some(match meter["default_aggregation"]["formula"].as_str() {
            Some("count") => Decimal::from_u64(events.len() as u64),
            // The greatest time; of equal ones the one that came last.
            Some("last") => events
                .iter()
                .max_by_key(|event| event.timestamp)
                .map_or_else(Decimal::zero, |event| event.value.clone()),
            _ => events.iter().fold(Decimal::zero(), |sum, event| sum.add(&event.value)),
        })
    }
}

impl MeterEvent {
    /// Both an event and its cancellation take the aggregation's time to show.
    fn counts(&self, seen_until: i64) -> bool {
        let counted = match self.state {
            EventState::Counted => true,
            EventState::Cancelled => self.cancelled_at.is_some_and(|at| at > seen_until),
            EventState::Rejected => false,
        };
        counted && self.received_at <= seen_until
    }
}

/// A meter with an event time window keeps the last received event of each window.
fn pre_aggregated<'a>(meter: &Value, events: Vec<&'a MeterEvent>) -> Vec<&'a MeterEvent> {
    let seconds = match meter["event_time_window"].as_str() {
        Some("hour") => 3_600,
        Some("day") => 86_400,
        _ => return events,
    };
    let mut last = std::collections::BTreeMap::new();
    for event in events {
        last.insert(event.timestamp.div_euclid(seconds), event);
    }
    last.into_values().collect()
}
