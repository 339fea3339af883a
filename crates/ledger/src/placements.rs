//! Where statements are billed: written down before anything is sent, and never changed in amount, minute or identifier.

use usage::{CustomerId, Hour, MeterId, PlatformId, Timestamp};

use crate::{
    Ledger, LedgerError, Tx,
    row::{Columns as _, sum_or_null},
};

mod sync;

pub use sync::{ReconciliationRow, SyncWaitRow, SyncWaitSummary};

/// One part of a statement at the payment service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementRow {
    pub placement_id: String,
    pub platform: PlatformId,
    pub customer: CustomerId,
    pub meter: MeterId,
    pub statement_id: String,
    pub statement_hash: [u8; 32],
    pub hour: Hour,
    pub piece_start: Timestamp,
    pub piece_end: Timestamp,
    pub revision: u32,
    pub part: u32,
    pub n: u32,
    pub stripe_account: String,
    pub stripe_customer: String,
    pub stripe_meter: String,
    pub event_name: String,
    pub amount: u64,
    pub bill_start: Timestamp,
    pub bill_end: Timestamp,
    pub carried: bool,
    pub minute: Timestamp,
    pub event_at: Timestamp,
    pub slot: u32,
    pub minute_before: u128,
    pub identifier: String,
    pub state: String,
    pub attempt: u32,
    pub first_attempt_at: Option<Timestamp>,
    pub last_attempt_at: Option<Timestamp>,
    pub exists_said: bool,
    pub reason: Option<String>,
    pub request_id: Option<String>,
    pub seen: Option<u128>,
    pub seen_at: Option<Timestamp>,
    pub without_at: Option<Timestamp>,
    pub settled: bool,
    pub invoice_id: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Where a list goes on: after the row of this time and id.
pub type PlacementCursor<'a> = Option<(Timestamp, &'a str)>;

impl Ledger {
    pub async fn placement_insert_in_txn(&self, tx: &mut Tx, row: &PlacementRow) -> Result<(), LedgerError> {
        const INSERT: &str = include_str!("../../../sql/ledger/queries/placements/insert.sql");
        let optional = |value: Option<Timestamp>| value.map(Timestamp::as_micros);
        tx.run("writing a placement", INSERT, |s| {
            s.text(&row.placement_id)
                .text(row.platform.as_str())
                .text(row.customer.as_str())
                .text(row.meter.as_str())
                .text(&row.statement_id)
                .bytes(&row.statement_hash)
                .hour(row.hour)
                .time(row.piece_start)
                .time(row.piece_end)
                .integer(i64::from(row.revision))
                .integer(i64::from(row.part))
                .integer(i64::from(row.n))
                .text(&row.stripe_account)
                .text(&row.stripe_customer)
                .text(&row.stripe_meter)
                .text(&row.event_name)
                .number("amount", row.amount)
                .time(row.bill_start)
                .time(row.bill_end)
                .flag(row.carried)
                .time(row.minute)
                .time(row.event_at)
                .integer(i64::from(row.slot))
                .sum(row.minute_before)
                .text(&row.identifier)
                .text(&row.state)
                .integer(i64::from(row.attempt))
                .integer_or_null(optional(row.first_attempt_at))
                .integer_or_null(optional(row.last_attempt_at))
                .flag(row.exists_said)
                .text_or_null(row.reason.as_deref())
                .text_or_null(row.request_id.as_deref())
                .bytes_or_null(row.seen.map(u128::to_be_bytes).as_ref().map(<[u8; 16]>::as_slice))
                .integer_or_null(optional(row.seen_at))
                .integer_or_null(optional(row.without_at))
                .flag(row.settled)
                .text_or_null(row.invoice_id.as_deref())
                .time(row.created_at)
                .time(row.updated_at)
                .done()
        })
        .await?;
        Ok(())
    }

    /// Moves a placement on from the state and attempt that the caller saw; a conflict when somebody else moved it.
    pub async fn placement_update_in_txn(
        &self,
        tx: &mut Tx,
        row: &PlacementRow,
        from_state: &str,
        from_attempt: u32,
    ) -> Result<(), LedgerError> {
        const UPDATE: &str = include_str!("../../../sql/ledger/queries/placements/update.sql");
        let optional = |value: Option<Timestamp>| value.map(Timestamp::as_micros);
        let changed = tx
            .run("moving a placement", UPDATE, |s| {
                s.text(&row.placement_id)
                    .text(from_state)
                    .integer(i64::from(from_attempt))
                    .text(&row.state)
                    .integer(i64::from(row.attempt))
                    .integer_or_null(optional(row.first_attempt_at))
                    .integer_or_null(optional(row.last_attempt_at))
                    .flag(row.exists_said)
                    .text_or_null(row.reason.as_deref())
                    .text_or_null(row.request_id.as_deref())
                    .bytes_or_null(row.seen.map(u128::to_be_bytes).as_ref().map(<[u8; 16]>::as_slice))
                    .integer_or_null(optional(row.seen_at))
                    .integer_or_null(optional(row.without_at))
                    .flag(row.settled)
                    .time(row.updated_at)
                    .done()
            })
            .await?;
        if changed == 1 {
            Ok(())
        } else {
            Err(LedgerError::Conflict { constraint: "placement state".to_owned() })
        }
    }

    /// Fixes a placement in the closed period of an invoice.
    pub async fn placement_take_in_txn(
        &self,
        tx: &mut Tx,
        placement_id: &str,
        invoice_id: &str,
    ) -> Result<(), LedgerError> {
        const TAKE: &str = include_str!("../../../sql/ledger/queries/placements/take_into_invoice.sql");
        let now = tx.now();
        tx.run("taking a placement into an invoice", TAKE, |s| {
            s.text(placement_id).text(invoice_id).time(now).done()
        })
        .await?;
        Ok(())
    }

    pub async fn placement_get(
        &self,
        platform: &PlatformId,
        placement_id: &str,
    ) -> Result<Option<PlacementRow>, LedgerError> {
        const GET: &str = include_str!("../../../sql/ledger/queries/placements/get.sql");
        let rows = self
            .rows("reading a placement", GET, |s| s.text(platform.as_str()).text(placement_id).done())
            .await?;
        rows.first().map(placement).transpose()
    }

    /// By the identifier that the payment service knows.
    pub async fn placement_by_identifier(
        &self,
        platform: &PlatformId,
        identifier: &str,
    ) -> Result<Option<PlacementRow>, LedgerError> {
        const GET: &str = include_str!("../../../sql/ledger/queries/placements/by_identifier.sql");
        let rows = self
            .rows("reading a placement", GET, |s| s.text(platform.as_str()).text(identifier).done())
            .await?;
        rows.first().map(placement).transpose()
    }

    /// The parts of a statement, each with its whole history.
    pub async fn placement_by_statement(
        &self,
        platform: &PlatformId,
        statement_id: &str,
    ) -> Result<Vec<PlacementRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/placements/by_statement.sql");
        let rows = self
            .rows("reading a statement's placements", LIST, |s| {
                s.text(platform.as_str()).text(statement_id).done()
            })
            .await?;
        rows.iter().map(placement).collect()
    }

    /// Placements in one state, oldest first.
    pub async fn placement_work(
        &self,
        platform: &PlatformId,
        state: &str,
        after: PlacementCursor<'_>,
        limit: u32,
    ) -> Result<Vec<PlacementRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/placements/work.sql");
        let (at, id) = after.unwrap_or((Timestamp::from_micros(i64::MIN), ""));
        let rows = self
            .rows("listing placements", LIST, |s| {
                s.text(platform.as_str()).text(state).time(at).text(id).integer(i64::from(limit)).done()
            })
            .await?;
        rows.iter().map(placement).collect()
    }

    /// Placements that were sent and that their minute has not shown yet, oldest first.
    pub async fn placement_unsettled(
        &self,
        platform: &PlatformId,
        after: PlacementCursor<'_>,
        limit: u32,
    ) -> Result<Vec<PlacementRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/placements/unsettled.sql");
        let (at, id) = after.unwrap_or((Timestamp::from_micros(i64::MIN), ""));
        let rows = self
            .rows("listing unsettled placements", LIST, |s| {
                s.text(platform.as_str()).time(at).text(id).integer(i64::from(limit)).done()
            })
            .await?;
        rows.iter().map(placement).collect()
    }

    /// Dead placements that nothing follows yet.
    pub async fn placement_dead_ends(
        &self,
        platform: &PlatformId,
        state: &str,
        limit: u32,
    ) -> Result<Vec<PlacementRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/placements/next_of_dead.sql");
        let rows = self
            .rows("listing dead placements", LIST, |s| {
                s.text(platform.as_str()).text(state).integer(i64::from(limit)).done()
            })
            .await?;
        rows.iter().map(placement).collect()
    }

    /// Of one customer and event name at the payment service, whose minute is in `[from, to)`.
    pub async fn placement_in_minutes(
        &self,
        account: &str,
        stripe_customer: &str,
        event_name: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<PlacementRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/placements/in_minutes.sql");
        let rows = self
            .rows("listing the placements of minutes", LIST, |s| {
                s.text(account).text(stripe_customer).text(event_name).time(from).time(to).done()
            })
            .await?;
        rows.iter().map(placement).collect()
    }

    /// Those that a period bills, in the order of its root.
    pub async fn placement_in_period(
        &self,
        platform: &PlatformId,
        customer: &CustomerId,
        meter: &MeterId,
        bill_start: Timestamp,
    ) -> Result<Vec<PlacementRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/placements/in_period.sql");
        let rows = self
            .rows("listing a period's placements", LIST, |s| {
                s.text(platform.as_str()).text(customer.as_str()).text(meter.as_str()).time(bill_start).done()
            })
            .await?;
        rows.iter().map(placement).collect()
    }

    pub async fn placement_of_hour(
        &self,
        platform: &PlatformId,
        customer: &CustomerId,
        meter: &MeterId,
        hour: Hour,
    ) -> Result<Vec<PlacementRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/placements/of_hour.sql");
        let rows = self
            .rows("listing an hour's placements", LIST, |s| {
                s.text(platform.as_str()).text(customer.as_str()).text(meter.as_str()).hour(hour).done()
            })
            .await?;
        rows.iter().map(placement).collect()
    }

    /// Everything behind an invoice line.
    pub async fn placements_for_invoice_line(
        &self,
        platform: &PlatformId,
        line_id: &str,
    ) -> Result<Vec<PlacementRow>, LedgerError> {
        const LIST: &str = include_str!("../../../sql/ledger/queries/placements/of_line.sql");
        let rows = self
            .rows("listing a line's placements", LIST, |s| s.text(platform.as_str()).text(line_id).done())
            .await?;
        rows.iter().map(placement).collect()
    }

    /// How many there are in each state.
    pub async fn placement_counts(&self, platform: &PlatformId) -> Result<Vec<(String, u64)>, LedgerError> {
        const COUNTS: &str = include_str!("../../../sql/ledger/queries/placements/counts.sql");
        let rows = self.rows("counting placements", COUNTS, |s| s.text(platform.as_str()).done()).await?;
        rows.iter().map(|row| Ok((row.text("state")?, row.number("count")?))).collect()
    }
}

fn small(row: &sqlx::any::AnyRow, column: &'static str) -> Result<u32, LedgerError> {
    u32::try_from(row.integer(column)?)
        .map_err(|_| LedgerError::Corrupt { column, reason: "it is no small number".to_owned() })
}

fn placement(row: &sqlx::any::AnyRow) -> Result<PlacementRow, LedgerError> {
    Ok(PlacementRow {
        placement_id: row.text("placement_id")?,
        platform: row.parsed("platform_id", PlatformId::parse)?,
        customer: row.parsed("customer_id", CustomerId::parse)?,
        meter: row.parsed("meter_id", MeterId::parse)?,
        statement_id: row.text("statement_id")?,
        statement_hash: row.array("statement_hash")?,
        hour: row.hour("hour")?,
        piece_start: row.time("piece_start")?,
        piece_end: row.time("piece_end")?,
        revision: small(row, "revision")?,
        part: small(row, "part")?,
        n: small(row, "n")?,
        stripe_account: row.text("stripe_account")?,
        stripe_customer: row.text("stripe_customer")?,
        stripe_meter: row.text("stripe_meter")?,
        event_name: row.text("event_name")?,
        amount: row.number("amount")?,
        bill_start: row.time("bill_start")?,
        bill_end: row.time("bill_end")?,
        carried: row.flag("carried")?,
        minute: row.time("minute")?,
        event_at: row.time("event_at")?,
        slot: small(row, "slot")?,
        minute_before: row.sum("minute_before")?,
        identifier: row.text("identifier")?,
        state: row.text("state")?,
        attempt: small(row, "attempt")?,
        first_attempt_at: row.time_or_null("first_attempt_at")?,
        last_attempt_at: row.time_or_null("last_attempt_at")?,
        exists_said: row.flag("exists_said")?,
        reason: row.text_or_null("reason")?,
        request_id: row.text_or_null("request_id")?,
        seen: sum_or_null(row, "seen")?,
        seen_at: row.time_or_null("seen_at")?,
        without_at: row.time_or_null("without_at")?,
        settled: row.flag("settled")?,
        invoice_id: row.text_or_null("invoice_id")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
