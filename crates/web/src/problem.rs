//! Errors as their readers meet them: RFC 9457 with a stable code and whether a retry is safe.

pub mod codes;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};

pub use codes::Code;

/// Whether the same request may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It will be refused again: change it first.
    Never,
    /// The same bytes again are safe: nothing is counted twice.
    SameKey,
    /// As `SameKey`, but wait for `Retry-After` first.
    After,
}

impl Retry {
    pub fn as_str(self) -> &'static str {
        match self {
            Retry::Never => "never",
            Retry::SameKey => "same_key",
            Retry::After => "after",
        }
    }
}

/// An error on its way to a client. What only the operator may know travels beside it, into the log.
#[derive(Debug)]
pub struct Problem {
    code: &'static Code,
    detail: Option<String>,
    members: Map<String, Value>,
    retry_after_secs: u64,
    internal: Option<String>,
}

/// The cause of a failure, carried from the response to the log line and never to the client.
#[derive(Debug, Clone)]
pub(crate) struct Cause(pub(crate) String);

impl Problem {
    pub fn new(code: &'static Code) -> Problem {
        Problem { code, detail: None, members: Map::new(), retry_after_secs: 1, internal: None }
    }

    /// A full sentence that says what to do.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Problem {
        self.detail = Some(detail.into());
        self
    }

    /// The place in the request that is at fault, as a JSON pointer.
    #[must_use]
    pub fn pointer(self, pointer: impl Into<String>) -> Problem {
        self.with("pointer", Value::String(pointer.into()))
    }

    /// A further member of the body.
    #[must_use]
    pub fn with(mut self, member: &str, value: Value) -> Problem {
        self.members.insert(member.to_owned(), value);
        self
    }

    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Problem {
        self.retry_after_secs = seconds;
        self
    }

    /// The cause, with its whole chain, for the log alone.
    #[must_use]
    pub fn internal(mut self, error: &(dyn std::error::Error + 'static)) -> Problem {
        let mut chain = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            chain.push_str(": ");
            chain.push_str(&cause.to_string());
            source = cause.source();
        }
        self.internal = Some(chain);
        self
    }

    pub fn code(&self) -> &'static Code {
        self.code
    }

    /// The body, as it is also used inside a batch's answer.
    pub fn to_json(&self) -> Value {
        let mut body = self.members.clone();
        body.insert("type".to_owned(), json!(format!("/errors/{}", self.code.code)));
        body.insert("title".to_owned(), json!(self.code.title));
        body.insert("status".to_owned(), json!(self.code.status));
        body.insert("code".to_owned(), json!(self.code.code));
        body.insert("retry".to_owned(), json!(self.code.retry.as_str()));
        if let Some(detail) = &self.detail {
            body.insert("detail".to_owned(), json!(detail));
        }
        Value::Object(body)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, self.to_json().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.code.retry == Retry::After {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(self.retry_after_secs));
        }
        if self.code.status == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(internal) = self.internal {
            response.extensions_mut().insert(Cause(internal));
        }
        response
    }
}

impl From<usage::Rejection> for Problem {
    fn from(rejection: usage::Rejection) -> Problem {
        let code = match rejection.code {
            "malformed_json" => &codes::MALFORMED_JSON,
            "inconsistent_report" => &codes::INCONSISTENT_REPORT,
            _ => &codes::INVALID_REPORT,
        };
        let findings: Vec<Value> = rejection
            .findings
            .iter()
            .map(|f| json!({"code": f.code, "pointer": f.pointer, "detail": f.detail}))
            .collect();
        let mut problem = Problem::new(code).with("findings", Value::Array(findings));
        if let Some(first) = rejection.findings.first() {
            problem = problem.detail(first.detail.clone()).pointer(first.pointer.clone());
        }
        problem
    }
}

impl From<ledger::LedgerError> for Problem {
    fn from(error: ledger::LedgerError) -> Problem {
        use ledger::LedgerError;
        match &error {
            LedgerError::Unavailable { .. } => Problem::new(&codes::LEDGER_UNAVAILABLE)
                .detail(
                    "The ledger does not answer; send the same request again after the time in Retry-After.",
                )
                .retry_after(5)
                .internal(&error),
            LedgerError::FenceLost { .. } => Problem::new(&codes::BUSY)
                .detail("Another worker does the same work now; ask again after the time in Retry-After.")
                .internal(&error),
            LedgerError::NotFound { what } => {
                Problem::new(&codes::NOT_FOUND).detail(format!("There is no {what}."))
            }
            LedgerError::Conflict { constraint } => {
                Problem::new(&codes::ALREADY_EXISTS).detail(format!("{constraint} is taken; choose another."))
            }
            LedgerError::TooLarge { what } => Problem::new(&codes::INVALID_VALUE)
                .detail(format!("{what} is too large; choose a smaller one.")),
            LedgerError::Corrupt { .. }
            | LedgerError::NewerSchema { .. }
            | LedgerError::ChecksumChanged { .. } => Problem::new(&codes::INTERNAL).internal(&error),
            _ => Problem::new(&codes::INTERNAL).internal(&error),
        }
    }
}
