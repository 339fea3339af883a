//! The counterparts at the payment service: who pays for a customer, and which meter counts for ours.

use std::collections::BTreeMap;

use ledger::{CustomerRow, MeterRow, PlatformRow};
use usage::{CustomerId, PlatformId};

use super::lease::Held;
use super::{Binding, Payments, PaymentsError, SubscriptionsStatus};
use crate::provider::{NewMeter, PaymentMeter};

impl Payments {
    /// Links a customer to one that the payment service has, and reads its subscriptions at once. No other task runs meanwhile, so what was read of a
    /// former link cannot come after it.
    pub async fn customer_link(
        &self,
        platform: &PlatformId,
        customer: &CustomerId,
        stripe_customer: &str,
    ) -> Result<CustomerRow, PaymentsError> {
        self.alone(async |held: &Held| {
            let platform = self.bound(platform).await?;
            let found = self.0.provider.customer_get(stripe_customer).await?;
            if found.is_none_or(|found| found.deleted) {
                return Err(PaymentsError::NoCustomer(stripe_customer.to_owned()));
            }
            held.lease().await?;
            let account = &self.0.provider.account().id;
            let row =
                self.ledger().customer_link(&platform.platform, customer, account, stripe_customer).await?;
            let mut board = self.board(platform, &BTreeMap::new()).await?;
            board.customers.retain(|id, _| id == customer);
            self.subscriptions_read(held, &board, &mut SubscriptionsStatus::default()).await?;
            Ok(row)
        })
        .await
    }

    /// Makes every meter of a platform exist at the payment service. One that is there by its event name is taken if it counts as ours do.
    pub async fn meters_ensure(&self, platform: &PlatformId) -> Result<Vec<MeterRow>, PaymentsError> {
        self.alone(async |held: &Held| {
            let platform = self.bound(platform).await?.platform;
            let remote = self.remote_meters().await?;
            for meter in self.ledger().meter_list(&platform).await? {
                let linked = meter.stripe_meter.as_ref().and_then(|id| remote.get(id));
                if linked.is_some_and(|linked| fits(linked, &meter.event_name)) {
                    continue;
                }
                let same =
                    remote.values().find(|remote| remote.active && remote.event_name == meter.event_name);
                let found = match same {
                    Some(same) if fits(same, &meter.event_name) => same.id.clone(),
                    Some(_) => return Err(PaymentsError::MeterUnfit(meter.event_name)),
                    None => self.meter_make(held, &meter).await?,
                };
                held.lease().await?;
                self.ledger().meter_set_stripe(&platform, &meter.meter, &found).await?;
            }
            Ok(self.ledger().meter_list(&platform).await?)
        })
        .await
    }

    async fn meter_make(&self, held: &Held, meter: &MeterRow) -> Result<String, PaymentsError> {
        held.lease().await?;
        let new = NewMeter {
            display_name: meter.meter.to_string(),
            event_name: meter.event_name.clone(),
            // Of this attempt: what an earlier one made is found by its event name, and a failure that the service keeps must not come back.
            idempotency_key: format!("meter/{}/{}", meter.event_name, uuid::Uuid::now_v7()),
        };
        Ok(self.0.provider.meter_create(&new).await?.id)
    }

    async fn bound(&self, platform: &PlatformId) -> Result<PlatformRow, PaymentsError> {
        let platform = self.ledger().platform_get(platform).await?;
        match self.binding(&platform) {
            Binding::Bound => Ok(platform),
            other => Err(PaymentsError::Unbound(other)),
        }
    }
}

fn fits(meter: &PaymentMeter, event_name: &str) -> bool {
    meter.active && meter.sums_raw && meter.event_name == event_name
}
