//! What a process opens for its roles, and how the parts are wired together. No part's logic is here.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use axum::{Json, extract::State, routing::get};
use billing::{Billing, BillingDeps, provider::PaymentProvider};
use clickhouse_embedded::{Engine, EngineOptions, TcpAccess, TcpServer, locate_library};
use delegation::Delegation;
use ingest::{Ingest, IngestDeps, IngestOptions};
use ledger::{Ledger, LedgerOptions};
use proof::{KeyFamily, PublicKey, VerifyingKey};
use stripe_provider::{StripeOptions, StripeProvider};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use usage::{SharedClock, SystemClock};
use usage_store::{StoreOptions, UsageStore};
use utoipa_axum::router::OpenApiRouter;
use web::{KeyRing, Problem, Readiness, Routes, WebOptions};

use crate::{
    config::{self, Config},
    folder::{Announcement, Folder, FolderError, OpenFolder},
};

/// From the end of a period until Stripe finalises an invoice by itself.
pub(crate) const STRIPES_GRACE_SECONDS: i64 = 3_600;

const KEYS_REFRESH: Duration = Duration::from_secs(30);
const MIGRATION_PAUSE: Duration = Duration::from_secs(2);

/// Which rooms a process opens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Roles {
    pub(crate) name: &'static str,
    ingest: bool,
    billing: bool,
    pub(crate) worker: bool,
}

impl Roles {
    pub(crate) const UP: Roles = Roles { name: "up", ingest: true, billing: true, worker: true };
    pub(crate) const INGEST: Roles = Roles { name: "ingest", ingest: true, billing: false, worker: false };
    pub(crate) const BILLING: Roles = Roles { name: "billing", ingest: false, billing: true, worker: true };
    /// Every route, and nothing happens unasked: what a story tells happens in its order.
    pub(crate) const DEMO: Roles = Roles { name: "demo", ingest: true, billing: true, worker: false };
    /// For a command that asks once: no journal is opened for it.
    pub(crate) const ALL_QUIET: Roles =
        Roles { name: "command", ingest: false, billing: true, worker: false };
}

/// The open rooms of this process.
pub(crate) struct Rooms {
    folder: OpenFolder,
    ledger: Ledger,
    store: UsageStore,
    engine: Option<Engine>,
    engine_server: Option<TcpServer>,
    ingest: Option<Ingest>,
    billing: Option<Billing>,
    clock: SharedClock,
    keyring: KeyRing,
    readiness: Readiness,
    options: WebOptions,
    tasks: TaskTracker,
}

impl Rooms {
    pub(crate) async fn open(config: &Config, folder: OpenFolder, roles: Roles) -> anyhow::Result<Rooms> {
        let clock: SharedClock = Arc::new(SystemClock);
        let ledger = open_ledger(config, &folder).await?;
        let (store, engine) = open_store(config, &folder).await?;
        let engine_server = match (&engine, config.engine.listen()?) {
            (Some(engine), Some(listen)) => Some(serve_engine(config, engine, listen).await?),
            _ => None,
        };
        let readiness = Readiness::default();
        watch_ledger_and_store(&readiness, &ledger, &store);

        let signer = signing_key(&folder, &ledger, KeyFamily::Acknowledgement).await?;
        let ingest = match roles.ingest {
            true => {
                let deps =
                    IngestDeps { ledger: ledger.clone(), store: store.clone(), clock: clock.clone(), signer };
                let mut options = IngestOptions::new(folder.journal());
                options.group_window = config.ingest.group_window();
                options.max_body_bytes = config.http.max_body_bytes;
                options.block_rows = config.ingest.block_rows;
                let ingest = Ingest::open(deps, options).await.context("cannot open the journal")?;
                ingest.readiness(&readiness);
                Some(ingest)
            }
            false => None,
        };
        let billing = match roles.billing {
            true => Some(Billing::new(BillingDeps {
                ledger: ledger.clone(),
                store: store.clone(),
                clock: clock.clone(),
                head_signer: signing_key(&folder, &ledger, KeyFamily::Head).await?,
                payments: payments(config).await?,
            })),
            false => None,
        };
        let operator = folder.operator_key_or_create()?;
        let keyring = KeyRing::new(ledger.clone(), Some(web::operator_hash(&operator)), clock.clone());
        keyring.refresh().await.context("cannot read the keys")?;
        let options = WebOptions {
            max_body_bytes: config.http.max_body_bytes,
            request_timeout: config.http.request_timeout(),
            concurrency: config.http.concurrency,
            metrics: web::record_metrics(),
        };
        let tasks = TaskTracker::new();
        Ok(Rooms {
            folder,
            ledger,
            store,
            engine,
            engine_server,
            ingest,
            billing,
            clock,
            keyring,
            readiness,
            options,
            tasks,
        })
    }

    /// Every route of the open rooms, behind the same layers.
    pub(crate) fn router(&self) -> axum::Router {
        let routes =
            routes(&self.keyring, &self.clock, &self.ledger, self.ingest.as_ref(), self.billing.as_ref());
        web::app(routes, self.keyring.clone(), self.readiness.clone(), self.options.clone())
    }

    pub(crate) fn announce(&self, role: &str, url: &str) -> Result<Announcement, FolderError> {
        self.folder.announce(role, url)
    }

    /// What every serving process does besides: reads keys anew, and brings a store that was away to our schema.
    pub(crate) fn spawn_helpers(&self, shutdown: &CancellationToken) {
        self.keyring.spawn_refresher(KEYS_REFRESH, shutdown.clone());
        if self.engine.is_none() {
            let (store, shutdown) = (self.store.clone(), shutdown.clone());
            self.tasks.spawn(async move {
                while let Err(error) = store.migrate().await {
                    tracing::warn!(%error, "cannot bring the usage store to this version's schema; trying again");
                    if shutdown.run_until_cancelled(tokio::time::sleep(MIGRATION_PAUSE)).await.is_none() {
                        return;
                    }
                }
            });
        }
    }

    /// Seals, bills and guards until the process ends.
    pub(crate) fn spawn_worker(&self, config: &Config, shutdown: &CancellationToken) {
        if let Some(billing) = self.billing.clone() {
            let (tick, shutdown) = (config.billing.tick(), shutdown.clone());
            self.tasks.spawn(async move { billing.run_worker(tick, shutdown).await });
        }
    }

    /// Resolves when durability can no longer be promised.
    pub(crate) async fn fatal(&self) -> String {
        match &self.ingest {
            Some(ingest) => ingest.fatal().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until everything accepted so far is stored and told to the ledger.
    pub(crate) async fn drained(&self) {
        if let Some(ingest) = &self.ingest {
            ingest.drained().await;
        }
    }

    /// In the order of dependence: nobody writes any more, then what they wrote to is closed.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.tasks.close();
        self.tasks.wait().await;
        if let Some(ingest) = self.ingest {
            ingest.shutdown().await;
        }
        drop(self.billing);
        if let Some(server) = self.engine_server {
            server.shutdown().await;
        }
        self.ledger.close().await;
        if let Some(engine) = self.engine {
            engine.close().await.context("cannot close the engine")?;
        }
        Ok(())
    }
}

fn routes(
    keyring: &KeyRing,
    clock: &SharedClock,
    ledger: &Ledger,
    ingest: Option<&Ingest>,
    billing: Option<&Billing>,
) -> Routes {
    let mut routes = web::admin::routes(keyring.clone(), clock.clone()).merge(keys(ledger));
    if let Some(ingest) = ingest {
        routes = routes.merge(ingest.routes());
    }
    if let Some(billing) = billing {
        routes =
            routes.merge(billing.routes()).merge(Delegation::new(ledger.clone(), clock.clone()).routes());
        routes = routes.merge(contextmeter_console::routes());
    }
    routes
}

/// The OpenAPI document of every route there is. Routes are described by the rooms that have them, so the rooms are opened,
/// on a folder of their own and without a store; nothing is served.
pub(crate) async fn openapi() -> anyhow::Result<String> {
    let path = std::env::temp_dir().join(format!("contextmeter-openapi-{}", std::process::id()));
    let folder = Folder::new(&path).open()?;
    let clock: SharedClock = Arc::new(SystemClock);
    let ledger = Ledger::open(LedgerOptions::new(folder.ledger_url())).await?;
    ledger.migrate().await?;
    let store = UsageStore::over_url("http://127.0.0.1:1", "", "", StoreOptions::default());
    let deps = IngestDeps {
        ledger: ledger.clone(),
        store: store.clone(),
        clock: clock.clone(),
        signer: signing_key(&folder, &ledger, KeyFamily::Acknowledgement).await?,
    };
    let ingest = Ingest::open(deps, IngestOptions::new(folder.journal())).await?;
    let head_signer = signing_key(&folder, &ledger, KeyFamily::Head).await?;
    let billing = Billing::new(BillingDeps {
        ledger: ledger.clone(),
        store,
        clock: clock.clone(),
        head_signer,
        payments: None,
    });
    let keyring = KeyRing::new(ledger.clone(), None, clock.clone());
    let document = web::openapi(routes(&keyring, &clock, &ledger, Some(&ingest), Some(&billing)));
    ingest.shutdown().await;
    ledger.close().await;
    drop(folder);
    std::fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    Ok(serde_json::to_string_pretty(&document)?)
}

/// The ledger at this version's schema.
pub(crate) async fn open_ledger(config: &Config, folder: &OpenFolder) -> anyhow::Result<Ledger> {
    let url = if config.ledger.url.is_empty() { folder.ledger_url() } else { config.ledger.url.clone() };
    let mut options = LedgerOptions::new(url);
    options.max_connections = config.ledger.max_connections;
    let ledger = Ledger::open(options).await.context("cannot open the ledger; see the section [ledger]")?;
    ledger.migrate().await.context("cannot bring the ledger to this version's schema")?;
    Ok(ledger)
}

/// The store: the embedded engine, at this version's schema, or a server that may still be away.
pub(crate) async fn open_store(
    config: &Config,
    folder: &OpenFolder,
) -> anyhow::Result<(UsageStore, Option<Engine>)> {
    let options = StoreOptions { database: config.store.database.clone(), ..StoreOptions::default() };
    if !config.store.url.is_empty() {
        let store =
            UsageStore::over_url(&config.store.url, &config.store.user, &config.store.password, options);
        return Ok((store, None));
    }
    let engine = open_engine(config, folder).await?;
    let store = UsageStore::over_connector(engine.connector(), options);
    store.migrate().await.context("cannot bring the usage store to this version's schema")?;
    Ok((store, Some(engine)))
}

pub(crate) async fn open_engine(config: &Config, folder: &OpenFolder) -> anyhow::Result<Engine> {
    let library = engine_library(config)?;
    let mut options = EngineOptions::new(library, folder.engine());
    options.fsync = true;
    options.max_server_memory_bytes = Some(config.engine.max_memory_bytes).filter(|bytes| *bytes > 0);
    Engine::open(options).await.context("cannot start the embedded engine")
}

/// Where the engine's library lies: named by the configuration, by the environment, or in `.tools` at or above the program or here.
pub(crate) fn engine_library(config: &Config) -> anyhow::Result<std::path::PathBuf> {
    let named = config::engine_library_from_environment();
    let program =
        std::env::current_exe().ok().and_then(|file| file.parent().map(std::path::Path::to_path_buf));
    let hints: Vec<_> = [program, std::env::current_dir().ok()].into_iter().flatten().collect();
    locate_library(config.engine.library(), named.as_deref(), &hints)
        .context("the engine's library is missing: run scripts/install-engine.sh, or set engine.library")
}

pub(crate) async fn serve_engine(
    config: &Config,
    engine: &Engine,
    listen: SocketAddr,
) -> anyhow::Result<TcpServer> {
    let access = TcpAccess::new(&config.engine.user, &config.engine.password);
    let access = if config.engine.read_only { access.read_only() } else { access };
    engine.serve_tcp(listen, access).await.with_context(|| format!("cannot offer the engine on {listen}"))
}

/// The stand-in for Stripe, whose state lives in the folder.
pub(crate) async fn start_sandbox(
    folder: &Folder,
    listen: SocketAddr,
    grace_seconds: i64,
) -> anyhow::Result<stripe_sandbox::Server> {
    let options = stripe_sandbox::SandboxOptions {
        grace_seconds,
        state_file: Some(folder.sandbox_state()),
        ..stripe_sandbox::SandboxOptions::default()
    };
    let sandbox = stripe_sandbox::Sandbox::open(options).context("cannot read the sandbox's state file")?;
    stripe_sandbox::serve(sandbox, listen)
        .await
        .with_context(|| format!("the sandbox cannot listen on {listen}"))
}

pub(crate) async fn payments(config: &Config) -> anyhow::Result<Option<Arc<dyn PaymentProvider>>> {
    if config.stripe.secret_key.is_empty() {
        return Ok(None);
    }
    let mut options = StripeOptions::new(&config.stripe.secret_key);
    config.stripe.base_url.trim_end_matches('/').clone_into(&mut options.api_base);
    options.events_per_second = Some(config.stripe.events_per_second);
    options.invoice_grace = config.stripe.invoice_grace();
    let provider = StripeProvider::connect(options).await.context(
        "cannot ask Stripe whose key `stripe.secret_key` is; see [stripe], or leave it empty to bill nothing",
    )?;
    Ok(Some(Arc::new(provider)))
}

/// The private half from the folder; the public half is kept in the ledger for ever.
async fn signing_key(
    folder: &OpenFolder,
    ledger: &Ledger,
    family: KeyFamily,
) -> anyhow::Result<Arc<proof::SigningKey>> {
    let key = folder.signing_key(family.as_str())?;
    ledger
        .public_key_insert(&key.kid(), family.as_str(), key.verifying_key().to_bytes())
        .await
        .context("cannot keep a public key")?;
    Ok(Arc::new(key))
}

fn watch_ledger_and_store(readiness: &Readiness, ledger: &Ledger, store: &UsageStore) {
    let ledger = ledger.clone();
    readiness.register("ledger", move || {
        let ledger = ledger.clone();
        async move { ledger.ping().await.map_err(|error| error.to_string()) }
    });
    let store = store.clone();
    readiness.register("store", move || {
        let store = store.clone();
        async move { store.ping().await.map_err(|error| error.to_string()) }
    });
}

/// `/.well-known/contextmeter-keys.json`: the public halves of all keys that ever signed.
fn keys(ledger: &Ledger) -> Routes {
    OpenApiRouter::new()
        .route("/.well-known/contextmeter-keys.json", get(list_keys))
        .with_state(ledger.clone())
}

async fn list_keys(State(ledger): State<Ledger>) -> Result<Json<Vec<PublicKey>>, Problem> {
    let mut keys = Vec::new();
    for row in ledger.public_key_list().await? {
        let family = [KeyFamily::Acknowledgement, KeyFamily::Head]
            .into_iter()
            .find(|family| family.as_str() == row.family);
        if let (Some(family), Ok(key)) = (family, VerifyingKey::from_bytes(&row.public_key)) {
            keys.push(PublicKey::new(family, key));
        }
    }
    Ok(Json(keys))
}
