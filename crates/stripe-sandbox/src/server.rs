//! The sandbox on a socket.
//!
//! Its own accept loop, because a dropped connection is one of its answers.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tower::ServiceExt as _;

use crate::exchange::Dropped;
use crate::sandbox::Sandbox;
use crate::webhooks;

/// Without a request, time passes in steps of this.
const TICK: Duration = Duration::from_secs(1);

/// A listening sandbox. Dropping it leaves it running; [`Server::shutdown`] ends it.
pub struct Server {
    local_addr: SocketAddr,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Takes no new connection, answers what runs, and returns.
    pub async fn shutdown(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.accepting.await {
            tracing::error!(%error, "the sandbox's accept loop failed");
        }
    }
}

/// Serves the sandbox; port 0 takes a free one.
pub async fn serve(sandbox: Sandbox, listen: SocketAddr) -> io::Result<Server> {
    let listener = TcpListener::bind(listen).await?;
    let local_addr = listener.local_addr()?;
    let (stop, stopped) = watch::channel(false);
    let accepting = tokio::spawn(accept(listener, sandbox, stopped));
    Ok(Server { local_addr, stop, accepting })
}

async fn accept(listener: TcpListener, sandbox: Sandbox, stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let mut background = JoinSet::new();
    background.spawn(webhooks::run(sandbox.clone()));
    background.spawn(pass_time(sandbox.clone()));
    let stop_accepting = until_stopped(stopped.clone());
    tokio::pin!(stop_accepting);
    loop {
        tokio::select! {
            () = &mut stop_accepting => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => { connections.spawn(connection(stream, sandbox.clone(), stopped.clone())); }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Also when the server's owner is gone without a word: then nobody can stop it, and it runs on.
async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    if stopped.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn pass_time(sandbox: Sandbox) {
    let mut steps = tokio::time::interval(TICK);
    loop {
        steps.tick().await;
        sandbox.tick();
    }
}

async fn connection(stream: TcpStream, sandbox: Sandbox, stopped: watch::Receiver<bool>) {
    let router = sandbox.router();
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let router = router.clone();
        async move {
            let answer: Result<Response, Infallible> = router.oneshot(request.map(Body::new)).await;
            let Ok(answer) = answer;
            if answer.extensions().get::<Dropped>().is_some() {
                return Err(io::Error::other("the connection is dropped, as a fault asked"));
            }
            Ok(answer)
        }
    });
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // A client that goes away, or a connection dropped on purpose, is no event here.
        _ = connection.as_mut() => return,
        () = until_stopped(stopped) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
