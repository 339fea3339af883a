//! Making one run: counting, statements, the log, the commit.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{HeadRow, Lease, LogMove, PieceRow, SealCommit, SealRunRow, StatementRow};
use proof::{HeadBody, SignedHead, StatementFacts, log::LogFrontier, statement_hash};
use usage::{CustomerId, Encoder, Hour, MeterId, PlatformId, Timestamp};

use super::SealedHour;
use crate::BillingError;
use crate::billing::Inner;
use crate::count::{Counted, Cutting, Meter, fixed_pieces, meters_of};
use crate::rules::pieces::{Piece, pieces};

impl Inner {
    /// Seals an hour up to a cut; none when everything that is left of it waits for its subscriptions.
    pub(super) async fn seal_hour(
        &self,
        lease: &Lease,
        platform: &PlatformId,
        hour: Hour,
        cut: &ledger::Cut,
        events: u64,
        silent: Vec<u64>,
    ) -> Result<Option<SealedHour>, BillingError> {
        if let Some(payments) = &self.payments {
            // A payment service that is away holds up those that it bills, and nobody else.
            if let Err(error) = payments.subscriptions_up_to(platform, hour.end()).await {
                tracing::warn!(%error, %platform, %hour, "failed to read subscriptions; their customers wait");
            }
        }
        let meters = meters_of(&self.ledger, platform, hour).await?;
        let former = self.runs_of(platform, hour).await?;
        let last = former.last().map(|(run, _)| run.clone());
        let before: Vec<_> = former.into_iter().map(|(_, before)| before).collect();
        let mut fixing = Fixing {
            inner: self,
            platform,
            hour,
            meters: &meters,
            known: fixed_pieces(&self.ledger, platform, hour).await?,
            fixed: Vec::new(),
            deferred: BTreeSet::new(),
        };
        let count = self.count(platform, hour, &meters, &before, cut);
        let counted = count.all(&mut fixing).await?;
        let (fixed, deferred) = (fixing.fixed, fixing.deferred);
        let news = last.as_ref().is_none_or(|run| run.events != events);
        if counted.is_empty()
            && !news
            && last.as_ref().is_some_and(|run| run.deferred == wide(deferred.len()))
        {
            return Ok(None);
        }
        let ordinal = last.map_or(1, |run| run.ordinal.saturating_add(1));
        let run = SealRunRow {
            run_id: run_id(platform, hour, ordinal, cut.cut_id),
            platform: platform.clone(),
            hour,
            ordinal,
            cut_id: cut.cut_id,
            events,
            silent: silent.clone(),
            deferred: wide(deferred.len()),
            committed_at: self.ledger.now().await?,
            recorded_at: None,
        };
        let (statements, log) = self.statements(&run, &meters, counted).await?;
        let sealed = SealedHour {
            platform_id: platform.to_string(),
            hour,
            run_id: run.run_id.clone(),
            statements: statements.len(),
            deferred: deferred.len(),
            silent,
        };
        let deferrals = deferred
            .iter()
            .flat_map(|customer| meters.iter().map(|meter| (customer.clone(), meter.row.meter.clone())))
            .collect();
        self.ledger
            .seal_commit(lease, &SealCommit { run, deferrals, pieces: fixed, statements, log })
            .await?;
        metrics::counter!("contextmeter_seal_runs_total").increment(1);
        Ok(Some(sealed))
    }

    /// The statements of what was counted, in the order of the log, and the log after them.
    async fn statements(
        &self,
        run: &SealRunRow,
        meters: &[Meter],
        counted: Vec<Counted>,
    ) -> Result<(Vec<StatementRow>, Option<LogMove>), BillingError> {
        let revisions = self.ledger.revision_list(&run.platform, run.hour).await?;
        let (former_size, mut frontier) = match self.ledger.log_frontier(&run.platform).await? {
            Some((size, bytes)) => (size, LogFrontier::from_bytes(&bytes)?),
            None => (0, LogFrontier::new()),
        };
        let mut statements = Vec::new();
        for item in counted {
            let Some(meter) = meters.iter().find(|meter| meter.row.meter == item.meter) else { continue };
            let key = (item.customer.clone(), item.meter.clone(), item.piece.start);
            let revision = revisions.get(&key).map_or(Some(1), |last| last.checked_add(1));
            let revision = revision.ok_or(BillingError::TooLarge { what: "a revision" })?;
            let hash = statement_hash(&StatementFacts {
                platform: run.platform.as_str(),
                customer: item.customer.as_str(),
                meter: item.meter.as_str(),
                definition_hash: meter.row.definition_hash,
                piece_start: item.piece.start.as_micros(),
                piece_end: item.piece.end.as_micros(),
                revision,
                root: item.root,
            });
            frontier.append(&hash)?;
            statements.push(StatementRow {
                statement_id: statement_id(&hash),
                platform: run.platform.clone(),
                customer: item.customer,
                meter: item.meter,
                definition_hash: meter.row.definition_hash,
                hour: run.hour,
                piece_start: item.piece.start,
                piece_end: item.piece.end,
                revision,
                count: item.root.count,
                sum: item.root.sum,
                root: item.root.hash,
                statement_hash: hash,
                log_index: frontier.size(),
                run_id: run.run_id.clone(),
                recorded: false,
            });
        }
        if statements.is_empty() {
            return Ok((statements, None));
        }
        let head = SignedHead::sign(
            HeadBody {
                platform: run.platform.to_string(),
                size: frontier.size(),
                root: frontier.root(),
                at: run.committed_at.as_micros(),
            },
            &self.head_signer,
        );
        let head = HeadRow {
            size: head.size,
            root: head.root,
            at: run.committed_at,
            kid: head.kid,
            signature: head.signature.to_base64(),
        };
        Ok((statements, Some(LogMove { former_size, frontier: frontier.to_bytes(), head })))
    }
}

/// The cutting of a run that is being made: what earlier runs fixed stays, the rest is fixed now or deferred.
struct Fixing<'a> {
    inner: &'a Inner,
    platform: &'a PlatformId,
    hour: Hour,
    meters: &'a [Meter],
    known: BTreeMap<CustomerId, BTreeMap<MeterId, Vec<Piece>>>,
    fixed: Vec<PieceRow>,
    deferred: BTreeSet<CustomerId>,
}

impl Cutting for Fixing<'_> {
    async fn pieces(
        &mut self,
        customer: &CustomerId,
    ) -> Result<Option<BTreeMap<MeterId, Vec<Piece>>>, BillingError> {
        if let Some(known) = self.known.get(customer) {
            return Ok(Some(known.clone()));
        }
        let mut of_meters = BTreeMap::new();
        for meter in self.meters {
            match self.boundaries(customer, meter).await? {
                Some(boundaries) => of_meters.insert(meter.row.meter.clone(), pieces(self.hour, boundaries)),
                None => {
                    self.deferred.insert(customer.clone());
                    return Ok(None);
                }
            };
        }
        for (meter, pieces) in &of_meters {
            self.fixed.extend(pieces.iter().map(|piece| PieceRow {
                customer: customer.clone(),
                meter: meter.clone(),
                start: piece.start,
                end: piece.end,
            }));
        }
        Ok(Some(of_meters))
    }
}

impl Fixing<'_> {
    /// Where billing periods cut the hour; none while the subscription was not read after its end. What decides is in the
    /// ledger, not whether this process speaks to the payment service: another one of the same books may.
    async fn boundaries(
        &self,
        customer: &CustomerId,
        meter: &Meter,
    ) -> Result<Option<Vec<Timestamp>>, BillingError> {
        // What the payment service does not count, no subscription bills.
        if meter.row.stripe_meter.is_none() {
            return Ok(Some(Vec::new()));
        }
        let linked = match self.inner.ledger.customer_get(self.platform, customer).await {
            Ok(row) => row.stripe_customer.is_some(),
            Err(ledger::LedgerError::NotFound { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        if !linked {
            return Ok(Some(Vec::new()));
        }
        let view = self.inner.ledger.subscription_view(self.platform, customer, &meter.row.meter).await?;
        Ok(view
            .filter(|view| view.read_at >= self.hour.end())
            .map(|view| view.periods.into_iter().flat_map(|(start, end)| [start, end]).collect()))
    }
}

fn run_id(platform: &PlatformId, hour: Hour, ordinal: u64, cut_id: u64) -> String {
    let id =
        Encoder::new("cm.run.1").text(platform.as_str()).i64(hour.index()).u64(ordinal).u64(cut_id).hash16();
    format!("run_{}", hex::encode(id))
}

fn statement_id(hash: &[u8; 32]) -> String {
    let text = hex::encode(hash);
    format!("stm_{}", text.chars().take(32).collect::<String>())
}

fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
