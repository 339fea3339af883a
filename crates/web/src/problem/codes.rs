//! Every code there is. A code is for ever: its meaning, status and page may be made clearer, never changed.

use super::Retry;

/// A kind of error: stable for programs, with a page for people.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
    pub retry: Retry,
    /// The page in Markdown. A code without its page does not compile.
    pub page: &'static str,
}

macro_rules! codes {
    ($($name:ident $code:literal $status:literal $retry:ident $title:literal;)*) => {
        $(pub const $name: Code = Code {
            code: $code,
            status: $status,
            title: $title,
            retry: Retry::$retry,
            page: include_str!(concat!("../../../../docs/errors/", $code, ".md")),
        };)*

        /// All of them, for the pages and for the tests that count them.
        pub const ALL: &[&Code] = &[$(&$name),*];
    };
}

codes! {
    MALFORMED_JSON "malformed_json" 400 Never "The body is not JSON";
    INVALID_REPORT "invalid_report" 422 Never "The report does not have the shape of a turn report";
    INCONSISTENT_REPORT "inconsistent_report" 422 Never "The report's figures do not agree with each other";
    REPORT_CONFLICT "report_conflict" 409 Never "This turn was reported with other content";
    MISSING_KEY "missing_key" 401 Never "The request has no API key";
    UNKNOWN_KEY "unknown_key" 401 Never "The API key is not known";
    MISSING_SCOPE "missing_scope" 403 Never "The API key may not do this";
    PLATFORM_REQUIRED "platform_required" 400 Never "The operator's token needs a platform";
    OPERATOR_REQUIRED "operator_required" 403 Never "Only the operator may do this";
    UNKNOWN_ROUTE "unknown_route" 404 Never "There is no such route";
    METHOD_NOT_ALLOWED "method_not_allowed" 405 Never "The route does not take this method";
    NOT_FOUND "not_found" 404 Never "It is not there";
    ALREADY_EXISTS "already_exists" 409 Never "It is there already";
    PLATFORM_EXISTS "platform_exists" 409 Never "The platform is there already";
    STRIPE_CUSTOMER_TAKEN "stripe_customer_taken" 409 Never "The Stripe customer pays for somebody else";
    CUSTOMER_LINKED "customer_linked" 409 Never "The customer is linked to another Stripe customer";
    INVALID_REQUEST "invalid_request" 422 Never "The request does not have the expected shape";
    INVALID_VALUE "invalid_value" 422 Never "A value is out of its bounds";
    BODY_TOO_LARGE "body_too_large" 413 Never "The body is too large";
    UNSUPPORTED_MEDIA_TYPE "unsupported_media_type" 415 Never "The body's media type is not taken here";
    CUSTOMER_UNKNOWN "customer_unknown" 422 Never "The platform does not know this customer";
    RATE_LIMITED "rate_limited" 429 After "Too many requests";
    OVERLOADED "overloaded" 503 After "The service is busy";
    TIMEOUT "timeout" 503 After "The request took too long";
    NOT_DURABLE "not_durable" 503 After "The report cannot be made durable now";
    LEDGER_UNAVAILABLE "ledger_unavailable" 503 After "The ledger does not answer";
    STORE_UNAVAILABLE "store_unavailable" 503 After "The usage store does not answer";
    STRIPE_UNAVAILABLE "stripe_unavailable" 503 After "Stripe does not answer";
    STRIPE_REFUSED "stripe_refused" 409 Never "Stripe refused it";
    PAYMENTS_OFF "payments_off" 409 Never "No payment service is configured";
    BUSY "busy" 503 After "Another worker does this now";
    BUDGET_EXHAUSTED "budget_exhausted" 402 Never "The budget does not cover it";
    DELEGATION_CONFLICT "delegation_conflict" 409 Never "This delegation was opened with other content";
    DELEGATION_CLOSED "delegation_closed" 409 Never "The delegation takes no more reservations";
    DELEGATION_FULL "delegation_full" 409 Never "The delegation has all the attempts it may have";
    ATTEMPT_CONFLICT "attempt_conflict" 409 Never "This was asked for the attempt with other content";
    ATTEMPT_ENDED "attempt_ended" 409 Never "The attempt has ended";
    INTERNAL "internal" 500 SameKey "The service failed";
}
