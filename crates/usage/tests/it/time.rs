use proptest::prelude::*;
use usage::{Clock as _, Hour, ManualClock, Timestamp};

use crate::random;

fn micros(text: &str) -> Option<i64> {
    Timestamp::parse_rfc3339(text).ok().map(Timestamp::as_micros)
}

#[test]
fn times_are_read_as_the_grammar_has_them() {
    let rows = [
        ("1970-01-01T00:00:00Z", Some(0)),
        ("1970-01-01t00:00:00z", Some(0)),
        ("1970-01-01T02:00:00+02:00", Some(0)),
        ("1969-12-31T23:30:00-00:30", Some(0)),
        ("1970-01-01T00:00:00-00:00", Some(0)),
        ("1970-01-01T00:00:00.5Z", Some(500_000)),
        ("1970-01-01T00:00:00.000001Z", Some(1)),
        ("1970-01-01T00:00:00.0000019Z", Some(1)),
        ("1970-01-01T00:00:00.123456789Z", Some(123_456)),
        ("1969-12-31T23:59:59.9999999Z", Some(-1)),
        ("2024-02-29T00:00:00Z", Some(1_709_164_800_000_000)),
        ("9999-12-31T23:59:59.999999Z", Some(253_402_300_799_999_999)),
        ("0000-01-01T00:00:00Z", Some(-62_167_219_200_000_000)),
        ("9999-12-31T23:59:59-00:01", None),
        ("0000-01-01T00:00:59+00:01", None),
        ("1970-01-01T00:00:00.1234567890Z", None),
        ("1970-01-01T00:00:00.Z", None),
        ("1970-01-01T00:00:60Z", None),
        ("2016-12-31T23:59:60Z", None),
        ("1970-01-01T24:00:00Z", None),
        ("1970-01-01T00:60:00Z", None),
        ("2026-02-29T00:00:00Z", None),
        ("2026-02-30T00:00:00Z", None),
        ("2026-13-01T00:00:00Z", None),
        ("2026-00-01T00:00:00Z", None),
        ("2026-01-00T00:00:00Z", None),
        ("1970-01-01 00:00:00Z", None),
        ("1970-01-01T00:00:00", None),
        ("1970-01-01T00:00Z", None),
        ("1970-01-01", None),
        ("1970-01-01T00:00:00+0200", None),
        ("1970-01-01T00:00:00+24:00", None),
        ("1970-01-01T00:00:00+02:60", None),
        ("1970-01-01T00:00:00Z ", None),
        (" 1970-01-01T00:00:00Z", None),
        ("+1970-01-01T00:00:00Z", None),
        ("1970-01-01T00:00:00,5Z", None),
        ("1970-01-01T00:00:00Z[Europe/Berlin]", None),
        ("１970-01-01T00:00:00Z", None),
        ("last tuesday", None),
        ("", None),
    ];
    for (text, expected) in rows {
        assert_eq!(micros(text), expected, "{text}");
    }
}

#[test]
fn a_time_is_written_without_what_it_does_not_have() {
    for text in [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00.5Z",
        "2026-11-30T12:00:00.000001Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
    ] {
        assert_eq!(Timestamp::parse_rfc3339(text).unwrap().to_string(), text);
    }
    assert_eq!(Timestamp::MAX.to_string(), "@9223372036854775807");
}

#[test]
fn an_hour_is_half_open_so_each_instant_is_in_exactly_one() {
    let hour: Hour = "2026-11-30T12:00:00Z".parse().unwrap();
    let before_end = hour.end().checked_add_micros(-1).unwrap();
    assert!(hour.contains(hour.start()) && hour.contains(before_end) && !hour.contains(hour.end()));
    assert_eq!(Hour::of(hour.end()), hour.next());
    assert_eq!(hour.next().previous(), hour);
    assert_eq!(Hour::from_index(hour.index()), Some(hour));
    assert_eq!(Hour::of(Timestamp::from_micros(-1)).to_string(), "1969-12-31T23:00:00Z");
    assert!("2026-11-30T12:00:01Z".parse::<Hour>().is_err());
    assert_eq!(Hour::from_index(i64::MAX), None);
}

#[test]
fn a_clock_that_is_moved_is_moved_for_all_who_hold_it() {
    let clock = ManualClock::new(Timestamp::from_micros(5));
    let held = clock.clone();
    clock.advance_micros(2);
    assert_eq!(held.now().as_micros(), 7);
    clock.set(Timestamp::from_micros(1));
    assert_eq!(held.now().as_micros(), 1);
}

proptest! {
    #![proptest_config(random::config())]

    #[test]
    fn a_time_survives_its_text(micros in -62_167_219_200_000_000..253_402_300_800_000_000i64) {
        let at = Timestamp::from_micros(micros);
        prop_assert_eq!(Timestamp::parse_rfc3339(&at.to_string()), Ok(at));
        let text = serde_json::to_string(&at).unwrap();
        prop_assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), at);
    }

    #[test]
    fn no_text_and_no_instant_makes_time_panic(text in ".{0,40}", micros in any::<i64>()) {
        let _ = Timestamp::parse_rfc3339(&text);
        let at = Timestamp::from_micros(micros);
        let hour = Hour::of(at);
        prop_assert!(hour.start() <= at && at <= hour.end());
        let _ = (at.to_string(), hour.to_string(), hour.next(), hour.previous());
    }

    /// An independent reader of the same grammar agrees on every time that both accept.
    #[test]
    fn another_reader_agrees(text in "(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,9})?(Z|[+-][01][0-9]:[0-5][0-9])") {
        let theirs = text.parse::<jiff::Timestamp>().ok();
        match (micros(&text), theirs) {
            (Some(ours), Some(theirs)) => prop_assert_eq!(i128::from(ours), theirs.as_nanosecond().div_euclid(1000)),
            (Some(_), None) => prop_assert!(false, "{} is refused elsewhere", text),
            (None, _) => {}
        }
    }
}
