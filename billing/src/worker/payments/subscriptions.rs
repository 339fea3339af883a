//! Reads the subscriptions of linked customers: a customer's hour is cut at the boundaries that are known here, and billed in the periods that are known here.
//!
//! A customer and meter is `ambiguous` if and only if two subscription items bill the meter at one instant. One that begins where another ends is a hand-over.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, TryStreamExt as _};
use ledger::{BillPeriodRead, SubscriptionRead, SubscriptionState};
use serde::Serialize;
use usage::{MeterId, PlatformId, Timestamp};
use utoipa::ToSchema;

use super::lease::Held;
use super::{Binding, Board, Payments, PaymentsError};
use crate::provider::{PaymentError, SubscriptionItem};

const READS_AT_ONCE: usize = 8;

/// What a reading of subscriptions found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct SubscriptionsStatus {
    /// Linked customers that were read.
    pub customers: u64,
    /// Customers and meters with one subscription item.
    pub live: u64,
    /// Customers and meters whose usage two items would bill.
    pub ambiguous: u64,
    /// Customers that could not be read now; their hours wait.
    pub failed: u64,
}

impl Payments {
    /// Reads the subscriptions of every linked customer.
    pub async fn subscriptions_activate(&self) -> Result<SubscriptionsStatus, PaymentsError> {
        self.subscriptions_of(None).await
    }

    /// As `subscriptions_activate`, for one platform.
    pub async fn subscriptions_of(
        &self,
        only: Option<&PlatformId>,
    ) -> Result<SubscriptionsStatus, PaymentsError> {
        self.subscriptions_where(only, None).await
    }

    /// Reads those customers of a platform that were not read at or after `at`: an hour that ends there can be sealed then.
    pub async fn subscriptions_up_to(
        &self,
        platform: &PlatformId,
        at: Timestamp,
    ) -> Result<SubscriptionsStatus, PaymentsError> {
        self.subscriptions_where(Some(platform), Some(at)).await
    }

    async fn subscriptions_where(
        &self,
        only: Option<&PlatformId>,
        unless_read_at: Option<Timestamp>,
    ) -> Result<SubscriptionsStatus, PaymentsError> {
        self.alone(async |held: &Held| {
            let mut status = SubscriptionsStatus::default();
            for (platform, binding) in self.platforms(only).await? {
                if binding != Binding::Bound {
                    continue;
                }
                // What the meters are at the payment service does not matter here, only which they are.
                let mut board = self.board(platform, &BTreeMap::new()).await?;
                if let Some(at) = unless_read_at {
                    self.without_read(&mut board, at).await?;
                }
                self.subscriptions_read(held, &board, &mut status).await?;
            }
            Ok(status)
        })
        .await
    }

    async fn without_read(&self, board: &mut Board, at: Timestamp) -> Result<(), PaymentsError> {
        let read = self.ledger().subscription_read_times(&board.platform.platform).await?;
        let linked: Vec<MeterId> = board
            .meters
            .iter()
            .filter(|(_, (row, _))| row.stripe_meter.is_some())
            .map(|(id, _)| id.clone())
            .collect();
        board.customers.retain(|customer, _| {
            linked
                .iter()
                .any(|meter| read.get(&(customer.clone(), meter.clone())).is_none_or(|read| *read < at))
        });
        Ok(())
    }

    pub(super) async fn subscriptions_read(
        &self,
        held: &Held,
        board: &Board,
        status: &mut SubscriptionsStatus,
    ) -> Result<(), PaymentsError> {
        let reads: Vec<_> = board
            .customers
            .values()
            .map(|customer| async move {
                self.0.pace.turn().await;
                // The ledger's clock, before the question: every boundary before this instant is in the answer.
                let read_at = self.ledger().now().await?;
                let stripe_customer = customer.stripe_customer.as_deref().unwrap_or_default();
                let items = match self.0.provider.subscription_items(stripe_customer).await {
                    Ok(items) => items,
                    Err(error) => {
                        tracing::warn!(%error, platform = %board.platform.platform, "failed to read the subscriptions of a customer");
                        return match error {
                            PaymentError::OtherAccount { .. } => Err(PaymentsError::Provider(error)),
                            _ => Ok(None),
                        };
                    }
                };
                held.lease().await?;
                let reads = readings(board, customer, read_at, &items);
                self.ledger().subscription_record(&reads).await?;
                Ok::<_, PaymentsError>(Some(reads))
            })
            .collect();
        let mut reads = futures_util::stream::iter(reads).buffer_unordered(READS_AT_ONCE);
        while let Some(read) = reads.try_next().await? {
            let Some(meters) = read else {
                status.failed += 1;
                continue;
            };
            status.customers += 1;
            for meter in meters {
                match meter.state {
                    SubscriptionState::None => {}
                    SubscriptionState::Live => status.live += 1,
                    SubscriptionState::Ambiguous => status.ambiguous += 1,
                }
            }
        }
        Ok(())
    }
}

/// One reading for each of the platform's meters that the payment service knows.
fn readings(
    board: &Board,
    customer: &ledger::CustomerRow,
    read_at: Timestamp,
    items: &[SubscriptionItem],
) -> Vec<SubscriptionRead> {
    let mut by_meter: BTreeMap<&MeterId, Vec<&SubscriptionItem>> = BTreeMap::new();
    for (meter_id, (meter, _)) in &board.meters {
        let Some(remote) = &meter.stripe_meter else { continue };
        by_meter.insert(meter_id, items.iter().filter(|item| item.meter == *remote).collect());
    }
    by_meter
        .into_iter()
        .map(|(meter, items)| SubscriptionRead {
            platform: board.platform.platform.clone(),
            customer: customer.customer.clone(),
            meter: meter.clone(),
            read_at,
            state: state(&items, read_at),
            periods: items
                .iter()
                .map(|item| BillPeriodRead {
                    item_id: item.item.clone(),
                    subscription_id: item.subscription.clone(),
                    price_id: item.price.clone(),
                    start: item.period_start,
                    end: end(item),
                })
                .filter(|period| period.start < period.end)
                .collect(),
        })
        .collect()
}

/// A subscription that ended bills no further than its end.
fn end(item: &SubscriptionItem) -> Timestamp {
    item.ended_at.map_or(item.period_end, |ended| ended.min(item.period_end))
}

fn state(items: &[&SubscriptionItem], now: Timestamp) -> SubscriptionState {
    let live: Vec<_> = items.iter().filter(|item| item.live).collect();
    let overlap = live.iter().enumerate().any(|(index, one)| {
        live.iter()
            .skip(index + 1)
            .any(|other| one.period_start < end(other) && other.period_start < end(one))
    });
    if overlap {
        SubscriptionState::Ambiguous
    } else if live.iter().any(|item| end(item) > now || item.ended_at.is_none()) {
        SubscriptionState::Live
    } else {
        SubscriptionState::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(live: bool, start: i64, end: i64) -> SubscriptionItem {
        SubscriptionItem {
            subscription: "sub_1".into(),
            item: "si_1".into(),
            price: "price_1".into(),
            meter: "mtr_1".into(),
            live,
            period_start: Timestamp::from_micros(start),
            period_end: Timestamp::from_micros(end),
            ended_at: (!live).then(|| Timestamp::from_micros(end)),
            cancel_at: None,
        }
    }

    #[test]
    fn two_items_at_one_instant_are_ambiguous_and_a_hand_over_is_not() {
        for (name, items, expected) in [
            ("none", vec![], SubscriptionState::None),
            ("one", vec![item(true, 0, 10)], SubscriptionState::Live),
            ("one that ended", vec![item(false, 0, 10)], SubscriptionState::None),
            ("hand-over", vec![item(true, 0, 5), item(true, 5, 10)], SubscriptionState::Live),
            ("one after one that ended", vec![item(false, 0, 8), item(true, 5, 10)], SubscriptionState::Live),
            ("two", vec![item(true, 0, 6), item(true, 5, 10)], SubscriptionState::Ambiguous),
            ("the same twice", vec![item(true, 0, 10), item(true, 0, 10)], SubscriptionState::Ambiguous),
        ] {
            let items: Vec<&SubscriptionItem> = items.iter().collect();
            assert_eq!(state(&items, Timestamp::from_micros(7)), expected, "{name}");
        }
    }
}
