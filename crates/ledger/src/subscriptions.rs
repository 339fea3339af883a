//! What the payment service says of customers' subscriptions, and the periods that bill them.

use std::collections::BTreeMap;

use usage::{CustomerId, MeterId, PlatformId, Timestamp};

use crate::{
    Ledger, LedgerError, Tx,
    row::{Columns as _, sum_or_null},
};

/// Whether anything bills a customer's usage of a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionState {
    None,
    Live,
    /// Two items would bill the same usage.
    Ambiguous,
}

impl SubscriptionState {
    pub fn as_str(self) -> &'static str {
        match self {
            SubscriptionState::None => "none",
            SubscriptionState::Live => "live",
            SubscriptionState::Ambiguous => "ambiguous",
        }
    }

    fn parse(text: &str) -> Result<SubscriptionState, String> {
        match text {
            "none" => Ok(SubscriptionState::None),
            "live" => Ok(SubscriptionState::Live),
            "ambiguous" => Ok(SubscriptionState::Ambiguous),
            other => Err(format!("{other:?} is no state of a subscription")),
        }
    }
}

/// One reading of one customer's subscriptions for one meter.
#[derive(Debug, Clone)]
pub struct SubscriptionRead {
    pub platform: PlatformId,
    pub customer: CustomerId,
    pub meter: MeterId,
    pub read_at: Timestamp,
    pub state: SubscriptionState,
    pub periods: Vec<BillPeriodRead>,
}

#[derive(Debug, Clone)]
pub struct BillPeriodRead {
    pub item_id: String,
    pub subscription_id: String,
    pub price_id: String,
    pub start: Timestamp,
    pub end: Timestamp,
}

/// What a customer's hour may be cut at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionView {
    pub read_at: Timestamp,
    pub state: SubscriptionState,
    /// Every period that was ever read, by their start.
    pub periods: Vec<(Timestamp, Timestamp)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BillPeriodRow {
    pub platform: PlatformId,
    pub customer: CustomerId,
    pub meter: MeterId,
    pub item_id: String,
    pub subscription_id: String,
    pub price_id: String,
    pub start: Timestamp,
    pub end: Timestamp,
    pub repriced_at: Option<Timestamp>,
    /// The draft that bills it, once that is in our hands.
    pub invoice_id: Option<String>,
    pub closed_at: Option<Timestamp>,
    pub root: Option<[u8; 32]>,
    pub placements_count: Option<u64>,
    pub placements_sum: Option<u128>,
}

/// What closing fixes.
#[derive(Debug, Clone, Copy)]
pub struct PeriodClosing {
    pub root: [u8; 32],
    pub count: u64,
    pub sum: u128,
}

impl Ledger {
    /// Notes readings of one customer, all or none.
    pub async fn subscription_record(&self, reads: &[SubscriptionRead]) -> Result<(), LedgerError> {
        const PUT: &str = include_str!("../../../sql/ledger/queries/subscriptions/put.sql");
        const PERIOD_PUT: &str = include_str!("../../../sql/ledger/queries/subscriptions/period_put.sql");
        let mut tx = self.write().await?;
        for read in reads {
            tx.run("noting a subscription", PUT, |s| {
                s.text(read.platform.as_str())
                    .text(read.customer.as_str())
                    .text(read.meter.as_str())
                    .time(read.read_at)
                    .text(read.state.as_str())
                    .done()
            })
            .await?;
            for period in &read.periods {
                tx.run("noting a billing period", PERIOD_PUT, |s| {
                    s.text(read.platform.as_str())
                        .text(read.customer.as_str())
                        .text(read.meter.as_str())
                        .text(&period.item_id)
                        .time(period.start)
                        .time(period.end)
                        .text(&period.subscription_id)
                        .text(&period.price_id)
                        .time(read.read_at)
                        .done()
                })
                .await?;
            }
        }
        tx.commit().await
    }

    /// None: never read, so no boundary is known.
    pub async fn subscription_view(
        &self,
        platform: &PlatformId,
        customer: &CustomerId,
        meter: &MeterId,
    ) -> Result<Option<SubscriptionView>, LedgerError> {
        const GET: &str = include_str!("../../../sql/ledger/queries/subscriptions/get.sql");
        let rows = self
            .rows("reading a subscription", GET, |s| {
                s.text(platform.as_str()).text(customer.as_str()).text(meter.as_str()).done()
            })
            .await?;
        let Some(row) = rows.into_iter().next() else { return Ok(None) };
        let mut periods: Vec<_> = self
            .bill_period_list(platform, customer, meter)
            .await?
            .into_iter()
            .map(|period| (period.start, period.end))
            .collect();
        periods.dedup();
        Ok(Some(SubscriptionView {
            read_at: row.time("read_at")?,
            state: row.parsed("state", |text| SubscriptionState::parse(&text))?,
            periods,
        }))
    }

    /// When each customer and meter of a platform was last read.
    pub async fn subscription_read_times(
        &self,
        platform: &PlatformId,
    ) -> Result<BTreeMap<(CustomerId, MeterId), Timestamp>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/subscriptions/list.sql");
        let rows = self.rows("listing subscriptions", LIST, |s| s.text(platform.as_str()).done()).await?;
        rows.iter()
            .map(|row| {
                let customer = row.parsed("customer_id", CustomerId::parse)?;
                let meter = row.parsed("meter_id", MeterId::parse)?;
                Ok(((customer, meter), row.time("read_at")?))
            })
            .collect()
    }

    /// Every period of a customer and meter that was ever read, by their start.
    pub async fn bill_period_list(
        &self,
        platform: &PlatformId,
        customer: &CustomerId,
        meter: &MeterId,
    ) -> Result<Vec<BillPeriodRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/subscriptions/period_list.sql");
        let rows = self
            .rows("reading billing periods", LIST, |s| {
                s.text(platform.as_str()).text(customer.as_str()).text(meter.as_str()).done()
            })
            .await?;
        rows.iter().map(period).collect()
    }

    /// Every period of a subscription item that was ever read.
    pub async fn bill_period_of_item(
        &self,
        platform: &PlatformId,
        item_id: &str,
    ) -> Result<Vec<BillPeriodRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/subscriptions/period_of_item.sql");
        let rows = self
            .rows("reading an item's periods", LIST, |s| s.text(platform.as_str()).text(item_id).done())
            .await?;
        rows.iter().map(period).collect()
    }

    /// Notes a period that was seen elsewhere than in a reading of the subscription.
    pub async fn bill_period_note(
        &self,
        platform: &PlatformId,
        customer: &CustomerId,
        meter: &MeterId,
        period: &BillPeriodRead,
    ) -> Result<(), LedgerError> {
        let now = self.now().await?;
        let put = include_str!("../../../sql/ledger/queries/subscriptions/period_put.sql");
        self.run("noting a billing period", put, |s| {
            s.text(platform.as_str())
                .text(customer.as_str())
                .text(meter.as_str())
                .text(&period.item_id)
                .time(period.start)
                .time(period.end)
                .text(&period.subscription_id)
                .text(&period.price_id)
                .time(now)
                .done()
        })
        .await
        .map(drop)
    }

    /// Takes a period into the invoice that bills it. A period that has one keeps it.
    pub async fn bill_period_guard_in_txn(
        &self,
        tx: &mut Tx,
        row: &BillPeriodRow,
        invoice_id: &str,
    ) -> Result<(), LedgerError> {
        const GUARD: &str = include_str!("../../../sql/ledger/queries/subscriptions/period_guard.sql");
        tx.run("guarding a billing period", GUARD, |s| {
            s.text(row.platform.as_str())
                .text(row.customer.as_str())
                .text(row.meter.as_str())
                .text(&row.item_id)
                .time(row.start)
                .text(invoice_id)
                .done()
        })
        .await?;
        Ok(())
    }

    /// Closes a period: from here on nothing is placed in it.
    pub async fn bill_period_close_in_txn(
        &self,
        tx: &mut Tx,
        row: &BillPeriodRow,
        closing: PeriodClosing,
    ) -> Result<(), LedgerError> {
        const CLOSE: &str = include_str!("../../../sql/ledger/queries/subscriptions/period_close.sql");
        let now = tx.now();
        let changed = tx
            .run("closing a billing period", CLOSE, |s| {
                s.text(row.platform.as_str())
                    .text(row.customer.as_str())
                    .text(row.meter.as_str())
                    .text(&row.item_id)
                    .time(row.start)
                    .time(now)
                    .bytes(&closing.root)
                    .number("count of placements", closing.count)
                    .sum(closing.sum)
                    .done()
            })
            .await?;
        if changed == 1 {
            Ok(())
        } else {
            Err(LedgerError::Conflict { constraint: "closed period".to_owned() })
        }
    }
}

fn period(row: &sqlx::any::AnyRow) -> Result<BillPeriodRow, LedgerError> {
    let root = match row.bytes_or_null("root")? {
        Some(_) => Some(row.array("root")?),
        None => None,
    };
    Ok(BillPeriodRow {
        platform: row.parsed("platform_id", PlatformId::parse)?,
        customer: row.parsed("customer_id", CustomerId::parse)?,
        meter: row.parsed("meter_id", MeterId::parse)?,
        item_id: row.text("item_id")?,
        subscription_id: row.text("subscription_id")?,
        price_id: row.text("price_id")?,
        start: row.time("period_start")?,
        end: row.time("period_end")?,
        repriced_at: row.time_or_null("repriced_at")?,
        invoice_id: row.text_or_null("invoice_id")?,
        closed_at: row.time_or_null("closed_at")?,
        root,
        placements_count: row.number_or_null("placements_count")?,
        placements_sum: sum_or_null(row, "placements_sum")?,
    })
}
