//! A budget as its events make it.

use std::collections::BTreeMap;

use usage::{CustomerId, PlatformId};

use super::{AttemptId, Command, DelegationId, Ending, Event, Evidence, HoldId, Note, Resolution};

/// A budget, or none before it was opened.
pub type State = Option<Budget>;

/// A budget and all of its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    pub platform: PlatformId,
    pub delegation: DelegationId,
    pub customer: CustomerId,
    pub limit_tokens: u64,
    pub attempts: BTreeMap<AttemptId, Attempt>,
    /// How many events made it; each event is known by its number, from 1.
    pub seq: u64,
}

/// One try at an effect. Each decision about it stands with the number of its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub reserved: u64,
    pub reserved_seq: u64,
    pub unknown: Option<(u64, Note)>,
    pub outcome: Option<(u64, Outcome)>,
}

/// How an attempt ended. This is immutable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Settled { tokens: u64, evidence: Evidence },
    Released { evidence: Evidence },
    Resolved(Resolution),
}

/// Where an attempt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Set aside; the effect may be on its way.
    Reserved,
    /// What it used is not known: set aside until evidence or a person says.
    Held,
    Settled,
    Released,
}

/// What a budget is bound by. A reservation counts whole until its attempt has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub reserved: u128,
    pub held: u128,
    pub settled: u128,
}

/// An attempt whose use is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub id: HoldId,
    pub tokens: u64,
    pub since_seq: u64,
    pub reason: Note,
}

/// A history that our rules cannot have written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} cannot follow: {reason}")]
pub struct Corrupt {
    pub seq: u64,
    pub reason: &'static str,
}

/// Adds one event. Refuses what could not have been decided, so that a damaged history is noticed and not counted.
pub fn fold(state: State, event: &Event) -> Result<State, Corrupt> {
    let seq = state.as_ref().map_or(1, |budget| budget.seq.saturating_add(1));
    let corrupt = |reason| Corrupt { seq, reason };
    let mut budget = match (state, event) {
        (None, Event::Opened { platform, delegation, customer, limit_tokens }) => {
            return Ok(Some(Budget {
                platform: platform.clone(),
                delegation: delegation.clone(),
                customer: customer.clone(),
                limit_tokens: *limit_tokens,
                attempts: BTreeMap::new(),
                seq,
            }));
        }
        (None, _) => return Err(corrupt("the budget was not opened")),
        (Some(_), Event::Opened { .. }) => return Err(corrupt("the budget was opened before")),
        (Some(budget), _) => budget,
    };
    match event {
        Event::Opened { .. } => {}
        Event::Reserved { attempt, tokens } => {
            let first = Attempt { reserved: *tokens, reserved_seq: seq, unknown: None, outcome: None };
            if budget.attempts.insert(attempt.clone(), first).is_some() {
                return Err(corrupt("the attempt was reserved before"));
            }
        }
        Event::MarkedUnknown { attempt, reason } => {
            let attempt = budget.open_attempt(attempt).map_err(corrupt)?;
            if attempt.unknown.replace((seq, reason.clone())).is_some() {
                return Err(corrupt("the attempt was held before"));
            }
        }
        Event::Settled { attempt, tokens, evidence } => {
            let outcome = Outcome::Settled { tokens: *tokens, evidence: evidence.clone() };
            budget.open_attempt(attempt).map_err(corrupt)?.outcome = Some((seq, outcome));
        }
        Event::Released { attempt, evidence } => {
            let outcome = Outcome::Released { evidence: evidence.clone() };
            budget.open_attempt(attempt).map_err(corrupt)?.outcome = Some((seq, outcome));
        }
        Event::Resolved { attempt, resolution } => {
            let attempt = budget.open_attempt(attempt).map_err(corrupt)?;
            if attempt.unknown.is_none() {
                return Err(corrupt("the attempt was not held"));
            }
            attempt.outcome = Some((seq, Outcome::Resolved(resolution.clone())));
        }
    }
    budget.seq = seq;
    Ok(Some(budget))
}

impl Budget {
    /// Summed anew from the attempts each time: there is no second account that could differ. 128 bits hold more 64-bit numbers than there can be.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for attempt in self.attempts.values() {
            match (attempt.phase(), attempt.used()) {
                (Phase::Reserved, _) => totals.reserved += u128::from(attempt.reserved),
                (Phase::Held, _) => totals.held += u128::from(attempt.reserved),
                (_, used) => totals.settled += u128::from(used.unwrap_or(0)),
            }
        }
        totals
    }

    /// What may still be reserved. Nothing when attempts used more than the limit: how much more says [`Budget::overdrawn`].
    pub fn available(&self) -> u128 {
        u128::from(self.limit_tokens).saturating_sub(self.totals().committed())
    }

    /// By how much the attempts used more than the limit.
    pub fn overdrawn(&self) -> u128 {
        self.totals().committed().saturating_sub(u128::from(self.limit_tokens))
    }

    /// Whether an attempt used more than it had reserved. Then nothing more is reserved: the reservations do not bind what happens.
    pub fn is_closed(&self) -> bool {
        self.attempts.values().any(|attempt| attempt.overrun() > 0)
    }

    /// The attempts whose use is not known, in order of their identity.
    pub fn holds(&self) -> impl Iterator<Item = Hold> {
        self.attempts.iter().filter_map(|(id, attempt)| match (&attempt.unknown, &attempt.outcome) {
            (Some((since_seq, reason)), None) => Some(Hold {
                id: HoldId { delegation: self.delegation.clone(), attempt: id.clone() },
                tokens: attempt.reserved,
                since_seq: *since_seq,
                reason: reason.clone(),
            }),
            _ => None,
        })
    }

    /// The event that answers a command, by its number: of this time or of the first time.
    pub fn answered_at(&self, command: &Command) -> Option<u64> {
        let of = |attempt: &AttemptId| self.attempts.get(attempt);
        match command {
            Command::Open(_) => Some(1),
            Command::Reserve(asked) => of(&asked.attempt).map(|attempt| attempt.reserved_seq),
            Command::Unknown(asked) => of(&asked.attempt)?.unknown.as_ref().map(|(seq, _)| *seq),
            Command::Settle(_) | Command::Release(_) | Command::Resolve(_) => {
                of(command.attempt()?)?.outcome.as_ref().map(|(seq, _)| *seq)
            }
        }
    }

    fn open_attempt(&mut self, id: &AttemptId) -> Result<&mut Attempt, &'static str> {
        let attempt = self.attempts.get_mut(id).ok_or("the attempt was not reserved")?;
        if attempt.outcome.is_some() { Err("the attempt had ended") } else { Ok(attempt) }
    }
}

impl Attempt {
    pub fn phase(&self) -> Phase {
        match (&self.outcome, &self.unknown) {
            (Some((_, Outcome::Settled { .. })), _) => Phase::Settled,
            (Some((_, Outcome::Released { .. })), _) => Phase::Released,
            (Some((_, Outcome::Resolved(resolution))), _) => match resolution.ending {
                Ending::Settled { .. } => Phase::Settled,
                Ending::Released => Phase::Released,
            },
            (None, Some(_)) => Phase::Held,
            (None, None) => Phase::Reserved,
        }
    }

    /// What it used; none while that is not known.
    pub fn used(&self) -> Option<u64> {
        match &self.outcome.as_ref()?.1 {
            Outcome::Settled { tokens, .. }
            | Outcome::Resolved(Resolution { ending: Ending::Settled { tokens }, .. }) => Some(*tokens),
            Outcome::Released { .. } | Outcome::Resolved(Resolution { ending: Ending::Released, .. }) => {
                Some(0)
            }
        }
    }

    /// By how much it used more than was reserved for it.
    pub fn overrun(&self) -> u64 {
        self.used().and_then(|used| used.checked_sub(self.reserved)).unwrap_or(0)
    }
}

impl Totals {
    pub fn committed(self) -> u128 {
        self.reserved + self.held + self.settled
    }
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Reserved => "reserved",
            Phase::Held => "held",
            Phase::Settled => "settled",
            Phase::Released => "released",
        }
    }
}
