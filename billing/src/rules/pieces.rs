//! How a customer's hour is cut: at the boundaries of its billing periods, and nowhere else.

use usage::{Hour, Timestamp};

/// A part of an hour: from `start` until before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
}

impl Piece {
    pub(crate) fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }
}

/// The pieces of an hour. Boundaries outside of it, and at its edges, cut nothing.
pub(crate) fn pieces(hour: Hour, boundaries: impl IntoIterator<Item = Timestamp>) -> Vec<Piece> {
    let mut edges: Vec<Timestamp> =
        boundaries.into_iter().filter(|at| hour.start() < *at && *at < hour.end()).collect();
    edges.sort_unstable();
    edges.dedup();
    let starts = std::iter::once(hour.start()).chain(edges.iter().copied());
    let ends = edges.iter().copied().chain(std::iter::once(hour.end()));
    starts.zip(ends).map(|(start, end)| Piece { start, end }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn g7_an_hour_is_cut_at_inner_boundaries_only_and_covered_without_gap() {
        let hour = Hour::from_index(10).unwrap();
        let at = |minutes: i64| hour.start().checked_add_micros(minutes * 60_000_000).unwrap();
        for (boundaries, expected) in [
            (vec![], vec![(0, 60)]),
            (vec![at(0), at(60), at(-5), at(90)], vec![(0, 60)]),
            (vec![at(20)], vec![(0, 20), (20, 60)]),
            (vec![at(40), at(20), at(40)], vec![(0, 20), (20, 40), (40, 60)]),
        ] {
            let expected: Vec<Piece> =
                expected.into_iter().map(|(a, b)| Piece { start: at(a), end: at(b) }).collect();
            assert_eq!(pieces(hour, boundaries), expected);
        }
    }
}
