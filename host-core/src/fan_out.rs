use std::time::Duration;

use contextgraph_types::ContextQuery;
use usage::{
    ConsentReceipt, CustomerId, Leg, LegOutcome, Limits, ProviderId, ProviderUsage, RequestId, ServedFrame,
    Timestamp, TurnId, TurnReport, UsageReport,
};

pub use crate::audit::{RejectedFrame, Served};
use crate::{Reason, note::note};

/// What became of one provider's part.
#[derive(Debug, Clone, PartialEq)]
pub struct LegRecord {
    pub provider_id: ProviderId,
    pub outcome: LegOutcome,
    /// Why it is not all served; each code once.
    pub reasons: Vec<Reason>,
    /// What is billed, by identity.
    pub served: Vec<Served>,
    pub rejected: Vec<RejectedFrame>,
    pub elapsed: Duration,
}

/// All answers to one query, audited and packed into its budget: what is billed, and what became of the rest.
///
/// It holds the query that was asked, so no report can be made of it with another budget.
#[derive(Debug, Clone, PartialEq)]
pub struct FanOut {
    query: ContextQuery,
    legs: Vec<LegRecord>,
    consents: Vec<ConsentReceipt>,
}

impl FanOut {
    pub(crate) fn new(query: ContextQuery, mut legs: Vec<LegRecord>, consents: Vec<ConsentReceipt>) -> Self {
        legs.sort_by(|a, b| a.provider_id.cmp(&b.provider_id));
        pack(&query, &mut legs);
        for leg in &mut legs {
            leg.rejected.sort_by(|a, b| (&a.identity, &a.reason).cmp(&(&b.identity, &b.reason)));
            conclude(leg);
        }
        Self { query, legs, consents }
    }

    pub fn query(&self) -> &ContextQuery {
        &self.query
    }

    /// One for each provider, by its id.
    pub fn legs(&self) -> &[LegRecord] {
        &self.legs
    }

    /// What is billed over all providers; at most the budget.
    pub fn tokens(&self) -> u64 {
        self.legs.iter().map(tokens).sum()
    }

    pub fn frames(&self) -> usize {
        self.legs.iter().map(|leg| leg.served.len()).sum()
    }

    /// The protocol's usage report, accounted at `now`: every total is the sum of the frames below it, and within the budget.
    pub fn usage_report(&self, now: Timestamp) -> UsageReport {
        let providers: Vec<_> = self.legs.iter().map(provider_usage).collect();
        UsageReport {
            budget_requested: u64::from(self.query.max_tokens),
            budget_consumed: self.tokens(),
            as_of: now.to_string(),
            providers,
        }
    }

    /// The usage report with its keys, and with how each provider's part ended for those who answer questions later.
    pub fn turn_report(
        &self,
        customer_id: CustomerId,
        request_id: RequestId,
        turn_id: TurnId,
        now: Timestamp,
    ) -> TurnReport {
        let mut places = Limits::REJECTED;
        TurnReport {
            customer_id,
            request_id,
            turn_id,
            origin: None,
            report: self.usage_report(now),
            consents: self.consents.clone(),
            legs: self.legs.iter().map(|leg| report_leg(leg, &mut places)).collect(),
        }
    }
}

fn tokens(leg: &LegRecord) -> u64 {
    leg.served.iter().map(|one| u64::from(one.frame.token_cost)).sum()
}

fn provider_usage(leg: &LegRecord) -> ProviderUsage {
    ProviderUsage {
        provider_id: leg.provider_id.clone(),
        // The pack never serves more than a report may hold.
        frames_served: count(leg.served.len()),
        frames_rejected: count(leg.rejected.len()),
        token_cost: tokens(leg),
        served_frames: leg
            .served
            .iter()
            .map(|one| ServedFrame {
                frame: one.identity.clone(),
                token_cost: u64::from(one.frame.token_cost),
            })
            .collect(),
    }
}

/// A length as the protocol counts. A vector of frames of this many entries does not fit into memory.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn report_leg(leg: &LegRecord, places: &mut usize) -> Leg {
    let identities = leg.rejected.iter().filter(|frame| frame.identity.is_some()).count();
    let listed = identities.min(*places);
    *places -= listed;
    let mut reasons: Vec<_> = leg.reasons.iter().map(|reason| note(&reason.to_string())).collect();
    if listed < identities {
        reasons.insert(0, format!("list_cut: Only {listed} of {identities} rejected identities are listed."));
    }
    reasons.truncate(Limits::REASONS_PER_LEG);
    Leg {
        provider_id: leg.provider_id.clone(),
        outcome: leg.outcome,
        reasons,
        rejected: leg.rejected.iter().filter_map(|frame| frame.identity.clone()).take(listed).collect(),
        elapsed_micros: u64::try_from(leg.elapsed.as_micros()).unwrap_or(u64::MAX),
    }
}

/// Fits what passed the audit into the one budget that all providers share.
///
/// Round by round, each provider in the order of ids puts in the best frame that it has left (by its own score, then by identity);
/// one that does not fit is rejected and costs nobody else a place. A score is a provider's own word, so it orders a provider's
/// frames and never one provider against another. No frame is served beyond what a report may hold.
fn pack(query: &ContextQuery, legs: &mut [LegRecord]) {
    let mut tokens = u64::from(query.max_tokens);
    let mut places = usize::try_from(query.max_frames).unwrap_or(usize::MAX).min(Limits::FRAMES);
    let mut waiting: Vec<_> = legs
        .iter_mut()
        .map(|leg| {
            let mut offered = std::mem::take(&mut leg.served);
            // Reversed, so that the best is at the end and is popped first.
            offered.sort_by(|a, b| {
                a.frame.score.total_cmp(&b.frame.score).then_with(|| b.identity.cmp(&a.identity))
            });
            offered
        })
        .collect();
    while waiting.iter().any(|offered| !offered.is_empty()) {
        for (leg, offered) in legs.iter_mut().zip(&mut waiting) {
            let Some(one) = offered.pop() else { continue };
            let cost = u64::from(one.frame.token_cost);
            if places > 0 && cost <= tokens {
                places -= 1;
                tokens -= cost;
                leg.served.push(one);
            } else {
                let reason = Reason::new(
                    "budget_spent",
                    "The budget that all providers share had no room left for it.",
                );
                leg.rejected.push(RejectedFrame { identity: Some(one.identity), frame: one.frame, reason });
            }
        }
    }
    for leg in legs {
        leg.served.sort_by(|a, b| a.identity.cmp(&b.identity));
    }
}

/// The outcome of a provider that answered, and the reasons, one for each code.
fn conclude(leg: &mut LegRecord) {
    for frame in &leg.rejected {
        if !leg.reasons.iter().any(|reason| reason.code == frame.reason.code) {
            leg.reasons.push(frame.reason.clone());
        }
    }
    if leg.outcome == LegOutcome::Empty {
        leg.outcome = match (leg.served.is_empty(), leg.rejected.is_empty()) {
            (false, _) => LegOutcome::Served,
            (true, false) => LegOutcome::Rejected,
            (true, true) => LegOutcome::Empty,
        };
    }
}
