mod link;

use std::{ffi::OsString, path::PathBuf, sync::PoisonError, time::Duration};

use async_trait::async_trait;
use contextgraph_types::{Capabilities, ContextQuery, ContextQueryResult, ProviderInfo};
use usage::ProviderId;

use crate::{Provider, ProviderError};
use link::Link;

/// How to start a provider that is a program, and what it may take.
#[derive(Debug, Clone)]
pub struct StdioOptions {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The child's whole environment. It inherits nothing: a host's environment holds keys that are no provider's business. So
    /// `program` is best a whole path.
    pub environment: Vec<(OsString, OsString)>,
    pub directory: Option<PathBuf>,
    /// From the start to the answered handshake; ten seconds without.
    pub handshake_timeout: Duration,
    /// The longest line that it may answer; one MiB without.
    pub line_bytes_max: usize,
    /// Lets a child without correlation answer more than one query. Should it ever answer one twice, its second answer can be taken for
    /// that to the next query: one customer's context in another's turn. Without, each query of such a child has a child of its own.
    pub reuse_without_correlation: bool,
}

impl StdioOptions {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            environment: Vec::new(),
            directory: None,
            handshake_timeout: Duration::from_secs(10),
            line_bytes_max: 1024 * 1024,
            reuse_without_correlation: false,
        }
    }

    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }
}

/// A provider that is a child process and speaks the protocol over its standard streams.
///
/// A reply reaches only the query that asked for it. A child that declares correlation is asked many things at once; one that does not
/// gets one query, unless [`StdioOptions::reuse_without_correlation`] says otherwise. A child that answers unasked or breaks the
/// protocol is killed, and the next query starts a new one. It is killed when this value is dropped; children of its own are not.
pub struct StdioProvider {
    id: ProviderId,
    options: StdioOptions,
    /// The living child, or the one that was last. Replaced under `starting`.
    link: std::sync::Mutex<Link>,
    starting: tokio::sync::Mutex<()>,
    /// Held by the query under way where there is no correlation.
    turn: tokio::sync::Mutex<()>,
    info: ProviderInfo,
    capabilities: Capabilities,
}

impl StdioProvider {
    /// Starts the child and shakes hands.
    pub async fn spawn(id: ProviderId, options: StdioOptions) -> Result<Self, ProviderError> {
        let link = Link::start(&options).await?;
        let (info, capabilities) = (link.info().clone(), link.capabilities().clone());
        let (starting, turn) = (tokio::sync::Mutex::default(), tokio::sync::Mutex::default());
        Ok(Self { id, options, link: std::sync::Mutex::new(link), starting, turn, info, capabilities })
    }

    fn current(&self) -> Link {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn living(&self) -> Result<Link, ProviderError> {
        let link = self.current();
        if link.fault().is_none() {
            return Ok(link);
        }
        let _starting = self.starting.lock().await;
        let link = self.current();
        if link.fault().is_none() {
            return Ok(link); // another query was here first
        }
        let new = Link::start(&self.options).await?;
        // Consent and billing were decided for what introduced itself at first.
        if *new.info() != self.info || *new.capabilities() != self.capabilities {
            return Err(ProviderError::Protocol {
                detail: "after a restart it introduces itself as something else".to_owned(),
            });
        }
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = new.clone();
        Ok(new)
    }
}

#[async_trait]
impl Provider for StdioProvider {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn info(&self) -> ProviderInfo {
        self.info.clone()
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    async fn query(&self, query: &ContextQuery) -> Result<ContextQueryResult, ProviderError> {
        if self.capabilities.correlation {
            return self.living().await?.query(query).await;
        }
        let _turn = self.turn.lock().await;
        let link = self.living().await?;
        let reply = link.query(query).await;
        if !self.options.reuse_without_correlation {
            link.end();
        }
        reply
    }
}
