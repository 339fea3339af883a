//! An independent model: what was acknowledged, and so what every figure downstream must be.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::load::Turn;

/// Reports by key, as the first acknowledged content has them.
#[derive(Debug, Default)]
pub struct Auditor {
    reports: BTreeMap<(String, String), Turn>,
}

impl Auditor {
    /// Takes note of an acknowledged report. A second content under one key is the caller's fault.
    pub fn acknowledged(&mut self, turn: &Turn) {
        let key = (turn.request.clone(), turn.turn.clone());
        let first = self.reports.entry(key).or_insert_with(|| turn.clone());
        assert_eq!(first.body, turn.body, "two contents were acknowledged under one key");
    }

    pub fn reports(&self) -> usize {
        self.reports.len()
    }

    pub fn tokens(&self) -> u128 {
        self.reports.values().map(|turn| u128::from(turn.tokens)).sum()
    }

    pub fn tokens_by_customer(&self) -> BTreeMap<String, u128> {
        let mut sums = BTreeMap::new();
        for turn in self.reports.values() {
            *sums.entry(turn.customer.clone()).or_default() += u128::from(turn.tokens);
        }
        sums
    }

    /// Judges a list of statements: per customer, all revisions of all pieces sum to what was acknowledged.
    pub fn judge_statements(&self, statements: &[Value]) {
        let mut sums: BTreeMap<String, u128> = BTreeMap::new();
        for statement in statements {
            let customer =
                statement["customer_id"].as_str().expect("a statement names its customer").to_owned();
            let sum: u128 = statement["sum"].as_str().expect("a sum is text").parse().expect("of digits");
            *sums.entry(customer).or_default() += sum;
        }
        assert_eq!(sums, self.tokens_by_customer(), "statements and acknowledged reports differ");
    }
}
