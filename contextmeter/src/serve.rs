//! Roles that run until they are told to end.

use std::path::Path;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    commands::Outcome,
    config::Config,
    folder::{Announcement, Folder},
    print,
    roles::{Roles, Rooms},
};

/// A service of this process: its address, and the way to end it.
pub(crate) struct Running {
    pub(crate) url: String,
    pub(crate) operator: String,
    shutdown: CancellationToken,
    server: tokio::task::JoinHandle<std::io::Result<()>>,
    rooms: Rooms,
    _announcement: Announcement,
}

impl Running {
    /// Opens the folder, starts the rooms and answers.
    pub(crate) async fn start(config: &Config, roles: Roles) -> anyhow::Result<Running> {
        let open = Folder::new(&config.data.folder).open()?;
        let operator = open.operator_key_or_create()?;
        let listener = TcpListener::bind(config.http.listen).await.with_context(|| {
            format!("cannot listen on {}; choose another address with --listen", config.http.listen)
        })?;
        let url = format!("http://{}", listener.local_addr()?);
        let rooms = Rooms::open(config, open, roles).await?;
        let announcement = rooms.announce(roles.name, &url)?;
        let shutdown = CancellationToken::new();
        rooms.spawn_helpers(&shutdown);
        if roles.worker {
            rooms.spawn_worker(config, &shutdown);
        }
        let server =
            tokio::spawn(web::serve(rooms.router(), listener, shutdown.clone(), config.http.drain()));
        Ok(Running { url, operator, shutdown, server, rooms, _announcement: announcement })
    }

    /// Lets the worker begin in a process that was started without it.
    pub(crate) fn begin_work(&self, config: &Config) {
        self.rooms.spawn_worker(config, &self.shutdown);
    }

    /// Waits until everything accepted so far is stored and told to the ledger.
    pub(crate) async fn drained(&self) {
        self.rooms.drained().await;
    }

    /// Resolves when the process must end, with the reason.
    pub(crate) async fn fatal(&self) -> String {
        self.rooms.fatal().await
    }

    /// Lets running requests end, then closes the rooms.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.cancel();
        self.server.await.context("the server's task ended badly")??;
        self.rooms.close().await
    }
}

pub(crate) async fn rooms(config: &Config, roles: Roles) -> anyhow::Result<Outcome> {
    let running = Running::start(config, roles).await?;
    tracing::info!(role = roles.name, url = %running.url, data = %config.data.folder.display(), "serving");
    tokio::select! {
        () = asked_to_end() => {}
        reason = running.fatal() => {
            // What was acknowledged is on the disk; what is not known to be there must not be acknowledged.
            anyhow::bail!("the journal cannot promise durability any more: {reason}; the process ends so that nothing false is acknowledged");
        }
    }
    tracing::info!("ending: running requests may finish");
    running.stop().await?;
    Ok(Outcome::Done)
}

/// SIGINT or SIGTERM.
pub(crate) async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        tracing::error!("cannot listen for signals; end the process with kill -9");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

pub(crate) async fn engine(config: &Config) -> anyhow::Result<Outcome> {
    let open = Folder::new(&config.data.folder).open()?;
    let listen = config.engine.listen()?.context("set engine.listen (or --listen) to a loopback address")?;
    let engine = crate::roles::open_engine(config, &open).await?;
    let server = crate::roles::serve_engine(config, &engine, listen).await?;
    let url = format!("http://{}", server.local_addr());
    let _announcement = open.announce("engine", &url)?;
    tracing::info!(%url, version = engine.version(), "the engine answers");
    asked_to_end().await;
    server.shutdown().await;
    engine.close().await?;
    Ok(Outcome::Done)
}

pub(crate) async fn sandbox(config: &Config) -> anyhow::Result<Outcome> {
    let open = Folder::new(&config.data.folder).open()?;
    let server =
        crate::roles::start_sandbox(&open, config.sandbox.listen, crate::roles::STRIPES_GRACE_SECONDS)
            .await?;
    let url = format!("http://{}", server.local_addr());
    let _announcement = open.announce("stripe-sandbox", &url)?;
    print::progress(&format!(
        "the Stripe sandbox answers at {url}; any key that begins with sk_test_ is taken"
    ));
    asked_to_end().await;
    server.shutdown().await;
    Ok(Outcome::Done)
}

pub(crate) async fn docs_provider(folder: &Path) -> anyhow::Result<Outcome> {
    let provider = host_core::providers::DocsProvider::open(folder)
        .with_context(|| format!("cannot read the documents in {}", folder.display()))?;
    host_core::serve_standard_streams(&provider).await?;
    Ok(Outcome::Done)
}
