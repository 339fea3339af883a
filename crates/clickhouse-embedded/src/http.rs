//! ClickHouse's HTTP interface over the engine's connections.
//!
//! A request runs on a thread of its own: the body comes to it through a bounded channel whose last item says that it
//! is whole, and the answer goes back through another. Either side noticing that the other is gone ends the statement.

mod answer;
mod body;
mod encoding;
mod multipart;
mod request;
mod running;
mod sessions;
mod work;

use std::convert::Infallible;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::engine::{Shared, detach};
use crate::{Exception, TcpAccess};

use answer::{failure, plain};
use body::{Body, feed};
use request::Ask;
use running::Running;
pub(crate) use sessions::Sessions;

/// What a connection may do.
#[derive(Clone)]
pub(crate) enum Access {
    /// The process itself.
    Full,
    Tcp(Arc<TcpAccess>),
}

impl Access {
    fn read_only(&self) -> bool {
        match self {
            Self::Full => false,
            Self::Tcp(access) => access.is_read_only(),
        }
    }
}

/// Serves one connection until its end or the engine's.
pub(crate) async fn serve<S>(engine: Arc<Shared>, access: Access, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stop = engine.stop.clone();
    let service = service_fn(move |request| {
        let (engine, access) = (Arc::clone(&engine), access.clone());
        async move { Ok::<_, Infallible>(respond(engine, access, request).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).keep_alive(true);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        () = stop.cancelled() => {}
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection to the engine ended early");
            }
        }
    }
}

async fn respond(engine: Arc<Shared>, access: Access, request: Request<Incoming>) -> Response<Body> {
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/ping" | "/replicas_status") => {
            return plain(StatusCode::OK, "Ok.\n");
        }
        (&Method::GET | &Method::HEAD, "/") if request.uri().query().is_none() => {
            return plain(StatusCode::OK, "Ok.\n");
        }
        (&Method::GET | &Method::POST, "/") => {}
        (&Method::GET | &Method::POST, _) => {
            return plain(StatusCode::NOT_FOUND, "There is no such path; ask at /\n");
        }
        _ => return plain(StatusCode::METHOD_NOT_ALLOWED, "Use GET or POST.\n"),
    }
    match run(engine, access, request).await {
        Ok(response) => response,
        Err(exception) => failure(&exception, None),
    }
}

async fn run(
    engine: Arc<Shared>,
    access: Access,
    request: Request<Incoming>,
) -> Result<Response<Body>, Exception> {
    let (head, body) = request.into_parts();
    let ask = Ask::read(&head, &access)?;
    if engine.closing.is_cancelled() {
        return Err(Exception::new(236, "ABORTED", "The engine is shutting down"));
    }
    let closed = |_| Exception::new(236, "ABORTED", "The engine is shutting down");
    // The session first: a request that waits for its session must not hold a slot that the session's holder needs.
    let session = match &ask.session {
        Some(session) => Some(engine.sessions.take(session).await?),
        None => None,
    };
    let slot = Arc::clone(&engine.slots).acquire_owned().await.map_err(closed)?;

    let (running, watch) = Running::start(Arc::clone(&engine));
    let (feeder, reader) = feed();
    let (reply, replied) = oneshot::channel();
    let limit = engine.max_body_bytes();
    detach(move || {
        work::run(&engine, ask, reader, session, &running, reply);
        running.finished();
        drop(slot);
    })
    .map_err(|error| Exception::new(439, "CANNOT_SCHEDULE_TASK", error))?;

    // Both at once: the body is taken to its end even when the answer is there early, because a client that still
    // writes may not see an answer before it is done.
    let ((), response) = tokio::join!(feeder.pump(body, limit), replied);
    let mut response = response
        .map_err(|_| Exception::new(49, "LOGICAL_ERROR", "The statement's thread ended without an answer"))?;
    response.body_mut().watch(watch);
    Ok(response)
}
