//! In which of the customer's billing periods a piece of usage is billed.

use usage::Timestamp;

/// The payment service takes usage at most 35 days old. One day is kept for waiting.
const BACK_US: i64 = 34 * 86_400_000_000;

/// A period of one subscription item, as it was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BillPeriod {
    pub start: Timestamp,
    pub end: Timestamp,
    /// Its placements are fixed: nothing is added.
    pub closed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Billable {
    Own(BillPeriod),
    /// Marked: its own period can no longer be billed.
    Carried(BillPeriod),
    /// Something has to happen first; visible until it does.
    Waits(&'static str),
    /// The subscription ended and there is no later period: nothing will bill it unless a person acts.
    Unbillable(&'static str),
}

/// A piece is cut at the boundaries of periods, so its start says which one it is in.
pub(crate) fn bill_period(
    piece_start: Timestamp,
    piece_end: Timestamp,
    periods: &[BillPeriod],
    live: bool,
    now: Timestamp,
) -> Billable {
    let fresh = |at: Timestamp| now.micros_since(at) <= i128::from(BACK_US);
    let own = periods.iter().find(|period| period.start <= piece_start && piece_end <= period.end);
    if let Some(own) = own
        && !own.closed
        && fresh(piece_start)
    {
        return Billable::Own(own.clone());
    }
    let later = periods
        .iter()
        .filter(|period| !period.closed && period.start <= now && fresh(period.end))
        // Its own when it is too old for its own minutes; one that it overlaps, sealed before that period was known; else what follows.
        .filter(|period| period.end > piece_start)
        .min_by_key(|period| period.start);
    match later {
        Some(period) => Billable::Carried(period.clone()),
        None if periods.is_empty() => Billable::Waits("no_subscription"),
        None if live => Billable::Waits("no_open_period"),
        None => Billable::Unbillable("subscription_ended"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000;

    fn day(day: i64) -> Timestamp {
        Timestamp::from_micros(day * DAY)
    }

    fn period(start: i64, end: i64, closed: bool) -> BillPeriod {
        BillPeriod { start: day(start), end: day(end), closed }
    }

    #[test]
    fn a_piece_over_a_boundary_is_carried_into_what_it_overlaps() {
        let (half, quarter) = (Timestamp::from_micros(DAY * 10 + DAY / 2), day(11));
        let began = BillPeriod { start: half, end: day(40), closed: false };
        let found = bill_period(day(10), quarter, std::slice::from_ref(&began), true, day(12));
        assert_eq!(found, Billable::Carried(began.clone()));
        let ended = BillPeriod { start: day(0), end: half, closed: true };
        assert_eq!(
            bill_period(day(10), quarter, &[ended, began.clone()], true, day(12)),
            Billable::Carried(began)
        );
    }

    #[test]
    fn usage_is_billed_in_its_own_period_or_marked_in_the_next_or_waits() {
        let (first, second) = (period(0, 30, false), period(30, 60, false));
        let closed = period(0, 30, true);
        let table = [
            ("own", 10, vec![first.clone()], true, 11, Billable::Own(first.clone())),
            (
                "own, while the next runs",
                10,
                vec![first.clone(), second.clone()],
                true,
                31,
                Billable::Own(first.clone()),
            ),
            ("late", 10, vec![closed.clone(), second.clone()], true, 31, Billable::Carried(second.clone())),
            ("before the first", -2, vec![first.clone()], true, 11, Billable::Carried(first.clone())),
            (
                "in none, before an open one",
                25,
                vec![period(26, 60, false)],
                true,
                31,
                Billable::Carried(period(26, 60, false)),
            ),
            (
                "after the last",
                31,
                vec![first.clone()],
                false,
                33,
                Billable::Unbillable("subscription_ended"),
            ),
            (
                "closed, the next is not read yet",
                10,
                vec![closed.clone()],
                true,
                30,
                Billable::Waits("no_open_period"),
            ),
            ("closed and ended", 10, vec![closed], false, 31, Billable::Unbillable("subscription_ended")),
            ("never subscribed", 10, vec![], false, 11, Billable::Waits("no_subscription")),
            (
                "too old for its own long period",
                0,
                vec![period(0, 90, false)],
                true,
                40,
                Billable::Carried(period(0, 90, false)),
            ),
        ];
        for (name, piece, periods, live, now, expected) in table {
            assert_eq!(bill_period(day(piece), day(piece + 1), &periods, live, day(now)), expected, "{name}");
        }
    }
}
