//! Lists in pages: `limit`, `after`, `next`.

use serde::{Deserialize, Serialize};

use crate::{Problem, problem::codes};

/// The largest page.
const LIMIT_MAX: u32 = 1_000;
const LIMIT_DEFAULT: u32 = 100;

/// How a list is asked for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    pub limit: Option<u32>,
    /// The `next` of the page before.
    pub after: Option<String>,
}

impl PageQuery {
    /// The number of rows, 1 to 1000.
    pub fn limit(&self) -> Result<u32, Problem> {
        limit(self.limit)
    }
}

/// The number of rows of a page, 1 to 1000.
pub fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked.unwrap_or(LIMIT_DEFAULT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        _ => Err(Problem::new(&codes::INVALID_VALUE)
            .detail(format!("`limit` is 1 to {LIMIT_MAX}; ask for further pages with `after`."))
            .pointer("/limit")),
    }
}

/// A page of a list.
#[derive(Debug, Clone, Serialize)]
pub struct Page<T> {
    pub data: Vec<T>,
    /// Where the next page starts; absent from the last one.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A page of rows of which one more than `limit` was read to see whether there is a next one.
    pub fn cut(mut rows: Vec<T>, limit: u32, key: impl Fn(&T) -> String) -> Page<T> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = if more { rows.last().map(key) } else { None };
        Page { data: rows, next }
    }
}
