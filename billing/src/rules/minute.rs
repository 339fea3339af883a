//! Which minute a placement gets.
//!
//! The payment service sums usage by whole minutes. A placement that has a minute of its own can therefore be asked for by itself, which is the only evidence
//! of it there is. Of a piece's whole minutes the first two thirds (0 to 39 of an hour) are for its own revisions, the rest (40 to 59) for
//! usage that is carried into it and for corrections. A piece without a whole minute has its boundary minute, one placement after the other.

use std::collections::BTreeSet;

use usage::Timestamp;

pub(crate) const MINUTE_US: i64 = 60_000_000;
const SECOND_US: i64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    Own,
    Carried,
}

/// Where a placement's usage is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The start of the minute that answers for it.
    pub minute: Timestamp,
    /// The time that the event carries: inside the minute and inside the piece.
    pub at: Timestamp,
    /// Others may be in the minute too: each waits until the ones before it are delivered.
    pub shared: bool,
}

/// The first minute of the zone that nobody has, not later than now.
pub(crate) fn allocate(
    piece_start: Timestamp,
    piece_end: Timestamp,
    zone: Zone,
    used: &BTreeSet<Timestamp>,
    now: Timestamp,
) -> Option<Place> {
    let first = ceil(piece_start.as_micros(), MINUTE_US)?;
    let whole = piece_end.as_micros().div_euclid(MINUTE_US).checked_sub(first)?;
    if whole <= 0 {
        return if zone == Zone::Own { boundary(piece_start, piece_end, now) } else { None };
    }
    let carried = whole / 3;
    let (from, to) = match zone {
        Zone::Own => (0, whole - carried),
        Zone::Carried => (whole - carried, whole),
    };
    (from..to)
        .filter_map(|index| first.checked_add(index)?.checked_mul(MINUTE_US))
        .map(Timestamp::from_micros)
        .take_while(|minute| *minute <= now)
        .find(|minute| !used.contains(minute))
        .map(|minute| Place { minute, at: minute, shared: false })
}

/// The minute that the boundary runs through, at the first whole second of the piece in it.
fn boundary(piece_start: Timestamp, piece_end: Timestamp, now: Timestamp) -> Option<Place> {
    let at = Timestamp::from_micros(ceil(piece_start.as_micros(), SECOND_US)?.checked_mul(SECOND_US)?);
    let minute = floor_minute(at);
    (at < piece_end && at <= now).then_some(Place { minute, at, shared: true })
}

pub(crate) fn floor_minute(at: Timestamp) -> Timestamp {
    Timestamp::from_micros(at.as_micros() - at.as_micros().rem_euclid(MINUTE_US))
}

/// The end of a minute.
pub(crate) fn minute_end(minute: Timestamp) -> Timestamp {
    Timestamp::from_micros(minute.as_micros().saturating_add(MINUTE_US))
}

fn ceil(value: i64, unit: i64) -> Option<i64> {
    let floor = value.div_euclid(unit);
    if value.rem_euclid(unit) == 0 { Some(floor) } else { floor.checked_add(1) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed parse is the failure")]
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(&format!("2026-11-30T{text}Z")).unwrap()
    }

    fn take_all(start: &str, end: &str, zone: Zone, now: &str) -> Vec<Place> {
        let mut used = BTreeSet::new();
        let mut taken = Vec::new();
        while let Some(place) = allocate(at(start), at(end), zone, &used, at(now)) {
            taken.push(place);
            if !used.insert(place.minute) {
                break;
            }
        }
        taken
    }

    #[test]
    fn an_hour_has_forty_minutes_of_its_own_and_twenty_for_what_is_carried() {
        let own = take_all("12:00:00", "13:00:00", Zone::Own, "14:00:00");
        assert_eq!((own.len(), own[0].minute, own[39].minute), (40, at("12:00:00"), at("12:39:00")));
        let carried = take_all("12:00:00", "13:00:00", Zone::Carried, "14:00:00");
        assert_eq!(
            (carried.len(), carried[0].minute, carried[19].minute),
            (20, at("12:40:00"), at("12:59:00"))
        );
        assert!(own.iter().chain(&carried).all(|place| !place.shared && place.at == place.minute));
    }

    #[test]
    fn a_piece_uses_only_minutes_that_lie_wholly_in_it() {
        for (start, end, own, carried) in [
            ("12:00:00", "12:30:30", 20, 10),
            ("12:30:30", "13:00:00", 20, 9),
            ("12:00:01", "12:02:59", 1, 0),
            ("12:00:00", "12:03:00", 2, 1),
            ("12:58:59", "13:00:00", 1, 0),
        ] {
            for (zone, expected) in [(Zone::Own, own), (Zone::Carried, carried)] {
                let taken = take_all(start, end, zone, "14:00:00");
                assert_eq!(taken.len(), expected, "{start} {end} {zone:?}");
                for place in taken {
                    assert!(place.at >= at(start) && minute_end(place.minute) <= at(end));
                }
            }
        }
    }

    #[test]
    fn a_piece_without_a_whole_minute_has_its_boundary_minute_which_others_share() {
        for (start, end, minute, second) in [
            ("12:00:00", "12:00:30", "12:00:00", "12:00:00"),
            ("12:59:30", "13:00:00", "12:59:00", "12:59:30"),
            ("12:00:40", "12:01:20", "12:00:00", "12:00:40"),
            ("12:00:10.5", "12:00:30", "12:00:00", "12:00:11"),
        ] {
            let place = allocate(at(start), at(end), Zone::Own, &BTreeSet::new(), at("14:00:00")).unwrap();
            assert_eq!(place, Place { minute: at(minute), at: at(second), shared: true }, "{start} {end}");
            assert_eq!(allocate(at(start), at(end), Zone::Carried, &BTreeSet::new(), at("14:00:00")), None);
        }
    }

    #[test]
    fn no_minute_is_later_than_now() {
        let taken = take_all("12:00:00", "13:00:00", Zone::Own, "12:02:30");
        assert_eq!(
            taken.iter().map(|place| place.minute).collect::<Vec<_>>(),
            [at("12:00:00"), at("12:01:00"), at("12:02:00")]
        );
        assert!(take_all("12:00:00", "13:00:00", Zone::Carried, "12:39:59").is_empty());
    }
}
