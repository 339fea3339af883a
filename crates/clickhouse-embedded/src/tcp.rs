use std::net::SocketAddr;
use std::sync::Arc;

use subtle::ConstantTimeEq;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::EngineError;
use crate::engine::Shared;
use crate::http::{self, Access};

/// Who may come in over TCP, and whether they may only read.
#[derive(Clone)]
pub struct TcpAccess {
    user: String,
    password: String,
    read_only: bool,
    open: bool,
}

impl TcpAccess {
    /// User and password, both asked of every request; the password may not be empty.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: password.into(), read_only: false, open: false }
    }

    /// Nothing is asked, as of a server whose `default` user has no password. Served on loopback addresses only.
    pub fn open_on_loopback() -> Self {
        Self { open: true, ..Self::new("default", "") }
    }

    /// Refuses whatever is not a SELECT, SHOW, DESCRIBE, EXISTS or EXPLAIN.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Compares both in constant time, so that the time of an answer tells nothing about either.
    pub(crate) fn admits(&self, user: &str, password: &str) -> bool {
        let same_user = self.user.as_bytes().ct_eq(user.as_bytes());
        let same_password = self.password.as_bytes().ct_eq(password.as_bytes());
        bool::from(same_user & same_password)
    }
}

impl std::fmt::Debug for TcpAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpAccess")
            .field("user", &self.user)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

/// The engine's HTTP interface on a TCP address, until `shutdown`.
pub struct TcpServer {
    address: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl TcpServer {
    pub(crate) async fn start(
        engine: Arc<Shared>,
        listen: SocketAddr,
        access: TcpAccess,
    ) -> Result<Self, EngineError> {
        if access.open && !listen.ip().is_loopback() {
            return Err(EngineError::OpenToTheNetwork { address: listen });
        }
        if !access.open && access.password.is_empty() {
            return Err(EngineError::EmptyPassword);
        }
        let failed = |source| EngineError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let stop = engine.stop.child_token();
        let tasks = TaskTracker::new();
        tasks.spawn(accept(engine, listener, Access::Tcp(Arc::new(access)), stop.clone(), tasks.clone()));
        Ok(Self { address, stop, tasks })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening, ends the connections (a statement under way is killed), and returns when all are gone.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn accept(
    engine: Arc<Shared>,
    listener: TcpListener,
    access: Access,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = next(&listener) => accepted,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                // Out of file descriptors, for one: wait for some to come back instead of spinning.
                tracing::warn!(%error, "the engine could not accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        let serve = http::serve(Arc::clone(&engine), access.clone(), stream);
        let stop = stop.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = serve => {}
            }
        });
    }
}

/// Without TCP_NODELAY an answer written in two pieces waits for the peer's delayed acknowledgement, some 40 ms.
async fn next(listener: &TcpListener) -> std::io::Result<TcpStream> {
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_accepted_connection_sends_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (_client, accepted) =
            tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), next(&listener));
        assert!(accepted.unwrap().nodelay().unwrap());
    }
}
