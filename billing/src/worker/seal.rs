//! Sealing: one pass over an hour up to a cut, committed in one transaction while a lease is held.
//!
//! Whatever stops it, nothing is half done: what a run covers is a function of its cut and of what is stored, and until the
//! commit there is no run. What was committed is written beside the usage before it is shown or sent.

mod run;

use std::collections::{BTreeMap, BTreeSet};

use ledger::{EpochState, HourCount, Lease, SealRunRow};
use serde::Serialize;
use usage::{Hour, PlatformId};
use usage_store::RunRow;
use utoipa::ToSchema;

use crate::billing::{Billing, Inner};
use crate::count::{Count, Meter, store_cut};
use crate::rules::cuts::RunBefore;
use crate::rules::sealing::{Decision, HourState, decide};
use crate::{BillingError, count};

const LEASE: &str = "seal";
const LEASE_TTL_US: i64 = 120_000_000;

/// What to seal.
#[derive(Debug, Clone, Default)]
pub struct SealRequest {
    pub platform: Option<PlatformId>,
    pub hour: Option<Hour>,
    /// A person asks: waits neither for late reports nor for silent journals, only for the hour's end.
    pub force: bool,
}

/// What was sealed, and why other hours with work were not.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct SealStatus {
    pub sealed: Vec<SealedHour>,
    pub waiting: Vec<HourReason>,
    pub frozen: Vec<HourReason>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SealedHour {
    pub platform_id: String,
    #[schema(value_type = String)]
    pub hour: Hour,
    pub run_id: String,
    pub statements: usize,
    /// Customers left for a later run, until their subscription was read after the hour's end.
    pub deferred: usize,
    /// Journals that the run did not wait for.
    pub silent: Vec<u64>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct HourReason {
    pub platform_id: String,
    #[schema(value_type = String)]
    pub hour: Hour,
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Billing {
    /// Seals every hour with work that is due. Idempotent; without input but for the request.
    ///
    /// # Errors
    ///
    /// `Busy` when another process seals. What was sealed before an error stands.
    pub async fn seal_activate(&self, request: SealRequest) -> Result<SealStatus, BillingError> {
        let inner = self.inner();
        let _turn = inner.sealing.lock().await;
        inner.record_runs().await?;
        let lease = inner
            .ledger
            .lease_acquire(LEASE, &inner.holder, LEASE_TTL_US)
            .await?
            .ok_or(BillingError::Busy)?;
        let result = inner.seal_due(&lease, &request).await;
        if let Err(error) = inner.ledger.lease_release(&lease).await {
            tracing::warn!(%error, "failed to give the sealing lease back; it will run out");
        }
        let status = result?;
        inner.record_runs().await?;
        Ok(status)
    }
}

impl Inner {
    async fn seal_due(&self, lease: &Lease, request: &SealRequest) -> Result<SealStatus, BillingError> {
        let cut = self.ledger.cut_take().await?;
        let mut work: BTreeMap<(PlatformId, Hour), BTreeMap<u64, HourCount>> = BTreeMap::new();
        for (epoch, count) in self.ledger.epoch_counts_latest(&cut).await? {
            work.entry((count.platform.clone(), count.hour)).or_default().insert(epoch, count);
        }
        let last = self.ledger.seal_run_latest().await?;
        let open: Vec<_> = self
            .ledger
            .epoch_list()
            .await?
            .into_iter()
            .filter(|epoch| epoch.state == EpochState::Open)
            .map(|epoch| (epoch.epoch, epoch.confirmed_through))
            .collect();
        let mut status = SealStatus::default();
        let mut lease = lease.clone();
        for ((platform, hour), counts) in work {
            let asked = request.platform.as_ref().is_none_or(|only| *only == platform)
                && request.hour.is_none_or(|only| only == hour);
            let run = last.get(&(platform.clone(), hour));
            let events = sum_events(&counts)?;
            if !asked || run.is_some_and(|run| run.events == events && run.deferred == 0) {
                continue;
            }
            let settings = self.ledger.platform_get(&platform).await?;
            let decision = decide(&HourState {
                hour,
                now: self.ledger.now().await?,
                lateness_us: settings.lateness_us,
                deadline_us: settings.seal_deadline_us,
                open_journals: &open,
                last_run: run.map(|run| (run.committed_at, run.ordinal)),
                force: request.force,
            });
            let silent = match decision {
                Decision::Seal { silent } => silent,
                Decision::Wait(reason) => {
                    status.waiting.push(waiting(&platform, hour, reason, None));
                    continue;
                }
            };
            if let Some(detail) = self.difference(&platform, hour, &cut, &counts).await? {
                status.frozen.push(self.freeze(&platform, hour, "store_differs", detail).await?);
                continue;
            }
            self.ledger.freeze_clear(&platform, hour).await?;
            lease = self.ledger.lease_renew(&lease, LEASE_TTL_US).await?;
            match self.seal_hour(&lease, &platform, hour, &cut, events, silent).await {
                Ok(Some(sealed)) => status.sealed.push(sealed),
                Ok(None) => status.waiting.push(waiting(&platform, hour, "subscription_unread", None)),
                // It is the same at every try and concerns this hour alone: the others must not wait for it.
                Err(
                    error @ (BillingError::Damaged { .. }
                    | BillingError::TooLarge { .. }
                    | BillingError::Proof(_)),
                ) => {
                    let frozen = self.freeze(&platform, hour, "cannot_be_counted", error.to_string()).await?;
                    status.frozen.push(frozen);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(status)
    }

    async fn freeze(
        &self,
        platform: &PlatformId,
        hour: Hour,
        reason: &str,
        detail: String,
    ) -> Result<HourReason, BillingError> {
        metrics::counter!("contextmeter_seal_frozen_total").increment(1);
        tracing::error!(%platform, %hour, reason, detail, "the hour stays frozen until its cause is put right");
        self.ledger.freeze_put(platform, hour, reason, &detail).await?;
        Ok(waiting(platform, hour, reason, Some(detail)))
    }

    /// Compares what the store holds with what the journals counted themselves, journal by journal.
    pub(crate) async fn difference(
        &self,
        platform: &PlatformId,
        hour: Hour,
        cut: &ledger::Cut,
        counts: &BTreeMap<u64, HourCount>,
    ) -> Result<Option<String>, BillingError> {
        let stored = self.store.epoch_totals(platform, hour, &store_cut(cut)).await?;
        let stored: BTreeMap<u64, _> = stored.into_iter().map(|totals| (totals.epoch, totals)).collect();
        let epochs: BTreeSet<u64> = stored.keys().chain(counts.keys()).copied().collect();
        for epoch in epochs {
            let held = stored.get(&epoch).map_or((0, 0, 0), |t| (t.events, t.tokens, t.frames));
            let counted = counts.get(&epoch).map_or((0, 0, 0), |c| (c.events, c.tokens, c.frames));
            if held != counted {
                return Ok(Some(format!(
                    "journal {epoch} counted {} events, {} tokens, {} frames up to position {}; the store holds {}, {}, {}",
                    counted.0,
                    counted.1,
                    counted.2,
                    cut.seq(epoch),
                    held.0,
                    held.1,
                    held.2
                )));
            }
        }
        Ok(None)
    }

    /// Writes the record of each committed run beside the usage. Until then nothing of it is shown or sent.
    async fn record_runs(&self) -> Result<(), BillingError> {
        loop {
            let runs = self.ledger.seal_run_unrecorded(100).await?;
            if runs.is_empty() {
                return Ok(());
            }
            for run in runs {
                let record = self.record_of(&run).await?;
                self.store
                    .run_insert(&RunRow {
                        platform: run.platform.to_string(),
                        hour: run.hour.index(),
                        run_id: run.run_id.clone(),
                        committed_at: run.committed_at.as_micros(),
                        record: record.to_string(),
                    })
                    .await?;
                self.ledger.seal_run_recorded(&run.run_id).await?;
            }
        }
    }

    /// Everything of a run that a ledger without it would need to make it again.
    async fn record_of(&self, run: &SealRunRow) -> Result<serde_json::Value, BillingError> {
        let cut = self.ledger.cut_get(run.cut_id).await?;
        let deferrals = self.ledger.seal_deferral_list(&run.platform, run.hour).await?;
        let deferrals: Vec<_> = deferrals
            .iter()
            .filter(|deferral| deferral.ordinal == run.ordinal)
            .map(|deferral| serde_json::json!([deferral.customer, deferral.meter]))
            .collect();
        let pieces: Vec<_> = self
            .ledger
            .piece_list(&run.platform, run.hour)
            .await?
            .iter()
            .map(|piece| serde_json::json!([piece.customer, piece.meter, piece.start, piece.end]))
            .collect();
        let statements: Vec<_> = self
            .ledger
            .statements_of_run(&run.run_id)
            .await?
            .iter()
            .map(crate::http::statement_json)
            .collect();
        Ok(serde_json::json!({
            "ordinal": run.ordinal,
            "cut": { "cut_id": cut.cut_id, "taken_at": cut.taken_at, "positions": cut.positions },
            "events": run.events,
            "silent": run.silent,
            "deferrals": deferrals,
            "pieces": pieces,
            "statements": statements,
        }))
    }

    /// A run of an hour, made or to be made, ready to be counted.
    pub(crate) fn count<'a>(
        &'a self,
        platform: &'a PlatformId,
        hour: Hour,
        meters: &'a [Meter],
        before: &'a [RunBefore],
        upper: &'a ledger::Cut,
    ) -> Count<'a> {
        Count { ledger: &self.ledger, store: &self.store, platform, hour, meters, before, upper }
    }

    pub(crate) async fn runs_of(
        &self,
        platform: &PlatformId,
        hour: Hour,
    ) -> Result<Vec<(SealRunRow, RunBefore)>, BillingError> {
        count::runs_of(&self.ledger, platform, hour).await
    }
}

pub(crate) fn sum_events(counts: &BTreeMap<u64, HourCount>) -> Result<u64, BillingError> {
    counts
        .values()
        .try_fold(0u64, |sum, count| sum.checked_add(count.events))
        .ok_or(BillingError::TooLarge { what: "a count of events" })
}

fn waiting(platform: &PlatformId, hour: Hour, reason: &str, detail: Option<String>) -> HourReason {
    HourReason { platform_id: platform.to_string(), hour, reason: reason.to_owned(), detail }
}
