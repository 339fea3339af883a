use std::{future::Future, pin::Pin, sync::Arc};

use async_trait::async_trait;
use host_core::{
    FanOut, Host, LegRecord, Provider, ProviderError,
    protocol::{ContextFrame, ContextQuery, ContextQueryResult, FrameKind, budget_tokens},
};
use usage::{AuditedReport, CustomerId, ProviderId, RequestId, Timestamp, TurnId, TurnReport};

type Answer = Pin<Box<dyn Future<Output = Result<ContextQueryResult, ProviderError>> + Send>>;

/// A provider that does what the test says.
pub(crate) struct Scripted {
    id: ProviderId,
    answer: Arc<dyn Fn(ContextQuery) -> Answer + Send + Sync>,
}

impl Scripted {
    pub(crate) fn new<F>(id: &str, answer: impl Fn(ContextQuery) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ContextQueryResult, ProviderError>> + Send + 'static,
    {
        Self { id: provider_id(id), answer: Arc::new(move |query| Box::pin(answer(query))) }
    }

    /// Always serves these.
    pub(crate) fn serving(id: &str, frames: Vec<ContextFrame>) -> Self {
        Self::new(id, move |_| {
            let result = ContextQueryResult::unattested(frames.clone(), false, None);
            async move { Ok(result) }
        })
    }
}

#[async_trait]
impl Provider for Scripted {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    async fn query(&self, query: &ContextQuery) -> Result<ContextQueryResult, ProviderError> {
        (self.answer)(query.clone()).await
    }
}

pub(crate) fn provider_id(id: &str) -> ProviderId {
    ProviderId::parse(id).unwrap()
}

/// A frame that declares what its content costs.
pub(crate) fn frame(id: &str, content: &str) -> ContextFrame {
    let mut frame = ContextFrame::full(id, FrameKind::Doc, "A title", content, 0.5, budget_tokens(content));
    frame.citation_label = Some(format!("page {id}"));
    frame
}

/// An honest frame of so many tokens.
pub(crate) fn sized(id: &str, tokens: usize) -> ContextFrame {
    frame(id, &"word".repeat(tokens))
}

pub(crate) async fn ask(query: &ContextQuery, providers: Vec<Scripted>) -> FanOut {
    let host = providers.into_iter().fold(Host::builder(), |host, provider| host.provider(provider));
    host.build().unwrap().query_all(query).await
}

pub(crate) fn leg<'a>(answers: &'a FanOut, provider: &str) -> &'a LegRecord {
    answers.legs().iter().find(|leg| leg.provider_id.as_str() == provider).unwrap()
}

pub(crate) fn codes(leg: &LegRecord) -> Vec<&'static str> {
    leg.reasons.iter().map(|reason| reason.code).collect()
}

pub(crate) fn now() -> Timestamp {
    Timestamp::parse_rfc3339("2026-11-30T12:00:00Z").unwrap()
}

pub(crate) fn turn_report(answers: &FanOut) -> TurnReport {
    let (customer, request) = (CustomerId::parse("acme").unwrap(), RequestId::parse("req-81").unwrap());
    answers.turn_report(customer, request, TurnId::parse("7").unwrap(), now())
}

/// The report as the service would see it, which must be without fault.
pub(crate) fn audited(answers: &FanOut) -> AuditedReport {
    let report = TurnReport::from_json(&turn_report(answers).to_json()).unwrap();
    usage::audit(report, &usage::AuditPolicy::new(now())).unwrap()
}
