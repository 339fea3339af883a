//! One pooled connection to Stripe.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use stripe_client_core::{
    CustomizedStripeRequest, RequestBuilder, RequestStrategy, StripeClientErr, StripeMethod, VERSION,
};

const API_BASE: &str = "https://api.stripe.com";
/// Below half of a lease, so that a call is over before another process may take the lease.
const TIMEOUT: Duration = Duration::from_secs(25);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_CONNECTIONS_MAX: usize = 16;

/// Where Stripe is and who asks.
#[derive(Clone)]
pub struct StripeOptions {
    /// `sk_test_…`, `sk_live_…`, `rk_test_…` or `rk_live_…`: the prefix says the mode.
    pub secret_key: String,
    /// `https://api.stripe.com`, or a sandbox.
    pub api_base: String,
    pub timeout: Duration,
    /// Meter events a second. None is 20 in test mode, whose events count against the account's 25 requests a second, and 500 in live
    /// mode, half of what an account may send.
    pub events_per_second: Option<u32>,
    /// From the end of a period until the account finalises its draft by itself: an hour, unless the account says otherwise
    /// in its billing settings, which no route tells.
    pub invoice_grace: Duration,
}

impl StripeOptions {
    pub fn new(secret_key: impl Into<String>) -> Self {
        Self {
            secret_key: secret_key.into(),
            api_base: API_BASE.to_owned(),
            timeout: TIMEOUT,
            events_per_second: None,
            invoice_grace: Duration::from_secs(3_600),
        }
    }
}

impl fmt::Debug for StripeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripeOptions")
            .field("api_base", &self.api_base)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// A client that takes the generated requests, keeps its connections and tells the headers. It never repeats a call.
#[derive(Clone)]
pub struct StripeClient {
    http: reqwest::Client,
    base: String,
    secret: String,
}

/// What came back, whatever its status.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Bytes,
    pub request_id: Option<String>,
    pub should_retry: Option<bool>,
    /// Set on the answers of a limiter, and on no other 429.
    pub limit_reason: Option<String>,
    pub retry_after: Option<Duration>,
    /// Stripe kept this answer under the idempotency key: nothing was done now.
    pub replayed: bool,
}

/// No answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StripeFailure {
    /// No connection: Stripe saw nothing of the call.
    #[error("no connection to the payment service: {0}")]
    NotConnected(String),
    /// The connection failed or the time ran out during the call.
    #[error("the call to the payment service broke off: {0}")]
    BrokenOff(String),
    #[error("the payment service answered {status}")]
    Status { status: u16, body: Bytes },
    #[error("the answer of the payment service cannot be read: {0}")]
    Unreadable(String),
}

impl StripeClient {
    pub fn new(options: &StripeOptions) -> Result<Self, StripeFailure> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // The command installs one first; whoever embeds this crate without it would meet a panic inside the HTTP client. An error says that
            // another thread was faster, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let http = reqwest::Client::builder()
            .timeout(options.timeout)
            .connect_timeout(CONNECT_TIMEOUT.min(options.timeout))
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("Contextmeter/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| StripeFailure::NotConnected(chain(&error)))?;
        let base = options.api_base.trim_end_matches('/').to_owned();
        Ok(Self { http, base, secret: options.secret_key.clone() })
    }

    /// One attempt.
    pub async fn call(
        &self,
        request: RequestBuilder,
        idempotency_key: Option<&str>,
    ) -> Result<Answer, StripeFailure> {
        let mut url = format!("{}/v1{}", self.base, request.path);
        if let Some(query) = request.query.filter(|query| !query.is_empty()) {
            url.push('?');
            url.push_str(&query);
        }
        let method = match request.method {
            StripeMethod::Get => reqwest::Method::GET,
            StripeMethod::Post => reqwest::Method::POST,
            StripeMethod::Delete => reqwest::Method::DELETE,
        };
        let mut call = self
            .http
            .request(method, url)
            .bearer_auth(&self.secret)
            .header("Stripe-Version", VERSION.as_str());
        if let Some(key) = idempotency_key {
            call = call.header("Idempotency-Key", key);
        }
        if let Some(body) = request.body {
            call = call.header(http::header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(body);
        }
        let response = call.send().await.map_err(|error| {
            let connected = !error.is_connect();
            let text = chain(&error.without_url());
            if connected { StripeFailure::BrokenOff(text) } else { StripeFailure::NotConnected(text) }
        })?;
        let mut answer = Answer::of(response.status().as_u16(), response.headers());
        answer.body =
            response.bytes().await.map_err(|error| StripeFailure::BrokenOff(chain(&error.without_url())))?;
        Ok(answer)
    }
}

impl Answer {
    fn of(status: u16, headers: &HeaderMap) -> Self {
        let text =
            |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
        let flag = |name: &str| text(name).and_then(|value| value.parse().ok());
        Self {
            status,
            body: Bytes::new(),
            request_id: text("request-id"),
            should_retry: flag("stripe-should-retry"),
            limit_reason: text("stripe-rate-limited-reason"),
            retry_after: text("retry-after").and_then(|value| value.parse().ok()).map(Duration::from_secs),
            replayed: flag("idempotent-replayed").unwrap_or(false),
        }
    }
}

impl StripeClientErr for StripeFailure {
    fn deserialize_err(message: impl fmt::Display) -> Self {
        Self::Unreadable(message.to_string())
    }
}

/// For the generated requests' own `send`. An idempotency key of the request is sent; its retries are not made.
impl stripe_client_core::StripeClient for StripeClient {
    type Err = StripeFailure;

    async fn execute(&self, request: CustomizedStripeRequest) -> Result<Bytes, StripeFailure> {
        let (request, overrides) = request.into_pieces();
        let key = match &overrides.request_strategy {
            Some(RequestStrategy::Idempotent(key)) => Some(key.as_str().to_owned()),
            _ => None,
        };
        let answer = self.call(request, key.as_deref()).await?;
        if (200..300).contains(&answer.status) {
            Ok(answer.body)
        } else {
            Err(StripeFailure::Status { status: answer.status, body: answer.body })
        }
    }
}

/// The whole chain in one line: the outermost text of an HTTP error alone says nothing.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}
