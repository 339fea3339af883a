//! The folder of a run: the real engine, a ledger on SQLite, and a loopback client.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::Router;
use bytes::Bytes;
use clickhouse_embedded::{Engine, EngineOptions, test_support::test_library};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use ledger::{KeyRow, Ledger, LedgerOptions};
use proof::SigningKey;
use tempfile::TempDir;
use tokio::net::TcpListener;
use usage::{ManualClock, PlatformId, SharedClock, Timestamp};
use usage_store::{StoreOptions, UsageStore};
use web::{ApiKey, KeyRing, Readiness, Routes, WebOptions, operator_hash};

const OPERATOR: &str = "cm_operator_bench";
/// 2026-11-30T12:00:00Z, the hour that all usage is of.
pub(crate) const NOON: i64 = 1_796_040_000_000_000;
pub(crate) const AS_OF: &str = "2026-11-30T12:00:00Z";

pub(crate) type Http = Client<HttpConnector, Full<Bytes>>;

pub(crate) struct Place {
    pub(crate) clock: ManualClock,
    pub(crate) store: UsageStore,
    pub(crate) ledger: Ledger,
    pub(crate) signer: Arc<SigningKey>,
    engine: Engine,
    folder: TempDir,
}

impl Place {
    pub(crate) async fn open(parent: &Path) -> Place {
        let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(parent).expect("a folder");
        let clock = ManualClock::new(Timestamp::from_micros(NOON + 60_000_000));
        let library = test_library().expect("run scripts/install-engine.sh");
        let mut options = EngineOptions::new(library, folder.path().join("engine"));
        options.fsync = true; // as the command opens it
        let engine = Engine::open(options).await.expect("the engine starts");
        let store = UsageStore::over_connector(engine.connector(), StoreOptions::default());
        store.migrate().await.expect("tables of usage");
        let url = format!("sqlite://{}", folder.path().join("ledger.sqlite").display());
        let options = LedgerOptions { url, clock: Some(Arc::new(clock.clone())), max_connections: 4 };
        let ledger = Ledger::open(options).await.expect("a ledger");
        ledger.migrate().await.expect("tables of the ledger");
        let signer = Arc::new(SigningKey::from_bytes(&[7; 32]));
        let public = signer.verifying_key().to_bytes();
        ledger.public_key_insert(&signer.kid(), "head", public).await.expect("a public key is kept");
        Place { clock, store, ledger, signer, engine, folder }
    }

    pub(crate) fn shared_clock(&self) -> SharedClock {
        Arc::new(self.clock.clone())
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path().join("journal")
    }

    /// Routes behind the layers that all have, on loopback, and those that administrate. Returns the address.
    pub(crate) async fn serve(&self, routes: Routes) -> String {
        let keyring = KeyRing::new(self.ledger.clone(), Some(operator_hash(OPERATOR)), self.shared_clock());
        keyring.refresh().await.expect("the keys are read");
        let routes = routes.merge(web::admin::routes(keyring.clone(), self.shared_clock()));
        serve(web::app(routes, keyring, Readiness::default(), WebOptions::default())).await
    }

    /// A platform with the meter that a new one has, and a key of it that may report.
    pub(crate) async fn platform(&self, name: &str) -> (PlatformId, String) {
        let url = self.serve(Routes::new()).await;
        let body = serde_json::json!({"platform_id": name, "livemode": false}).to_string();
        let status = post(&client(), &format!("{url}/v1/platforms"), OPERATOR, body.into()).await;
        assert_eq!(status, 201, "a platform is made");
        let platform = PlatformId::parse(name).expect("a name of a platform");
        let key = ApiKey::generate(false).expect("random bytes");
        let row = KeyRow {
            key_id: format!("key_{name}"),
            platform: platform.clone(),
            livemode: false,
            secret_hash: key.hash(),
            label: "bench".to_owned(),
            scopes: vec!["ingest".to_owned()],
            created_at: Timestamp::from_micros(NOON),
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        };
        self.ledger.key_insert(&row).await.expect("a key is kept");
        (platform, key.reveal().to_owned())
    }

    /// SQL straight to the engine.
    pub(crate) async fn sql(&self, statement: &str) -> String {
        let client = Client::builder(TokioExecutor::new()).build(self.engine.connector());
        let request = http::Request::post("http://engine/?database=contextmeter")
            .body(Full::<Bytes>::from(statement.to_owned()))
            .expect("a request");
        let response = client.request(request).await.expect("the engine answers");
        let status = response.status();
        let body = response.into_body().collect().await.expect("a whole answer").to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        assert!(status.is_success(), "{statement}: {text}");
        text
    }

    pub(crate) async fn close(self) {
        self.ledger.close().await;
        self.engine.close().await.expect("the engine ends");
    }
}

/// On a free loopback port, until the process ends.
pub(crate) async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

pub(crate) fn client() -> Http {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).build(connector)
}

/// Posts JSON, reads the whole answer, and returns its status.
pub(crate) async fn post(http: &Http, url: &str, key: &str, body: Bytes) -> u16 {
    let request = http::Request::post(url)
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .body(Full::new(body))
        .expect("a request");
    let response = http.request(request).await.expect("an answer");
    let status = response.status().as_u16();
    response.into_body().collect().await.expect("a whole answer");
    status
}
