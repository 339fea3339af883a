//! The table of decisions: where an attempt stands, what is asked, what is answered.

use delegation::rules::{
    ATTEMPTS_MAX, AttemptId, Command, DelegationId, Digest, Ending, Event, Evidence, HoldId, Note, Open,
    Reference, Refusal, Release, Reserve, Resolution, Resolve, Settle, State, Unknown, decide, fold,
};
use usage::{CustomerId, PlatformId};

pub(crate) fn attempt(id: &str) -> AttemptId {
    AttemptId::parse(id).unwrap()
}

pub(crate) fn evidence(reference: &str) -> Evidence {
    Evidence { reference: Reference::parse(reference).unwrap(), digest: None }
}

pub(crate) fn open(limit_tokens: u64) -> Command {
    Command::Open(Open {
        platform: PlatformId::parse("reseller").unwrap(),
        delegation: DelegationId::parse("group").unwrap(),
        customer: CustomerId::parse("acme").unwrap(),
        limit_tokens,
    })
}

pub(crate) fn reserve(id: &str, tokens: u64) -> Command {
    Command::Reserve(Reserve { attempt: attempt(id), tokens })
}

pub(crate) fn unknown(id: &str, reason: &str) -> Command {
    Command::Unknown(Unknown { attempt: attempt(id), reason: Note::parse(reason).unwrap() })
}

pub(crate) fn settle(id: &str, tokens: u64, reference: &str) -> Command {
    Command::Settle(Settle { attempt: attempt(id), tokens, evidence: evidence(reference) })
}

pub(crate) fn release(id: &str, reference: &str) -> Command {
    Command::Release(Release { attempt: attempt(id), evidence: evidence(reference) })
}

pub(crate) fn resolve(id: &str, ending: Ending, reason: &str) -> Command {
    let resolution =
        Resolution { ending, decided_by: Note::parse("ana").unwrap(), reason: Note::parse(reason).unwrap() };
    Command::Resolve(Resolve { attempt: attempt(id), resolution })
}

/// Decides and adds; says whether something happened.
pub(crate) fn step(state: &mut State, command: &Command) -> Result<bool, Refusal> {
    let events = decide(state, command)?;
    for event in &events {
        *state = fold(state.take(), event).unwrap();
    }
    Ok(!events.is_empty())
}

fn state(commands: &[Command]) -> State {
    let mut state = None;
    for command in commands {
        assert_eq!(step(&mut state, command), Ok(true), "{command:?}");
    }
    state
}

/// What a refusal is, without its particulars.
fn kind(result: Result<bool, Refusal>) -> &'static str {
    match result {
        Ok(true) => "taken",
        Ok(false) => "repeat",
        Err(Refusal::NotOpened) => "not opened",
        Err(Refusal::NoAttempt(_)) => "no attempt",
        Err(Refusal::NotHeld(_)) => "not held",
        Err(Refusal::Zero { .. }) => "zero",
        Err(Refusal::OpenedOtherwise { .. } | Refusal::AnsweredOtherwise { .. }) => "otherwise",
        Err(Refusal::Ended { .. }) => "ended",
        Err(Refusal::Exhausted { .. }) => "exhausted",
        Err(Refusal::Closed) => "closed",
        Err(Refusal::Full) => "full",
    }
}

#[test]
fn each_command_is_answered_by_where_its_attempt_stands() {
    let commands = [
        reserve("a", 60),
        reserve("a", 61),
        unknown("a", "hung up"),
        unknown("a", "other reason"),
        settle("a", 50, "receipt"),
        settle("a", 51, "receipt"),
        settle("a", 50, "other receipt"),
        release("a", "receipt"),
        release("a", "other receipt"),
        resolve("a", Ending::Settled { tokens: 5 }, "asked the provider"),
        resolve("a", Ending::Released, "asked the provider"),
    ];
    #[rustfmt::skip]
    let rows: [(&str, Vec<Command>, [&str; 11]); 8] = [
        //                                       reserve: same  other        unknown: same   other        settle: same  other        evidence     release: same  other       resolve: same  other
        ("opened", vec![],                               ["taken", "taken", "no attempt", "no attempt", "no attempt", "no attempt", "no attempt", "no attempt", "no attempt", "no attempt", "no attempt"]),
        ("reserved", vec![reserve("a", 60)],             ["repeat", "otherwise", "taken", "taken", "taken", "taken", "taken", "taken", "taken", "not held", "not held"]),
        ("held", vec![reserve("a", 60), unknown("a", "hung up")],
                                                         ["repeat", "otherwise", "repeat", "otherwise", "taken", "taken", "taken", "taken", "taken", "taken", "taken"]),
        ("settled", vec![reserve("a", 60), settle("a", 50, "receipt")],
                                                         ["repeat", "otherwise", "ended", "ended", "repeat", "otherwise", "otherwise", "ended", "ended", "not held", "not held"]),
        ("released", vec![reserve("a", 60), release("a", "receipt")],
                                                         ["repeat", "otherwise", "ended", "ended", "ended", "ended", "ended", "repeat", "otherwise", "not held", "not held"]),
        ("held and settled", vec![reserve("a", 60), unknown("a", "hung up"), settle("a", 50, "receipt")],
                                                         ["repeat", "otherwise", "repeat", "otherwise", "repeat", "otherwise", "otherwise", "ended", "ended", "ended", "ended"]),
        ("resolved as settled", vec![reserve("a", 60), unknown("a", "hung up"), resolve("a", Ending::Settled { tokens: 5 }, "asked the provider")],
                                                         ["repeat", "otherwise", "repeat", "otherwise", "ended", "ended", "ended", "ended", "ended", "repeat", "otherwise"]),
        ("resolved as released", vec![reserve("a", 60), unknown("a", "hung up"), resolve("a", Ending::Released, "asked the provider")],
                                                         ["repeat", "otherwise", "repeat", "otherwise", "ended", "ended", "ended", "ended", "ended", "otherwise", "repeat"]),
    ];
    for (name, before, expected) in rows {
        let before = state(&[vec![open(100)], before].concat());
        for (command, expected) in commands.iter().zip(expected) {
            assert_eq!(kind(step(&mut before.clone(), command)), expected, "{name}: {command:?}");
        }
    }
    for command in &commands {
        assert_eq!(decide(&None, command), Err(Refusal::NotOpened), "{command:?}");
    }
}

#[test]
fn a_reservation_is_bound_by_what_is_left_to_the_last_token() {
    let mut budget = state(&[open(100), reserve("a", 60)]);
    assert_eq!(step(&mut budget, &reserve("b", 41)), Err(Refusal::Exhausted { asked: 41, available: 40 }));
    assert_eq!(step(&mut budget, &reserve("b", 40)), Ok(true));
    assert_eq!(step(&mut budget, &reserve("c", 1)), Err(Refusal::Exhausted { asked: 1, available: 0 }));
    assert_eq!(step(&mut budget, &settle("a", 59, "receipt")), Ok(true));
    assert_eq!(step(&mut budget, &reserve("c", 1)), Ok(true), "a refused attempt may be tried again");

    let mut largest = state(&[open(u64::MAX), reserve("a", u64::MAX)]);
    assert_eq!(kind(step(&mut largest, &reserve("b", u64::MAX))), "exhausted", "sums do not wrap");
    assert_eq!(kind(step(&mut None, &open(0))), "zero");
    assert_eq!(kind(step(&mut state(&[open(1)]), &reserve("a", 0))), "zero");
}

#[test]
fn a_budget_is_opened_once() {
    let mut budget = state(&[open(100), reserve("a", 1)]);
    assert_eq!(step(&mut budget, &open(100)), Ok(false));
    assert_eq!(kind(step(&mut budget, &open(101))), "otherwise");
}

#[test]
fn g11_an_unknown_use_stays_whole_until_evidence_or_a_person_says() {
    let mut budget = state(&[open(100), reserve("a", 100), unknown("a", "hung up")]);
    let held = budget.clone().unwrap();
    assert_eq!((held.totals().held, held.available()), (100, 0));
    assert_eq!(held.attempts[&attempt("a")].used(), None, "not known is not zero");
    assert_eq!(kind(step(&mut budget, &reserve("b", 1))), "exhausted");
    assert_eq!(step(&mut budget, &settle("a", 0, "the provider's log")), Ok(true), "a zero that is known");
    assert_eq!(budget.unwrap().available(), 100);
}

#[test]
fn what_used_more_than_was_reserved_is_told_as_it_is_and_closes_the_budget() {
    let mut budget =
        state(&[open(100), reserve("a", 10), reserve("b", 10), settle("a", u64::MAX, "receipt")]);
    let over = budget.clone().unwrap();
    assert_eq!(over.totals().settled, u128::from(u64::MAX));
    assert_eq!(over.overdrawn(), u128::from(u64::MAX) + 10 - 100);
    assert_eq!(over.available(), 0);
    assert_eq!(step(&mut budget, &reserve("c", 1)), Err(Refusal::Closed));
    assert_eq!(step(&mut budget, &reserve("b", 10)), Ok(false), "a repeat is answered");
    assert_eq!(step(&mut budget, &settle("b", u64::MAX, "receipt")), Ok(true), "what is open can end");

    let mut within = state(&[open(100), reserve("a", 10), settle("a", 11, "receipt")]);
    assert_eq!(step(&mut within, &reserve("b", 1)), Err(Refusal::Closed), "however much is left");
}

#[test]
fn a_full_budget_still_ends_its_attempts() {
    let mut budget = state(&[open(u64::MAX)]);
    for i in 0..ATTEMPTS_MAX {
        // Straight events: 4096 decisions would sum 4096 attempts each.
        let event = Event::Reserved { attempt: attempt(&i.to_string()), tokens: 1 };
        budget = fold(budget, &event).unwrap();
    }
    assert_eq!(step(&mut budget, &reserve("more", 1)), Err(Refusal::Full));
    assert_eq!(step(&mut budget, &unknown("7", "hung up")), Ok(true));
    assert_eq!(step(&mut budget, &resolve("7", Ending::Released, "asked")), Ok(true));
    assert_eq!(step(&mut budget, &reserve("more", 1)), Err(Refusal::Full));
}

#[test]
fn a_history_that_no_decision_made_is_noticed() {
    let opened = decide(&None, &open(100)).unwrap().remove(0);
    let reserved = Event::Reserved { attempt: attempt("a"), tokens: 1 };
    let settled = Event::Settled { attempt: attempt("a"), tokens: 1, evidence: evidence("receipt") };
    let held = Event::MarkedUnknown { attempt: attempt("a"), reason: Note::parse("hung up").unwrap() };
    let Command::Resolve(Resolve { resolution, .. }) = resolve("a", Ending::Released, "asked") else {
        panic!()
    };
    let resolved = Event::Resolved { attempt: attempt("a"), resolution };
    let histories = [
        vec![&reserved],
        vec![&opened, &opened],
        vec![&opened, &settled],
        vec![&opened, &reserved, &reserved],
        vec![&opened, &reserved, &settled, &settled],
        vec![&opened, &reserved, &settled, &held],
        vec![&opened, &reserved, &held, &held],
        vec![&opened, &reserved, &resolved],
    ];
    for history in histories {
        let folded = history.iter().try_fold(None, |state, event| fold(state, event));
        let corrupt = folded.expect_err(&format!("{history:?}"));
        assert_eq!(corrupt.seq, u64::try_from(history.len()).unwrap(), "{corrupt}");
    }
}

#[test]
fn identities_stand_in_addresses_as_they_are_and_join_without_doubt() {
    for good in ["a", "A9", "run:2026-11-30.a_b", &"x".repeat(128)] {
        let hold = HoldId {
            delegation: DelegationId::parse(good).unwrap(),
            attempt: AttemptId::parse(good).unwrap(),
        };
        assert_eq!(HoldId::parse(&hold.to_string()), Ok(hold));
    }
    for bad in ["", "-a", "a/b", "a~b", "a b", "é", "a\n", &"x".repeat(129)] {
        assert!(DelegationId::parse(bad).is_err(), "{bad:?}");
        assert!(AttemptId::parse(bad).is_err(), "{bad:?}");
    }
    for bad in ["", " ", "a\u{0}", "a\u{2028}", &"x".repeat(513)] {
        assert!(Note::parse(bad).is_err(), "{bad:?}");
    }
    let digest = format!("sha256:{}", "0f".repeat(32));
    assert!(Digest::parse(digest.clone()).is_ok());
    for bad in [digest.to_uppercase(), digest[1..].to_owned(), format!("{digest}0"), "sha256:".to_owned()] {
        assert!(Digest::parse(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn events_are_written_as_they_always_were() {
    // Stored for ever: a change here is a change to histories that exist.
    let Command::Resolve(Resolve { resolution, .. }) = resolve("a", Ending::Settled { tokens: 5 }, "asked")
    else {
        panic!()
    };
    let rows = [
        (
            decide(&None, &open(u64::MAX)).unwrap().remove(0),
            r#"{"kind":"opened","platform":"reseller","delegation":"group","customer":"acme","limit_tokens":18446744073709551615}"#,
        ),
        (
            Event::Reserved { attempt: attempt("a"), tokens: u64::MAX },
            r#"{"kind":"reserved","attempt":"a","tokens":18446744073709551615}"#,
        ),
        (
            Event::MarkedUnknown { attempt: attempt("a"), reason: Note::parse("hung up").unwrap() },
            r#"{"kind":"marked_unknown","attempt":"a","reason":"hung up"}"#,
        ),
        (
            Event::Settled { attempt: attempt("a"), tokens: 0, evidence: evidence("receipt") },
            r#"{"kind":"settled","attempt":"a","tokens":0,"evidence":{"reference":"receipt"}}"#,
        ),
        (
            Event::Released { attempt: attempt("a"), evidence: evidence("receipt") },
            r#"{"kind":"released","attempt":"a","evidence":{"reference":"receipt"}}"#,
        ),
        (
            Event::Resolved { attempt: attempt("a"), resolution },
            r#"{"kind":"resolved","attempt":"a","resolution":{"ending":{"settled":{"tokens":5}},"decided_by":"ana","reason":"asked"}}"#,
        ),
    ];
    for (event, text) in rows {
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
        assert_eq!(serde_json::from_str::<Event>(text).unwrap(), event);
    }
}
