//! What billing needs of a payment service, in its own words. `stripe-provider` is the one implementation.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use usage::Timestamp;

/// The account that all calls of a provider go to. A platform is bound to one account, and each call checks that it is this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentAccount {
    pub id: String,
    pub livemode: bool,
    /// Meter events a second that the account takes, with room left for others who use the same key.
    pub events_per_second: u32,
    /// From the end of a period until the account finalises its draft by itself, as its owner set it: the service does not tell.
    pub invoice_grace_us: i64,
}

#[async_trait]
pub trait PaymentProvider: Send + Sync + 'static {
    fn account(&self) -> &PaymentAccount;

    async fn customer_get(&self, customer: &str) -> Result<Option<PaymentCustomer>, PaymentError>;
    async fn customer_create(&self, customer: &NewCustomer) -> Result<PaymentCustomer, PaymentError>;

    async fn meter_list(&self) -> Result<Vec<PaymentMeter>, PaymentError>;
    async fn meter_create(&self, meter: &NewMeter) -> Result<PaymentMeter, PaymentError>;
    async fn price_get(&self, price: &str) -> Result<Price, PaymentError>;

    /// Tells of usage once. Never retries: whether to send again is decided from the ledger.
    async fn meter_event_send(&self, event: &MeterEvent) -> SendOutcome;

    /// What the service counted for `[from, to)`, exactly. Both ends are whole minutes.
    async fn meter_summary(
        &self,
        meter: &str,
        customer: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<u128, PaymentError>;

    /// Every item of the customer's subscriptions with a metered price, ended subscriptions included.
    async fn subscription_items(&self, customer: &str) -> Result<Vec<SubscriptionItem>, PaymentError>;

    async fn invoice_drafts(&self) -> Result<Vec<Invoice>, PaymentError>;
    async fn invoice_get(&self, invoice: &str) -> Result<Invoice, PaymentError>;
    /// Takes the finalisation into our hands, and notes so in the same call.
    async fn invoice_auto_advance_off(
        &self,
        invoice: &str,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Invoice, PaymentError>;
    async fn invoice_metadata_set(
        &self,
        invoice: &str,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Invoice, PaymentError>;
    /// `collect`: the service asks for the money by itself from then on, as it would have done without us.
    async fn invoice_finalize(&self, invoice: &str, collect: bool) -> Result<Invoice, PaymentError>;
    async fn invoice_lines(&self, invoice: &str) -> Result<Vec<InvoiceLine>, PaymentError>;
}

#[derive(Clone, Debug)]
pub struct PaymentCustomer {
    pub id: String,
    pub livemode: bool,
    pub deleted: bool,
}

#[derive(Clone, Debug)]
pub struct NewCustomer {
    pub name: String,
    pub metadata: BTreeMap<String, String>,
    pub idempotency_key: String,
}

/// A meter as the service holds it.
#[derive(Clone, Debug)]
pub struct PaymentMeter {
    pub id: String,
    pub event_name: String,
    pub active: bool,
    pub livemode: bool,
    /// Sums raw events by the payload keys that we send. Any other meter would count something else than we placed.
    pub sums_raw: bool,
}

#[derive(Clone, Debug)]
pub struct NewMeter {
    pub display_name: String,
    pub event_name: String,
    pub idempotency_key: String,
}

#[derive(Clone, Debug)]
pub struct Price {
    pub id: String,
    pub meter: Option<String>,
    /// Packages of units: the quantity on a line is then not the usage.
    pub transformed: bool,
}

/// One message about usage.
#[derive(Clone, Debug)]
pub struct MeterEvent {
    pub event_name: String,
    pub customer: String,
    /// At least 1 and at most 15 digits.
    pub value: u64,
    pub identifier: String,
    pub at: Timestamp,
    /// Of this attempt: a failure that the service keeps under a key must not meet the next attempt.
    pub idempotency_key: String,
}

/// What is known after one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    Delivered {
        request: Option<String>,
    },
    /// The service holds an event with this identifier. Whether with this amount, the minute tells.
    AlreadyExists,
    /// The service will never take this event.
    Refused {
        code: String,
        message: String,
    },
    /// The service did not look at it: a rate limit, a key that is not accepted, no connection. The same again is safe.
    NotTaken {
        why: String,
        after: Option<Duration>,
    },
    /// Anything may have happened.
    Unknown {
        why: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionItem {
    pub subscription: String,
    pub item: String,
    pub price: String,
    pub meter: String,
    /// The subscription bills: it is neither ended nor never begun.
    pub live: bool,
    pub period_start: Timestamp,
    pub period_end: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// A cancellation that has been ordered for later.
    pub cancel_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvoiceStatus {
    Draft,
    /// Finalised, whether paid or not.
    Final,
    /// Void or uncollectible.
    Dead,
}

#[derive(Clone, Debug)]
pub struct Invoice {
    pub id: String,
    pub customer: String,
    pub subscription: Option<String>,
    pub status: InvoiceStatus,
    pub auto_advance: bool,
    pub livemode: bool,
    pub created: Timestamp,
    pub automatically_finalizes_at: Option<Timestamp>,
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub struct InvoiceLine {
    pub id: String,
    pub item: Option<String>,
    pub price: Option<String>,
    /// None where the service's number is no whole number of units.
    pub quantity: Option<u128>,
    /// In the currency's smallest unit, for people.
    pub amount: i64,
    pub currency: String,
    pub period_start: Timestamp,
    pub period_end: Timestamp,
    pub description: Option<String>,
}

/// Why a call other than the sending of usage failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PaymentError {
    /// Nothing came back, or nothing that can be read; a write may have happened.
    #[error("the payment service gave no usable answer: {why}")]
    Unknown { why: String },
    #[error("the payment service limits the rate")]
    RateLimited { after: Option<Duration> },
    #[error("the payment service refused ({code}): {message}")]
    Refused { status: u16, code: String, message: String },
    #[error("the payment service does not know {what}")]
    NotFound { what: String },
    /// A number that is not whole, or does not fit: never rounded.
    #[error("the payment service answered a number that is no count of units: {text}")]
    NotWhole { text: String },
    #[error("the object belongs to the other mode or another account: {what}")]
    OtherAccount { what: String },
}

impl PaymentError {
    /// The same call later may well succeed.
    pub fn retryable(&self) -> bool {
        match self {
            Self::Unknown { .. } | Self::RateLimited { .. } => true,
            Self::Refused { .. }
            | Self::NotFound { .. }
            | Self::NotWhole { .. }
            | Self::OtherAccount { .. } => false,
        }
    }
}
