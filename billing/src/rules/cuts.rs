//! From where a run counts: what a customer's earlier runs covered.

use std::collections::{BTreeMap, BTreeSet};

use usage::CustomerId;

/// One run of an hour, as far as later runs of the hour look at it.
#[derive(Debug, Clone)]
pub(crate) struct RunBefore {
    pub(crate) cut_id: u64,
    /// Customers that it left for later, with all of their meters.
    pub(crate) deferred: BTreeSet<CustomerId>,
}

/// The passes of a run: customers that have a lower cut of their own, and the one of all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passes {
    /// By lower cut; none: everything from the beginning.
    pub(crate) own: BTreeMap<Option<u64>, BTreeSet<CustomerId>>,
    pub(crate) others: Option<u64>,
}

/// A customer's lower cut is the one of the last run that did not defer it.
pub(crate) fn passes(before: &[RunBefore]) -> Passes {
    let others = before.last().map(|run| run.cut_id);
    let mut own: BTreeMap<Option<u64>, BTreeSet<CustomerId>> = BTreeMap::new();
    for customer in before.last().into_iter().flat_map(|run| &run.deferred) {
        let covered = before.iter().rev().find(|run| !run.deferred.contains(customer));
        own.entry(covered.map(|run| run.cut_id)).or_default().insert(customer.clone());
    }
    Passes { own, others }
}

/// The lower cut of one customer.
pub(crate) fn lower(before: &[RunBefore], customer: &CustomerId) -> Option<u64> {
    before.iter().rev().find(|run| !run.deferred.contains(customer)).map(|run| run.cut_id)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn customer(name: &str) -> CustomerId {
        CustomerId::parse(name.to_owned()).unwrap()
    }

    fn run(cut_id: u64, deferred: &[&str]) -> RunBefore {
        RunBefore { cut_id, deferred: deferred.iter().map(|name| customer(name)).collect() }
    }

    #[test]
    fn a_customer_counts_from_the_last_run_that_did_not_defer_it() {
        for (before, others, acme) in [
            (vec![], None, None),
            (vec![run(3, &[])], Some(3), Some(3)),
            (vec![run(3, &["acme"])], Some(3), None),
            (vec![run(3, &[]), run(5, &["acme"])], Some(5), Some(3)),
            (vec![run(3, &["acme"]), run(5, &["acme"])], Some(5), None),
            (vec![run(3, &["acme"]), run(5, &[])], Some(5), Some(5)),
        ] {
            let passes = passes(&before);
            assert_eq!(passes.others, others, "{before:?}");
            assert_eq!(lower(&before, &customer("acme")), acme, "{before:?}");
            let named = passes.own.get(&acme).is_some_and(|names| names.contains(&customer("acme")));
            assert!(named || others == acme, "{before:?}: the passes say what the rule says");
        }
    }
}
