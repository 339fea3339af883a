//! Closing a period: which placements it bills is fixed in one transaction, with the root over them.

use ledger::{BillPeriodRead, BillPeriodRow, InvoiceRow, PeriodClosing, PlacementRow};
use proof::{PeriodItem, period_root};
use usage::{Hour, MeterId, Timestamp};

use super::super::lease::Held;
use super::super::plan::period_minutes;
use super::super::{Board, Payments, PaymentsError};
use crate::provider::InvoiceLine;
use crate::rules::placement::{Event, State, step};

impl Payments {
    /// Why more usage of the period may still come.
    pub(super) async fn not_closable(
        &self,
        board: &Board,
        period: &BillPeriodRow,
        now: Timestamp,
    ) -> Result<Option<&'static str>, PaymentsError> {
        let lateness = i128::from(board.platform.lateness_us);
        if now.micros_since(period.end) < lateness {
            return Ok(Some("lateness"));
        }
        let last = period.end.checked_add_micros(-1).unwrap_or(period.end);
        let unsealed = self
            .ledger()
            .hours_unsealed(&period.platform, Hour::of(period.start), Hour::of(last).next())
            .await?;
        if !unsealed.is_empty() {
            return Ok(Some("hours_unsealed"));
        }
        if self.ledger().sync_wait_count(&period.platform, &period.customer, &period.meter).await? > 0 {
            return Ok(Some("statements_wait"));
        }
        let unsent = self
            .of_period(period)
            .await?
            .into_iter()
            .any(|row| matches!(State::parse(&row.state), Some(State::Planned | State::Sending)));
        Ok(unsent.then_some("unsent_placements"))
    }

    /// Fixes the placements of all periods of an invoice. What was never sent becomes unsendable and goes to the next period; what is unknown waits
    /// for evidence where it is.
    pub(super) async fn close(
        &self,
        held: &Held,
        invoice: &mut InvoiceRow,
        periods: &[BillPeriodRow],
    ) -> Result<(), PaymentsError> {
        let mut tx = self.ledger().write().await?;
        tx.check_fence(&held.lease().await?).await?;
        let now = tx.now();
        let mut all = Vec::new();
        for period in periods {
            let mut fixed = Vec::new();
            for row in self.of_period(period).await? {
                match State::parse(&row.state) {
                    Some(State::Planned) => {
                        let next = step(State::Planned, Event::PeriodClosed)
                            .map_err(|_| PaymentsError::Number("state"))?;
                        let (from, attempt) = (row.state.clone(), row.attempt);
                        let row = PlacementRow {
                            state: next.as_str().to_owned(),
                            reason: Some(format!("its period was closed by {}", invoice.invoice_id)),
                            updated_at: now,
                            ..row
                        };
                        self.ledger().placement_update_in_txn(&mut tx, &row, &from, attempt).await?;
                    }
                    Some(State::Delivered | State::Unknown | State::Sending | State::IdentifierMismatch) => {
                        self.ledger()
                            .placement_take_in_txn(&mut tx, &row.placement_id, &invoice.invoice_id)
                            .await?;
                        fixed.push(row);
                    }
                    Some(State::Absent | State::Refused | State::Unsendable) | None => {}
                }
            }
            self.ledger().bill_period_guard_in_txn(&mut tx, period, &invoice.invoice_id).await?;
            if period.closed_at.is_none() {
                let closing = PeriodClosing {
                    root: root(&fixed),
                    count: u64::try_from(fixed.len())
                        .map_err(|_| PaymentsError::Number("count of placements"))?,
                    sum: total(&fixed)?,
                };
                self.ledger().bill_period_close_in_txn(&mut tx, period, closing).await?;
            }
            all.extend(fixed);
        }
        all.sort_by_key(order);
        invoice.state = "closed".to_owned();
        invoice.closed_at = Some(now);
        invoice.expected = Some(total(&all)?);
        invoice.root = Some(root(&all));
        invoice.updated_at = now;
        self.ledger().invoice_put_in_txn(&mut tx, invoice).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Whether the minute of every fixed placement has shown it; asks those that have not.
    pub(super) async fn settled(
        &self,
        held: &Held,
        invoice: &InvoiceRow,
        periods: &[BillPeriodRow],
    ) -> Result<bool, PaymentsError> {
        let mut all = true;
        for period in periods {
            for row in self.fixed(invoice, period).await? {
                let waits = !row.settled
                    && matches!(
                        State::parse(&row.state),
                        Some(State::Delivered | State::Unknown | State::IdentifierMismatch)
                    );
                if waits {
                    let row = self.settle(held, row).await?;
                    all &= row.settled || State::parse(&row.state) == Some(State::Absent);
                }
            }
        }
        Ok(all)
    }

    /// Whether the service counts for the period's minutes exactly what was placed in them, whoever placed it.
    pub(super) async fn summary_agrees(
        &self,
        board: &Board,
        invoice: &InvoiceRow,
        period: &BillPeriodRow,
    ) -> Result<bool, PaymentsError> {
        let Some((meter, _)) = board.meters.get(&period.meter) else { return Ok(false) };
        let Some(stripe_meter) = &meter.stripe_meter else { return Ok(false) };
        let (from, to) = period_minutes(period.start, period.end);
        let account = &self.0.provider.account().id;
        let placed = self
            .ledger()
            .placement_in_minutes(account, &invoice.stripe_customer, &meter.event_name, from, to)
            .await?;
        let settled: Vec<PlacementRow> =
            placed.into_iter().filter(|row| row.settled && row.state == State::Delivered.as_str()).collect();
        let seen = self.0.provider.meter_summary(stripe_meter, &invoice.stripe_customer, from, to).await?;
        let placed = total(&settled)?;
        if seen != placed {
            tracing::warn!(invoice = invoice.invoice_id, %seen, %placed, "the sum of a period differs from what was placed");
        }
        Ok(seen == placed)
    }

    /// What the invoice should bill for a period.
    pub(super) async fn billed_by(
        &self,
        invoice: &InvoiceRow,
        period: &BillPeriodRow,
    ) -> Result<u128, PaymentsError> {
        let rows = self.fixed(invoice, period).await?;
        let live: Vec<PlacementRow> =
            rows.into_iter().filter(|row| State::parse(&row.state).is_some_and(State::is_live)).collect();
        total(&live)
    }

    async fn fixed(
        &self,
        invoice: &InvoiceRow,
        period: &BillPeriodRow,
    ) -> Result<Vec<PlacementRow>, PaymentsError> {
        let rows = self.of_period(period).await?;
        Ok(rows.into_iter().filter(|row| row.invoice_id.as_ref() == Some(&invoice.invoice_id)).collect())
    }

    async fn of_period(&self, period: &BillPeriodRow) -> Result<Vec<PlacementRow>, PaymentsError> {
        let rows = self
            .ledger()
            .placement_in_period(&period.platform, &period.customer, &period.meter, period.start)
            .await?;
        Ok(rows)
    }

    pub(super) async fn period_of_line(
        &self,
        invoice: &InvoiceRow,
        item: &str,
        price: &str,
        meter: &MeterId,
        line: &InvoiceLine,
    ) -> Result<BillPeriodRow, PaymentsError> {
        let find = |periods: Vec<BillPeriodRow>| {
            periods.into_iter().find(|period| period.start == line.period_start && period.meter == *meter)
        };
        if let Some(period) = find(self.ledger().bill_period_of_item(&invoice.platform, item).await?) {
            return Ok(period);
        }
        let read = BillPeriodRead {
            item_id: item.to_owned(),
            subscription_id: invoice.subscription_id.clone().unwrap_or_default(),
            price_id: price.to_owned(),
            start: line.period_start,
            end: line.period_end,
        };
        self.ledger().bill_period_note(&invoice.platform, &invoice.customer, meter, &read).await?;
        find(self.ledger().bill_period_of_item(&invoice.platform, item).await?)
            .ok_or(PaymentsError::Number("billing period"))
    }
}

type Order = (Timestamp, u32, u32, u32, String);

fn order(row: &PlacementRow) -> Order {
    // Two meters of one invoice may have all else equal.
    (row.piece_start, row.revision, row.part, row.n, row.placement_id.clone())
}

fn root(rows: &[PlacementRow]) -> [u8; 32] {
    let items: Vec<PeriodItem<'_>> = rows
        .iter()
        .map(|row| PeriodItem { placement: &row.placement_id, statement: row.statement_hash })
        .collect();
    period_root(&items)
}

fn total(rows: &[PlacementRow]) -> Result<u128, PaymentsError> {
    rows.iter()
        .try_fold(0_u128, |sum, row| sum.checked_add(u128::from(row.amount)))
        .ok_or(PaymentsError::Number("sum of placements"))
}
