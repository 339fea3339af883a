use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_HOUR: i64 = 3_600 * MICROS_PER_SECOND;

/// An instant: microseconds since 1970-01-01 UTC. The only time that is stored, hashed or compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Why a text is not an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 time: {reason}")]
pub struct TimeError {
    pub reason: &'static str,
}

impl Timestamp {
    pub const MIN: Self = Self(i64::MIN);
    pub const MAX: Self = Self(i64::MAX);

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// None when the instant is further away than 64 bits of microseconds reach.
    pub fn from_unix_seconds(seconds: i64) -> Option<Self> {
        seconds.checked_mul(MICROS_PER_SECOND).map(Self)
    }

    pub const fn as_unix_seconds_floor(self) -> i64 {
        self.0.div_euclid(MICROS_PER_SECOND)
    }

    #[must_use]
    pub fn checked_add_micros(self, micros: i64) -> Option<Self> {
        self.0.checked_add(micros).map(Self)
    }

    /// How far this is after `earlier`; negative when it is before. Exact over the whole range.
    pub fn micros_since(self, earlier: Self) -> i128 {
        i128::from(self.0) - i128::from(earlier.0)
    }

    /// RFC 3339 as its grammar has it: `T` and `Z` in either case, an offset of hours and minutes, no space. Digits beyond the
    /// microsecond are cut off; more than nine, and the leap second 60, are refused, because systems disagree on them.
    pub fn parse_rfc3339(text: &str) -> Result<Self, TimeError> {
        rfc3339::parse(text).map_err(|reason| TimeError { reason })
    }
}

mod rfc3339 {
    use jiff::{SignedDuration, civil::DateTime};

    use super::Timestamp;

    /// Takes exactly `count` digits off the front.
    fn digits(text: &mut &[u8], count: usize) -> Option<i32> {
        let (front, rest) = text.split_at_checked(count)?;
        let mut value = 0i32;
        for byte in front {
            if !byte.is_ascii_digit() {
                return None;
            }
            value = value.checked_mul(10)?.checked_add(i32::from(byte - b'0'))?;
        }
        *text = rest;
        Some(value)
    }

    fn letter(text: &mut &[u8], allowed: &[u8]) -> Option<u8> {
        let (first, rest) = text.split_first()?;
        allowed.contains(first).then(|| {
            *text = rest;
            *first
        })
    }

    pub(super) fn parse(text: &str) -> Result<Timestamp, &'static str> {
        let text = &mut text.as_bytes();
        let mut date = || {
            let year = digits(text, 4)?;
            letter(text, b"-")?;
            let month = digits(text, 2)?;
            letter(text, b"-")?;
            let day = digits(text, 2)?;
            letter(text, b"Tt")?;
            Some((year, month, day))
        };
        let (year, month, day) = date().ok_or("write the date as 2026-11-30T")?;
        let mut time = || {
            let hour = digits(text, 2)?;
            letter(text, b":")?;
            let minute = digits(text, 2)?;
            letter(text, b":")?;
            Some((hour, minute, digits(text, 2)?))
        };
        let (hour, minute, second) = time().ok_or("write the time of day as 12:00:00")?;
        let micros = fraction(text)?;
        let offset = offset(text)?;
        if !text.is_empty() {
            return Err("something follows the offset");
        }
        if second == 60 {
            return Err("leap seconds are not accepted, write second 59");
        }
        if hour > 23 || minute > 59 || second > 59 {
            return Err("there is no such time of day");
        }
        let small = |value: i32| i8::try_from(value).map_err(|_| "there is no such day");
        let year = i16::try_from(year).map_err(|_| "there is no such day")?;
        let date =
            jiff::civil::Date::new(year, small(month)?, small(day)?).map_err(|_| "there is no such day")?;
        // By days, because the library's own instants end a day before the year 9999 does.
        let midnight = date.duration_since(EPOCH.date()).as_secs();
        let seconds = midnight + i64::from(hour * 3600 + minute * 60 + second - offset);
        let at = Timestamp(seconds * 1_000_000 + i64::from(micros));
        civil(at).map(|_| at).ok_or("in UTC this is outside the years 0000 to 9999")
    }

    const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

    /// The date and time of day in UTC, within the years that four digits can write.
    pub(super) fn civil(at: Timestamp) -> Option<DateTime> {
        let civil = EPOCH.checked_add(SignedDuration::from_micros(at.0)).ok()?;
        (civil.year() >= 0).then_some(civil)
    }

    fn fraction(text: &mut &[u8]) -> Result<i32, &'static str> {
        if letter(text, b".").is_none() {
            return Ok(0);
        }
        let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=9).contains(&count) {
            return Err("a fraction of a second has one to nine digits");
        }
        let kept = digits(text, count.min(6)).ok_or("a fraction of a second has one to nine digits")?;
        let scale = (count..6).fold(1, |scale, _| scale * 10);
        *text = text.split_at(count.saturating_sub(6)).1;
        Ok(kept * scale)
    }

    fn offset(text: &mut &[u8]) -> Result<i32, &'static str> {
        const WRONG: &str = "end with Z or an offset such as +02:00";
        match letter(text, b"Zz+-").ok_or(WRONG)? {
            b'Z' | b'z' => Ok(0),
            sign => {
                let hours = digits(text, 2).ok_or(WRONG)?;
                letter(text, b":").ok_or(WRONG)?;
                let minutes = digits(text, 2).ok_or(WRONG)?;
                if hours > 23 || minutes > 59 {
                    return Err(WRONG);
                }
                let seconds = hours * 3600 + minutes * 60;
                Ok(if sign == b'-' { -seconds } else { seconds })
            }
        }
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with a fraction only where there is one. Outside the years that RFC 3339 can write, `@` and the microseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(at) = rfc3339::civil(*self) else { return write!(f, "@{}", self.0) };
        let (date, time) = (at.date(), at.time());
        let mut text = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            date.year(),
            date.month(),
            date.day(),
            time.hour(),
            time.minute(),
            time.second()
        );
        let micros = self.0.rem_euclid(MICROS_PER_SECOND);
        if micros != 0 {
            text.push('.');
            text.push_str(format!("{micros:06}").trim_end_matches('0'));
        }
        text.push('Z');
        f.pad(&text)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        Self::parse_rfc3339(text)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse_rfc3339(&text).map_err(de::Error::custom)
    }
}

/// A whole hour of UTC: the window that is sealed. Half-open, so an instant is in exactly one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hour(i64);

impl Hour {
    pub const fn of(at: Timestamp) -> Self {
        Self(at.0.div_euclid(MICROS_PER_HOUR))
    }

    /// None outside the time that a [`Timestamp`] reaches.
    pub fn from_index(index: i64) -> Option<Self> {
        let valid = Self::of(Timestamp::MIN).0 + 1..Self::of(Timestamp::MAX).0;
        valid.contains(&index).then_some(Self(index))
    }

    /// Hours since 1970-01-01T00:00:00Z.
    pub const fn index(self) -> i64 {
        self.0
    }

    /// The first instant of the hour. The very first hour of 64-bit time starts with that time.
    pub const fn start(self) -> Timestamp {
        Timestamp(self.0.saturating_mul(MICROS_PER_HOUR))
    }

    /// The first instant that is no longer in it.
    pub const fn end(self) -> Timestamp {
        Timestamp(self.start().0.saturating_add(MICROS_PER_HOUR))
    }

    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    pub const fn contains(self, at: Timestamp) -> bool {
        Self::of(at).0 == self.0
    }
}

impl fmt::Display for Hour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.start(), f)
    }
}

impl fmt::Debug for Hour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Hour {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let at = Timestamp::parse_rfc3339(text)?;
        let hour = Self::of(at);
        if hour.start() == at {
            Ok(hour)
        } else {
            Err(TimeError { reason: "an hour starts at minute 00 and second 00 of UTC" })
        }
    }
}

impl Serialize for Hour {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hour {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Where time comes from. Everything that asks for it takes one, so that a test can move it.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

pub type SharedClock = Arc<dyn Clock>;

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(jiff::Timestamp::now().as_microsecond())
    }
}

/// A clock that stands still until it is moved. Clones share the time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    pub fn new(at: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(at.0)))
    }

    pub fn set(&self, at: Timestamp) {
        self.0.store(at.0, Ordering::SeqCst);
    }

    pub fn advance_micros(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}
