//! Time: the sandbox's own clock, and the calendar that periods are cut by.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// Unix seconds. `Standing` moves only when it is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BaseClock {
    Real,
    Standing(i64),
}

impl BaseClock {
    pub(crate) fn now(self) -> i64 {
        match self {
            Self::Standing(at) => at,
            Self::Real => real_now(),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the sandbox shares no crate with what it judges, so it has a clock of its own"
)]
fn real_now() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX)
}

/// The step from one period to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) unit: Unit,
    pub(crate) count: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Day,
    Week,
    Month,
    Year,
}

impl Interval {
    pub(crate) fn parse(unit: &str, count: i64) -> Option<Self> {
        let unit = match unit {
            "day" => Unit::Day,
            "week" => Unit::Week,
            "month" => Unit::Month,
            "year" => Unit::Year,
            _ => return None,
        };
        (1..=1095).contains(&count).then_some(Self { unit, count })
    }

    /// The `steps`-th boundary from the anchor. A day that a month lacks becomes the month's last one, counted from the anchor each time, so that
    /// an anchor on the 31st comes back to the 31st.
    pub(crate) fn boundary(self, anchor: i64, steps: i64) -> Option<i64> {
        let count = self.count.checked_mul(steps)?;
        let span = match self.unit {
            Unit::Day => Span::new().try_days(count).ok()?,
            Unit::Week => Span::new().try_weeks(count).ok()?,
            Unit::Month => Span::new().try_months(count).ok()?,
            Unit::Year => Span::new().try_years(count).ok()?,
        };
        seconds_of(civil(anchor)?.checked_add(span).ok()?)
    }

    /// The first boundary after `at`.
    pub(crate) fn next_after(self, anchor: i64, at: i64) -> Option<i64> {
        let mut steps = at.checked_sub(anchor)?.div_euclid(self.longest_seconds()).checked_sub(1)?;
        loop {
            let boundary = self.boundary(anchor, steps)?;
            if boundary > at {
                return Some(boundary);
            }
            steps += 1;
        }
    }

    /// No period of this interval is longer.
    pub(crate) fn longest_seconds(self) -> i64 {
        let days = match self.unit {
            Unit::Day => 1,
            Unit::Week => 7,
            Unit::Month => 31,
            Unit::Year => 366,
        };
        days * 86_400 * self.count
    }
}

pub(crate) fn civil(at: i64) -> Option<DateTime> {
    Some(TimeZone::UTC.to_datetime(Timestamp::from_second(at).ok()?))
}

pub(crate) fn seconds_of(at: DateTime) -> Option<i64> {
    Some(TimeZone::UTC.to_timestamp(at).ok()?.as_second())
}

/// RFC 3339, as the second version of the API writes times.
pub(crate) fn rfc3339(at: i64) -> String {
    Timestamp::from_second(at).map_or_else(|_| String::new(), |at| at.to_string())
}

pub(crate) fn parse_rfc3339(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_second)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed parse is the failure")]
    use super::*;

    fn at(text: &str) -> i64 {
        parse_rfc3339(text).unwrap()
    }

    #[test]
    fn a_month_without_the_day_ends_on_its_last_one_and_comes_back() {
        let month = Interval::parse("month", 1).unwrap();
        let anchor = at("2026-01-31T10:00:00Z");
        let mut now = anchor;
        let mut seen = Vec::new();
        for _ in 0..3 {
            now = month.next_after(anchor, now).unwrap();
            seen.push(rfc3339(now));
        }
        assert_eq!(seen, ["2026-02-28T10:00:00Z", "2026-03-31T10:00:00Z", "2026-04-30T10:00:00Z"]);
    }

    #[test]
    fn an_anchor_ahead_ends_the_first_period() {
        let month = Interval::parse("month", 1).unwrap();
        assert_eq!(
            month.next_after(at("2026-12-01T00:00:00Z"), at("2026-11-30T12:00:00Z")).unwrap(),
            at("2026-12-01T00:00:00Z")
        );
        let day = Interval::parse("day", 1).unwrap();
        assert_eq!(day.next_after(0, 86_400).unwrap(), 2 * 86_400);
    }
}
