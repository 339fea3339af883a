mod folder;
mod options;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::http::Sessions;
use crate::library::connection::{Connection, Parameters};
use crate::library::{self, Functions};
use crate::{EngineError, Exception, MemConnector, TcpAccess, TcpServer};

pub(crate) use crate::library::threads::detach;
use folder::Folder;
pub use options::EngineOptions;

/// Statements that run at once; more wait.
const CONCURRENT: u32 = 32;

/// The ClickHouse engine, running in this process on one data folder. Clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

impl Engine {
    /// Starts the engine. A process runs one at a time; a folder is open in one process at a time.
    pub async fn open(options: EngineOptions) -> Result<Self, EngineError> {
        let opened = on_own_thread(move || Shared::open(options))?;
        let shared = opened.await.map_err(|_| EngineError::Closed)??;
        Ok(Self { shared: Arc::new(shared) })
    }

    /// ClickHouse's version, as `SELECT version()` says.
    pub fn version(&self) -> &str {
        &self.shared.version
    }

    /// The data folder.
    pub fn path(&self) -> &std::path::Path {
        self.shared.folder.path()
    }

    /// A connector for `clickhouse::Client::with_http_client`.
    pub fn connector(&self) -> MemConnector {
        MemConnector { engine: Arc::clone(&self.shared) }
    }

    /// Serves the HTTP interface on a TCP address as well, for other programs on the machine.
    pub async fn serve_tcp(&self, listen: SocketAddr, access: TcpAccess) -> Result<TcpServer, EngineError> {
        if self.shared.stop.is_cancelled() {
            return Err(EngineError::Closed);
        }
        TcpServer::start(Arc::clone(&self.shared), listen, access).await
    }

    /// Refuses new statements, lets those under way finish for `close_grace`, ends the rest, and shuts the engine down.
    /// When it returns, the folder may be opened again, by this process or another.
    pub async fn close(self) -> Result<(), EngineError> {
        let shared = self.shared;
        shared.closing.cancel();
        let all_idle = shared.slots.acquire_many(CONCURRENT);
        let idle = match tokio::time::timeout(shared.close_grace, all_idle).await {
            Ok(idle) => idle.ok(),
            Err(_) => {
                tracing::warn!("statements still run after the grace period and are ended");
                shared.stop.cancel();
                shared.slots.acquire_many(CONCURRENT).await.ok()
            }
        };
        shared.stop.cancel();
        // Nobody who waits for a slot gets one any more.
        shared.slots.close();
        drop(idle);
        let closing = Arc::clone(&shared);
        let closed = on_own_thread(move || closing.shut_down())?;
        closed.await.map_err(|_| EngineError::Closed)
    }
}

/// What every request shares.
pub(crate) struct Shared {
    functions: &'static Functions,
    folder: Folder,
    version: String,
    timezone: String,
    max_body_bytes: u64,
    close_grace: Duration,
    /// Keeps the engine up between requests: closing the last connection shuts it down, and the first one after that
    /// would start it again. Statements are over by then, because `close` takes all slots; what has
    /// to run without a slot runs on this one.
    anchor: Mutex<Option<Connection>>,
    pub(crate) sessions: Sessions,
    pub(crate) slots: Arc<Semaphore>,
    /// Set first: no new statement is taken.
    pub(crate) closing: CancellationToken,
    /// Set last: connections end.
    pub(crate) stop: CancellationToken,
}

/// The engine is one per process, whatever the folder.
static OPEN: Mutex<Option<PathBuf>> = Mutex::new(None);

impl Shared {
    fn open(options: EngineOptions) -> Result<Self, EngineError> {
        let library = options.library.clone().ok_or(EngineError::LibraryNotFound { searched: Vec::new() })?;
        let functions = library::load(&library)?;

        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = open.as_ref() {
            return Err(EngineError::AlreadyOpen { path: path.clone() });
        }
        let folder = Folder::lock(options.path.as_deref())?;
        let arguments = options.arguments(&folder)?;
        let failed = || EngineError::NotStarted { path: folder.path().to_owned() };
        let mut anchor = Connection::open(functions, &arguments).ok_or_else(failed)?;
        let facts = anchor
            .query(b"SELECT version(), serverTimezone()", "TSV", &Parameters::new())
            .map_err(EngineError::Statement)?;
        let facts = String::from_utf8_lossy(facts.as_ref()).trim().to_owned();
        let (version, timezone) = facts.split_once('\t').ok_or_else(failed)?;
        *open = Some(folder.path().to_owned());

        let slots = Semaphore::new(usize::try_from(CONCURRENT).unwrap_or(1));
        Ok(Self {
            functions,
            version: version.to_owned(),
            timezone: timezone.to_owned(),
            max_body_bytes: options.max_body_bytes,
            close_grace: options.close_grace,
            anchor: Mutex::new(Some(anchor)),
            sessions: Sessions::default(),
            slots: Arc::new(slots),
            closing: CancellationToken::new(),
            stop: CancellationToken::new(),
            folder,
        })
    }

    /// A connection of its own for one statement: settings and current database end with it.
    pub(crate) fn connect(&self) -> Option<Connection> {
        let path = library::argument("path", self.folder.path()).ok()?;
        // `implicit_select` would turn any expression into a query; a server's HTTP interface does not.
        Connection::open(self.functions, &[path, b"--implicit_select=0".to_vec()])
    }

    /// Runs a statement of the crate's own outside the slots, unless the engine is down.
    pub(crate) fn administer(&self, sql: &str) -> Result<(), Exception> {
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        let down = || Exception::new(236, "ABORTED", "The engine is shutting down");
        let connection = anchor.as_mut().ok_or_else(down)?;
        connection.query(sql.as_bytes(), "TSV", &Parameters::new()).map(drop)
    }

    pub(crate) fn timezone(&self) -> &str {
        &self.timezone
    }

    pub(crate) fn max_body_bytes(&self) -> u64 {
        self.max_body_bytes
    }

    fn shut_down(&self) {
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(anchor) = anchor.take() else { return };
        self.stop.cancel();
        self.sessions.clear();
        drop(anchor);
        self.folder.release();
        *OPEN.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Runs `work` on a thread with the engine's stack size.
pub(crate) fn on_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<oneshot::Receiver<T>, EngineError> {
    let (sender, receiver) = oneshot::channel();
    detach(move || {
        let _ = sender.send(work());
    })?;
    Ok(receiver)
}
