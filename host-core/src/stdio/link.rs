use std::{
    collections::{HashMap, HashSet},
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use contextgraph_types::{
    Capabilities, ContextQuery, ContextQueryResult, ErrorCode, PROTOCOL_VERSION, ProviderInfo,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::{mpsc, oneshot},
};
use tokio_util::task::AbortOnDropHandle;

use super::StdioOptions;
use crate::{
    ProviderError,
    note::note,
    wire::{LineReader, Message, same_family},
};

type Reply = Result<ContextQueryResult, ProviderError>;

/// Lines that wait to be written to a child that reads slowly. A query beyond them waits, within its deadline.
const LINES_WAITING_MAX: usize = 64;
/// Queries given up whose late replies are still expected. A child that owes more is stuck, and is replaced.
const FORGOTTEN_MAX: usize = 64;

/// One life of a child. Clones share it; the last one's drop kills the child.
#[derive(Clone)]
pub(super) struct Link(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    lines: mpsc::Sender<Vec<u8>>,
    info: ProviderInfo,
    capabilities: Capabilities,
    // The reader owns the child; ending these tasks kills it.
    _tasks: [AbortOnDropHandle<()>; 3],
}

#[derive(Default)]
struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    fault: Option<ProviderError>,
    next: u64,
    /// By correlation id; on a link without, there is at most one.
    waiting: HashMap<String, oneshot::Sender<Reply>>,
    forgotten: HashSet<String>,
    end: Option<tokio::task::AbortHandle>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the link for good: everything that waits is told why, and the child is killed.
    fn break_with(&self, fault: ProviderError) {
        let mut state = self.state();
        if state.fault.is_none() {
            state.fault = Some(fault.clone());
        }
        for (_, waiting) in state.waiting.drain() {
            // An exchange that was given up has nobody to tell.
            let _ = waiting.send(Err(fault.clone()));
        }
        if let Some(end) = state.end.take() {
            end.abort();
        }
    }
}

impl Link {
    pub(super) async fn start(options: &StdioOptions) -> Result<Self, ProviderError> {
        let down = |detail: String| ProviderError::Link { detail: note(&detail) };
        let mut command = Command::new(&options.program);
        command.args(&options.args).env_clear().kill_on_drop(true);
        command.envs(options.environment.iter().map(|(key, value)| (key, value)));
        if let Some(directory) = &options.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| down(format!("{} does not start: {error}", options.program.display())))?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(down("the child has no streams".to_owned()));
        };
        let stderr = AbortOnDropHandle::new(tokio::spawn(listen(stderr)));
        let mut lines = LineReader::new(stdout, options.line_bytes_max);
        let greeting = greet(&mut stdin, &mut lines);
        let (info, capabilities) =
            tokio::time::timeout(options.handshake_timeout, greeting).await.map_err(|_| {
                down(format!("no handshake within {} ms", options.handshake_timeout.as_millis()))
            })??;
        if !capabilities.correlation && lines.has_more() {
            return Err(ProviderError::Protocol { detail: "it answered before it was asked".to_owned() });
        }

        let shared = Arc::new(Shared::default());
        let (sender, receiver) = mpsc::channel(LINES_WAITING_MAX);
        let writer = tokio::spawn(write(stdin, receiver, Arc::clone(&shared)));
        let reader = tokio::spawn(read(child, lines, Arc::clone(&shared), capabilities.correlation));
        shared.state().end = Some(reader.abort_handle());
        let tasks = [stderr, AbortOnDropHandle::new(writer), AbortOnDropHandle::new(reader)];
        Ok(Self(Arc::new(Inner { shared, lines: sender, info, capabilities, _tasks: tasks })))
    }

    pub(super) fn info(&self) -> &ProviderInfo {
        &self.0.info
    }

    pub(super) fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    pub(super) fn fault(&self) -> Option<ProviderError> {
        self.0.shared.state().fault.clone()
    }

    /// Kills the child, since it answered what it was started for.
    pub(super) fn end(&self) {
        self.0.shared.break_with(ProviderError::Link { detail: "the child has done its work".to_owned() });
    }

    /// Asks. Without correlation, there may be only one query at a time.
    pub(super) async fn query(&self, query: &ContextQuery) -> Reply {
        let inner = &self.0;
        let correlated = inner.capabilities.correlation;
        // A place in the queue first: from here to the registration and the hand-over nothing waits, so that a query which is given up
        // was either never asked or is asked whole.
        let place = inner.lines.reserve().await.map_err(|_| self.down())?;
        let (sender, reply) = oneshot::channel();
        let id = {
            let mut state = inner.shared.state();
            if let Some(fault) = &state.fault {
                return Err(fault.clone());
            }
            state.next += 1;
            let id = format!("q{}", state.next);
            state.waiting.insert(id.clone(), sender);
            id
        };
        let given_up = GivenUp { shared: &inner.shared, id: &id, correlated };
        let message = Message::Query { id: correlated.then(|| id.clone()), query: query.clone() };
        match message.to_line() {
            Ok(line) => place.send(line),
            Err(error) => {
                inner.shared.state().waiting.remove(&id);
                return Err(ProviderError::Protocol {
                    detail: note(&format!("the query cannot be written: {error}")),
                });
            }
        }
        let reply = reply.await.unwrap_or_else(|_| Err(self.down()));
        drop(given_up); // it finds the query answered
        reply
    }

    fn down(&self) -> ProviderError {
        self.fault().unwrap_or_else(|| ProviderError::Link { detail: "the child has ended".to_owned() })
    }
}

/// Notices that a query's future was dropped before its reply came.
struct GivenUp<'a> {
    shared: &'a Shared,
    id: &'a str,
    correlated: bool,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if state.waiting.remove(self.id).is_none() {
            return;
        }
        if self.correlated && state.forgotten.len() < FORGOTTEN_MAX {
            state.forgotten.insert(self.id.to_owned());
            return;
        }
        drop(state);
        let detail = "a query was given up, and the child can answer no other one for certain".to_owned();
        self.shared.break_with(ProviderError::Link { detail });
    }
}

async fn greet(
    stdin: &mut ChildStdin,
    lines: &mut LineReader<ChildStdout>,
) -> Result<(ProviderInfo, Capabilities), ProviderError> {
    let broken = |detail: String| ProviderError::Protocol { detail: note(&detail) };
    let hello = Message::Handshake { protocol_version: PROTOCOL_VERSION.to_owned() };
    let hello = hello.to_line().map_err(|error| broken(error.to_string()))?;
    let down = |error: std::io::Error| ProviderError::Link {
        detail: note(&format!("the child does not listen: {error}")),
    };
    stdin.write_all(&hello).await.map_err(down)?;
    stdin.flush().await.map_err(down)?;
    let line =
        lines.next().await.map_err(|error| broken(error.to_string()))?.ok_or_else(|| {
            ProviderError::Link { detail: "the child ended before its handshake".to_owned() }
        })?;
    match Message::from_line(&line)
        .map_err(|error| broken(format!("its handshake is no message: {error}")))?
    {
        Message::HandshakeAck { protocol_version, provider, capabilities } => {
            if !same_family(&protocol_version, PROTOCOL_VERSION) {
                return Err(broken(format!("it speaks {protocol_version}, this host {PROTOCOL_VERSION}")));
            }
            if !provider.data_flow.scopes_consistent() {
                return Err(broken("its egress scopes contradict what it says of egress".to_owned()));
            }
            Ok((provider, capabilities))
        }
        Message::Error { code, message, .. } => Err(answered(code, &message)),
        other => Err(broken(format!("it answers the handshake with {}", other.name()))),
    }
}

fn answered(code: Option<ErrorCode>, message: &str) -> ProviderError {
    ProviderError::Answered { code: code.unwrap_or(ErrorCode::Internal), message: note(message) }
}

/// Writes whole lines. It is never stopped in the middle of one, except with the child.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Vec<u8>>, shared: Arc<Shared>) {
    while let Some(line) = lines.recv().await {
        let written = match stdin.write_all(&line).await {
            Ok(()) => stdin.flush().await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            let detail = note(&format!("the child does not listen: {error}"));
            return shared.break_with(ProviderError::Link { detail });
        }
    }
}

/// Takes replies to those who asked, until the first that nobody asked for. It owns the child, which ends with it.
async fn read(mut child: Child, mut lines: LineReader<ChildStdout>, shared: Arc<Shared>, correlated: bool) {
    let fault = loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => break ProviderError::Link { detail: "the child has ended".to_owned() },
            Err(error) => break ProviderError::Protocol { detail: note(&error.to_string()) },
        };
        let message = match Message::from_line(&line) {
            Ok(message) => message,
            Err(error) => {
                break ProviderError::Protocol { detail: note(&format!("a line is no message: {error}")) };
            }
        };
        let (id, reply) = match message {
            Message::Frames { id, result } => (id, Ok(result)),
            Message::Error { id, code, message } => (id, Err(answered(code, &message))),
            other => break ProviderError::Protocol { detail: format!("it sends {} unasked", other.name()) },
        };
        if let Err(fault) = deliver(&shared, correlated, id, reply) {
            break fault;
        }
    };
    // Killed and reaped before anybody is told, because to be told means to start another one.
    let _ = child.kill().await;
    shared.break_with(fault);
}

fn deliver(shared: &Shared, correlated: bool, id: Option<String>, reply: Reply) -> Result<(), ProviderError> {
    let unasked = || ProviderError::Protocol { detail: "it answers what was not asked".to_owned() };
    let mut state = shared.state();
    let key = match (correlated, id) {
        (true, Some(id)) => id,
        // An error without an id is about the link; there is nobody else to tell it to.
        (true, None) => return Err(reply.err().unwrap_or_else(unasked)),
        (false, None) => state.waiting.keys().next().cloned().ok_or_else(unasked)?,
        (false, Some(_)) => return Err(unasked()),
    };
    if state.forgotten.remove(&key) {
        return Ok(());
    }
    let waiting = state.waiting.remove(&key).ok_or_else(unasked)?;
    // Whoever asked may just have given up.
    let _ = waiting.send(reply);
    Ok(())
}

/// What the child complains about goes to the log, in bounded pieces.
async fn listen(mut stderr: ChildStderr) {
    let mut piece = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut piece).await {
        let text = String::from_utf8_lossy(piece.get(..read).unwrap_or_default());
        tracing::debug!(text = %note(&text), "a provider's standard error");
    }
}
