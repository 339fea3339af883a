//! Whether the lines of a final invoice say what was placed.

use std::collections::{BTreeMap, BTreeSet};

/// A line, as far as its quantity goes.
#[derive(Clone, Debug)]
pub(crate) struct BilledLine {
    pub item: String,
    pub price: String,
    /// None where the service's number is not whole.
    pub quantity: Option<u128>,
    /// Of a price in packages, whose quantity is not the usage.
    pub transformed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Matched,
    /// Less is billed than was placed.
    Shortfall,
    /// More is billed than was placed.
    Excess,
    /// A price in packages: the sums were compared before finalisation, the lines cannot be.
    NotCompared,
}

impl Verdict {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Matched => "matched",
            Self::Shortfall => "shortfall",
            Self::Excess => "excess",
            Self::NotCompared => "not_compared",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub verdict: Verdict,
    pub expected: u128,
    pub billed: u128,
}

/// Compares item by item, so that one item's excess never hides another's shortfall; tiers split an item over several lines.
/// The worst found is the verdict. None is a sum beyond 128 bits.
pub(crate) fn compare(expected: &BTreeMap<String, u128>, lines: &[BilledLine]) -> Option<Comparison> {
    let mut billed: BTreeMap<&str, Option<u128>> = BTreeMap::new();
    for line in lines.iter().filter(|line| expected.contains_key(&line.item)) {
        let sum = billed.entry(&line.item).or_insert(Some(0));
        *sum = match (*sum, line.quantity) {
            (Some(sum), Some(quantity)) if !line.transformed => Some(sum.checked_add(quantity)?),
            _ => None,
        };
    }
    let mut verdict = Verdict::Matched;
    let (mut expected_sum, mut billed_sum) = (0_u128, 0_u128);
    for (item, expected) in expected {
        expected_sum = expected_sum.checked_add(*expected)?;
        let found = match billed.get(item.as_str()) {
            None if *expected == 0 => continue,
            None => Verdict::Shortfall,
            Some(None) => Verdict::NotCompared,
            Some(Some(billed)) => {
                billed_sum = billed_sum.checked_add(*billed)?;
                match billed.cmp(expected) {
                    std::cmp::Ordering::Equal => Verdict::Matched,
                    std::cmp::Ordering::Less => Verdict::Shortfall,
                    std::cmp::Ordering::Greater => Verdict::Excess,
                }
            }
        };
        verdict = worse(verdict, found);
    }
    Some(Comparison { verdict, expected: expected_sum, billed: billed_sum })
}

fn worse(one: Verdict, other: Verdict) -> Verdict {
    let rank = |verdict: Verdict| match verdict {
        Verdict::Matched => 0,
        Verdict::NotCompared => 1,
        Verdict::Shortfall => 2,
        // The customer pays for what was not used.
        Verdict::Excess => 3,
    };
    if rank(other) > rank(one) { other } else { one }
}

/// Items that are billed at more than one price: the price was changed inside the period.
pub(crate) fn repriced(lines: &[BilledLine]) -> BTreeSet<String> {
    let mut prices: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in lines {
        prices.entry(&line.item).or_default().insert(&line.price);
    }
    prices.into_iter().filter(|(_, prices)| prices.len() > 1).map(|(item, _)| item.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed comparison is the failure")]
    use super::*;

    fn line(item: &str, price: &str, quantity: Option<u128>) -> BilledLine {
        BilledLine { item: item.into(), price: price.into(), quantity, transformed: false }
    }

    #[test]
    fn lines_are_compared_item_by_item() {
        let expected =
            |items: &[(&str, u128)]| items.iter().map(|(item, sum)| ((*item).to_owned(), *sum)).collect();
        let table = [
            ("equal", expected(&[("a", 5)]), vec![line("a", "p", Some(5))], Verdict::Matched, 5),
            (
                "tiers",
                expected(&[("a", 5)]),
                vec![line("a", "p", Some(3)), line("a", "p", Some(2))],
                Verdict::Matched,
                5,
            ),
            ("less", expected(&[("a", 5)]), vec![line("a", "p", Some(4))], Verdict::Shortfall, 4),
            ("more", expected(&[("a", 5)]), vec![line("a", "p", Some(6))], Verdict::Excess, 6),
            ("no line for usage", expected(&[("a", 5)]), vec![], Verdict::Shortfall, 0),
            ("no line for no usage", expected(&[("a", 0)]), vec![], Verdict::Matched, 0),
            (
                "one's excess does not hide another's shortfall",
                expected(&[("a", 5), ("b", 5)]),
                vec![line("a", "p", Some(6)), line("b", "p", Some(4))],
                Verdict::Excess,
                10,
            ),
            (
                "not ours",
                expected(&[("a", 5)]),
                vec![line("a", "p", Some(5)), line("x", "q", Some(9))],
                Verdict::Matched,
                5,
            ),
            ("not whole", expected(&[("a", 5)]), vec![line("a", "p", None)], Verdict::NotCompared, 0),
        ];
        for (name, expected, lines, verdict, billed) in table {
            let found = compare(&expected, &lines).unwrap();
            assert_eq!((found.verdict, found.billed), (verdict, billed), "{name}");
        }
    }

    #[test]
    fn packages_are_not_compared() {
        let expected = BTreeMap::from([("a".to_owned(), 150)]);
        let lines = [BilledLine { transformed: true, ..line("a", "p", Some(3)) }];
        assert_eq!(compare(&expected, &lines).unwrap().verdict, Verdict::NotCompared);
    }

    #[test]
    fn an_item_at_two_prices_was_repriced() {
        assert!(
            repriced(&[line("a", "p", Some(1)), line("a", "p", Some(2)), line("b", "q", Some(2))]).is_empty()
        );
        assert_eq!(
            repriced(&[line("a", "p", Some(1)), line("a", "q", Some(2))]),
            BTreeSet::from(["a".to_owned()])
        );
    }
}
