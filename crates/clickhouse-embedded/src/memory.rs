use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;

use crate::engine::Shared;
use crate::http::{self, Access};

/// Bytes in flight in each direction before the writer waits.
const BUFFER: usize = 256 * 1024;

/// Connects a `hyper-util` client to the engine inside this process. Any host in the address will do. What comes this
/// way needs no password: it is the process itself.
#[derive(Clone)]
pub struct MemConnector {
    pub(crate) engine: Arc<Shared>,
}

impl tower::Service<Uri> for MemConnector {
    type Response = MemConnection;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<MemConnection>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return std::future::ready(Err(io::Error::other("the engine's connector needs a tokio runtime")));
        };
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        runtime.spawn(http::serve(Arc::clone(&self.engine), Access::Full, ours));
        std::future::ready(Ok(MemConnection(TokioIo::new(theirs))))
    }
}

/// One connection of a [`MemConnector`].
pub struct MemConnection(TokioIo<DuplexStream>);

impl Connection for MemConnection {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for MemConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Write for MemConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
