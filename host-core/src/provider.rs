use async_trait::async_trait;
use contextgraph_types::{Capabilities, ContextQuery, ContextQueryResult, DataFlow, ErrorCode, ProviderInfo};
use usage::ProviderId;

/// A source of context frames. Two methods make one; the rest has the answers of a provider that only reads on this machine.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// The key under which the host bills it. It must not change.
    fn id(&self) -> &ProviderId;

    /// Answers within `max_tokens` and `max_frames`, each frame declaring the cost that [`crate::protocol::budget_tokens`] counts.
    /// Whatever does not hold to that is rejected by the host's audit and not billed.
    async fn query(&self, query: &ContextQuery) -> Result<ContextQueryResult, ProviderError>;

    /// Who it is and where data goes. One that lets data leave the machine is not queried without consent.
    fn info(&self) -> ProviderInfo {
        let data_flow = DataFlow { reads: true, writes: false, egress: false, egress_scopes: Vec::new() };
        ProviderInfo { name: self.id().to_string(), version: env!("CARGO_PKG_VERSION").to_owned(), data_flow }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
}

/// Why a provider gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// It says so itself.
    #[error("the provider answered with an error ({code}): {message}")]
    Answered { code: ErrorCode, message: String },
    /// There is no connection to it, or it broke in the middle.
    #[error("the link is down: {detail}")]
    Link { detail: String },
    /// It broke the protocol; the link was ended.
    #[error("the protocol was broken: {detail}")]
    Protocol { detail: String },
}

impl ProviderError {
    /// For providers that live in this process.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Answered { code: ErrorCode::Internal, message: message.into() }
    }
}

/// A query in plain words, for at most so many tokens and frames of each provider and of all together.
pub fn question(goal: impl Into<String>, max_tokens: u32, max_frames: u32) -> ContextQuery {
    ContextQuery {
        goal: goal.into(),
        query_text: None,
        embedding: None,
        kinds: Vec::new(),
        anchors: Vec::new(),
        max_frames,
        max_tokens,
        as_of: None,
        representation_preferences: Vec::new(),
    }
}
