//! Stripe's answers, as far as billing reads them. Unknown members are Stripe's right.

use std::collections::BTreeMap;

use billing::provider::{
    Invoice, InvoiceLine, InvoiceStatus, PaymentCustomer, PaymentError, PaymentMeter, Price, SubscriptionItem,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use usage::Timestamp;

use crate::decimal::whole;

/// What a page is resumed after.
pub(crate) trait Listed {
    fn id(&self) -> &str;
}

#[derive(Deserialize)]
pub(crate) struct List<T> {
    pub(crate) data: Vec<T>,
    #[serde(default)]
    pub(crate) has_more: bool,
}

#[derive(Deserialize)]
pub(crate) struct AccountObject {
    pub(crate) id: String,
}

#[derive(Deserialize)]
pub(crate) struct CustomerObject {
    id: String,
    #[serde(default)]
    livemode: Option<bool>,
    #[serde(default)]
    deleted: bool,
}

#[derive(Deserialize)]
pub(crate) struct MeterObject {
    id: String,
    event_name: String,
    status: String,
    livemode: bool,
    event_time_window: Option<String>,
    default_aggregation: Aggregation,
    customer_mapping: PayloadKey,
    value_settings: PayloadKey,
}

#[derive(Deserialize)]
struct Aggregation {
    formula: String,
}

#[derive(Deserialize)]
struct PayloadKey {
    event_payload_key: String,
}

#[derive(Deserialize)]
pub(crate) struct EventObject {
    pub(crate) identifier: String,
    pub(crate) livemode: bool,
}

#[derive(Deserialize)]
pub(crate) struct SummaryObject {
    id: String,
    /// A JSON float: its text is kept, because the number that a float would hold is another one past 2^53.
    pub(crate) aggregated_value: Box<RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct PriceObject {
    id: String,
    recurring: Option<Recurring>,
    transform_quantity: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Recurring {
    meter: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct SubscriptionObject {
    pub(crate) id: String,
    status: String,
    livemode: bool,
    ended_at: Option<i64>,
    cancel_at: Option<i64>,
    pub(crate) items: List<ItemObject>,
}

#[derive(Deserialize)]
pub(crate) struct ItemObject {
    id: String,
    price: PriceObject,
    current_period_start: i64,
    current_period_end: i64,
}

#[derive(Deserialize)]
pub(crate) struct InvoiceObject {
    id: String,
    customer: Option<Reference>,
    status: Option<String>,
    auto_advance: Option<bool>,
    livemode: bool,
    created: i64,
    automatically_finalizes_at: Option<i64>,
    metadata: Option<BTreeMap<String, String>>,
    parent: Option<InvoiceParent>,
}

#[derive(Deserialize)]
struct InvoiceParent {
    subscription_details: Option<InvoiceSubscription>,
}

#[derive(Deserialize)]
struct InvoiceSubscription {
    subscription: Reference,
}

/// An id, or the object itself where something was expanded.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reference {
    Id(String),
    Object { id: String },
}

impl Reference {
    fn into_id(self) -> String {
        match self {
            Self::Id(id) | Self::Object { id } => id,
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct LineObject {
    id: String,
    amount: i64,
    currency: String,
    description: Option<String>,
    /// Newer and exact; a string.
    quantity_decimal: Option<String>,
    quantity: Option<Box<RawValue>>,
    period: Span,
    parent: Option<LineParent>,
    pricing: Option<Pricing>,
}

#[derive(Deserialize)]
struct Span {
    start: i64,
    end: i64,
}

#[derive(Deserialize)]
struct LineParent {
    subscription_item_details: Option<LineItem>,
}

#[derive(Deserialize)]
struct LineItem {
    subscription_item: String,
}

#[derive(Deserialize)]
struct Pricing {
    price_details: Option<PriceDetails>,
}

#[derive(Deserialize)]
struct PriceDetails {
    price: Reference,
}

macro_rules! listed {
    ($($object:ty),+) => { $(impl Listed for $object {
        fn id(&self) -> &str {
            &self.id
        }
    })+ };
}
listed!(MeterObject, SummaryObject, SubscriptionObject, ItemObject, InvoiceObject, LineObject);

fn seconds(value: i64) -> Result<Timestamp, PaymentError> {
    Timestamp::from_unix_seconds(value)
        .ok_or_else(|| PaymentError::Unknown { why: format!("{value} is no time") })
}

/// Test and live never mix: an object of the other mode is an error, whatever it says.
fn same_mode(expected: bool, found: bool, what: &str) -> Result<(), PaymentError> {
    if expected == found { Ok(()) } else { Err(PaymentError::OtherAccount { what: what.to_owned() }) }
}

impl CustomerObject {
    pub(crate) fn into_domain(self, livemode: bool) -> Result<PaymentCustomer, PaymentError> {
        // A deleted customer comes back without its mode.
        same_mode(livemode, self.livemode.unwrap_or(livemode), &self.id)?;
        Ok(PaymentCustomer { id: self.id, livemode, deleted: self.deleted })
    }
}

impl MeterObject {
    pub(crate) fn into_domain(self, livemode: bool) -> Result<PaymentMeter, PaymentError> {
        same_mode(livemode, self.livemode, &self.id)?;
        let sums_raw = self.event_time_window.is_none()
            && self.default_aggregation.formula == "sum"
            && self.customer_mapping.event_payload_key == crate::provider::CUSTOMER_KEY
            && self.value_settings.event_payload_key == crate::provider::VALUE_KEY;
        Ok(PaymentMeter {
            id: self.id,
            event_name: self.event_name,
            active: self.status == "active",
            livemode: self.livemode,
            sums_raw,
        })
    }
}

impl PriceObject {
    pub(crate) fn into_domain(self) -> Price {
        Price {
            id: self.id,
            meter: self.recurring.and_then(|recurring| recurring.meter),
            transformed: self.transform_quantity.is_some_and(|transform| !transform.is_null()),
        }
    }
}

impl SubscriptionObject {
    pub(crate) fn check_mode(&self, livemode: bool) -> Result<(), PaymentError> {
        same_mode(livemode, self.livemode, &self.id)
    }

    /// Its metered items; those with another price are not ours.
    pub(crate) fn metered(&self, items: Vec<ItemObject>) -> Result<Vec<SubscriptionItem>, PaymentError> {
        let live = matches!(self.status.as_str(), "active" | "trialing" | "past_due" | "unpaid" | "paused");
        let ended_at = self.ended_at.map(seconds).transpose()?;
        let cancel_at = self.cancel_at.map(seconds).transpose()?;
        let mut metered = Vec::new();
        for item in items {
            let price = item.price.into_domain();
            let Some(meter) = price.meter else { continue };
            metered.push(SubscriptionItem {
                subscription: self.id.clone(),
                item: item.id,
                price: price.id,
                meter,
                live,
                period_start: seconds(item.current_period_start)?,
                period_end: seconds(item.current_period_end)?,
                ended_at,
                cancel_at,
            });
        }
        Ok(metered)
    }
}

impl InvoiceObject {
    pub(crate) fn into_domain(self, livemode: bool) -> Result<Invoice, PaymentError> {
        same_mode(livemode, self.livemode, &self.id)?;
        let status = match self.status.as_deref() {
            Some("draft") | None => InvoiceStatus::Draft,
            Some("void" | "uncollectible") => InvoiceStatus::Dead,
            Some(_) => InvoiceStatus::Final,
        };
        Ok(Invoice {
            id: self.id,
            customer: self.customer.map(Reference::into_id).unwrap_or_default(),
            subscription: self
                .parent
                .and_then(|parent| parent.subscription_details)
                .map(|details| details.subscription.into_id()),
            status,
            auto_advance: self.auto_advance.unwrap_or(false),
            livemode: self.livemode,
            created: seconds(self.created)?,
            automatically_finalizes_at: self.automatically_finalizes_at.map(seconds).transpose()?,
            metadata: self.metadata.unwrap_or_default(),
        })
    }
}

impl LineObject {
    pub(crate) fn into_domain(self) -> Result<InvoiceLine, PaymentError> {
        let quantity = match (&self.quantity_decimal, &self.quantity) {
            (Some(decimal), _) => whole(decimal),
            (None, Some(number)) => whole(number.get()),
            (None, None) => Some(0),
        };
        Ok(InvoiceLine {
            id: self.id,
            item: self
                .parent
                .and_then(|parent| parent.subscription_item_details)
                .map(|details| details.subscription_item),
            price: self
                .pricing
                .and_then(|pricing| pricing.price_details)
                .map(|details| details.price.into_id()),
            quantity,
            amount: self.amount,
            currency: self.currency,
            period_start: seconds(self.period.start)?,
            period_end: seconds(self.period.end)?,
            description: self.description,
        })
    }
}
