//! Values of ours to columns and back, checked both ways.

use sqlx::{
    Any, Row as _,
    any::{AnyArguments, AnyRow},
    query::Query,
};
use usage::{Hour, Timestamp};

use crate::LedgerError;

/// A statement with its parameters, or the parameter that did not fit.
pub(crate) type Arguments = Result<Query<'static, Any, AnyArguments>, LedgerError>;

/// Binds parameters in the order of `$1`, `$2`, ….
pub(crate) struct Statement(Arguments);

impl Statement {
    pub(crate) fn new(text: &'static str) -> Statement {
        Statement(Ok(sqlx::query(text)))
    }

    pub(crate) fn text(self, value: &str) -> Statement {
        let value = value.to_owned();
        Statement(self.0.map(|query| query.bind(value)))
    }

    pub(crate) fn text_or_null(self, value: Option<&str>) -> Statement {
        let value = value.map(str::to_owned);
        Statement(self.0.map(|query| query.bind(value)))
    }

    pub(crate) fn bytes(self, value: &[u8]) -> Statement {
        let value = value.to_vec();
        Statement(self.0.map(|query| query.bind(value)))
    }

    pub(crate) fn bytes_or_null(self, value: Option<&[u8]>) -> Statement {
        let value = value.map(<[u8]>::to_vec);
        Statement(self.0.map(|query| query.bind(value)))
    }

    pub(crate) fn integer(self, value: i64) -> Statement {
        Statement(self.0.map(|query| query.bind(value)))
    }

    pub(crate) fn integer_or_null(self, value: Option<i64>) -> Statement {
        Statement(self.0.map(|query| query.bind(value)))
    }

    pub(crate) fn flag(self, value: bool) -> Statement {
        self.integer(i64::from(value))
    }

    pub(crate) fn time(self, value: Timestamp) -> Statement {
        self.integer(value.as_micros())
    }

    pub(crate) fn hour(self, value: Hour) -> Statement {
        self.integer(value.index())
    }

    pub(crate) fn sum(self, value: u128) -> Statement {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn number(self, what: &'static str, value: u64) -> Statement {
        match i64::try_from(value) {
            Ok(value) => self.integer(value),
            Err(_) => Statement(self.0.and(Err(LedgerError::TooLarge { what }))),
        }
    }

    pub(crate) fn done(self) -> Arguments {
        self.0
    }
}

/// Columns by name, in our types.
pub(crate) trait Columns {
    fn text(&self, column: &'static str) -> Result<String, LedgerError>;
    fn text_or_null(&self, column: &'static str) -> Result<Option<String>, LedgerError>;
    fn bytes(&self, column: &'static str) -> Result<Vec<u8>, LedgerError>;
    fn bytes_or_null(&self, column: &'static str) -> Result<Option<Vec<u8>>, LedgerError>;
    fn integer(&self, column: &'static str) -> Result<i64, LedgerError>;
    fn integer_or_null(&self, column: &'static str) -> Result<Option<i64>, LedgerError>;

    fn flag(&self, column: &'static str) -> Result<bool, LedgerError> {
        Ok(self.integer(column)? != 0)
    }

    fn time(&self, column: &'static str) -> Result<Timestamp, LedgerError> {
        Ok(Timestamp::from_micros(self.integer(column)?))
    }

    fn time_or_null(&self, column: &'static str) -> Result<Option<Timestamp>, LedgerError> {
        Ok(self.integer_or_null(column)?.map(Timestamp::from_micros))
    }

    fn hour(&self, column: &'static str) -> Result<Hour, LedgerError> {
        Hour::from_index(self.integer(column)?)
            .ok_or_else(|| LedgerError::Corrupt { column, reason: "it is no hour".to_owned() })
    }

    fn number(&self, column: &'static str) -> Result<u64, LedgerError> {
        u64::try_from(self.integer(column)?)
            .map_err(|_| LedgerError::Corrupt { column, reason: "it is negative".to_owned() })
    }

    fn number_or_null(&self, column: &'static str) -> Result<Option<u64>, LedgerError> {
        self.integer_or_null(column)?
            .map(u64::try_from)
            .transpose()
            .map_err(|_| LedgerError::Corrupt { column, reason: "it is negative".to_owned() })
    }

    fn array<const N: usize>(&self, column: &'static str) -> Result<[u8; N], LedgerError> {
        let bytes = self.bytes(column)?;
        let found = bytes.len();
        bytes.try_into().map_err(|_| LedgerError::Corrupt {
            column,
            reason: format!("it has {found} bytes instead of {N}"),
        })
    }

    fn sum(&self, column: &'static str) -> Result<u128, LedgerError> {
        self.array(column).map(u128::from_be_bytes)
    }

    /// A text column in a type that checks it.
    fn parsed<T, E: std::fmt::Display>(
        &self,
        column: &'static str,
        parse: impl FnOnce(String) -> Result<T, E>,
    ) -> Result<T, LedgerError> {
        parse(self.text(column)?).map_err(|e| LedgerError::Corrupt { column, reason: e.to_string() })
    }
}

macro_rules! get {
    ($name:ident, $type:ty) => {
        fn $name(&self, column: &'static str) -> Result<$type, LedgerError> {
            self.try_get(column).map_err(|e| LedgerError::Corrupt { column, reason: e.to_string() })
        }
    };
}

impl Columns for AnyRow {
    get!(text, String);
    get!(text_or_null, Option<String>);
    get!(bytes, Vec<u8>);
    get!(bytes_or_null, Option<Vec<u8>>);
    get!(integer, i64);
    get!(integer_or_null, Option<i64>);
}

/// The only row of a result, or what is missing.
pub(crate) fn one(rows: Vec<AnyRow>, what: impl FnOnce() -> String) -> Result<AnyRow, LedgerError> {
    rows.into_iter().next().ok_or_else(|| LedgerError::NotFound { what: what() })
}

/// A sum that may not be there yet.
pub(crate) fn sum_or_null(row: &AnyRow, column: &'static str) -> Result<Option<u128>, LedgerError> {
    match row.bytes_or_null(column)? {
        Some(_) => row.sum(column).map(Some),
        None => Ok(None),
    }
}
