//! Meters: what is counted and under which name Stripe counts it.

use sqlx::any::AnyRow;
use usage::{Hour, MeterId, PlatformId, Timestamp};

use crate::{Ledger, LedgerError, row::Columns as _};

/// A meter. Its definition is text of `usage`'s making, which the ledger does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterRow {
    pub platform: PlatformId,
    pub meter: MeterId,
    pub definition: String,
    pub definition_hash: [u8; 32],
    pub event_name: String,
    pub stripe_meter: Option<String>,
    pub effective_from: Hour,
    pub superseded_at: Option<Timestamp>,
}

impl Ledger {
    /// Adds a meter; one of that name is a `Conflict`: meters are succeeded, never edited.
    pub async fn meter_insert(&self, meter: &MeterRow) -> Result<(), LedgerError> {
        let insert = include_str!("../../../sql/ledger/queries/meters/insert.sql");
        self.run("inserting a meter", insert, |s| {
            s.text(meter.platform.as_str())
                .text(meter.meter.as_str())
                .text(&meter.definition)
                .bytes(&meter.definition_hash)
                .text(&meter.event_name)
                .hour(meter.effective_from)
                .done()
        })
        .await
        .map(drop)
    }

    pub async fn meter_list(&self, platform: &PlatformId) -> Result<Vec<MeterRow>, LedgerError> {
        let list = include_str!("../../../sql/ledger/queries/meters/list.sql");
        let rows = self.rows("listing meters", list, |s| s.text(platform.as_str()).done()).await?;
        rows.iter().map(read).collect()
    }

    /// Notes the counterpart at Stripe.
    pub async fn meter_set_stripe(
        &self,
        platform: &PlatformId,
        meter: &MeterId,
        stripe_meter: &str,
    ) -> Result<(), LedgerError> {
        let set = include_str!("../../../sql/ledger/queries/meters/set_stripe.sql");
        let changed = self
            .run("noting a Stripe meter", set, |s| {
                s.text(platform.as_str()).text(meter.as_str()).text(stripe_meter).done()
            })
            .await?;
        match changed {
            0 => Err(LedgerError::NotFound { what: format!("meter {meter}") }),
            _ => Ok(()),
        }
    }
}

fn read(row: &AnyRow) -> Result<MeterRow, LedgerError> {
    Ok(MeterRow {
        platform: row.parsed("platform_id", PlatformId::parse)?,
        meter: row.parsed("meter_id", MeterId::parse)?,
        definition: row.text("definition")?,
        definition_hash: row.array("definition_hash")?,
        event_name: row.text("event_name")?,
        stripe_meter: row.text_or_null("stripe_meter")?,
        effective_from: row.hour("effective_from_hour")?,
        superseded_at: row.time_or_null("superseded_at")?,
    })
}
