//! Whole numbers from decimal text, exactly.

/// The value of a JSON number such as `123`, `123.0` or `1.23e2`, when it is whole, not negative and fits. A float is never made of it: past 2^53
/// a float is another number.
pub(crate) fn whole(text: &str) -> Option<u128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if integer.is_empty() || !digits(integer) || !digits(fraction) {
        return None;
    }
    let mut all: Vec<u8> = integer.bytes().chain(fraction.bytes()).collect();
    // Where the point stands, counted from the left of `all`.
    let point = i64::try_from(integer.len()).ok()?.checked_add(i64::from(exponent))?;
    let length = i64::try_from(all.len()).ok()?;
    if all.iter().all(|digit| *digit == b'0') {
        return Some(0);
    }
    if point > length {
        // 39 digits are the most that fit; a longer row of zeros need not be made.
        let zeros = usize::try_from(point - length).ok().filter(|zeros| *zeros <= 39)?;
        all.extend(std::iter::repeat_n(b'0', zeros));
    }
    let kept = usize::try_from(point.max(0)).ok()?;
    if all.iter().skip(kept).any(|digit| *digit != b'0') {
        return None;
    }
    all.iter()
        .take(kept)
        .try_fold(0_u128, |sum, digit| sum.checked_mul(10)?.checked_add(u128::from(digit.checked_sub(b'0')?)))
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn a_sum_is_read_to_the_last_digit_or_refused() {
        for (text, value) in [
            ("0", Some(0)),
            ("0.0", Some(0)),
            ("0e9", Some(0)),
            ("900", Some(900)),
            ("900.0", Some(900)),
            ("9007199254740993", Some(9_007_199_254_740_993)),
            ("9007199254740993.000", Some(9_007_199_254_740_993)),
            ("1.5e1", Some(15)),
            ("1e3", Some(1_000)),
            ("1E+3", Some(1_000)),
            ("1.23456789012345e+17", Some(123_456_789_012_345_000)),
            ("1000e-3", Some(1)),
            ("0.001e3", Some(1)),
            ("340282366920938463463374607431768211455", Some(u128::MAX)),
            ("340282366920938463463374607431768211456", None),
            ("1e39", None),
            ("1e2147483647", None),
            ("0.5", None),
            ("15e-1", None),
            ("-1", None),
            ("-0.0", None),
            ("", None),
            (".5", None),
            ("1.5.0", None),
            ("NaN", None),
            ("\"5\"", None),
        ] {
            assert_eq!(whole(text), value, "{text}");
        }
    }
}
