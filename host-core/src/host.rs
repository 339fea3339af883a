use std::{any::Any, collections::BTreeMap, sync::Arc, time::Duration};

use contextgraph_types::{ContextQuery, ContextQueryResult};
use tokio::{sync::Semaphore, time::Instant};
use tokio_util::task::AbortOnDropHandle;
use usage::{LegOutcome, Limits, ProviderId};

use crate::{FanOut, LegRecord, Provider, ProviderError, Reason, audit, note::note};

/// What asks all providers at once and lets none of them harm the others.
#[derive(Clone)]
pub struct Host {
    providers: Arc<BTreeMap<ProviderId, Arc<dyn Provider>>>,
    deadline: Duration,
    places: Arc<Semaphore>,
}

/// Collects what a [`Host`] is made of.
pub struct HostBuilder {
    providers: Vec<Arc<dyn Provider>>,
    deadline: Duration,
    capacity: usize,
}

/// Why there is no such host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The second one would be billed, and allowed, as the first.
    #[error("two providers have the id {0}")]
    DuplicateProvider(ProviderId),
    #[error("{found} providers are more than the {max} that one report may hold")]
    TooManyProviders { found: usize, max: usize },
    #[error("the deadline and the capacity must be above zero")]
    Zero,
}

impl Host {
    pub fn builder() -> HostBuilder {
        HostBuilder { providers: Vec::new(), deadline: Duration::from_secs(5), capacity: 256 }
    }

    pub fn provider_ids(&self) -> impl Iterator<Item = &ProviderId> {
        self.providers.keys()
    }

    /// Asks every provider, each in a task of its own, and audits what comes back before the deadline.
    ///
    /// It returns at the deadline at the latest and cannot fail: a provider that errs, panics, lies or does not answer in time is a leg
    /// of the result. Dropping the future ends all calls. A provider that blocks its thread holds up the others only where the runtime
    /// has no thread left for them; its answer is rejected if it is late by the clock.
    pub async fn query_all(&self, query: &ContextQuery) -> FanOut {
        let start = Instant::now();
        let shared = Arc::new(query.clone());
        let calls: Vec<_> = self
            .providers
            .iter()
            .map(|(id, provider)| {
                let call = call(Arc::clone(provider), Arc::clone(&shared), Arc::clone(&self.places));
                // When it ended is noted by the call itself: this task may be held up by another provider's work.
                let timed = async move { (call.await, Instant::now()) };
                (id, AbortOnDropHandle::new(tokio::spawn(timed)))
            })
            .collect();
        let legs = calls.into_iter().map(|(id, call)| self.leg(id, query, start, call));
        FanOut::new(query.clone(), futures_util::future::join_all(legs).await, Vec::new())
    }

    async fn leg(
        &self,
        id: &ProviderId,
        query: &ContextQuery,
        start: Instant,
        call: AbortOnDropHandle<(Result<ContextQueryResult, CallError>, Instant)>,
    ) -> LegRecord {
        let end = start.checked_add(self.deadline);
        let answer = match end {
            Some(end) => tokio::time::timeout_at(end, call).await.ok(),
            None => Some(call.await),
        };
        let ended = match &answer {
            Some(Ok((_, ended))) => *ended,
            _ => Instant::now(),
        };
        let elapsed = ended.duration_since(start);
        let mut leg = LegRecord {
            provider_id: id.clone(),
            outcome: LegOutcome::Empty,
            reasons: Vec::new(),
            served: Vec::new(),
            rejected: Vec::new(),
            elapsed,
        };
        let (outcome, reason) = match answer {
            // A call that blocked its thread may be ready and yet too late.
            Some(Ok((Ok(_), _))) if elapsed > self.deadline => (LegOutcome::TimedOut, self.late()),
            None => (LegOutcome::TimedOut, self.late()),
            Some(Ok((Ok(answer), _))) => {
                let audited = audit::audit(id, query, answer.frames);
                leg.served = audited.served;
                leg.rejected = audited.rejected;
                return leg;
            }
            Some(Ok((Err(CallError::Egress), _))) => (
                LegOutcome::RefusedConsent,
                Reason::new(
                    "consent_missing",
                    "The provider lets data leave this machine, and nobody agreed to that.",
                ),
            ),
            Some(Ok((Err(CallError::Provider(error)), _))) => {
                (LegOutcome::Failed, Reason::new("provider_failed", note(&error.to_string())))
            }
            Some(Ok((Err(CallError::Closed), _))) => {
                (LegOutcome::Failed, Reason::new("host_closed", "The host takes no more calls."))
            }
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => (LegOutcome::Panicked, Reason::new("provider_panicked", says(panic.as_ref()))),
                Err(_) => (LegOutcome::Failed, Reason::new("call_ended", "The runtime ended the call.")),
            },
        };
        tracing::debug!(provider = %id, outcome = ?outcome, %reason, "a provider gave no answer");
        leg.outcome = outcome;
        leg.reasons.push(reason);
        leg
    }

    fn late(&self) -> Reason {
        Reason::new(
            "deadline_passed",
            format!("There was no answer within {} ms.", self.deadline.as_millis()),
        )
    }
}

enum CallError {
    /// Data would leave the machine without consent.
    Egress,
    Closed,
    Provider(ProviderError),
}

async fn call(
    provider: Arc<dyn Provider>,
    query: Arc<ContextQuery>,
    places: Arc<Semaphore>,
) -> Result<ContextQueryResult, CallError> {
    let _place = places.acquire().await.map_err(|_| CallError::Closed)?;
    let flow = provider.info().data_flow;
    // A declaration that contradicts itself (scopes off the machine without `egress`) counts as the worse of the two.
    if flow.egress || flow.off_machine_scopes().next().is_some() || !flow.scopes_consistent() {
        return Err(CallError::Egress);
    }
    provider.query(&query).await.map_err(CallError::Provider)
}

/// What a panic said, where it said something.
fn says(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    note(&text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default())
}

impl HostBuilder {
    pub fn provider(mut self, provider: impl Provider) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    pub fn shared_provider(mut self, provider: Arc<dyn Provider>) -> Self {
        self.providers.push(provider);
        self
    }

    /// How long a query may take; five seconds without.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How many calls to providers may be under way at once, over all queries of this host; 256 without. Waiting for a place counts
    /// towards the deadline.
    pub fn capacity(mut self, calls: usize) -> Self {
        self.capacity = calls;
        self
    }

    pub fn build(self) -> Result<Host, HostError> {
        if self.providers.len() > Limits::PROVIDERS {
            return Err(HostError::TooManyProviders { found: self.providers.len(), max: Limits::PROVIDERS });
        }
        if self.deadline.is_zero() || self.capacity == 0 {
            return Err(HostError::Zero);
        }
        let mut providers = BTreeMap::new();
        for provider in self.providers {
            let id = provider.id().clone();
            if providers.insert(id.clone(), provider).is_some() {
                return Err(HostError::DuplicateProvider(id));
            }
        }
        let places = Arc::new(Semaphore::new(self.capacity.min(Semaphore::MAX_PERMITS)));
        Ok(Host { providers: Arc::new(providers), deadline: self.deadline, places })
    }
}
