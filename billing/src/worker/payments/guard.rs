//! Guards invoices: an invoice is finalised if and only if the payment service counts exactly what was placed in its periods.
//!
//! The first act on a draft is `auto_advance=false`; from then on only we finalise it. Its periods are closed, which fixes their placements and the root over them; then the
//! sums are compared, the root goes into the invoice's metadata, it is finalised, and its final lines are compared again. What does not agree is held and told.

mod close;

use std::collections::{BTreeMap, BTreeSet};

use ledger::{BillPeriodRow, InvoiceLineRow, InvoiceRow};
use serde::Serialize;
use usage::{CustomerId, PlatformId};
use utoipa::ToSchema;

use super::lease::Held;
use super::sync::SyncRequest;
use super::{Binding, Board, Payments, PaymentsError};
use crate::provider::{Invoice, InvoiceLine, InvoiceStatus};
use crate::rules::invoice::{BilledLine, Verdict, compare, repriced};

const HOUR_US: i64 = 3_600_000_000;
/// What an account's grace should be at the least: usage is late, and people sleep.
const GRACE_MIN_US: i64 = 6 * HOUR_US;

/// In a draft's metadata: it would have been finalised and collected without us, so it is collected once we have finalised it. A draft that a
/// person keeps from advancing is finalised and not collected.
const COLLECT: &str = "contextmeter_collect";
const AUTOMATIC: &str = "automatic";

/// What one activation found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct GuardStatus {
    /// Drafts that came into our hands now.
    pub found: Vec<String>,
    pub finalized: Vec<FinalInvoice>,
    /// A person should look.
    pub held: Vec<OpenInvoice>,
    /// Not due yet.
    pub waiting: Vec<OpenInvoice>,
    /// Could not be worked on now.
    pub failed: Vec<OpenInvoice>,
    /// Drafts that the account would finalise by itself sooner than six hours after the period: raise its grace.
    pub short_grace: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FinalInvoice {
    pub invoice: String,
    /// `matched`, `shortfall`, `excess` or `not_compared`.
    pub verdict: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct OpenInvoice {
    pub invoice: String,
    pub reason: String,
}

enum Step {
    Waits(&'static str),
    Holds(&'static str),
    Finalised(Verdict),
    Dead,
}

/// An invoice with those of its lines that bill our meters, each with the period it bills.
struct Bill {
    lines: Vec<InvoiceLine>,
    rows: Vec<InvoiceLineRow>,
    periods: Vec<BillPeriodRow>,
    billed: Vec<BilledLine>,
}

impl Payments {
    pub async fn guard_activate(&self) -> Result<GuardStatus, PaymentsError> {
        self.guard_of(None).await
    }

    /// As `guard_activate`, for one platform.
    pub async fn guard_of(&self, only: Option<&PlatformId>) -> Result<GuardStatus, PaymentsError> {
        self.alone(async |held: &Held| self.guard(held, only).await).await
    }

    async fn guard(&self, held: &Held, only: Option<&PlatformId>) -> Result<GuardStatus, PaymentsError> {
        let mut status = GuardStatus::default();
        let remote = self.remote_meters().await?;
        let mut boards = Vec::new();
        for (platform, binding) in self.platforms(only).await? {
            if binding == Binding::Bound && platform.sync_mode == ledger::SyncMode::Live {
                boards.push(self.board(platform, &remote).await?);
            }
        }
        if boards.is_empty() {
            return Ok(status);
        }
        for draft in self.0.provider.invoice_drafts().await? {
            let found =
                boards.iter().find_map(|board| Some((board, board.by_stripe_customer(&draft.customer)?)));
            let Some((board, customer)) = found.filter(|_| draft.subscription.is_some()) else { continue };
            match self.take(held, board, customer, &draft, &mut status).await {
                Err(PaymentsError::Provider(error)) => {
                    tracing::warn!(%error, invoice = draft.id, "failed to take a draft into our hands");
                    status.failed.push(OpenInvoice { invoice: draft.id, reason: error.to_string() });
                }
                taken => taken?,
            }
        }
        let mut open = Vec::new();
        for board in &boards {
            for invoice in self.ledger().invoice_open(&board.platform.platform).await? {
                open.push((board, invoice));
            }
        }
        if !open.is_empty() {
            // All usage in, as far as it is sealed, before anything is closed.
            self.sync(held, SyncRequest { platform: only.cloned(), retry_refused: false }).await?;
        }
        for (board, invoice) in open {
            let id = invoice.invoice_id.clone();
            match self.guard_one(held, board, invoice).await {
                Ok(Step::Finalised(verdict)) => {
                    status.finalized.push(FinalInvoice { invoice: id, verdict: verdict.as_str().to_owned() });
                }
                Ok(Step::Holds(reason)) => {
                    status.held.push(OpenInvoice { invoice: id, reason: reason.to_owned() })
                }
                Ok(Step::Waits(reason)) => {
                    status.waiting.push(OpenInvoice { invoice: id, reason: reason.to_owned() })
                }
                Ok(Step::Dead) => {}
                // One invoice's trouble stops no other.
                Err(PaymentsError::Provider(error)) => {
                    tracing::warn!(%error, invoice = id, "failed to guard an invoice");
                    status.failed.push(OpenInvoice { invoice: id, reason: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
        metrics::gauge!("contextmeter_invoices_held")
            .set(f64::from(u32::try_from(status.held.len()).unwrap_or(u32::MAX)));
        Ok(status)
    }

    /// A draft comes into our hands: its finalisation first, the note of it after.
    async fn take(
        &self,
        held: &Held,
        board: &Board,
        customer: &CustomerId,
        draft: &Invoice,
        status: &mut GuardStatus,
    ) -> Result<(), PaymentsError> {
        let platform = &board.platform.platform;
        let known = self.ledger().invoice_get(platform, &draft.id).await?;
        if known.is_none() && !self.bills_ours(board, draft).await? {
            return Ok(());
        }
        if draft.auto_advance {
            let mark = BTreeMap::from([
                ("contextmeter_platform".to_owned(), platform.to_string()),
                (COLLECT.to_owned(), AUTOMATIC.to_owned()),
            ]);
            self.0.provider.invoice_auto_advance_off(&draft.id, &mark).await?;
        }
        let grace = draft.automatically_finalizes_at.map(|at| at.micros_since(draft.created));
        if draft.auto_advance && grace.is_some_and(|grace| grace < i128::from(GRACE_MIN_US)) {
            status.short_grace.push(draft.id.clone());
        }
        if known.is_some() {
            return Ok(());
        }
        let now = self.ledger().now().await?;
        let row = InvoiceRow {
            platform: platform.clone(),
            invoice_id: draft.id.clone(),
            customer: customer.clone(),
            stripe_customer: draft.customer.clone(),
            subscription_id: draft.subscription.clone(),
            state: "found".to_owned(),
            reason: None,
            verdict: None,
            expected: None,
            billed: None,
            root: None,
            created_at: draft.created,
            found_at: now,
            finalizes_at: draft.automatically_finalizes_at,
            auto_advance_off_at: Some(now),
            closed_at: None,
            finalised_at: None,
            updated_at: now,
        };
        self.invoice_note(held, &row, None).await?;
        status.found.push(draft.id.clone());
        Ok(())
    }

    /// A subscription of something else is not ours to finalise.
    async fn bills_ours(&self, board: &Board, draft: &Invoice) -> Result<bool, PaymentsError> {
        let lines = self.0.provider.invoice_lines(&draft.id).await?;
        let prices: BTreeSet<String> = lines.into_iter().filter_map(|line| line.price).collect();
        for price in prices {
            let meter = self.0.provider.price_get(&price).await?.meter;
            if meter.is_some_and(|meter| board.by_stripe_meter(&meter).is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn guard_one(
        &self,
        held: &Held,
        board: &Board,
        mut row: InvoiceRow,
    ) -> Result<Step, PaymentsError> {
        let remote = self.0.provider.invoice_get(&row.invoice_id).await?;
        if remote.status == InvoiceStatus::Dead {
            row.state = "dead".to_owned();
            self.invoice_note(held, &row, None).await?;
            return Ok(Step::Dead);
        }
        let bill = self.bill(board, &row).await?;
        if remote.status == InvoiceStatus::Final {
            return self.after_final(held, row, bill).await;
        }
        let step = self.towards_final(held, board, &mut row, &bill).await?;
        match step {
            None => {
                let collect = remote.metadata.get(COLLECT).is_some_and(|value| value == AUTOMATIC);
                self.finalise(held, &row, collect).await?;
                let bill = self.bill(board, &row).await?;
                self.after_final(held, row, bill).await
            }
            Some(step) => {
                let (state, reason) = match &step {
                    Step::Holds(reason) => ("held", Some(*reason)),
                    Step::Waits(reason) if row.closed_at.is_some() => ("closed", Some(*reason)),
                    Step::Waits(reason) => ("found", Some(*reason)),
                    Step::Finalised(_) | Step::Dead => (row.state.as_str(), None),
                };
                if state == "held" && row.state != "held" {
                    tracing::error!(invoice = row.invoice_id, reason, "an invoice is held");
                }
                row.state = state.to_owned();
                row.reason = reason.map(ToOwned::to_owned);
                self.invoice_note(held, &row, Some(&bill.rows)).await?;
                Ok(step)
            }
        }
    }

    /// None: finalise it now.
    async fn towards_final(
        &self,
        held: &Held,
        board: &Board,
        row: &mut InvoiceRow,
        bill: &Bill,
    ) -> Result<Option<Step>, PaymentsError> {
        let now = self.ledger().now().await?;
        let grace_end = row.created_at.checked_add_micros(GRACE_MIN_US).unwrap_or(row.created_at);
        let due = now >= row.finalizes_at.unwrap_or(grace_end);
        for period in &bill.periods {
            let view =
                self.ledger().subscription_view(&period.platform, &period.customer, &period.meter).await?;
            if view.is_some_and(|view| view.state == ledger::SubscriptionState::Ambiguous) {
                return Ok(Some(Step::Holds("ambiguous_subscription")));
            }
        }
        if !repriced(&bill.billed).is_empty() || self.repriced_inside(&bill.periods).await? {
            return Ok(Some(Step::Holds("repriced")));
        }
        if row.closed_at.is_none() {
            for period in &bill.periods {
                if let Some(reason) = self.not_closable(board, period, now).await?
                    && !due
                {
                    return Ok(Some(Step::Waits(reason)));
                }
            }
            self.close(held, row, &bill.periods).await?;
        }
        let late = |reason| Ok(Some(if due { Step::Holds(reason) } else { Step::Waits(reason) }));
        if !self.settled(held, row, &bill.periods).await? {
            return late("unsettled_placements");
        }
        for period in &bill.periods {
            if !self.summary_agrees(board, row, period).await? {
                return late("summary_differs");
            }
        }
        Ok(None)
    }

    /// Whether an item had another price in a part of a period: that part may be on another line, or on an invoice item.
    async fn repriced_inside(&self, periods: &[BillPeriodRow]) -> Result<bool, PaymentsError> {
        for period in periods {
            let all = self.ledger().bill_period_of_item(&period.platform, &period.item_id).await?;
            let other = |row: &BillPeriodRow| {
                row.meter == period.meter
                    && row.start < period.end
                    && period.start < row.end
                    && (row.repriced_at.is_some() || row.price_id != period.price_id)
            };
            if all.iter().any(other) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn finalise(&self, held: &Held, row: &InvoiceRow, collect: bool) -> Result<(), PaymentsError> {
        let mut metadata = BTreeMap::from([("contextmeter_platform".to_owned(), row.platform.to_string())]);
        if let Some(root) = row.root {
            metadata.insert("contextmeter_root".to_owned(), hex::encode(root));
        }
        held.lease().await?;
        self.0.provider.invoice_metadata_set(&row.invoice_id, &metadata).await?;
        if !held.may_send().await {
            held.lease().await?;
        }
        self.0.provider.invoice_finalize(&row.invoice_id, collect).await?;
        Ok(())
    }

    /// The final lines against what was placed.
    async fn after_final(&self, held: &Held, mut row: InvoiceRow, bill: Bill) -> Result<Step, PaymentsError> {
        // Somebody else finalised it before its periods were closed: close them now, so that nothing more is placed there.
        if row.closed_at.is_none() {
            self.close(held, &mut row, &bill.periods).await?;
        }
        let mut expected: BTreeMap<String, u128> = BTreeMap::new();
        for period in &bill.periods {
            let sum = self.billed_by(&row, period).await?;
            let item = expected.entry(period.item_id.clone()).or_insert(0);
            *item = item.checked_add(sum).ok_or(PaymentsError::Number("sum of an item"))?;
        }
        let found = compare(&expected, &bill.billed).ok_or(PaymentsError::Number("sum of an invoice"))?;
        let now = self.ledger().now().await?;
        row.state = "finalized".to_owned();
        row.reason = match found.verdict {
            Verdict::Shortfall | Verdict::Excess => Some("final_lines_differ".to_owned()),
            Verdict::Matched | Verdict::NotCompared => None,
        };
        row.verdict = Some(found.verdict.as_str().to_owned());
        row.expected = Some(found.expected);
        row.billed = Some(found.billed);
        row.finalised_at = Some(now);
        let lines: Vec<InvoiceLineRow> =
            bill.rows.into_iter().map(|line| InvoiceLineRow { last: true, ..line }).collect();
        self.invoice_note(held, &row, Some(&lines)).await?;
        if row.reason.is_some() {
            tracing::error!(
                invoice = row.invoice_id, expected = %found.expected, billed = %found.billed,
                "the final lines of an invoice differ from what was placed"
            );
        }
        metrics::counter!("contextmeter_invoices_finalized_total", "verdict" => found.verdict.as_str())
            .increment(1);
        Ok(Step::Finalised(found.verdict))
    }

    /// The invoice's lines, and the periods of ours that they bill. A period that was never read is noted from its line.
    async fn bill(&self, board: &Board, row: &InvoiceRow) -> Result<Bill, PaymentsError> {
        let lines = self.0.provider.invoice_lines(&row.invoice_id).await?;
        let now = self.ledger().now().await?;
        let mut bill = Bill { rows: Vec::new(), periods: Vec::new(), billed: Vec::new(), lines };
        let mut prices = BTreeMap::new();
        for (place, line) in (0_u32..).zip(&bill.lines) {
            let mut meter = None;
            if let (Some(item), Some(price_id)) = (&line.item, &line.price) {
                if !prices.contains_key(price_id) {
                    prices.insert(price_id.clone(), self.0.provider.price_get(price_id).await?);
                }
                let price = prices.get(price_id);
                meter = price.and_then(|price| board.by_stripe_meter(price.meter.as_deref()?)).cloned();
                // A line of a period that still runs, as on a first invoice, bills no usage yet.
                if let (Some(meter), true) = (&meter, line.period_end <= now) {
                    bill.billed.push(BilledLine {
                        item: item.clone(),
                        price: price_id.clone(),
                        quantity: line.quantity,
                        transformed: price.is_some_and(|price| price.transformed),
                    });
                    let period = self.period_of_line(row, item, price_id, meter, line).await?;
                    if !bill.periods.contains(&period) {
                        bill.periods.push(period);
                    }
                }
            }
            bill.rows.push(InvoiceLineRow {
                platform: row.platform.clone(),
                invoice_id: row.invoice_id.clone(),
                line_id: line.id.clone(),
                place,
                item_id: line.item.clone(),
                price_id: line.price.clone(),
                meter,
                quantity: line.quantity,
                amount: line.amount,
                currency: line.currency.clone(),
                period_start: line.period_start,
                period_end: line.period_end,
                description: line.description.clone(),
                last: false,
            });
        }
        Ok(bill)
    }

    async fn invoice_note(
        &self,
        held: &Held,
        row: &InvoiceRow,
        lines: Option<&[InvoiceLineRow]>,
    ) -> Result<(), PaymentsError> {
        let mut tx = self.ledger().write().await?;
        tx.check_fence(&held.lease().await?).await?;
        let row = InvoiceRow { updated_at: tx.now(), ..row.clone() };
        self.ledger().invoice_put_in_txn(&mut tx, &row).await?;
        if let Some(lines) = lines {
            self.ledger().invoice_lines_put_in_txn(&mut tx, &row.platform, &row.invoice_id, lines).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}
