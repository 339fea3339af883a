//! Pages: newest first, by cursor.

use serde_json::{Value, json};

use super::{Answer, Call};
use crate::error::ApiError;
use crate::state::{Kind, text};

impl Call<'_> {
    /// A page of the rows that fit. Rows come oldest first; what was deleted never shows.
    pub(crate) fn list(&self, kind: Kind, url: &str, fits: impl Fn(&Value) -> bool) -> Answer {
        let created =
            |row: &Value| created_fits(&self.params["created"], row["created"].as_i64().unwrap_or(0));
        let rows =
            self.account.rows(kind).rev().filter(|row| row["deleted"] != true && created(row) && fits(row));
        self.page(kind.noun(), url, rows.collect())
    }

    /// The page of `rows`, which are in the order that they are shown.
    pub(crate) fn page(&self, noun: &str, url: &str, rows: Vec<&Value>) -> Answer {
        let limit = usize::try_from(self.params["limit"].as_u64().unwrap_or(10)).unwrap_or(10);
        let cursor = |name: &str| {
            self.text(name).map(|id| {
                let place = rows.iter().position(|row| row["id"] == id.as_str());
                place.ok_or_else(|| ApiError::missing(noun, &id, name))
            })
        };
        let (page, has_more) =
            match (cursor("starting_after").transpose()?, cursor("ending_before").transpose()?) {
                (Some(_), Some(_)) => {
                    return Err(ApiError::invalid(
                        "You cannot use both `starting_after` and `ending_before`.",
                    )
                    .code("resource_missing"));
                }
                (after, None) => {
                    let from = after.map_or(0, |place| place + 1);
                    let rest = rows.get(from..).unwrap_or_default();
                    (rest.get(..limit.min(rest.len())).unwrap_or_default(), rest.len() > limit)
                }
                (None, Some(place)) => {
                    (rows.get(place.saturating_sub(limit)..place).unwrap_or_default(), place > limit)
                }
            };
        Ok(json!({ "object": "list", "url": url, "has_more": has_more, "data": page }))
    }

    /// Whether a row of a customer with a test clock shows in a list that does not name it.
    pub(crate) fn clock_shows(&self, row: &Value, named: bool) -> bool {
        match self.text("test_clock") {
            Some(clock) => row["test_clock"] == clock.as_str(),
            None => named || row["test_clock"].is_null(),
        }
    }

    /// Whether the filter of this name is absent or equal.
    pub(crate) fn fits(&self, row: &Value, name: &str) -> bool {
        match &self.params[name] {
            Value::Null => true,
            wanted => row[name] == *wanted || row[name]["id"] == *wanted,
        }
    }
}

fn created_fits(filter: &Value, created: i64) -> bool {
    if let Some(exact) = filter.as_i64() {
        return created == exact;
    }
    let bound = |name: &str| filter[name].as_i64();
    bound("gt").is_none_or(|at| created > at)
        && bound("gte").is_none_or(|at| created >= at)
        && bound("lt").is_none_or(|at| created < at)
        && bound("lte").is_none_or(|at| created <= at)
}

/// The id in a member that may hold an object.
pub(crate) fn id_in(row: &Value, member: &str) -> String {
    if row[member].is_object() { text(&row[member], "id") } else { text(row, member) }
}
