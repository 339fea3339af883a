//! Objects of one kind in order of creation.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Customer,
    Event,
    Invoice,
    InvoiceItem,
    Meter,
    Price,
    Product,
    Subscription,
    SubscriptionItem,
    TestClock,
    ThinEvent,
    WebhookEndpoint,
}

impl Kind {
    /// As refusals call it: `No such meter: '…'`.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::Event | Self::ThinEvent => "event",
            Self::Invoice => "invoice",
            Self::InvoiceItem => "invoiceitem",
            Self::Meter => "meter",
            Self::Price => "price",
            Self::Product => "product",
            Self::Subscription => "subscription",
            Self::SubscriptionItem => "subscription_item",
            Self::TestClock => "test_clock",
            Self::WebhookEndpoint => "webhook endpoint",
        }
    }
}

#[derive(Default)]
pub(crate) struct Table {
    order: Vec<String>,
    by_id: HashMap<String, Value>,
    changes: u64,
}

impl Table {
    pub(crate) fn get(&self, id: &str) -> Option<&Value> {
        self.by_id.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Value> {
        self.changes += 1;
        self.by_id.get_mut(id)
    }

    pub(crate) fn insert(&mut self, object: Value) {
        self.changes += 1;
        let id = super::text(&object, "id");
        if self.by_id.insert(id.clone(), object).is_none() {
            self.order.push(id);
        }
    }

    pub(crate) fn remove(&mut self, id: &str) {
        self.changes += 1;
        if self.by_id.remove(id).is_some() {
            self.order.retain(|other| other != id);
        }
    }

    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &Value> {
        self.order.iter().filter_map(|id| self.by_id.get(id))
    }

    /// Grows with every possible change.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows())
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = Self::default();
        for row in Vec::<Value>::deserialize(deserializer)? {
            table.insert(row);
        }
        Ok(table)
    }
}
