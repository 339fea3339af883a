//! Whether a command is taken. The same command again decides nothing and is answered as the first time.

use super::{
    Attempt, AttemptId, Budget, Command, DelegationId, Event, Open, Outcome, Phase, Release, Reserve,
    Resolve, Settle, State, Unknown,
};

/// Attempts of one budget. Each leaves room for its own ending: only new attempts are refused, what ends one never is.
pub const ATTEMPTS_MAX: usize = 4_096;

/// Why a command was not taken. Nothing of it is stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the budget was not opened")]
    NotOpened,
    #[error("the attempt {0} was not reserved")]
    NoAttempt(AttemptId),
    #[error("the attempt {0} is not held")]
    NotHeld(AttemptId),
    #[error("{member} is zero")]
    Zero { member: &'static str },
    #[error("the budget {delegation} was opened with other content")]
    OpenedOtherwise { delegation: DelegationId, first: Box<Event> },
    #[error("the attempt {attempt} was answered with other content")]
    AnsweredOtherwise { attempt: AttemptId, first: Box<Event> },
    #[error("the attempt {attempt} was {} before", phase.as_str())]
    Ended { attempt: AttemptId, phase: Phase },
    #[error("{asked} tokens are more than the {available} that are left")]
    Exhausted { asked: u64, available: u128 },
    #[error("an attempt used more than it had reserved")]
    Closed,
    #[error("the budget has {ATTEMPTS_MAX} attempts")]
    Full,
}

/// The events that a command causes; none when it is a repeat.
pub fn decide(state: &State, command: &Command) -> Result<Vec<Event>, Refusal> {
    match (state, command) {
        (None, Command::Open(open)) => open_first(open),
        (None, _) => Err(Refusal::NotOpened),
        (Some(budget), Command::Open(open)) => open_again(budget, open),
        (Some(budget), Command::Reserve(asked)) => reserve(budget, asked),
        (Some(budget), Command::Unknown(asked)) => unknown(budget.attempt(&asked.attempt)?, asked),
        (Some(budget), Command::Settle(asked)) => settle(budget.attempt(&asked.attempt)?, asked),
        (Some(budget), Command::Release(asked)) => release(budget.attempt(&asked.attempt)?, asked),
        (Some(budget), Command::Resolve(asked)) => resolve(budget.attempt(&asked.attempt)?, asked),
    }
}

fn open_first(open: &Open) -> Result<Vec<Event>, Refusal> {
    if open.limit_tokens == 0 {
        return Err(Refusal::Zero { member: "limit_tokens" });
    }
    Ok(vec![opened(&open.platform, &open.delegation, &open.customer, open.limit_tokens)])
}

fn open_again(budget: &Budget, open: &Open) -> Result<Vec<Event>, Refusal> {
    let first = opened(&budget.platform, &budget.delegation, &budget.customer, budget.limit_tokens);
    repeat_of(first, &opened(&open.platform, &open.delegation, &open.customer, open.limit_tokens))
        .map_err(|first| Refusal::OpenedOtherwise { delegation: budget.delegation.clone(), first })
}

fn opened(
    platform: &usage::PlatformId,
    delegation: &DelegationId,
    customer: &usage::CustomerId,
    limit_tokens: u64,
) -> Event {
    Event::Opened {
        platform: platform.clone(),
        delegation: delegation.clone(),
        customer: customer.clone(),
        limit_tokens,
    }
}

fn reserve(budget: &Budget, asked: &Reserve) -> Result<Vec<Event>, Refusal> {
    let event = Event::Reserved { attempt: asked.attempt.clone(), tokens: asked.tokens };
    if let Some(attempt) = budget.attempts.get(&asked.attempt) {
        let first = Event::Reserved { attempt: asked.attempt.clone(), tokens: attempt.reserved };
        return repeated(&asked.attempt, first, &event);
    }
    if asked.tokens == 0 {
        return Err(Refusal::Zero { member: "tokens" });
    }
    if budget.is_closed() {
        return Err(Refusal::Closed);
    }
    if budget.attempts.len() >= ATTEMPTS_MAX {
        return Err(Refusal::Full);
    }
    let available = budget.available();
    if u128::from(asked.tokens) > available {
        return Err(Refusal::Exhausted { asked: asked.tokens, available });
    }
    Ok(vec![event])
}

fn unknown(attempt: &Attempt, asked: &Unknown) -> Result<Vec<Event>, Refusal> {
    let id = &asked.attempt;
    let event = Event::MarkedUnknown { attempt: id.clone(), reason: asked.reason.clone() };
    if let Some((_, reason)) = &attempt.unknown {
        let first = Event::MarkedUnknown { attempt: id.clone(), reason: reason.clone() };
        return repeated(id, first, &event);
    }
    match attempt.outcome {
        Some(_) => Err(ended(id, attempt)),
        None => Ok(vec![event]),
    }
}

fn settle(attempt: &Attempt, asked: &Settle) -> Result<Vec<Event>, Refusal> {
    let id = &asked.attempt;
    let event =
        Event::Settled { attempt: id.clone(), tokens: asked.tokens, evidence: asked.evidence.clone() };
    match &attempt.outcome {
        None => Ok(vec![event]),
        Some((_, Outcome::Settled { tokens, evidence })) => {
            let first = Event::Settled { attempt: id.clone(), tokens: *tokens, evidence: evidence.clone() };
            repeated(id, first, &event)
        }
        Some(_) => Err(ended(id, attempt)),
    }
}

fn release(attempt: &Attempt, asked: &Release) -> Result<Vec<Event>, Refusal> {
    let id = &asked.attempt;
    let event = Event::Released { attempt: id.clone(), evidence: asked.evidence.clone() };
    match &attempt.outcome {
        None => Ok(vec![event]),
        Some((_, Outcome::Released { evidence })) => {
            repeated(id, Event::Released { attempt: id.clone(), evidence: evidence.clone() }, &event)
        }
        Some(_) => Err(ended(id, attempt)),
    }
}

fn resolve(attempt: &Attempt, asked: &Resolve) -> Result<Vec<Event>, Refusal> {
    let id = &asked.attempt;
    let event = Event::Resolved { attempt: id.clone(), resolution: asked.resolution.clone() };
    match &attempt.outcome {
        // Only an attempt that was said to be unknown is a person's to decide; the others are settled by who made them.
        _ if attempt.unknown.is_none() => Err(Refusal::NotHeld(id.clone())),
        None => Ok(vec![event]),
        Some((_, Outcome::Resolved(resolution))) => {
            repeated(id, Event::Resolved { attempt: id.clone(), resolution: resolution.clone() }, &event)
        }
        Some(_) => Err(ended(id, attempt)),
    }
}

fn ended(id: &AttemptId, attempt: &Attempt) -> Refusal {
    Refusal::Ended { attempt: id.clone(), phase: attempt.phase() }
}

fn repeated(id: &AttemptId, first: Event, again: &Event) -> Result<Vec<Event>, Refusal> {
    repeat_of(first, again).map_err(|first| Refusal::AnsweredOtherwise { attempt: id.clone(), first })
}

/// Nothing more when both are the same, else the first one.
fn repeat_of(first: Event, again: &Event) -> Result<Vec<Event>, Box<Event>> {
    if first == *again { Ok(Vec::new()) } else { Err(Box::new(first)) }
}

impl Budget {
    fn attempt(&self, id: &AttemptId) -> Result<&Attempt, Refusal> {
        self.attempts.get(id).ok_or_else(|| Refusal::NoAttempt(id.clone()))
    }
}
