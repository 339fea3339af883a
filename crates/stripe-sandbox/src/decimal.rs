//! Exact decimals: an integer and how many of its digits stand after the point.
//!
//! A usage value of fifteen digits times a price of twelve decimals leaves every fixed-width type, so the digits are a big integer.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigInt;
use num_integer::Integer as _;
use num_traits::{Signed as _, Zero as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Debug)]
pub(crate) struct Decimal {
    digits: BigInt,
    scale: u32,
}

impl Decimal {
    pub(crate) fn zero() -> Self {
        Self { digits: BigInt::zero(), scale: 0 }
    }

    /// Plain notation only: `-12.5`, never `1e3`, `+1`, `.5` or `NaN`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
        let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !plain(whole) || !plain(fraction) || text.len() > 200 {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let mut digits: BigInt = format!("{whole}{fraction}").parse().ok()?;
        if negative {
            digits = -digits;
        }
        Some(Self { digits, scale: u32::try_from(fraction.len()).ok()? })
    }

    pub(crate) fn from_u64(value: u64) -> Self {
        Self { digits: value.into(), scale: 0 }
    }

    pub(crate) fn from_i64(value: i64) -> Self {
        Self { digits: value.into(), scale: 0 }
    }

    pub(crate) fn from_bigint(digits: BigInt) -> Self {
        Self { digits, scale: 0 }
    }

    pub(crate) fn is_integer(&self) -> bool {
        self.scale == 0
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.digits.is_negative()
    }

    pub(crate) fn decimals(&self) -> u32 {
        self.scale
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        let (a, b, scale) = self.aligned(other);
        Self { digits: a + b, scale }.normalised()
    }

    pub(crate) fn sub(&self, other: &Self) -> Self {
        let (a, b, scale) = self.aligned(other);
        Self { digits: a - b, scale }.normalised()
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        Self { digits: &self.digits * &other.digits, scale: self.scale + other.scale }.normalised()
    }

    /// Towards positive infinity, as a package that was begun is paid for.
    pub(crate) fn div_ceil(&self, by: u64) -> BigInt {
        self.digits.div_ceil(&(power_of_ten(self.scale) * by))
    }

    pub(crate) fn div_floor(&self, by: u64) -> BigInt {
        self.digits.div_floor(&(power_of_ten(self.scale) * by))
    }

    /// To the nearest integer; a half goes away from zero.
    pub(crate) fn round_half_up(&self) -> BigInt {
        let unit = power_of_ten(self.scale);
        let magnitude: BigInt = (self.digits.abs() * 2 + &unit) / (unit * 2);
        if self.is_negative() { -magnitude } else { magnitude }
    }

    /// Towards zero.
    pub(crate) fn truncate(&self) -> BigInt {
        &self.digits / power_of_ten(self.scale)
    }

    fn aligned(&self, other: &Self) -> (BigInt, BigInt, u32) {
        let scale = self.scale.max(other.scale);
        (
            &self.digits * power_of_ten(scale - self.scale),
            &other.digits * power_of_ten(scale - other.scale),
            scale,
        )
    }

    fn normalised(mut self) -> Self {
        let ten = BigInt::from(10);
        while self.scale > 0 {
            let (quotient, remainder) = self.digits.div_rem(&ten);
            if !remainder.is_zero() {
                break;
            }
            self.digits = quotient;
            self.scale -= 1;
        }
        self
    }
}

/// How many digits a sender wrote, leading zeros apart.
pub(crate) fn significant_digits(text: &str) -> usize {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.trim_start_matches('0').len()
}

fn power_of_ten(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b, _) = self.aligned(other);
        a.cmp(&b)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scale == 0 {
            return write!(f, "{}", self.digits);
        }
        let (whole, fraction) = self.digits.abs().div_rem(&power_of_ten(self.scale));
        let sign = if self.is_negative() { "-" } else { "" };
        let fraction = fraction.to_string();
        write!(f, "{sign}{whole}.{fraction:0>width$}", width = self.scale as usize)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a plain decimal"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed parse is the failure")]
    use super::*;

    fn d(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn only_plain_notation_is_a_number() {
        for text in ["", "-", "1e3", "NaN", "+1", ".5", "5.", "1,000", " 1", "0x1"] {
            assert!(Decimal::parse(text).is_none(), "{text:?} was taken");
        }
        for (text, shown) in
            [("0.50", "0.5"), ("-0.05", "-0.05"), ("007", "7"), ("0.000000000001", "0.000000000001")]
        {
            assert_eq!(d(text).to_string(), shown);
        }
    }

    #[test]
    fn a_half_goes_away_from_zero() {
        for (text, rounded) in [("1.5", 2), ("0.5", 1), ("0.49", 0), ("-0.5", -1), ("-1.4", -1), ("2", 2)] {
            assert_eq!(d(text).round_half_up(), BigInt::from(rounded), "{text}");
        }
    }

    #[test]
    fn sums_align_their_points() {
        assert_eq!(d("0.1").add(&d("0.02")).to_string(), "0.12");
        assert_eq!(d("0.5").add(&d("0.5")).to_string(), "1");
        assert_eq!(
            d("999999999999999").mul(&d("999999999999.999999999999")).to_string(),
            "999999999999998999999999000.000000000001"
        );
        assert_eq!(significant_digits("-000123.450"), 6);
    }
}
