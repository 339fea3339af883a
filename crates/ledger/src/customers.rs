//! Customers of platforms and their Stripe customers.

use sqlx::any::AnyRow;
use usage::{CustomerId, PlatformId, Timestamp};

use crate::{Ledger, LedgerError, row::Columns as _, row::one};

/// A customer that someone named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomerRow {
    pub platform: PlatformId,
    pub customer: CustomerId,
    pub stripe_account: Option<String>,
    pub stripe_customer: Option<String>,
    pub created_at: Timestamp,
    pub linked_at: Option<Timestamp>,
}

impl CustomerRow {
    /// The constraint that a [`LedgerError::Conflict`] names when a customer was billed through another Stripe customer already.
    pub const LINKED: &'static str = "customers_linked";
}

impl Ledger {
    /// Links a customer to a Stripe customer. `Conflict` if that one pays for somebody else, or if this one was billed through another already
    /// (constraint `customers_linked`).
    pub async fn customer_link(
        &self,
        platform: &PlatformId,
        customer: &CustomerId,
        stripe_account: &str,
        stripe_customer: &str,
    ) -> Result<CustomerRow, LedgerError> {
        let now = self.now().await?;
        let link = include_str!("../../../sql/ledger/queries/customers/link.sql");
        let changed = self
            .run("linking a customer", link, |s| {
                s.text(platform.as_str())
                    .text(customer.as_str())
                    .text(stripe_account)
                    .text(stripe_customer)
                    .time(now)
                    .done()
            })
            .await?;
        if changed == 0 {
            return Err(LedgerError::Conflict { constraint: CustomerRow::LINKED.to_owned() });
        }
        self.customer_get(platform, customer).await
    }

    pub async fn customer_get(
        &self,
        platform: &PlatformId,
        customer: &CustomerId,
    ) -> Result<CustomerRow, LedgerError> {
        let get = include_str!("../../../sql/ledger/queries/customers/get.sql");
        let rows = self
            .rows("reading a customer", get, |s| s.text(platform.as_str()).text(customer.as_str()).done())
            .await?;
        read(&one(rows, || format!("customer {customer}"))?)
    }

    /// Customers in order of id, those after `after`.
    pub async fn customer_list(
        &self,
        platform: &PlatformId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<CustomerRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/customers/list.sql");
        let rows = self
            .rows("listing customers", list, |s| {
                s.text(platform.as_str()).text(after).integer(i64::from(limit)).done()
            })
            .await?;
        rows.iter().map(read).collect()
    }
}

fn read(row: &AnyRow) -> Result<CustomerRow, LedgerError> {
    Ok(CustomerRow {
        platform: row.parsed("platform_id", PlatformId::parse)?,
        customer: row.parsed("customer_id", CustomerId::parse)?,
        stripe_account: row.text_or_null("stripe_account")?,
        stripe_customer: row.text_or_null("stripe_customer")?,
        created_at: row.time("created_at")?,
        linked_at: row.time_or_null("linked_at")?,
    })
}
