//! Invoices that we guard, and their lines.

use usage::{CustomerId, MeterId, PlatformId, Timestamp};

use crate::{
    Ledger, LedgerError, Tx,
    row::{Columns as _, sum_or_null},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceRow {
    pub platform: PlatformId,
    pub invoice_id: String,
    pub customer: CustomerId,
    pub stripe_customer: String,
    pub subscription_id: Option<String>,
    /// found | closed | held | finalized | dead
    pub state: String,
    pub reason: Option<String>,
    pub verdict: Option<String>,
    pub expected: Option<u128>,
    pub billed: Option<u128>,
    pub root: Option<[u8; 32]>,
    pub created_at: Timestamp,
    pub found_at: Timestamp,
    pub finalizes_at: Option<Timestamp>,
    pub auto_advance_off_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    pub finalised_at: Option<Timestamp>,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceLineRow {
    pub platform: PlatformId,
    pub invoice_id: String,
    pub line_id: String,
    pub place: u32,
    pub item_id: Option<String>,
    pub price_id: Option<String>,
    pub meter: Option<MeterId>,
    pub quantity: Option<u128>,
    pub amount: i64,
    pub currency: String,
    pub period_start: Timestamp,
    pub period_end: Timestamp,
    pub description: Option<String>,
    /// Of the finalised invoice; a draft's lines may still change.
    pub last: bool,
}

impl Ledger {
    pub async fn invoice_put_in_txn(&self, tx: &mut Tx, row: &InvoiceRow) -> Result<(), LedgerError> {
        const PUT: &str = include_str!("../../../sql/ledger/queries/invoices/put.sql");
        let time = |value: Option<Timestamp>| value.map(Timestamp::as_micros);
        let sum = |value: Option<u128>| value.map(u128::to_be_bytes);
        tx.run("noting an invoice", PUT, |s| {
            s.text(row.platform.as_str())
                .text(&row.invoice_id)
                .text(row.customer.as_str())
                .text(&row.stripe_customer)
                .text_or_null(row.subscription_id.as_deref())
                .text(&row.state)
                .text_or_null(row.reason.as_deref())
                .text_or_null(row.verdict.as_deref())
                .bytes_or_null(sum(row.expected).as_ref().map(<[u8; 16]>::as_slice))
                .bytes_or_null(sum(row.billed).as_ref().map(<[u8; 16]>::as_slice))
                .bytes_or_null(row.root.as_ref().map(<[u8; 32]>::as_slice))
                .time(row.created_at)
                .time(row.found_at)
                .integer_or_null(time(row.finalizes_at))
                .integer_or_null(time(row.auto_advance_off_at))
                .integer_or_null(time(row.closed_at))
                .integer_or_null(time(row.finalised_at))
                .time(row.updated_at)
                .done()
        })
        .await?;
        Ok(())
    }

    pub async fn invoice_get(
        &self,
        platform: &PlatformId,
        invoice_id: &str,
    ) -> Result<Option<InvoiceRow>, LedgerError> {
        const GET: &str = include_str!("../../../sql/ledger/queries/invoices/get.sql");
        let rows = self
            .rows("reading an invoice", GET, |s| s.text(platform.as_str()).text(invoice_id).done())
            .await?;
        rows.first().map(invoice).transpose()
    }

    pub async fn invoice_list(
        &self,
        platform: &PlatformId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<InvoiceRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/invoices/list.sql");
        let rows = self
            .rows("listing invoices", LIST, |s| {
                s.text(platform.as_str()).text(after).integer(i64::from(limit)).done()
            })
            .await?;
        rows.iter().map(invoice).collect()
    }

    /// Those in our hands that are not finalised.
    pub async fn invoice_open(&self, platform: &PlatformId) -> Result<Vec<InvoiceRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/invoices/open.sql");
        let rows = self.rows("listing open invoices", LIST, |s| s.text(platform.as_str()).done()).await?;
        rows.iter().map(invoice).collect()
    }

    /// Replaces the lines of an invoice by what they are now.
    pub async fn invoice_lines_put_in_txn(
        &self,
        tx: &mut Tx,
        platform: &PlatformId,
        invoice_id: &str,
        lines: &[InvoiceLineRow],
    ) -> Result<(), LedgerError> {
        const DELETE: &str = include_str!("../../../sql/ledger/queries/invoices/lines_delete.sql");
        const INSERT: &str = include_str!("../../../sql/ledger/queries/invoices/line_insert.sql");
        tx.run("replacing an invoice's lines", DELETE, |s| s.text(platform.as_str()).text(invoice_id).done())
            .await?;
        for row in lines {
            tx.run("writing an invoice line", INSERT, |s| {
                s.text(row.platform.as_str())
                    .text(&row.invoice_id)
                    .text(&row.line_id)
                    .integer(i64::from(row.place))
                    .text_or_null(row.item_id.as_deref())
                    .text_or_null(row.price_id.as_deref())
                    .text_or_null(row.meter.as_ref().map(MeterId::as_str))
                    .bytes_or_null(row.quantity.map(u128::to_be_bytes).as_ref().map(<[u8; 16]>::as_slice))
                    .integer(row.amount)
                    .text(&row.currency)
                    .time(row.period_start)
                    .time(row.period_end)
                    .text_or_null(row.description.as_deref())
                    .flag(row.last)
                    .done()
            })
            .await?;
        }
        Ok(())
    }

    pub async fn invoice_lines(
        &self,
        platform: &PlatformId,
        invoice_id: &str,
    ) -> Result<Vec<InvoiceLineRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/invoices/lines.sql");
        let rows = self
            .rows("reading invoice lines", LIST, |s| s.text(platform.as_str()).text(invoice_id).done())
            .await?;
        rows.iter().map(line).collect()
    }

    /// The lines of all invoices from `first` to `last`, for a page of invoices.
    pub async fn invoice_lines_between(
        &self,
        platform: &PlatformId,
        first: &str,
        last: &str,
    ) -> Result<Vec<InvoiceLineRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/invoices/lines_between.sql");
        let rows = self
            .rows("reading invoice lines", LIST, |s| s.text(platform.as_str()).text(first).text(last).done())
            .await?;
        rows.iter().map(line).collect()
    }

    pub async fn invoice_line_get(
        &self,
        platform: &PlatformId,
        line_id: &str,
    ) -> Result<Option<InvoiceLineRow>, LedgerError> {
        const GET: &str = include_str!("../../../sql/ledger/queries/invoices/line_get.sql");
        let rows = self
            .rows("reading an invoice line", GET, |s| s.text(platform.as_str()).text(line_id).done())
            .await?;
        rows.first().map(line).transpose()
    }

    /// The lines that bill a placement: tiers make several of one item.
    pub async fn invoice_lines_for_placement(
        &self,
        platform: &PlatformId,
        placement_id: &str,
    ) -> Result<Vec<InvoiceLineRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/invoices/lines_of_placement.sql");
        let rows = self
            .rows("finding a placement's invoice lines", LIST, |s| {
                s.text(platform.as_str()).text(placement_id).done()
            })
            .await?;
        rows.iter().map(line).collect()
    }

    /// The first of [`Ledger::invoice_lines_for_placement`].
    pub async fn invoice_line_for_placement(
        &self,
        platform: &PlatformId,
        placement_id: &str,
    ) -> Result<Option<InvoiceLineRow>, LedgerError> {
        Ok(self.invoice_lines_for_placement(platform, placement_id).await?.into_iter().next())
    }
}

fn invoice(row: &sqlx::any::AnyRow) -> Result<InvoiceRow, LedgerError> {
    let root = match row.bytes_or_null("root")? {
        Some(_) => Some(row.array("root")?),
        None => None,
    };
    Ok(InvoiceRow {
        platform: row.parsed("platform_id", PlatformId::parse)?,
        invoice_id: row.text("invoice_id")?,
        customer: row.parsed("customer_id", CustomerId::parse)?,
        stripe_customer: row.text("stripe_customer")?,
        subscription_id: row.text_or_null("subscription_id")?,
        state: row.text("state")?,
        reason: row.text_or_null("reason")?,
        verdict: row.text_or_null("verdict")?,
        expected: sum_or_null(row, "expected")?,
        billed: sum_or_null(row, "billed")?,
        root,
        created_at: row.time("created_at")?,
        found_at: row.time("found_at")?,
        finalizes_at: row.time_or_null("finalizes_at")?,
        auto_advance_off_at: row.time_or_null("auto_advance_off_at")?,
        closed_at: row.time_or_null("closed_at")?,
        finalised_at: row.time_or_null("finalised_at")?,
        updated_at: row.time("updated_at")?,
    })
}

fn line(row: &sqlx::any::AnyRow) -> Result<InvoiceLineRow, LedgerError> {
    let meter = match row.text_or_null("meter_id")? {
        Some(_) => Some(row.parsed("meter_id", MeterId::parse)?),
        None => None,
    };
    let place = u32::try_from(row.integer("place")?)
        .map_err(|_| LedgerError::Corrupt { column: "place", reason: "it is no small number".to_owned() })?;
    Ok(InvoiceLineRow {
        platform: row.parsed("platform_id", PlatformId::parse)?,
        invoice_id: row.text("invoice_id")?,
        line_id: row.text("line_id")?,
        place,
        item_id: row.text_or_null("item_id")?,
        price_id: row.text_or_null("price_id")?,
        meter,
        quantity: sum_or_null(row, "quantity")?,
        amount: row.integer("amount")?,
        currency: row.text("currency")?,
        period_start: row.time("period_start")?,
        period_end: row.time("period_end")?,
        description: row.text_or_null("description")?,
        last: row.flag("final")?,
    })
}
