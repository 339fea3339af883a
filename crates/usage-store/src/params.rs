//! Parameters that several queries share.

use clickhouse::query::Query;
use usage::{Hour, PlatformId};

use crate::Cut;

pub(crate) const ONCE: &str = include_str!("../../../sql/clickhouse/queries/events/once.sql");

/// Puts the one counting rule into a query that stands on it.
pub(crate) fn standing_on_once(text: &str) -> String {
    text.replace("{{once}}", ONCE)
}

pub(crate) trait QueryExt: Sized {
    fn hours(self, platform: &PlatformId, from: Hour, until: Hour) -> Self;
    fn upper(self, cut: Option<&Cut>) -> Self;
    fn lower(self, cut: &Cut) -> Self;
}

impl QueryExt for Query {
    fn hours(self, platform: &PlatformId, from: Hour, until: Hour) -> Self {
        self.param("platform", platform.as_str()).param("from", from.index()).param("until", until.index())
    }

    fn upper(self, cut: Option<&Cut>) -> Self {
        let all = Cut::default();
        let positions = cut.unwrap_or(&all);
        self.param("uncut", cut.is_none())
            .param("upper_epochs", positions.epochs())
            .param("upper_seqs", positions.seqs())
    }

    fn lower(self, cut: &Cut) -> Self {
        self.param("lower_epochs", cut.epochs()).param("lower_seqs", cut.seqs())
    }
}
