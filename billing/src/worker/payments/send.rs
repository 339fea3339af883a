//! Tells the payment service, once.
//!
//! The attempt is in the ledger before the bytes leave; what comes back moves the placement, and where nothing comes back the placement is unknown, for whoever looks next.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use ledger::PlacementRow;
use usage::{CustomerId, MeterId};

use super::lease::Held;
use super::{Payments, PaymentsError};
use crate::provider::{MeterEvent, SendOutcome};
use crate::rules::identifier::attempt_key;
use crate::rules::placement::{Event, Reading, Resolution, State, resolution};

/// Customers and meters that are sent for at once; within one, one call is in flight.
const LANES: usize = 16;
/// Within one activation an unknown outcome is tried again this often; later activations go on.
const ATTEMPTS_MAX: u32 = 3;
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// What sending came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) delivered: u64,
    pub(super) unknown: u64,
    pub(super) refused: u64,
    pub(super) mismatched: u64,
    pub(super) not_taken: u64,
    pub(super) absent: u64,
}

impl Sent {
    fn count(&mut self, state: Option<State>) {
        match state {
            Some(State::Delivered) => self.delivered += 1,
            Some(State::Unknown | State::Sending) => self.unknown += 1,
            Some(State::Refused) => self.refused += 1,
            Some(State::IdentifierMismatch) => self.mismatched += 1,
            Some(State::Planned) => self.not_taken += 1,
            Some(State::Absent) => self.absent += 1,
            Some(State::Unsendable) | None => {}
        }
    }

    fn add(&mut self, other: Self) {
        self.delivered += other.delivered;
        self.unknown += other.unknown;
        self.refused += other.refused;
        self.mismatched += other.mismatched;
        self.not_taken += other.not_taken;
        self.absent += other.absent;
    }
}

impl Payments {
    /// Sends placements, each customer and meter in its own lane. One lane's trouble stops no other.
    pub(super) async fn send_all(&self, held: &Held, rows: Vec<PlacementRow>) -> Result<Sent, PaymentsError> {
        let mut lanes: BTreeMap<(CustomerId, MeterId), Vec<PlacementRow>> = BTreeMap::new();
        for row in rows {
            lanes.entry((row.customer.clone(), row.meter.clone())).or_default().push(row);
        }
        let lanes: Vec<_> = lanes.into_values().map(|lane| self.send_lane(held, lane)).collect();
        let mut done = futures_util::stream::iter(lanes).buffer_unordered(LANES);
        let mut sent = Sent::default();
        let mut first_error = None;
        while let Some(lane) = done.next().await {
            match lane {
                Ok(lane) => sent.add(lane),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) => Err(error),
            None => Ok(sent),
        }
    }

    async fn send_lane(&self, held: &Held, lane: Vec<PlacementRow>) -> Result<Sent, PaymentsError> {
        let mut sent = Sent::default();
        for row in lane {
            let row = self.send_one(held, row).await?;
            let state = State::parse(&row.state);
            sent.count(state);
            if state == Some(State::Planned) {
                // The service is not looking at events of this lane now.
                break;
            }
        }
        Ok(sent)
    }

    async fn send_one(&self, held: &Held, mut row: PlacementRow) -> Result<PlacementRow, PaymentsError> {
        for tried in 0..ATTEMPTS_MAX {
            let now = self.ledger().now().await?;
            let first = row.first_attempt_at.unwrap_or(now);
            if State::parse(&row.state) == Some(State::Unknown)
                && resolution(first, row.exists_said, now) == Resolution::ReadTheMinute
            {
                return self.settle(held, row).await;
            }
            if tried > 0 {
                tokio::time::sleep(AGAIN_AFTER * tried).await;
            }
            row = self.attempt(held, row).await?;
            if State::parse(&row.state) != Some(State::Unknown) {
                break;
            }
        }
        Ok(row)
    }

    async fn attempt(&self, held: &Held, row: PlacementRow) -> Result<PlacementRow, PaymentsError> {
        // Its turn first: a wait must not eat the lease.
        self.0.pace.turn().await;
        let in_doubt = State::parse(&row.state) == Some(State::Unknown);
        let mut row = self.advance(held, row, Event::Attempt).await?;
        if !held.may_send().await {
            held.lease().await?;
        }
        if !held.may_send().await {
            // Nothing left this process.
            return self.not_taken(held, row, in_doubt, "the lease was too old to send under").await;
        }
        let event = MeterEvent {
            event_name: row.event_name.clone(),
            customer: row.stripe_customer.clone(),
            value: row.amount,
            identifier: row.identifier.clone(),
            at: row.event_at,
            idempotency_key: attempt_key(&row.identifier, row.attempt),
        };
        match self.0.provider.meter_event_send(&event).await {
            SendOutcome::Delivered { request } => {
                row.request_id = request;
                row.reason = None;
                self.advance(held, row, Event::Taken).await
            }
            SendOutcome::AlreadyExists => {
                row.exists_said = true;
                row.reason = Some("already_exists".to_owned());
                match self.reading(&row).await {
                    Ok((seen, reading)) => {
                        row.seen = Some(seen);
                        row.seen_at = Some(self.ledger().now().await?);
                        row.settled = reading == Reading::With;
                        self.advance(held, row, Event::Exists(reading)).await
                    }
                    // The service has it and its minute cannot be read now: nothing contradicts, nothing proves.
                    Err(PaymentsError::Provider(error)) => {
                        tracing::warn!(%error, placement = row.placement_id, "failed to read the minute of a placement that exists");
                        self.advance(held, row, Event::NoAnswer).await
                    }
                    Err(error) => Err(error),
                }
            }
            SendOutcome::Refused { code, message } => {
                row.reason = Some(format!("{code}: {message}"));
                self.advance(held, row, Event::Refused { in_doubt }).await
            }
            SendOutcome::NotTaken { why, after } => {
                if let Some(after) = after {
                    self.0.pace.pause(after).await;
                }
                self.not_taken(held, row, in_doubt, &why).await
            }
            SendOutcome::Unknown { why } => {
                row.reason = Some(why);
                self.advance(held, row, Event::NoAnswer).await
            }
        }
    }

    async fn not_taken(
        &self,
        held: &Held,
        mut row: PlacementRow,
        in_doubt: bool,
        why: &str,
    ) -> Result<PlacementRow, PaymentsError> {
        row.reason = Some(why.to_owned());
        if !in_doubt {
            // No attempt reached the service: its memory of the identifier has not begun.
            row.first_attempt_at = None;
        }
        self.advance(held, row, Event::NotTaken { in_doubt }).await
    }
}
