//! Everything that the sandbox remembers.
//!
//! Objects are kept as the JSON that Stripe answers with. Members that start with `__` are the sandbox's own and leave with no answer.

pub(crate) mod billing;
pub(crate) mod invoices;
mod render;
mod table;
mod usage;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use self::render::{render, with_expansions};
pub(crate) use self::table::{Kind, Table};
pub(crate) use self::usage::{EventState, MeterEvent, Usage};
use crate::clock::BaseClock;
use crate::error::ApiError;
use crate::faults::{Fault, Settings};
use crate::idempotency::IdempotencyStore;
use crate::journal::Journal;
use crate::webhooks::Delivery;

pub(crate) const API_VERSION: &str = "2026-10-28.endive";

pub(crate) struct World {
    pub(crate) clock: BaseClock,
    pub(crate) settings: Settings,
    pub(crate) faults: Vec<Fault>,
    pub(crate) accounts: Accounts,
    pub(crate) journal: Journal,
    pub(crate) deliveries: VecDeque<Delivery>,
    /// Calls that run now, by account, mode, event name and customer.
    pub(crate) in_flight: HashMap<String, u32>,
    pub(crate) rate: Option<(Instant, u32)>,
}

/// Each account in each mode, by `acct_…/test` and `acct_…/live`.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Accounts {
    by_name: BTreeMap<String, Account>,
}

impl Accounts {
    pub(crate) fn of(&mut self, id: &str, livemode: bool) -> &mut Account {
        self.by_name.entry(account_name(id, livemode)).or_insert_with(|| Account::new(id, livemode))
    }

    pub(crate) fn other_mode(&self, id: &str, livemode: bool) -> Option<&Account> {
        self.by_name.get(&account_name(id, !livemode))
    }

    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut Account> {
        self.by_name.values_mut()
    }

    pub(crate) fn all_shared(&self) -> impl Iterator<Item = &Account> {
        self.by_name.values()
    }

    /// What the file does not hold is built again.
    pub(crate) fn revive(&mut self) {
        for account in self.all() {
            account.usage.reindex();
            account.idempotency.drop_unfinished();
        }
    }
}

pub(crate) fn account_name(id: &str, livemode: bool) -> String {
    format!("{id}/{}", if livemode { "live" } else { "test" })
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) livemode: bool,
    tables: BTreeMap<Kind, Table>,
    pub(crate) usage: Usage,
    pub(crate) idempotency: IdempotencyStore,
    /// Stream tokens and when they end.
    pub(crate) sessions: BTreeMap<String, i64>,
    invoice_number: u64,
    /// Events that no one was told of yet.
    #[serde(skip)]
    pub(crate) outgoing: Vec<(Kind, String)>,
    /// The request at work, for the `request` of events.
    #[serde(skip)]
    pub(crate) request: Option<(String, Option<String>)>,
    #[serde(skip)]
    idle: billing::IdleMemo,
}

impl Account {
    fn new(id: &str, livemode: bool) -> Self {
        Self {
            id: id.to_owned(),
            livemode,
            tables: BTreeMap::new(),
            usage: Usage::default(),
            idempotency: IdempotencyStore::default(),
            sessions: BTreeMap::new(),
            invoice_number: 0,
            outgoing: Vec::new(),
            request: None,
            idle: billing::IdleMemo::default(),
        }
    }

    pub(crate) fn table(&mut self, kind: Kind) -> &mut Table {
        self.tables.entry(kind).or_default()
    }

    /// Oldest first.
    pub(crate) fn rows(&self, kind: Kind) -> impl DoubleEndedIterator<Item = &Value> {
        self.tables.get(&kind).into_iter().flat_map(Table::rows)
    }

    pub(crate) fn get(&self, kind: Kind, id: &str) -> Option<&Value> {
        self.tables.get(&kind)?.get(id)
    }

    /// Whether any kind has this id.
    pub(crate) fn holds(&self, id: &str) -> bool {
        self.tables.values().any(|table| table.get(id).is_some())
    }

    /// The object, or the refusal that names the parameter. What was deleted is not there.
    pub(crate) fn find(&self, kind: Kind, id: &str, param: &str) -> Result<&Value, ApiError> {
        self.get(kind, id)
            .filter(|row| row["deleted"] != true)
            .ok_or_else(|| ApiError::missing(kind.noun(), id, param))
    }

    pub(crate) fn find_mut(&mut self, kind: Kind, id: &str, param: &str) -> Result<&mut Value, ApiError> {
        let row = self.table(kind).get_mut(id).filter(|row| row["deleted"] != true);
        row.ok_or_else(|| ApiError::missing(kind.noun(), id, param))
    }

    /// Stores it and hands back what was stored. `object` has its id.
    pub(crate) fn insert(&mut self, kind: Kind, object: Value) -> Value {
        self.table(kind).insert(object.clone());
        object
    }

    /// The time that a customer lives in.
    pub(crate) fn now_of(&self, customer: &str, base_now: i64) -> i64 {
        self.get(Kind::Customer, customer)
            .and_then(|customer| customer["test_clock"].as_str())
            .and_then(|clock| self.get(Kind::TestClock, clock))
            .and_then(|clock| clock["frozen_time"].as_i64())
            .unwrap_or(base_now)
    }

    /// Writes an event about `object` as it is now.
    pub(crate) fn emit(&mut self, kind: &str, object: &Value, at: i64) {
        let (request, key) = self.request.clone().map_or((None, None), |(id, key)| (Some(id), key));
        let event = json!({
            "id": new_id("evt"), "object": "event", "api_version": API_VERSION, "created": at,
            "data": { "object": render(self, object) },
            "livemode": self.livemode, "pending_webhooks": 1,
            "request": { "id": request, "idempotency_key": key },
            "type": kind,
        });
        let event = self.insert(Kind::Event, event);
        self.outgoing.push((Kind::Event, text(&event, "id")));
    }

    /// A thin event: what is delivered names the object only; the rest is read back.
    pub(crate) fn emit_thin(&mut self, event: Value) {
        let event = self.insert(Kind::ThinEvent, event);
        self.outgoing.push((Kind::ThinEvent, text(&event, "id")));
    }
}

/// Random, so that a sandbox that forgot its state never answers for an id of its former life.
pub(crate) fn new_id(prefix: &str) -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{prefix}_{}", random.get(..24).unwrap_or(&random))
}

/// A member as text; empty when it is no text.
pub(crate) fn text(object: &Value, member: &str) -> String {
    object[member].as_str().unwrap_or_default().to_owned()
}
