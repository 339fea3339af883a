//! The room behind the web layer, on a real engine and a real ledger.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::{Router, body::Body, http::Request};
use clickhouse_embedded::{Engine, test_support::test_options};
use http_body_util::BodyExt as _;
use ingest::{Ingest, IngestDeps, IngestError, IngestOptions};
use ledger::{KeyRow, Ledger, LedgerOptions, PlatformRow, testing::TestLedger};
use proof::SigningKey;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use usage::{Hour, ManualClock, PlatformId, SharedClock, Timestamp};
use usage_store::{Cut, EpochTotals, StoreOptions, UsageStore};
use web::{ApiKey, KeyRing, Readiness, WebOptions, operator_hash};

use crate::proxy::Proxy;

const OPERATOR: &str = "cm_operator_test";
/// 2026-11-30T12:00:00Z
pub(crate) const NOON: i64 = 1_796_040_000_000_000;

/// What outlives a process of the service.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    /// Straight to the engine.
    pub(crate) store: UsageStore,
    /// As the room reaches it.
    room_store: UsageStore,
    /// As the room's machine has it.
    pub(crate) room_clock: ManualClock,
    ledger: Ledger,
    folder: PathBuf,
    engine: Running,
    _keep: (Option<TestLedger>, Option<tempfile::TempDir>),
}

/// The engine, which has ended when the value is gone: a process must not exit while its threads still run.
struct Running(Option<Engine>);

impl Drop for Running {
    fn drop(&mut self) {
        let Some(engine) = self.0.take() else { return };
        // On a thread of its own: some tests drop the world inside a runtime, others outside.
        let closing = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(engine.close())
        });
        let _ = closing.join();
    }
}

/// One process of the service.
pub(crate) struct Room {
    pub(crate) ingest: Ingest,
    router: Router,
    keyring: KeyRing,
}

pub(crate) fn platform() -> PlatformId {
    PlatformId::parse("acme").unwrap()
}

impl World {
    pub(crate) async fn sqlite() -> World {
        let clock = clock();
        let test = ledger::testing::sqlite(Some(shared(&clock))).await.unwrap();
        World::new(test, clock).await
    }

    pub(crate) async fn postgres() -> World {
        let clock = clock();
        let test = ledger::testing::postgres(Some(shared(&clock))).await.unwrap();
        World::new(test, clock).await
    }

    async fn new(test: TestLedger, clock: ManualClock) -> World {
        let folder = tempfile::tempdir().unwrap();
        let world = World::on(folder.path(), test.ledger.clone(), clock).await;
        World { _keep: (Some(test), Some(folder)), ..world }
    }

    /// All in one folder that outlives this process, with tables.
    pub(crate) async fn at(folder: &Path) -> World {
        let clock = clock();
        let url = format!("sqlite://{}", folder.join("ledger.sqlite").display());
        let options = LedgerOptions { url, clock: Some(shared(&clock)), max_connections: 4 };
        let ledger = Ledger::open(options).await.unwrap();
        ledger.migrate().await.unwrap();
        World::on(folder, ledger, clock).await.with_tables().await
    }

    async fn on(folder: &Path, ledger: Ledger, clock: ManualClock) -> World {
        let engine = Engine::open(test_options(folder.join("engine")).unwrap()).await.unwrap();
        let store = UsageStore::over_connector(engine.connector(), StoreOptions::default());
        if ledger.platform_list().await.unwrap().is_empty() {
            let row = PlatformRow::new(platform(), false, Timestamp::from_micros(NOON));
            ledger.platform_insert(&row).await.unwrap();
        }
        World {
            room_clock: clock.clone(),
            clock,
            room_store: store.clone(),
            store,
            ledger,
            folder: folder.to_owned(),
            engine: Running(Some(engine)),
            _keep: (None, None),
        }
    }

    /// With a proxy between the room and the engine.
    pub(crate) async fn proxied() -> (World, Proxy) {
        let world = World::sqlite().await.with_tables().await;
        let proxy = Proxy::start(world.engine.0.as_ref().unwrap().connector()).await;
        let store = UsageStore::over_url(&proxy.url, "default", "", StoreOptions::default());
        (World { room_store: store, ..world }, proxy)
    }

    pub(crate) async fn with_tables(self) -> World {
        self.store.migrate().await.unwrap();
        self
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn signer() -> SigningKey {
        SigningKey::from_bytes(&[7; 32])
    }

    pub(crate) fn journal_dir(&self) -> PathBuf {
        self.folder.join("journal")
    }

    pub(crate) async fn open(&self) -> Room {
        self.open_with(|_| {}).await.unwrap()
    }

    pub(crate) async fn open_with(&self, set: impl FnOnce(&mut IngestOptions)) -> Result<Room, IngestError> {
        let mut options = IngestOptions::new(self.journal_dir());
        options.heartbeat_interval = Duration::from_millis(50);
        set(&mut options);
        let deps = IngestDeps {
            ledger: self.ledger().clone(),
            store: self.room_store.clone(),
            clock: shared(&self.room_clock),
            signer: Arc::new(World::signer()),
        };
        let ingest = Ingest::open(deps, options).await?;
        let keyring = KeyRing::new(self.ledger().clone(), Some(operator_hash(OPERATOR)), shared(&self.clock));
        let readiness = Readiness::default();
        ingest.readiness(&readiness);
        let router = web::app(ingest.routes(), keyring.clone(), readiness, WebOptions::default());
        Ok(Room { ingest, router, keyring })
    }

    /// A key of the platform with the scope `ingest`.
    pub(crate) async fn key(&self) -> String {
        let key = ApiKey::generate(false).unwrap();
        let row = KeyRow {
            key_id: "key_1".to_owned(),
            platform: platform(),
            livemode: false,
            secret_hash: key.hash(),
            label: "host".to_owned(),
            scopes: vec!["ingest".to_owned()],
            created_at: Timestamp::from_micros(NOON),
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        };
        self.ledger().key_insert(&row).await.unwrap();
        key.reveal().to_owned()
    }

    /// What the store holds of an hour up to the ledger's cut.
    pub(crate) async fn in_store(&self, hour: Hour) -> Vec<EpochTotals> {
        let cut = self.ledger().cut_take().await.unwrap();
        self.store.epoch_totals(&platform(), hour, &Cut(cut.positions)).await.unwrap()
    }

    /// The ledger's counts of the hour equal the store's rows, epoch by epoch; returns events and tokens of all epochs.
    pub(crate) async fn balanced(&self, hour: Hour) -> (u64, u128) {
        let cut = self.ledger().cut_take().await.unwrap();
        let counted = self.ledger().epoch_counts_at(&platform(), hour, &cut).await.unwrap();
        let stored = self.in_store(hour).await;
        let told: Vec<_> =
            counted.iter().map(|(epoch, count)| (*epoch, count.events, count.tokens, count.frames)).collect();
        let held: Vec<_> =
            stored.iter().map(|total| (total.epoch, total.events, total.tokens, total.frames)).collect();
        assert_eq!(told, held, "the ledger's counts and the store's rows of {hour}");
        (told.iter().map(|count| count.1).sum(), told.iter().map(|count| count.2).sum())
    }
}

impl Room {
    pub(crate) async fn post(&self, report: &Value) -> (u16, Value) {
        self.call("POST", "/v1/reports", "application/json", report.to_string()).await
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: impl Into<Body>,
    ) -> (u16, Value) {
        let (status, text) = self.text(method, path, kind, body).await;
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(crate) async fn text(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: impl Into<Body>,
    ) -> (u16, String) {
        self.send(OPERATOR, method, path, kind, body.into()).await
    }

    /// Posts with a key, which the room checks without the ledger.
    pub(crate) async fn post_as(&self, key: &str, report: &Value) -> (u16, Value) {
        let body = report.to_string().into();
        let (status, text) = self.send(key, "POST", "/v1/reports", "application/json", body).await;
        (status, serde_json::from_str(&text).unwrap())
    }

    pub(crate) async fn refresh_keys(&self) {
        self.keyring.refresh().await.unwrap();
    }

    async fn send(&self, token: &str, method: &str, path: &str, kind: &str, body: Body) -> (u16, String) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {token}"))
            .header("contextmeter-platform", "acme")
            .header("content-type", kind)
            .body(body)
            .unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Ends the process as an operator does.
    pub(crate) async fn end(self) {
        drop(self.router);
        self.ingest.shutdown().await;
    }
}

/// A report of a turn at noon: one provider `docs` with one frame of each cost.
pub(crate) fn report(turn: &str, costs: &[u64]) -> Value {
    report_at(turn, "2026-11-30T12:00:00Z", costs)
}

pub(crate) fn report_at(turn: &str, as_of: &str, costs: &[u64]) -> Value {
    let frames: Vec<Value> = costs
        .iter()
        .enumerate()
        .map(|(at, cost)| {
            json!({"frame": {"provider_id": "docs", "frame_id": format!("f{at}")}, "token_cost": cost})
        })
        .collect();
    let sum: u64 = costs.iter().sum();
    json!({"customer_id": "globex", "request_id": "req-1", "turn_id": turn,
        "report": {"budget_requested": 4096, "budget_consumed": sum, "as_of": as_of,
            "providers": [{"provider_id": "docs", "frames_served": costs.len(), "frames_rejected": 0,
                "token_cost": sum, "served_frames": frames}]}})
}

pub(crate) fn noon() -> Hour {
    Hour::of(Timestamp::from_micros(NOON))
}

fn clock() -> ManualClock {
    ManualClock::new(Timestamp::from_micros(NOON + 60_000_000))
}

fn shared(clock: &ManualClock) -> SharedClock {
    Arc::new(clock.clone())
}
