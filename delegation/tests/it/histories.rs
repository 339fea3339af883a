//! Random histories against an account that is kept another way: a plain list of what each attempt has taken.

use std::collections::BTreeMap;

use delegation::rules::{Command, Ending, Event, Phase, Refusal, State, decide, fold};
use proptest::prelude::*;

use crate::rules::{attempt, open, release, reserve, resolve, settle, unknown};

const LIMIT: u64 = 100;

fn command() -> impl Strategy<Value = Command> {
    let id = prop::sample::select(vec!["a", "b", "c", "d", "e"]);
    let tokens = prop_oneof![8 => 0..60_u64, 1 => Just(u64::MAX)];
    let word = prop::sample::select(vec!["one", "two"]);
    (id, tokens, word, 0..9_u8).prop_map(|(id, tokens, word, kind)| match kind {
        0..=2 => reserve(id, tokens),
        3 | 4 => settle(id, tokens, word),
        5 => release(id, word),
        6 => unknown(id, word),
        7 => resolve(id, Ending::Settled { tokens }, word),
        _ => resolve(id, Ending::Released, word),
    })
}

/// What an attempt has taken, by an auditor who knows nothing of budgets: his book is changed by what was accepted alone.
#[derive(Default)]
struct Auditor {
    /// Attempt: what it binds, and whether it has ended.
    book: BTreeMap<String, (u64, bool)>,
    overrun: u128,
}

impl Auditor {
    fn accepted(&mut self, command: &Command) {
        let Some(id) = command.attempt().map(ToString::to_string) else { return };
        let used = match command {
            Command::Reserve(asked) => {
                assert!(self.book.insert(id, (asked.tokens, false)).is_none(), "reserved twice");
                return;
            }
            Command::Open(_) | Command::Unknown(_) => return,
            Command::Settle(asked) => asked.tokens,
            Command::Release(_) => 0,
            Command::Resolve(asked) => match asked.resolution.ending {
                Ending::Settled { tokens } => tokens,
                Ending::Released => 0,
            },
        };
        let (binds, ended) = self.book.insert(id, (used, true)).expect("ended without a reservation");
        assert!(!ended, "ended twice");
        self.overrun += u128::from(used.saturating_sub(binds));
    }

    fn bound(&self) -> u128 {
        self.book.values().map(|(tokens, _)| u128::from(*tokens)).sum()
    }
}

proptest! {
    #[test]
    fn no_history_binds_more_than_the_limit(commands in prop::collection::vec(command(), 1..60)) {
        let mut state: State = None;
        let mut events: Vec<Event> = Vec::new();
        let mut auditor = Auditor::default();
        for command in std::iter::once(&open(LIMIT)).chain(&commands) {
            let before = state.clone();
            match decide(&state, command) {
                Ok(decided) => {
                    prop_assert!(decided.len() <= 1, "one decision is one record");
                    for event in decided {
                        state = fold(state, &event).unwrap();
                        events.push(event);
                        auditor.accepted(command);
                    }
                    // The same again: nothing happens, and the answer is of the same event.
                    prop_assert_eq!(decide(&state, command), Ok(Vec::new()), "{:?}", command);
                    let budget = state.as_ref().unwrap();
                    let seq = budget.answered_at(command).expect("an answer");
                    prop_assert!(seq >= 1 && seq <= budget.seq);
                }
                Err(Refusal::Exhausted { asked, available }) => {
                    let left = u128::from(LIMIT).saturating_sub(auditor.bound());
                    prop_assert_eq!(available, left);
                    prop_assert!(u128::from(asked) > left, "refused although it fits");
                }
                Err(_) => prop_assert_eq!(&state, &before),
            }

            let budget = state.as_ref().unwrap();
            let totals = budget.totals();
            prop_assert_eq!(totals.committed(), auditor.bound());
            prop_assert!(totals.committed() <= u128::from(LIMIT) + auditor.overrun, "more is bound than was allowed");
            prop_assert_eq!(budget.is_closed(), auditor.overrun > 0);
            if budget.overdrawn() == 0 {
                prop_assert_eq!(totals.committed() + budget.available(), u128::from(LIMIT));
            }

            // An attempt that was said to be unknown frees nothing by itself, and an end is an end.
            if let Some(before) = &before {
                for (id, attempt) in &before.attempts {
                    let after = &budget.attempts[id];
                    if attempt.phase() == Phase::Held && after.phase() == Phase::Held {
                        prop_assert_eq!(attempt.reserved, after.reserved);
                    }
                    if attempt.outcome.is_some() {
                        prop_assert_eq!(attempt, after);
                    }
                }
                if matches!(command, Command::Unknown(_)) {
                    prop_assert_eq!(before.available(), budget.available());
                    prop_assert_eq!(before.totals().committed(), totals.committed());
                }
            }
        }

        // The records alone give the same budget, read back from their text.
        let read: Vec<Event> = events
            .iter()
            .map(|event| serde_json::from_slice(&serde_json::to_vec(event).unwrap()).unwrap())
            .collect();
        prop_assert_eq!(&read, &events);
        let replayed = read.iter().try_fold(None, fold).unwrap();
        prop_assert_eq!(replayed, state);
    }

    #[test]
    fn g11_a_hold_ends_by_evidence_or_a_person_and_by_nothing_else(commands in prop::collection::vec(command(), 1..60)) {
        let mut state: State = None;
        for command in [open(LIMIT), reserve("held", 40), unknown("held", "hung up")] {
            for event in decide(&state, &command).unwrap() {
                state = fold(state, &event).unwrap();
            }
        }
        // Whatever happens to the others:
        for command in &commands {
            if let Ok(events) = decide(&state, command) {
                for event in events {
                    state = fold(state, &event).unwrap();
                }
            }
        }
        let budget = state.unwrap();
        let held = &budget.attempts[&attempt("held")];
        prop_assert_eq!((held.phase(), held.reserved, held.used()), (Phase::Held, 40, None));
        prop_assert!(budget.totals().held >= 40);
        prop_assert_eq!(budget.holds().filter(|hold| hold.id.attempt == attempt("held")).count(), 1);
    }
}
