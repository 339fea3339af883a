//! What a test breaks, and the switches for what no public text decides.

use serde::{Deserialize, Serialize};

use crate::pricing::LineQuantity;

/// One fault, for the next `count` requests that fit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// `POST /v1/billing/meter_events`; `*` stands for a method or one segment, a last `**` for the rest.
    pub route: String,
    /// What happens.
    pub kind: FaultKind,
    /// How many requests it meets.
    #[serde(default = "one")]
    pub count: u64,
    /// How many fitting requests pass before it.
    #[serde(default)]
    pub skip: u64,
    /// Only requests whose parameters, as JSON text, contain this.
    #[serde(default)]
    pub containing: Option<String>,
    /// For `delay_ms`: how long.
    #[serde(default)]
    pub ms: u64,
    /// For `drop_connection`, `html_502` and `delay_ms`: whether the work is done first. Default: done, except `html_502`.
    #[serde(default)]
    pub commit: Option<bool>,
    /// For `rate_limit`: the `Stripe-Rate-Limited-Reason`. Default `endpoint-rate`.
    #[serde(default)]
    pub reason: Option<String>,
    /// For `accept_then_reject`: the code in the error report. Default `meter_event_customer_not_found`.
    #[serde(default)]
    pub code: Option<String>,
}

/// The ways to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// 500, nothing done.
    FailBefore,
    /// Done, then 500.
    FailAfterCommit,
    /// The connection closes without an answer.
    DropConnection,
    /// The answer comes late.
    DelayMs,
    /// A proxy's page instead of an answer.
    #[serde(rename = "html_502")]
    Html502,
    /// 429 `lock_timeout`, which is kept under the key.
    LockTimeout,
    /// 429 with a reason.
    RateLimit,
    /// 200 for a meter event that never counts; an error report follows.
    AcceptThenReject,
}

fn one() -> u64 {
    1
}

impl Fault {
    pub(crate) fn fits(&self, method: &str, path: &str, params: &str) -> bool {
        let mut words = self.route.split_whitespace();
        let (wanted_method, pattern) = match (words.next(), words.next()) {
            (Some(method), Some(pattern)) => (method, pattern),
            (Some(pattern), None) => ("*", pattern),
            _ => return false,
        };
        (wanted_method == "*" || wanted_method.eq_ignore_ascii_case(method))
            && path_fits(pattern, path)
            && self.containing.as_ref().is_none_or(|text| params.contains(text))
    }

    pub(crate) fn commits(&self) -> bool {
        self.commit.unwrap_or(self.kind != FaultKind::Html502)
    }
}

fn path_fits(pattern: &str, path: &str) -> bool {
    let mut given = path.split('/');
    for segment in pattern.split('/') {
        if segment == "**" {
            return true;
        }
        match given.next() {
            Some(part) if segment == "*" || segment == part => {}
            _ => return false,
        }
    }
    given.next().is_none()
}

/// The first fault that fits, counted down; one that is used up goes.
pub(crate) fn take(faults: &mut Vec<Fault>, method: &str, path: &str, params: &str) -> Option<Fault> {
    let index = faults.iter().position(|fault| fault.fits(method, path, params))?;
    let fault = faults.get_mut(index)?;
    if fault.skip > 0 {
        fault.skip -= 1;
        return None;
    }
    fault.count = fault.count.saturating_sub(1);
    let taken = fault.clone();
    if taken.count == 0 {
        faults.remove(index);
    }
    Some(taken)
}

/// Switches. Defaults are what the public texts say, or the choice that the README gives.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How long an accepted event is in no sum.
    pub aggregation_lag_seconds: i64,
    /// What a second call for the same customer and meter gets while the first runs.
    pub concurrency_mode: ConcurrencyMode,
    /// Refuse decimal values, as before 2026.
    pub integer_only: bool,
    /// How long an identifier is taken.
    pub identifier_window_seconds: i64,
    /// An event of an unknown customer.
    pub unknown_customer: UnknownCustomer,
    /// Which clock says how old an event of a customer with a test clock is.
    pub event_window_clock: EventWindowClock,
    /// Hide invoices of customers with a test clock from lists that name neither customer nor subscription. Customers and subscriptions always hide.
    pub hide_clocked_invoices: bool,
    /// Show a summary of zero where there was no event.
    pub empty_summaries: bool,
    /// The quantity on lines of prices with packages.
    pub transform_line_quantity: LineQuantity,
    /// Requests a second over all routes; none is no limit.
    pub rate_limit_per_second: Option<u32>,
    /// How long the work of one meter event takes.
    pub meter_event_millis: u64,
    /// From the end of a period to the invoice's own finalisation.
    pub grace_seconds: i64,
    /// Further deliveries of each event.
    pub webhook_duplicates: u32,
    /// Newest first.
    pub webhook_reorder: bool,
    /// Attempts before an event is given up.
    pub webhook_attempts_max: u32,
    /// Between attempts, doubled each time.
    pub webhook_retry_millis: u64,
    /// API keys that answer `api_key_expired`.
    pub expired_keys: Vec<String>,
}

/// See [`Settings::concurrency_mode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConcurrencyMode {
    /// 429 `lock_timeout`.
    LockTimeout,
    /// 409.
    Conflict,
    /// Both run.
    Off,
}

/// See [`Settings::unknown_customer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownCustomer {
    /// 400 `resource_missing`.
    Refuse,
    /// 200, then an error report.
    AcceptThenReport,
}

/// See [`Settings::event_window_clock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventWindowClock {
    /// The customer's test clock.
    Frozen,
    /// The sandbox's clock.
    Base,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            aggregation_lag_seconds: 0,
            concurrency_mode: ConcurrencyMode::LockTimeout,
            integer_only: false,
            identifier_window_seconds: 86_400,
            unknown_customer: UnknownCustomer::Refuse,
            event_window_clock: EventWindowClock::Frozen,
            hide_clocked_invoices: false,
            empty_summaries: false,
            transform_line_quantity: LineQuantity::Usage,
            rate_limit_per_second: None,
            meter_event_millis: 0,
            grace_seconds: 3_600,
            webhook_duplicates: 0,
            webhook_reorder: false,
            webhook_attempts_max: 8,
            webhook_retry_millis: 200,
            expired_keys: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed parse is the failure")]
    use super::*;

    #[test]
    fn a_route_pattern_fits_what_it_names() {
        let fits = |route: &str, method: &str, path: &str| {
            let fault: Fault =
                serde_json::from_value(serde_json::json!({ "route": route, "kind": "fail_before" })).unwrap();
            fault.fits(method, path, "{}")
        };
        assert!(fits("POST /v1/billing/meter_events", "POST", "/v1/billing/meter_events"));
        assert!(!fits("POST /v1/billing/meter_events", "GET", "/v1/billing/meter_events"));
        assert!(!fits("POST /v1/billing/meter_events", "POST", "/v1/billing/meter_event_adjustments"));
        assert!(fits("* /v1/invoices/*/finalize", "POST", "/v1/invoices/in_1/finalize"));
        assert!(!fits("* /v1/invoices/*", "POST", "/v1/invoices/in_1/finalize"));
        assert!(fits("/v1/**", "GET", "/v1/billing/meters"));
    }
}
