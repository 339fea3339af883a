//! Usage as journals store and count it, and the room that seals it.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    http::Request,
};
use billing::{Billing, BillingDeps, SealRequest, SealStatus};
use clickhouse_embedded::{Engine, test_support::test_options};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use ledger::{HourCount, Ledger, StatementRow, testing::TestLedger};
use proof::SigningKey;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use usage::{
    AuditPolicy, Clock as _, ErasureKey, Hour, ManualClock, PlatformId, Position, ReportRecord, SharedClock,
    Timestamp, TurnReport, audit,
};
use usage_store::{EventRow, ReportBlock, ReportRow, StoreOptions, UsageStore};
use web::{KeyRing, Readiness, WebOptions, operator_hash};

const OPERATOR: &str = "cm_operator_test";
/// 2026-11-30T12:00:00Z
pub(crate) const NOON: i64 = 1_796_040_000_000_000;
pub(crate) const MINUTE: i64 = 60_000_000;

/// Platforms `acme` and `other`, each with the meter that a new platform has.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) store: UsageStore,
    pub(crate) billing: Billing,
    signer: Arc<SigningKey>,
    router: Router,
    keyring: KeyRing,
    engine: Engine,
    test: TestLedger,
    _folder: tempfile::TempDir,
}

/// A journal as its folder has it: positions, and counts that are cumulative.
pub(crate) struct Journal {
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
    counts: BTreeMap<(PlatformId, Hour), HourCount>,
}

/// What a host reports of one turn.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) platform: &'static str,
    pub(crate) customer: String,
    pub(crate) turn: String,
    pub(crate) at: Timestamp,
    /// Each provider with the costs of its frames.
    pub(crate) providers: Vec<(&'static str, Vec<u64>)>,
}

impl Turn {
    /// A minute after noon, of the provider `docs`.
    pub(crate) fn new(turn: &str, customer: &str, costs: &[u64]) -> Turn {
        Turn {
            platform: "acme",
            customer: customer.to_owned(),
            turn: turn.to_owned(),
            at: Timestamp::from_micros(NOON + MINUTE),
            providers: vec![("docs", costs.to_vec())],
        }
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.providers.iter().flat_map(|(_, costs)| costs).sum()
    }

    fn report(&self) -> TurnReport {
        let providers: Vec<Value> = self
            .providers
            .iter()
            .map(|(provider, costs)| {
                let frames: Vec<Value> = costs
                    .iter()
                    .enumerate()
                    .map(|(at, cost)| {
                        let frame = json!({"provider_id": provider, "frame_id": format!("f{at}"),
                            "content_digest": format!("sha256:{}", "ab".repeat(32))});
                        json!({"frame": frame, "token_cost": cost})
                    })
                    .collect();
                json!({"provider_id": provider, "frames_served": costs.len(), "frames_rejected": 0,
                    "token_cost": costs.iter().sum::<u64>(), "served_frames": frames})
            })
            .collect();
        let body = json!({"customer_id": self.customer, "request_id": "req-1", "turn_id": self.turn,
            "report": {"budget_requested": self.tokens(), "budget_consumed": self.tokens(),
                "as_of": self.at, "providers": providers}});
        TurnReport::from_json(body.to_string().as_bytes()).unwrap()
    }
}

impl World {
    pub(crate) async fn sqlite() -> World {
        let clock = ManualClock::new(Timestamp::from_micros(NOON + 2 * MINUTE));
        let test = ledger::testing::sqlite(Some(Arc::new(clock.clone()))).await.unwrap();
        World::new(test, clock).await
    }

    pub(crate) async fn postgres() -> World {
        let clock = ManualClock::new(Timestamp::from_micros(NOON + 2 * MINUTE));
        let test = ledger::testing::postgres(Some(Arc::new(clock.clone()))).await.unwrap();
        World::new(test, clock).await
    }

    async fn new(test: TestLedger, clock: ManualClock) -> World {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(test_options(folder.path().join("engine")).unwrap()).await.unwrap();
        let store = UsageStore::over_connector(engine.connector(), StoreOptions::default());
        store.migrate().await.unwrap();
        let signer = Arc::new(SigningKey::from_bytes(&[9; 32]));
        let public = signer.verifying_key().to_bytes();
        test.ledger.public_key_insert(&signer.kid(), "head", public).await.unwrap();
        let shared: SharedClock = Arc::new(clock.clone());
        let billing = room(&test.ledger, &store, &shared, &signer);
        let keyring = KeyRing::new(test.ledger.clone(), Some(operator_hash(OPERATOR)), Arc::clone(&shared));
        keyring.refresh().await.unwrap();
        let routes = billing.routes().merge(web::admin::routes(keyring.clone(), shared));
        let router = web::app(routes, keyring.clone(), Readiness::default(), WebOptions::default());
        let world = World { clock, store, billing, signer, router, keyring, engine, test, _folder: folder };
        for platform in ["acme", "other"] {
            world.add_platform(platform).await;
        }
        world
    }

    pub(crate) async fn add_platform(&self, platform: &str) {
        let body = json!({"platform_id": platform, "livemode": false});
        let (status, made) = self.send(OPERATOR, "POST", "/v1/platforms", None, &body.to_string()).await;
        assert_eq!(status, 201, "{made}");
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.test.ledger
    }

    /// Another process of the service over the same books.
    pub(crate) fn another(&self) -> Billing {
        let clock: SharedClock = Arc::new(self.clock.clone());
        room(self.ledger(), &self.store, &clock, &self.signer)
    }

    pub(crate) async fn journal(&self, folder: &str) -> Journal {
        let epoch = self.ledger().epoch_open(folder, None).await.unwrap().epoch;
        Journal { epoch, seq: 0, counts: BTreeMap::new() }
    }

    /// Takes a turn into a journal: it has positions and is counted there, and the store has nothing of it.
    pub(crate) fn accept(&self, journal: &mut Journal, turn: &Turn) -> ReportBlock {
        let now = self.clock.now();
        let platform = platform(turn.platform);
        let audited = audit(turn.report(), &AuditPolicy::new(now)).unwrap();
        let record = ReportRecord::build(&platform, &audited, &ErasureKey::from_bytes([5; 32]));
        let first = journal.seq + 1;
        let mut block = ReportBlock::default();
        let hour = Hour::of(turn.at);
        for event in &record.events {
            journal.seq += 1;
            let position = Position { epoch: journal.epoch, seq: journal.seq };
            block.events.push(EventRow::new(event, position, now));
            let key = (platform.clone(), hour);
            let (platform, seq) = (platform.clone(), journal.seq);
            let zero = HourCount { platform, hour, seq, events: 0, tokens: 0, frames: 0 };
            let count = journal.counts.entry(key).or_insert(zero);
            count.seq = journal.seq;
            count.events += 1;
            count.tokens += u128::from(event.tokens);
            count.frames += u64::from(event.frames_served);
        }
        if record.events.is_empty() {
            journal.seq += 1;
        }
        block.reports.push(ReportRow::new(&record, journal.epoch, first, journal.seq, now));
        block
    }

    /// Tells the ledger that everything of a journal is stored up to now.
    pub(crate) async fn tell(&self, journal: &Journal) {
        let counts: Vec<HourCount> = journal.counts.values().cloned().collect();
        let now = self.clock.now();
        self.ledger().epoch_confirm(journal.epoch, journal.seq, now, &counts).await.unwrap();
    }

    /// Accepts, stores and tells.
    pub(crate) async fn take(&self, journal: &mut Journal, turns: &[Turn]) -> Vec<EventRow> {
        let mut events = Vec::new();
        for turn in turns {
            let block = self.accept(journal, turn);
            self.store.insert(&block).await.unwrap();
            events.extend(block.events);
        }
        self.tell(journal).await;
        events
    }

    /// A quarter past the end of the hour at noon, when every late report is in; journals have told so.
    pub(crate) async fn settled(&self, journals: &[&Journal]) {
        self.clock.set(noon().end().checked_add_micros(15 * MINUTE).unwrap());
        for journal in journals {
            self.tell(journal).await;
        }
    }

    pub(crate) async fn seal(&self) -> SealStatus {
        self.billing.seal_activate(SealRequest::default()).await.unwrap()
    }

    /// Every statement of a platform that is shown.
    pub(crate) async fn statements(&self, of: &str) -> Vec<StatementRow> {
        self.ledger().statement_list(&platform(of), None, None, 0, 10_000).await.unwrap()
    }

    /// Verifies `acme`; the first difference's kind, event or statement, and message.
    pub(crate) async fn difference(&self) -> Option<(&'static str, Option<String>, String)> {
        let found = self.billing.verify(&platform("acme")).await.unwrap();
        assert_eq!(found.ok, found.first_difference.is_none());
        found.first_difference.map(|first| (first.what, first.event_id.or(first.statement_id), first.message))
    }

    /// SQL straight to the engine, past everything that guards it.
    pub(crate) async fn sql(&self, statement: &str) {
        let client = Client::builder(TokioExecutor::new()).build(self.engine.connector());
        let request = Request::post("http://engine/?database=contextmeter&mutations_sync=2")
            .body(Full::<Bytes>::from(statement.to_owned()))
            .unwrap();
        let response = client.request(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(status.is_success(), "{statement}: {}", String::from_utf8_lossy(&body));
    }

    /// Removes an event from the table of usage, as a thief would.
    pub(crate) async fn remove(&self, event: &EventRow) {
        let id = hex::encode(event.event_id);
        self.sql(&format!("ALTER TABLE usage_events DELETE WHERE event_id = unhex('{id}')")).await;
    }

    /// As the operator, on a platform.
    pub(crate) async fn get(&self, of: &str, path: &str) -> (u16, Value) {
        self.send(OPERATOR, "GET", path, Some(of), "").await
    }

    pub(crate) async fn post(&self, of: &str, path: &str, body: &str) -> (u16, Value) {
        self.send(OPERATOR, "POST", path, Some(of), body).await
    }

    /// A key of a platform with one scope.
    pub(crate) async fn key(&self, of: &str, scope: &str) -> String {
        let body = json!({"scopes": [scope]}).to_string();
        let (status, made) = self.post(of, "/v1/keys", &body).await;
        assert_eq!(status, 201, "{made}");
        self.keyring.refresh().await.unwrap();
        made["key"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn send(
        &self,
        token: &str,
        method: &str,
        path: &str,
        of: Option<&str>,
        body: &str,
    ) -> (u16, Value) {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json");
        if let Some(platform) = of {
            request = request.header("contextmeter-platform", platform);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }
}

fn room(ledger: &Ledger, store: &UsageStore, clock: &SharedClock, signer: &Arc<SigningKey>) -> Billing {
    Billing::new(BillingDeps {
        ledger: ledger.clone(),
        store: store.clone(),
        clock: Arc::clone(clock),
        head_signer: Arc::clone(signer),
        payments: None,
    })
}

pub(crate) fn noon() -> Hour {
    Hour::of(Timestamp::from_micros(NOON))
}

pub(crate) fn platform(name: &str) -> PlatformId {
    PlatformId::parse(name).unwrap()
}
