//! Compares every placement that was sent with its minute, and rolls the result up by customer, meter and hour.
//!
//! Drift is what was placed less what the payment service counts, in exact tokens. Repair is the same path as billing: what is absent by evidence gets the next placement.

use std::collections::BTreeSet;

use ledger::{PlacementRow, PlatformRow, ReconciliationRow};
use serde::Serialize;
use usage::{CustomerId, Hour, MeterId, PlatformId};
use utoipa::ToSchema;

use super::lease::Held;
use super::{Binding, PAGE, PAGE_LEN, Payments, PaymentsError};
use crate::rules::placement::State;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReconcileStatus {
    /// Placements whose minute was read now.
    pub placements: u64,
    /// Of them, those whose minute shows exactly them.
    pub equal: u64,
    /// Not shown yet, or not any more; two readings an hour after the last attempt decide.
    pub missing: u64,
    /// By evidence nowhere: the next sync places them anew.
    pub absent: u64,
    /// Minutes that hold another amount.
    pub identifier_mismatch: u64,
    /// Could not be read now.
    pub failed: u64,
    /// Over all hours that do not agree: placed less counted where more was placed, and the other way round.
    #[schema(value_type = String)]
    pub drift_tokens: String,
    /// Hours of a customer and meter that do not agree.
    pub hours_open: u64,
}

impl Payments {
    pub async fn reconcile_activate(&self) -> Result<ReconcileStatus, PaymentsError> {
        self.reconcile_of(None).await
    }

    /// As `reconcile_activate`, for one platform.
    pub async fn reconcile_of(&self, only: Option<&PlatformId>) -> Result<ReconcileStatus, PaymentsError> {
        self.alone(async |held: &Held| self.reconcile(held, only).await).await
    }

    async fn reconcile(
        &self,
        held: &Held,
        only: Option<&PlatformId>,
    ) -> Result<ReconcileStatus, PaymentsError> {
        let mut status = ReconcileStatus::default();
        let mut drift: u128 = 0;
        for (platform, binding) in self.platforms(only).await? {
            if binding != Binding::Bound {
                continue;
            }
            self.reconcile_platform(held, &platform, &mut status).await?;
            let open = self.ledger().reconciliation_open(&platform.platform, PAGE).await?;
            let of_platform: u128 =
                open.iter().fold(0, |sum: u128, row| sum.saturating_add(row.placed.abs_diff(row.seen)));
            drift = drift.saturating_add(of_platform);
            status.hours_open += u64::try_from(open.len()).unwrap_or(u64::MAX);
            // For a picture on a page: an exact number is in the ledger and in the answer.
            let shown = u32::try_from(of_platform).unwrap_or(u32::MAX);
            metrics::gauge!("contextmeter_reconciliation_drift_tokens", "platform" => platform.platform.to_string())
                .set(f64::from(shown));
        }
        status.drift_tokens = drift.to_string();
        Ok(status)
    }

    async fn reconcile_platform(
        &self,
        held: &Held,
        platform: &PlatformRow,
        status: &mut ReconcileStatus,
    ) -> Result<(), PaymentsError> {
        let mut hours: BTreeSet<(CustomerId, MeterId, Hour)> = BTreeSet::new();
        let mut after = None;
        loop {
            let cursor = after.as_ref().map(|(at, id): &(usage::Timestamp, String)| (*at, id.as_str()));
            let page = self.ledger().placement_unsettled(&platform.platform, cursor, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.created_at, last.placement_id.clone()));
            let full = page.len() >= PAGE_LEN;
            for row in page {
                hours.insert((row.customer.clone(), row.meter.clone(), row.hour));
                self.reconcile_one(held, row, status).await?;
            }
            if !full {
                break;
            }
        }
        // Hours that did not agree last time may do now, whatever touched them since.
        for row in self.ledger().reconciliation_open(&platform.platform, PAGE).await? {
            hours.insert((row.customer, row.meter, row.hour));
        }
        for (customer, meter, hour) in hours {
            let rows = self.ledger().placement_of_hour(&platform.platform, &customer, &meter, hour).await?;
            let row = roll_up(platform, customer, meter, hour, &rows, self.ledger().now().await?);
            self.ledger().reconciliation_put(&row).await?;
        }
        Ok(())
    }

    async fn reconcile_one(
        &self,
        held: &Held,
        row: PlacementRow,
        status: &mut ReconcileStatus,
    ) -> Result<(), PaymentsError> {
        let id = row.placement_id.clone();
        self.0.pace.turn().await;
        match self.settle(held, row).await {
            Ok(row) => {
                status.placements += 1;
                match State::parse(&row.state) {
                    Some(State::Delivered) if row.settled => status.equal += 1,
                    Some(State::Absent) => status.absent += 1,
                    Some(State::IdentifierMismatch) => status.identifier_mismatch += 1,
                    _ => status.missing += 1,
                }
            }
            // One customer's trouble stops no other.
            Err(PaymentsError::Provider(error)) => {
                tracing::warn!(%error, placement = id, "failed to read the minute of a placement");
                status.failed += 1;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// What the hour's pieces have placed against what their minutes showed.
fn roll_up(
    platform: &PlatformRow,
    customer: CustomerId,
    meter: MeterId,
    hour: Hour,
    rows: &[PlacementRow],
    now: usage::Timestamp,
) -> ReconciliationRow {
    let (mut placed, mut seen, mut unsettled) = (0_u128, 0_u128, 0_u64);
    // The latest of each part: what was given up for absent is not placed any more, what has no successor yet still is.
    let latest = |row: &PlacementRow| {
        !rows.iter().any(|other| {
            (other.statement_id == row.statement_id && other.part == row.part) && other.n > row.n
        })
    };
    for row in rows.iter().filter(|row| latest(row)) {
        placed = placed.saturating_add(u128::from(row.amount));
        if row.settled {
            seen = seen.saturating_add(u128::from(row.amount));
        } else {
            unsettled = unsettled.saturating_add(1);
            let of_minute = row.seen.unwrap_or(0).saturating_sub(row.minute_before);
            seen = seen.saturating_add(of_minute);
        }
    }
    ReconciliationRow {
        platform: platform.platform.clone(),
        customer,
        meter,
        hour,
        placed,
        seen,
        unsettled,
        checked_at: now,
    }
}
