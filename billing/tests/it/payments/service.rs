//! A payment service with customers and meters in memory, for tests of the routes alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use async_trait::async_trait;
use billing::provider::{
    Invoice, InvoiceLine, MeterEvent, NewCustomer, NewMeter, PaymentAccount, PaymentCustomer, PaymentError,
    PaymentMeter, PaymentProvider, Price, SendOutcome, SubscriptionItem,
};
use usage::Timestamp;

pub(crate) struct Service {
    account: PaymentAccount,
    customers: BTreeSet<String>,
    meters: Mutex<Vec<PaymentMeter>>,
    pub(crate) away: Mutex<bool>,
}

impl Service {
    pub(crate) fn new(customers: &[&str]) -> Service {
        Service {
            account: PaymentAccount {
                id: "acct_1".to_owned(),
                livemode: false,
                events_per_second: 1_000,
                invoice_grace_us: 3_600_000_000,
            },
            customers: customers.iter().map(|customer| (*customer).to_owned()).collect(),
            meters: Mutex::default(),
            away: Mutex::new(false),
        }
    }

    fn up(&self) -> Result<(), PaymentError> {
        match *self.away.lock().unwrap() {
            true => Err(PaymentError::Unknown { why: "away".to_owned() }),
            false => Ok(()),
        }
    }

    fn none<T>(what: &str) -> Result<T, PaymentError> {
        Err(PaymentError::NotFound { what: what.to_owned() })
    }
}

#[async_trait]
impl PaymentProvider for Service {
    fn account(&self) -> &PaymentAccount {
        &self.account
    }

    async fn customer_get(&self, customer: &str) -> Result<Option<PaymentCustomer>, PaymentError> {
        self.up()?;
        let known = self.customers.contains(customer);
        Ok(known.then(|| PaymentCustomer { id: customer.to_owned(), livemode: false, deleted: false }))
    }

    async fn customer_create(&self, _: &NewCustomer) -> Result<PaymentCustomer, PaymentError> {
        Service::none("customers are given")
    }

    async fn meter_list(&self) -> Result<Vec<PaymentMeter>, PaymentError> {
        self.up()?;
        Ok(self.meters.lock().unwrap().clone())
    }

    async fn meter_create(&self, meter: &NewMeter) -> Result<PaymentMeter, PaymentError> {
        self.up()?;
        let mut meters = self.meters.lock().unwrap();
        let made = PaymentMeter {
            id: format!("mtr_{}", meters.len() + 1),
            event_name: meter.event_name.clone(),
            active: true,
            livemode: false,
            sums_raw: true,
        };
        meters.push(made.clone());
        Ok(made)
    }

    async fn price_get(&self, price: &str) -> Result<Price, PaymentError> {
        Service::none(price)
    }

    async fn meter_event_send(&self, _: &MeterEvent) -> SendOutcome {
        SendOutcome::NotTaken { why: "nothing is sent in these tests".to_owned(), after: None }
    }

    async fn meter_summary(
        &self,
        _: &str,
        _: &str,
        _: Timestamp,
        _: Timestamp,
    ) -> Result<u128, PaymentError> {
        self.up()?;
        Ok(0)
    }

    async fn subscription_items(&self, _: &str) -> Result<Vec<SubscriptionItem>, PaymentError> {
        self.up()?;
        Ok(Vec::new())
    }

    async fn invoice_drafts(&self) -> Result<Vec<Invoice>, PaymentError> {
        self.up()?;
        Ok(Vec::new())
    }

    async fn invoice_get(&self, invoice: &str) -> Result<Invoice, PaymentError> {
        Service::none(invoice)
    }

    async fn invoice_auto_advance_off(
        &self,
        invoice: &str,
        _: &BTreeMap<String, String>,
    ) -> Result<Invoice, PaymentError> {
        Service::none(invoice)
    }

    async fn invoice_metadata_set(
        &self,
        invoice: &str,
        _: &BTreeMap<String, String>,
    ) -> Result<Invoice, PaymentError> {
        Service::none(invoice)
    }

    async fn invoice_finalize(&self, invoice: &str, _: bool) -> Result<Invoice, PaymentError> {
        Service::none(invoice)
    }

    async fn invoice_lines(&self, invoice: &str) -> Result<Vec<InvoiceLine>, PaymentError> {
        Service::none(invoice)
    }
}
