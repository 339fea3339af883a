//! What becomes of a placement. Nothing is ever assumed: an outcome that is not known is `unknown` until the payment service's own sums tell.

use usage::Timestamp;

const HOUR_US: i64 = 3_600_000_000;
/// The service keeps identifiers for at least 24 hours; within this, the same again cannot count twice.
pub(crate) const RESEND_WITHIN_US: i64 = 20 * HOUR_US;
/// A sum may lag behind what was taken.
pub(crate) const EVIDENCE_AFTER_US: i64 = HOUR_US;
/// Two readings closer than this are one.
pub(crate) const READS_APART_US: i64 = 60_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum State {
    /// Written down, never tried.
    Planned,
    /// The attempt is written down; what follows may be cut off at any instant.
    Sending,
    Delivered,
    Unknown,
    /// By evidence nowhere: the next placement follows.
    Absent,
    /// The service will never take it and has not.
    Refused,
    /// The minute holds another amount: a person decides.
    IdentifierMismatch,
    /// Its period was closed before it was tried: one in the next period follows.
    Unsendable,
}

impl State {
    pub(crate) const ALL: [Self; 8] = [
        Self::Planned,
        Self::Sending,
        Self::Delivered,
        Self::Unknown,
        Self::Absent,
        Self::Refused,
        Self::IdentifierMismatch,
        Self::Unsendable,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Sending => "sending",
            Self::Delivered => "delivered",
            Self::Unknown => "unknown",
            Self::Absent => "absent",
            Self::Refused => "refused",
            Self::IdentifierMismatch => "identifier_mismatch",
            Self::Unsendable => "unsendable",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// At most one live placement of a part is in the world: the next is made only of a dead one.
    pub(crate) fn is_live(self) -> bool {
        match self {
            Self::Planned | Self::Sending | Self::Delivered | Self::Unknown | Self::IdentifierMismatch => {
                true
            }
            Self::Absent | Self::Refused | Self::Unsendable => false,
        }
    }
}

/// What a placement's minute holds, against what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Only what was there before this placement.
    Without,
    With,
    Other,
}

impl Reading {
    /// `before` is what the minute held when the placement was made: zero, unless the minute is shared.
    pub(crate) fn of(seen: u128, before: u128, amount: u64) -> Self {
        if seen == before {
            Self::Without
        } else if before.checked_add(u128::from(amount)) == Some(seen) {
            Self::With
        } else {
            Self::Other
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// About to send: written down before the bytes leave.
    Attempt,
    Taken,
    /// The service holds the identifier; this is what the minute shows.
    Exists(Reading),
    /// `in_doubt`: the outcome of an earlier attempt is not known, so that one may have been taken although this one was not.
    Refused {
        in_doubt: bool,
    },
    NotTaken {
        in_doubt: bool,
    },
    NoAnswer,
    /// The process that sent is gone.
    Abandoned,
    /// What the minute shows, read later.
    Read(Reading),
    /// The second reading without it, long enough after the last attempt.
    ReadWithoutTwice,
    PeriodClosed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} cannot happen to a placement that is {}", state.as_str())]
pub(crate) struct Impossible {
    pub state: State,
    pub event: Event,
}

/// The whole machine.
pub(crate) fn step(state: State, event: Event) -> Result<State, Impossible> {
    let next = match (state, event) {
        (State::Planned | State::Unknown, Event::Attempt) => State::Sending,
        (State::Planned, Event::PeriodClosed) => State::Unsendable,

        (State::Sending, Event::Taken | Event::Exists(Reading::With)) => State::Delivered,
        (State::Sending, Event::Exists(Reading::Without)) => State::Unknown,
        (State::Sending, Event::Exists(Reading::Other)) => State::IdentifierMismatch,
        (State::Sending, Event::Refused { in_doubt: false }) => State::Refused,
        (State::Sending, Event::NotTaken { in_doubt: false }) => State::Planned,
        (State::Sending, Event::Refused { in_doubt: true } | Event::NotTaken { in_doubt: true }) => {
            State::Unknown
        }
        (State::Sending, Event::NoAnswer | Event::Abandoned) => State::Unknown,

        (State::Unknown | State::Delivered, Event::Read(Reading::With)) => State::Delivered,
        // One reading without it says nothing yet: sums lag.
        (State::Unknown | State::Delivered, Event::Read(Reading::Without)) => state,
        (State::Unknown | State::Delivered, Event::Read(Reading::Other)) => State::IdentifierMismatch,
        (State::Unknown | State::Delivered, Event::ReadWithoutTwice) => State::Absent,
        // A person or the service itself put it right.
        (State::IdentifierMismatch, Event::Read(Reading::With)) => State::Delivered,
        (State::IdentifierMismatch, Event::Read(_)) => State::IdentifierMismatch,

        _ => return Err(Impossible { state, event }),
    };
    Ok(next)
}

/// What an unknown outcome asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    SendAgain,
    ReadTheMinute,
}

/// The same again is safe while the service still knows the identifier. Where it said that it has it, sending again would tell nothing new.
pub(crate) fn resolution(first_attempt: Timestamp, exists: bool, now: Timestamp) -> Resolution {
    if !exists && now.micros_since(first_attempt) < i128::from(RESEND_WITHIN_US) {
        Resolution::SendAgain
    } else {
        Resolution::ReadTheMinute
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The sum may still lag.
    TooEarly,
    /// Noted; a second reading decides.
    FirstReading,
    Proven,
}

/// Absent only after two equal readings, both an hour after the last attempt.
pub(crate) fn absence(last_attempt: Timestamp, first_without: Option<Timestamp>, now: Timestamp) -> Absence {
    if now.micros_since(last_attempt) < i128::from(EVIDENCE_AFTER_US) {
        return Absence::TooEarly;
    }
    match first_without.filter(|first| first.micros_since(last_attempt) >= i128::from(EVIDENCE_AFTER_US)) {
        Some(first) if now.micros_since(first) >= i128::from(READS_APART_US) => Absence::Proven,
        _ => Absence::FirstReading,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed parse is the failure")]
    use super::*;

    #[test]
    fn each_state_answers_each_event_as_the_table_says() {
        use Event as E;
        use Reading::{Other, With, Without};
        use State as S;
        let table = [
            (S::Planned, E::Attempt, Some(S::Sending)),
            (S::Planned, E::PeriodClosed, Some(S::Unsendable)),
            (S::Planned, E::Taken, None),
            (S::Planned, E::ReadWithoutTwice, None),
            (S::Sending, E::Attempt, None),
            (S::Sending, E::Taken, Some(S::Delivered)),
            (S::Sending, E::Exists(With), Some(S::Delivered)),
            (S::Sending, E::Exists(Without), Some(S::Unknown)),
            (S::Sending, E::Exists(Other), Some(S::IdentifierMismatch)),
            (S::Sending, E::Refused { in_doubt: false }, Some(S::Refused)),
            (S::Sending, E::Refused { in_doubt: true }, Some(S::Unknown)),
            (S::Sending, E::NotTaken { in_doubt: false }, Some(S::Planned)),
            (S::Sending, E::NotTaken { in_doubt: true }, Some(S::Unknown)),
            (S::Sending, E::NoAnswer, Some(S::Unknown)),
            (S::Sending, E::Abandoned, Some(S::Unknown)),
            (S::Sending, E::PeriodClosed, None),
            (S::Unknown, E::Attempt, Some(S::Sending)),
            (S::Unknown, E::Read(With), Some(S::Delivered)),
            (S::Unknown, E::Read(Without), Some(S::Unknown)),
            (S::Unknown, E::Read(Other), Some(S::IdentifierMismatch)),
            (S::Unknown, E::ReadWithoutTwice, Some(S::Absent)),
            (S::Unknown, E::PeriodClosed, None),
            (S::Delivered, E::Attempt, None),
            (S::Delivered, E::Read(With), Some(S::Delivered)),
            (S::Delivered, E::Read(Without), Some(S::Delivered)),
            (S::Delivered, E::Read(Other), Some(S::IdentifierMismatch)),
            (S::Delivered, E::ReadWithoutTwice, Some(S::Absent)),
            (S::IdentifierMismatch, E::Attempt, None),
            (S::IdentifierMismatch, E::Read(With), Some(S::Delivered)),
            (S::IdentifierMismatch, E::Read(Without), Some(S::IdentifierMismatch)),
            (S::Absent, E::Attempt, None),
            (S::Absent, E::Read(With), None),
            (S::Refused, E::Attempt, None),
            (S::Unsendable, E::Attempt, None),
        ];
        for (state, event, expected) in table {
            assert_eq!(step(state, event).ok(), expected, "{state:?} {event:?}");
        }
    }

    #[test]
    fn only_what_was_never_tried_or_is_unknown_is_ever_sent() {
        for state in State::ALL {
            let sends = step(state, Event::Attempt).is_ok();
            assert_eq!(sends, matches!(state, State::Planned | State::Unknown), "{state:?}");
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
    }

    #[test]
    fn a_minute_that_was_empty_before_tells_three_things_apart() {
        for (seen, before, amount, reading) in [
            (0, 0, 5, Reading::Without),
            (5, 0, 5, Reading::With),
            (4, 0, 5, Reading::Other),
            (10, 0, 5, Reading::Other),
            (7, 7, 5, Reading::Without),
            (12, 7, 5, Reading::With),
            (5, 7, 5, Reading::Other),
            (0, 7, 5, Reading::Other),
            (0, u128::MAX, 5, Reading::Other),
        ] {
            assert_eq!(Reading::of(seen, before, amount), reading, "{seen} {before} {amount}");
        }
    }

    #[test]
    fn an_unknown_outcome_is_sent_again_for_twenty_hours_and_then_read() {
        let at = |hours: i64| Timestamp::from_micros(hours * HOUR_US);
        assert_eq!(resolution(at(0), false, at(0)), Resolution::SendAgain);
        assert_eq!(resolution(at(0), false, at(19)), Resolution::SendAgain);
        assert_eq!(resolution(at(0), false, at(20)), Resolution::ReadTheMinute);
        assert_eq!(resolution(at(0), true, at(1)), Resolution::ReadTheMinute);
    }

    #[test]
    fn absence_needs_two_readings_an_hour_after_the_last_attempt() {
        let at = |minutes: i64| Timestamp::from_micros(minutes * 60_000_000);
        for (first, now, expected) in [
            (None, 59, Absence::TooEarly),
            (None, 60, Absence::FirstReading),
            (Some(30), 60, Absence::FirstReading),
            (Some(60), 60, Absence::FirstReading),
            (Some(60), 61, Absence::Proven),
            (Some(60), 9_000, Absence::Proven),
        ] {
            assert_eq!(absence(at(0), first.map(at), at(now)), expected, "{first:?} {now}");
        }
    }
}
