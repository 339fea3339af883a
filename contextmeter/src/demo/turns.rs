//! The agent's side: real queries to real providers, and the reports of what they cost.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use async_trait::async_trait;
use host_core::{
    Host, Provider, ProviderError, StdioOptions, StdioProvider,
    protocol::{ContextQuery, ContextQueryResult},
    providers::NotesProvider,
    question,
};
use usage::{CustomerId, ProviderId, RequestId, Timestamp, TurnId, TurnReport};

/// What the agents of the three customers ask. Each question is one turn.
pub(super) const QUESTIONS: [&str; 6] = [
    "which errors may be retried and with which key",
    "how is an hour sealed into statements",
    "how does a report become durable in the journal",
    "who decides a conflict between two reports",
    "how does a customer pay for context tokens",
    "what does an acknowledgement sign",
];

/// The question whose report comes late.
pub(super) const LATE_QUESTION: &str = "what happens to usage that arrives after the seal";
/// For the reader to post by hand.
pub(super) const NEXT_QUESTION: &str = "how are invoices guarded before they are final";

/// The whole path of the pages, which the child process is given.
pub(super) fn pages(docs: &Path) -> anyhow::Result<PathBuf> {
    let missing =
        || format!("there are no pages at {}; name a folder of Markdown pages with --docs", docs.display());
    let path = docs.canonicalize().with_context(missing)?;
    if path.is_dir() { Ok(path) } else { Err(anyhow::anyhow!(missing())) }
}

const BUDGET_TOKENS: u32 = 600;
const BUDGET_FRAMES: u32 = 8;

/// A host with three providers: a child process, one in memory, and one that lies about its budget.
pub(super) struct Agent {
    host: Host,
    rejected: BTreeMap<String, u64>,
}

impl Agent {
    pub(super) async fn start(docs: &Path) -> anyhow::Result<Agent> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let child = StdioOptions::new(program).arg("provider").arg("docs").arg(docs);
        let docs =
            StdioProvider::spawn(id("docs")?, child).await.context("cannot start the documents' provider")?;
        let host = Host::builder()
            .provider(docs)
            .provider(notes(id("notes")?))
            .provider(Understating { inner: notes(id("bargain")?) })
            .deadline(Duration::from_secs(10))
            .build()?;
        Ok(Agent { host, rejected: BTreeMap::new() })
    }

    /// Asks all providers and reports what the answer cost, accounted at `at`.
    pub(super) async fn turn(
        &mut self,
        customer: &str,
        request: &str,
        question_text: &str,
        at: Timestamp,
    ) -> anyhow::Result<TurnReport> {
        let fan_out = self.host.query_all(&question(question_text, BUDGET_TOKENS, BUDGET_FRAMES)).await;
        let report = fan_out.turn_report(
            CustomerId::parse(customer.to_owned())?,
            RequestId::parse(request.to_owned())?,
            TurnId::parse("1".to_owned())?,
            at,
        );
        for leg in &report.legs {
            if !leg.rejected.is_empty() {
                let frames = u64::try_from(leg.rejected.len())?;
                let why = format!("{}: {}", leg.provider_id, leg.reasons.join(", "));
                *self.rejected.entry(why).or_default() += frames;
            }
        }
        Ok(report)
    }

    /// What the audit kept off the bill, one line a reason.
    pub(super) fn rejected(&self) -> Vec<String> {
        self.rejected.iter().map(|(why, frames)| format!("{frames} frames of {why}")).collect()
    }
}

fn notes(id: ProviderId) -> NotesProvider {
    NotesProvider::new(id)
        .note("retries", "Retries", "An error that says retry same_key is sent again with the same key; the report counts once.")
        .note("seal", "Sealing", "An hour is sealed when its reports are in; what comes late becomes a revision of its statement.")
        .note("durable", "Durability", "A report is in the journal on disk before it is acknowledged, and then in the store.")
        .note("conflict", "Conflicts", "Two reports of one turn with other content are a conflict; a person decides it.")
        .note("price", "Prices", "A customer pays for context tokens by its metered price; the invoice is guarded before it is final.")
}

fn id(name: &str) -> anyhow::Result<ProviderId> {
    Ok(ProviderId::parse(name.to_owned())?)
}

/// Declares half of what its frames cost, to fit more of them into the budget. The host counts for itself.
struct Understating {
    inner: NotesProvider,
}

#[async_trait]
impl Provider for Understating {
    fn id(&self) -> &ProviderId {
        self.inner.id()
    }

    async fn query(&self, query: &ContextQuery) -> Result<ContextQueryResult, ProviderError> {
        let mut result = self.inner.query(query).await?;
        for frame in &mut result.frames {
            frame.token_cost /= 2;
        }
        Ok(result)
    }
}
