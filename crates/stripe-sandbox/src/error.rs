//! A refusal, in Stripe's words and shapes.

use std::ops::{Deref, DerefMut};

use serde_json::{Map, Value, json};

/// What a request is refused with. Boxed, because every function here may return it and few do.
#[derive(Clone, Debug)]
pub(crate) struct ApiError(Box<Refused>);

#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    pub(crate) param: Option<String>,
    /// `Stripe-Should-Retry`, where Stripe sends it.
    pub(crate) should_retry: Option<bool>,
    pub(crate) limit_reason: Option<String>,
    /// Whether the answer is kept under the request's idempotency key.
    pub(crate) stored: bool,
    /// The id that was not found: the same id may exist in the other mode, which changes the text.
    pub(crate) missing_id: Option<String>,
}

impl Deref for ApiError {
    type Target = Refused;

    fn deref(&self) -> &Refused {
        &self.0
    }
}

impl DerefMut for ApiError {
    fn deref_mut(&mut self) -> &mut Refused {
        &mut self.0
    }
}

impl ApiError {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self(Box::new(Refused {
            status: 400,
            kind: "invalid_request_error",
            code: None,
            message: message.into(),
            param: None,
            should_retry: None,
            limit_reason: None,
            stored: true,
            missing_id: None,
        }))
    }

    pub(crate) fn missing(noun: &str, id: &str, param: &str) -> Self {
        let mut error =
            Self::invalid(format!("No such {noun}: '{id}'")).code("resource_missing").param(param);
        error.missing_id = Some(id.to_owned());
        error
    }

    pub(crate) fn internal() -> Self {
        let mut error = Self::invalid("An unknown error occurred.").status(500);
        error.kind = "api_error";
        error
    }

    pub(crate) fn lock_timeout() -> Self {
        Self::invalid(
            "This object can't be accessed right now because another API request or Stripe process currently accessing it. \
             If you see this error intermittently, retry the request.",
        )
        .status(429)
        .code("lock_timeout")
        .retry(true)
    }

    pub(crate) fn rate_limited(reason: &str) -> Self {
        let mut error = Self::invalid("Request rate limit exceeded.").status(429).code("rate_limit");
        error.limit_reason = Some(reason.to_owned());
        // Only the global limiter stands before the idempotency layer.
        error.stored = !reason.starts_with("global-");
        error
    }

    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    pub(crate) fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    pub(crate) fn retry(mut self, should: bool) -> Self {
        self.should_retry = Some(should);
        self
    }

    /// A refusal before the work began: its key stays free.
    pub(crate) fn unstored(mut self) -> Self {
        self.stored = false;
        self
    }

    pub(crate) fn body(&self, second_version: bool, request_id: &str) -> Value {
        let mut error = Map::new();
        if second_version {
            let code = self.code.clone().unwrap_or_else(|| "invalid_request".to_owned());
            error.insert("code".into(), code.into());
            error.insert("message".into(), self.message.clone().into());
            return json!({ "error": error });
        }
        error.insert("type".into(), self.kind.into());
        if let Some(code) = &self.code {
            error.insert("code".into(), code.clone().into());
            error.insert(
                "doc_url".into(),
                format!("https://stripe.com/docs/error-codes/{}", code.replace('_', "-")).into(),
            );
        }
        error.insert("message".into(), self.message.clone().into());
        if let Some(param) = &self.param {
            error.insert("param".into(), param.clone().into());
        }
        error.insert(
            "request_log_url".into(),
            format!("https://dashboard.stripe.com/test/logs/{request_id}").into(),
        );
        json!({ "error": error })
    }
}
