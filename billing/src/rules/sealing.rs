//! When an hour is sealed: complete, at its deadline, or because a person asks; and when it is sealed again.

use usage::{Hour, Timestamp};

/// What is known of an hour when somebody wants to seal it.
#[derive(Debug, Clone)]
pub(crate) struct HourState<'a> {
    pub(crate) hour: Hour,
    pub(crate) now: Timestamp,
    pub(crate) lateness_us: i64,
    pub(crate) deadline_us: i64,
    /// Open journals and the instant up to which each has stored everything.
    pub(crate) open_journals: &'a [(u64, Timestamp)],
    /// The last run and how many there were.
    pub(crate) last_run: Option<(Timestamp, u64)>,
    /// A person asks: waits neither for late reports nor for silent journals.
    pub(crate) force: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Seal now, without these journals.
    Seal {
        silent: Vec<u64>,
    },
    Wait(&'static str),
}

/// Revisions of an hour at most; the minutes of a piece and a person's patience are finite.
pub(crate) const RUNS_MAX: u64 = 20;

pub(crate) fn decide(state: &HourState<'_>) -> Decision {
    if state.now < state.hour.end() {
        return Decision::Wait("hour_open");
    }
    if let Some((at, runs)) = state.last_run {
        if runs >= RUNS_MAX {
            return Decision::Wait("revisions_exhausted");
        }
        if !state.force && after(at, revision_pause_us(runs)).is_none_or(|due| state.now < due) {
            return Decision::Wait("revision_not_due");
        }
    }
    let due = after(state.hour.end(), state.lateness_us);
    let silent: Vec<u64> = state
        .open_journals
        .iter()
        .filter(|(_, through)| due.is_none_or(|due| *through < due))
        .map(|(epoch, _)| *epoch)
        .collect();
    let deadline = after(state.hour.end(), state.deadline_us);
    if silent.is_empty() || state.force || deadline.is_some_and(|deadline| state.now >= deadline) {
        return Decision::Seal { silent };
    }
    Decision::Wait(if due.is_some_and(|due| state.now >= due) {
        "journal_silent"
    } else {
        "late_reports_may_come"
    })
}

/// One minute after the first run, and twice as long after each further one.
fn revision_pause_us(runs: u64) -> i64 {
    let doublings = u32::try_from(runs.saturating_sub(1)).unwrap_or(u32::MAX);
    60_000_000_i64.checked_mul(1_i64.checked_shl(doublings).unwrap_or(i64::MAX)).unwrap_or(i64::MAX)
}

/// None: beyond all time, so never.
fn after(at: Timestamp, micros: i64) -> Option<Timestamp> {
    at.checked_add_micros(micros)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MINUTE: i64 = 60_000_000;

    #[test]
    fn an_hour_is_sealed_when_complete_or_at_its_deadline_or_on_request() {
        let hour = Hour::from_index(100).unwrap();
        let at = |minutes: i64| hour.end().checked_add_micros(minutes * MINUTE).unwrap();
        let seal = |silent: &[u64]| Decision::Seal { silent: silent.to_vec() };
        for (now, through, last_run, force, expected) in [
            (at(-1), at(20), None, true, Decision::Wait("hour_open")),
            (at(5), at(5), None, false, Decision::Wait("late_reports_may_come")),
            (at(20), at(14), None, false, Decision::Wait("journal_silent")),
            (at(20), at(15), None, false, seal(&[])),
            (at(20), at(14), None, true, seal(&[7])),
            (at(24 * 60), at(14), None, false, seal(&[7])),
            (at(20), at(20), Some((at(19), 2)), false, Decision::Wait("revision_not_due")),
            (at(21), at(21), Some((at(19), 2)), false, seal(&[])),
            (at(20), at(20), Some((at(19), 2)), true, seal(&[])),
            (at(90), at(90), Some((at(19), 20)), true, Decision::Wait("revisions_exhausted")),
        ] {
            let state = HourState {
                hour,
                now,
                lateness_us: 15 * MINUTE,
                deadline_us: 24 * 60 * MINUTE,
                open_journals: &[(7, through)],
                last_run,
                force,
            };
            assert_eq!(decide(&state), expected, "{state:?}");
        }
    }
}
