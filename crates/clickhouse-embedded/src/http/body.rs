use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::sync::mpsc;
use tokio::time::Sleep;

use super::running::Watch;

/// Pieces in flight between a connection and its statement's thread.
const IN_FLIGHT: usize = 4;
/// How long a failed answer stays open for its last piece to leave before it is broken off.
const LAST_WORDS: Duration = Duration::from_millis(200);

enum Feed {
    Data(Bytes),
    /// The body is whole. Without it, it was cut.
    End,
}

/// A request's body on its way to the statement's thread.
pub(super) fn feed() -> (Feeder, Reader) {
    let (sender, receiver) = mpsc::channel(IN_FLIGHT);
    let reader = Reader { receiver, current: Bytes::new(), ended: false };
    (Feeder { sender }, reader)
}

pub(super) struct Feeder {
    sender: mpsc::Sender<Feed>,
}

impl Feeder {
    /// Hands the body over. When nobody reads any more it is read to its end, within `limit`.
    pub(super) async fn pump(self, mut body: Incoming, limit: u64) {
        let mut discarded: u64 = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return };
            let Ok(data) = frame.into_data() else { continue };
            if self.sender.is_closed() {
                discarded = discarded.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX));
                if discarded > limit {
                    return;
                }
                continue;
            }
            // A failure shows as closed at the next piece.
            let _ = self.sender.send(Feed::Data(data)).await;
        }
        let _ = self.sender.send(Feed::End).await;
    }
}

/// The thread's side: blocks for the next piece; a body that was cut is an error, never an end.
pub(super) struct Reader {
    receiver: mpsc::Receiver<Feed>,
    current: Bytes,
    ended: bool,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.ended {
            match self.receiver.blocking_recv() {
                Some(Feed::Data(data)) => self.current = data,
                Some(Feed::End) => self.ended = true,
                None => return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the body was cut off")),
            }
        }
        let count = buffer.len().min(self.current.len());
        if let Some(target) = buffer.get_mut(..count) {
            self.current.copy_to_slice(target);
        }
        Ok(count)
    }
}

pub(super) enum Piece {
    Data(Bytes),
    /// The statement failed half way: the bytes that say so.
    Failure(Bytes),
    End,
}

/// An answer's body.
pub(crate) struct Body {
    state: State,
    watch: Option<Watch>,
}

enum State {
    Whole(Bytes),
    Pieces(mpsc::Receiver<Piece>),
    Breaking(Pin<Box<Sleep>>),
    Done,
}

impl Body {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self { state: State::Whole(bytes), watch: None }
    }

    pub(super) fn pieces() -> (mpsc::Sender<Piece>, Self) {
        let (sender, receiver) = mpsc::channel(IN_FLIGHT);
        let body = Self { state: State::Pieces(receiver), watch: None };
        (sender, body)
    }

    /// Ends the statement if this body is dropped before its end.
    pub(super) fn watch(&mut self, mut watch: Watch) {
        if matches!(self.state, State::Pieces(_)) {
            self.watch = Some(watch);
        } else {
            watch.disarm();
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let body = &mut *self;
        let broken = || Poll::Ready(Some(Err(io::Error::other("the answer was broken off"))));
        let piece = match &mut body.state {
            State::Done => return Poll::Ready(None),
            State::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                body.state = State::Done;
                return Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))));
            }
            // A clean end would tell a client that knows nothing of trailing exceptions that it has all rows.
            State::Breaking(sleep) => {
                std::task::ready!(sleep.as_mut().poll(cx));
                body.state = State::Done;
                return broken();
            }
            State::Pieces(receiver) => std::task::ready!(receiver.poll_recv(cx)),
        };
        match piece {
            Some(Piece::Data(bytes)) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Some(Piece::Failure(bytes)) => {
                body.disarm();
                body.state = State::Breaking(Box::pin(tokio::time::sleep(LAST_WORDS)));
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Some(Piece::End) => {
                body.disarm();
                body.state = State::Done;
                Poll::Ready(None)
            }
            None => {
                body.state = State::Done;
                broken()
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Whole(bytes) => bytes.is_empty(),
            State::Done => true,
            State::Pieces(_) | State::Breaking(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Whole(bytes) => SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            _ => SizeHint::default(),
        }
    }
}

impl Body {
    fn disarm(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.disarm();
        }
    }
}
