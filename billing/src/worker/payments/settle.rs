//! Asks a placement's minute, and moves the placement by what it shows.

use ledger::PlacementRow;

use super::lease::Held;
use super::{Payments, PaymentsError};
use crate::rules::minute::minute_end;
use crate::rules::placement::{Absence, Event, Reading, State, absence, step};

impl Payments {
    pub(super) async fn reading(&self, row: &PlacementRow) -> Result<(u128, Reading), PaymentsError> {
        let to = minute_end(row.minute);
        let seen =
            self.0.provider.meter_summary(&row.stripe_meter, &row.stripe_customer, row.minute, to).await?;
        Ok((seen, Reading::of(seen, row.minute_before, row.amount)))
    }

    /// Reads the minute of a placement that was sent and is not settled. Gives back the row as it is then.
    pub(super) async fn settle(
        &self,
        held: &Held,
        mut row: PlacementRow,
    ) -> Result<PlacementRow, PaymentsError> {
        let Some(state) = State::parse(&row.state) else { return Err(PaymentsError::Number("state")) };
        let (seen, reading) = self.reading(&row).await?;
        let now = self.ledger().now().await?;
        row.seen = Some(seen);
        row.seen_at = Some(now);
        let event = match reading {
            Reading::With => {
                row.settled = true;
                row.without_at = None;
                Event::Read(reading)
            }
            Reading::Other => {
                row.without_at = None;
                row.reason =
                    Some(format!("the minute holds {seen}, not {} and {}", row.minute_before, row.amount));
                Event::Read(reading)
            }
            Reading::Without => {
                match absence(row.last_attempt_at.unwrap_or(row.created_at), row.without_at, now) {
                    Absence::TooEarly => Event::Read(reading),
                    Absence::FirstReading => {
                        row.without_at = Some(now);
                        Event::Read(reading)
                    }
                    // The service has the identifier although this ledger never sent it before: sent by a ledger that was restored since,
                    // in another minute. Sending more would count it twice.
                    Absence::Proven if row.exists_said && row.attempt <= 1 => {
                        row.reason = Some("the identifier was used before this ledger remembers".to_owned());
                        Event::Read(Reading::Other)
                    }
                    Absence::Proven if state == State::IdentifierMismatch => Event::Read(reading),
                    Absence::Proven => Event::ReadWithoutTwice,
                }
            }
        };
        self.advance(held, row, event).await
    }

    /// Writes one step of a placement, if it still is where the caller saw it.
    pub(super) async fn advance(
        &self,
        held: &Held,
        mut row: PlacementRow,
        event: Event,
    ) -> Result<PlacementRow, PaymentsError> {
        let from = row.state.clone();
        let attempt = row.attempt;
        let state = State::parse(&from).ok_or(PaymentsError::Number("state"))?;
        let next = step(state, event).map_err(|error| {
            tracing::error!(%error, placement = row.placement_id, "a placement was asked for the impossible");
            PaymentsError::Number("state")
        })?;
        row.state = next.as_str().to_owned();
        row.updated_at = self.ledger().now().await?;
        if event == Event::Attempt {
            row.attempt = row.attempt.checked_add(1).ok_or(PaymentsError::Number("attempt"))?;
            row.first_attempt_at = row.first_attempt_at.or(Some(row.updated_at));
            row.last_attempt_at = Some(row.updated_at);
            row.without_at = None;
        }
        let mut tx = self.ledger().write().await?;
        tx.check_fence(&held.lease().await?).await?;
        self.ledger().placement_update_in_txn(&mut tx, &row, &from, attempt).await?;
        tx.commit().await?;
        if matches!(next, State::IdentifierMismatch | State::Refused) && next != state {
            tracing::warn!(
                placement = row.placement_id,
                identifier = row.identifier,
                state = next.as_str(),
                reason = row.reason,
                "a placement needs a person"
            );
            metrics::counter!("contextmeter_placements_troubled_total", "state" => next.as_str())
                .increment(1);
        }
        Ok(row)
    }
}
