//! The trait, call by call.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use async_trait::async_trait;
use billing::provider::{
    Invoice, InvoiceLine, MeterEvent, NewCustomer, NewMeter, PaymentAccount, PaymentCustomer, PaymentError,
    PaymentMeter, PaymentProvider, Price, SendOutcome, SubscriptionItem,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stripe_billing::billing_meter::{
    CreateBillingMeter, CreateBillingMeterCustomerMapping, CreateBillingMeterCustomerMappingType,
    CreateBillingMeterDefaultAggregation, CreateBillingMeterDefaultAggregationFormula,
    CreateBillingMeterValueSettings, ListBillingMeter,
};
use stripe_billing::billing_meter_event::CreateBillingMeterEvent;
use stripe_billing::billing_meter_event_summary::ListIdBillingMeterEventSummary;
use stripe_billing::invoice::{FinalizeInvoiceInvoice, ListInvoice, RetrieveInvoice, UpdateInvoice};
use stripe_billing::invoice_line_item::ListInvoiceInvoiceLineItem;
use stripe_billing::subscription::{ListSubscription, ListSubscriptionStatus};
use stripe_client_core::{RequestBuilder, StripeMethod, StripeRequest as _};
use usage::Timestamp;

use crate::client::{StripeClient, StripeOptions};
use crate::decimal::whole;
use crate::objects::{
    AccountObject, CustomerObject, InvoiceObject, ItemObject, LineObject, List, Listed, MeterObject,
    PriceObject, SubscriptionObject, SummaryObject,
};
use crate::outcome::{of_call, of_send};

pub(crate) const CUSTOMER_KEY: &str = "stripe_customer_id";
pub(crate) const VALUE_KEY: &str = "value";

const PAGE: i64 = 100;
/// A list that goes on past this is a fault, not a list: a million objects.
const PAGES_MAX: usize = 10_000;
const READ_ATTEMPTS_MAX: u32 = 3;
const READ_PAUSE: Duration = Duration::from_millis(200);

/// Stripe, for one account and mode.
pub struct StripeProvider {
    client: StripeClient,
    account: PaymentAccount,
}

impl StripeProvider {
    /// Asks whose key it is. A key that says no mode is refused: what it would bill cannot be known.
    pub async fn connect(options: StripeOptions) -> Result<Self, PaymentError> {
        let livemode = mode_of(&options.secret_key)?;
        let client = StripeClient::new(&options)
            .map_err(|failure| PaymentError::Unknown { why: failure.to_string() })?;
        let account: AccountObject = read(&client, "the account", || get("/account")).await?;
        let events_per_second = options.events_per_second.unwrap_or(if livemode { 500 } else { 20 }).max(1);
        let invoice_grace_us = i64::try_from(options.invoice_grace.as_micros()).unwrap_or(i64::MAX);
        let account = PaymentAccount { id: account.id, livemode, events_per_second, invoice_grace_us };
        Ok(Self { client, account })
    }

    fn livemode(&self) -> bool {
        self.account.livemode
    }

    async fn write<T: DeserializeOwned>(
        &self,
        what: &str,
        request: RequestBuilder,
        key: Option<&str>,
    ) -> Result<T, PaymentError> {
        of_call(what, self.client.call(request, key).await)
    }

    /// All pages. `page` makes the request that begins after an id.
    async fn list<T: DeserializeOwned + Listed>(
        &self,
        what: &str,
        page: impl Fn(Option<&str>) -> RequestBuilder,
    ) -> Result<Vec<T>, PaymentError> {
        let mut all: Vec<T> = Vec::new();
        for _ in 0..PAGES_MAX {
            let after = all.last().map(|last| last.id().to_owned());
            let next: List<T> = read(&self.client, what, || page(after.as_deref())).await?;
            let empty = next.data.is_empty();
            all.extend(next.data);
            if !next.has_more || empty {
                return Ok(all);
            }
        }
        Err(PaymentError::Unknown { why: format!("the list of {what} does not end") })
    }

    async fn invoice_write(&self, invoice: &str, request: RequestBuilder) -> Result<Invoice, PaymentError> {
        self.write::<InvoiceObject>(invoice, request, None).await?.into_domain(self.livemode())
    }
}

/// A read may be repeated whatever happened.
async fn read<T: DeserializeOwned>(
    client: &StripeClient,
    what: &str,
    request: impl Fn() -> RequestBuilder,
) -> Result<T, PaymentError> {
    let mut attempt = 1;
    loop {
        let answer = client.call(request(), None).await;
        let pause = match &answer {
            Ok(answer) => answer.retry_after.unwrap_or(READ_PAUSE * attempt),
            Err(_) => READ_PAUSE * attempt,
        };
        match of_call(what, answer) {
            Err(error) if error.retryable() && attempt < READ_ATTEMPTS_MAX => {
                tracing::debug!(%error, what, attempt, "reading from Stripe again");
                tokio::time::sleep(pause).await;
                attempt += 1;
            }
            result => return result,
        }
    }
}

fn mode_of(key: &str) -> Result<bool, PaymentError> {
    let starts = |prefixes: [&str; 2]| prefixes.iter().any(|prefix| key.starts_with(prefix));
    match (starts(["sk_test_", "rk_test_"]), starts(["sk_live_", "rk_live_"])) {
        (true, _) => Ok(false),
        (_, true) => Ok(true),
        _ => Err(PaymentError::Refused {
            status: 0,
            code: "stripe_key_mode".into(),
            message: "the key must begin with sk_test_, rk_test_, sk_live_ or rk_live_".into(),
        }),
    }
}

fn get(path: &str) -> RequestBuilder {
    RequestBuilder::new(StripeMethod::Get, path)
}

/// Ids go into paths: one that would leave its place in the path is not Stripe's.
fn segment(id: &str) -> Result<&str, PaymentError> {
    let plain =
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if plain { Ok(id) } else { Err(PaymentError::NotFound { what: format!("{id:?}") }) }
}

#[derive(Serialize)]
struct CustomerForm<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct ItemQuery<'a> {
    subscription: &'a str,
    limit: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    starting_after: Option<&'a str>,
}

#[async_trait]
impl PaymentProvider for StripeProvider {
    fn account(&self) -> &PaymentAccount {
        &self.account
    }

    async fn customer_get(&self, customer: &str) -> Result<Option<PaymentCustomer>, PaymentError> {
        let path = format!("/customers/{}", segment(customer)?);
        match read::<CustomerObject>(&self.client, customer, || get(&path)).await {
            Ok(found) => Ok(Some(found.into_domain(self.livemode())?)),
            Err(PaymentError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn customer_create(&self, customer: &NewCustomer) -> Result<PaymentCustomer, PaymentError> {
        let form = CustomerForm { name: &customer.name, metadata: &customer.metadata };
        let request = RequestBuilder::new(StripeMethod::Post, "/customers").form(&form);
        let made: CustomerObject =
            self.write("the new customer", request, Some(&customer.idempotency_key)).await?;
        made.into_domain(self.livemode())
    }

    async fn meter_list(&self) -> Result<Vec<PaymentMeter>, PaymentError> {
        let page = |after: Option<&str>| {
            let list = ListBillingMeter::new().limit(PAGE);
            match after {
                Some(after) => list.starting_after(after).build(),
                None => list.build(),
            }
        };
        let meters: Vec<MeterObject> = self.list("meters", page).await?;
        meters.into_iter().map(|meter| meter.into_domain(self.livemode())).collect()
    }

    async fn meter_create(&self, meter: &NewMeter) -> Result<PaymentMeter, PaymentError> {
        let request = CreateBillingMeter::new(
            CreateBillingMeterDefaultAggregation::new(CreateBillingMeterDefaultAggregationFormula::Sum),
            &meter.display_name,
            &meter.event_name,
        )
        .customer_mapping(CreateBillingMeterCustomerMapping::new(
            CUSTOMER_KEY,
            CreateBillingMeterCustomerMappingType::ById,
        ))
        .value_settings(CreateBillingMeterValueSettings::new(VALUE_KEY));
        let made: MeterObject =
            self.write("the new meter", request.build(), Some(&meter.idempotency_key)).await?;
        made.into_domain(self.livemode())
    }

    async fn price_get(&self, price: &str) -> Result<Price, PaymentError> {
        let path = format!("/prices/{}", segment(price)?);
        Ok(read::<PriceObject>(&self.client, price, || get(&path)).await?.into_domain())
    }

    async fn meter_event_send(&self, event: &MeterEvent) -> SendOutcome {
        let payload = HashMap::from([
            (CUSTOMER_KEY.to_owned(), event.customer.clone()),
            (VALUE_KEY.to_owned(), event.value.to_string()),
        ]);
        let request = CreateBillingMeterEvent::new(&event.event_name, payload)
            .identifier(&event.identifier)
            .timestamp(event.at.as_unix_seconds_floor());
        let result = self.client.call(request.build(), Some(&event.idempotency_key)).await;
        let outcome = of_send(&event.identifier, self.livemode(), result);
        tracing::debug!(identifier = event.identifier, value = event.value, ?outcome, "sent a meter event");
        outcome
    }

    async fn meter_summary(
        &self,
        meter: &str,
        customer: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<u128, PaymentError> {
        let (from, to) = (from.as_unix_seconds_floor(), to.as_unix_seconds_floor());
        segment(meter)?;
        let page = |after: Option<&str>| {
            // The generated order is end before start.
            let list = ListIdBillingMeterEventSummary::new(meter, customer, to, from).limit(PAGE);
            match after {
                Some(after) => list.starting_after(after).build(),
                None => list.build(),
            }
        };
        let summaries: Vec<SummaryObject> = self.list("summaries", page).await?;
        let mut sum: u128 = 0;
        for summary in &summaries {
            let text = summary.aggregated_value.get();
            let not_whole = || PaymentError::NotWhole { text: text.to_owned() };
            sum = sum.checked_add(whole(text).ok_or_else(not_whole)?).ok_or_else(not_whole)?;
        }
        Ok(sum)
    }

    async fn subscription_items(&self, customer: &str) -> Result<Vec<SubscriptionItem>, PaymentError> {
        let page = |after: Option<&str>| {
            let list =
                ListSubscription::new().customer(customer).status(ListSubscriptionStatus::All).limit(PAGE);
            match after {
                Some(after) => list.starting_after(after).build(),
                None => list.build(),
            }
        };
        let subscriptions: Vec<SubscriptionObject> = self.list("subscriptions", page).await?;
        let mut metered = Vec::new();
        for mut subscription in subscriptions {
            subscription.check_mode(self.livemode())?;
            let embedded = std::mem::take(&mut subscription.items.data);
            let items = if subscription.items.has_more {
                let page = |after: Option<&str>| {
                    get("/subscription_items").query(&ItemQuery {
                        subscription: &subscription.id,
                        limit: PAGE,
                        starting_after: after,
                    })
                };
                self.list::<ItemObject>("subscription items", page).await?
            } else {
                embedded
            };
            metered.extend(subscription.metered(items)?);
        }
        Ok(metered)
    }

    async fn invoice_drafts(&self) -> Result<Vec<Invoice>, PaymentError> {
        let page = |after: Option<&str>| {
            let list = ListInvoice::new().status(stripe_billing::InvoiceStatus::Draft).limit(PAGE);
            match after {
                Some(after) => list.starting_after(after).build(),
                None => list.build(),
            }
        };
        let drafts: Vec<InvoiceObject> = self.list("invoices", page).await?;
        drafts.into_iter().map(|draft| draft.into_domain(self.livemode())).collect()
    }

    async fn invoice_get(&self, invoice: &str) -> Result<Invoice, PaymentError> {
        segment(invoice)?;
        let request = || RetrieveInvoice::new(invoice).build();
        read::<InvoiceObject>(&self.client, invoice, request).await?.into_domain(self.livemode())
    }

    async fn invoice_auto_advance_off(
        &self,
        invoice: &str,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Invoice, PaymentError> {
        segment(invoice)?;
        let metadata: HashMap<String, String> = metadata.clone().into_iter().collect();
        self.invoice_write(
            invoice,
            UpdateInvoice::new(invoice).auto_advance(false).metadata(metadata).build(),
        )
        .await
    }

    async fn invoice_metadata_set(
        &self,
        invoice: &str,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Invoice, PaymentError> {
        segment(invoice)?;
        let metadata: HashMap<String, String> = metadata.clone().into_iter().collect();
        self.invoice_write(invoice, UpdateInvoice::new(invoice).metadata(metadata).build()).await
    }

    async fn invoice_finalize(&self, invoice: &str, collect: bool) -> Result<Invoice, PaymentError> {
        segment(invoice)?;
        self.invoice_write(invoice, FinalizeInvoiceInvoice::new(invoice).auto_advance(collect).build()).await
    }

    async fn invoice_lines(&self, invoice: &str) -> Result<Vec<InvoiceLine>, PaymentError> {
        segment(invoice)?;
        let page = |after: Option<&str>| {
            let list = ListInvoiceInvoiceLineItem::new(invoice).limit(PAGE);
            match after {
                Some(after) => list.starting_after(after).build(),
                None => list.build(),
            }
        };
        let lines: Vec<LineObject> = self.list("invoice lines", page).await?;
        lines.into_iter().map(LineObject::into_domain).collect()
    }
}
