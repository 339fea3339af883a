//! Counting what a run covers: the same way when it seals, when it is verified, and when a dispute asks for a proof.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{Ledger, MeterRow, SealRunRow};
use proof::{InclusionProof, Leaf, SumNode, SumTreeBuilder};
use usage::{CustomerId, EventFacts, EventKind, Hour, MeterDefinition, MeterId, PlatformId, Timestamp};
use usage_store::{CoveredEvent, Customers, UsageStore};

use crate::BillingError;
use crate::rules::cuts::{RunBefore, lower, passes};
use crate::rules::pieces::{Piece, pieces};

/// A meter with what it counts.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    pub(crate) row: MeterRow,
    pub(crate) definition: MeterDefinition,
}

/// The meters that count an hour, in the order of their ids.
pub(crate) async fn meters_of(
    ledger: &Ledger,
    platform: &PlatformId,
    hour: Hour,
) -> Result<Vec<Meter>, BillingError> {
    let mut meters = Vec::new();
    for row in ledger.meter_list(platform).await? {
        let ended = row.superseded_at.is_some_and(|at| at <= hour.start());
        if row.effective_from <= hour && !ended {
            let definition = serde_json::from_str(&row.definition)
                .map_err(|error| BillingError::Damaged { what: format!("meter {}: {error}", row.meter) })?;
            meters.push(Meter { row, definition });
        }
    }
    meters.sort_by(|a, b| a.row.meter.cmp(&b.row.meter));
    Ok(meters)
}

/// What one piece of a customer's meter adds up to.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) customer: CustomerId,
    pub(crate) meter: MeterId,
    pub(crate) piece: Piece,
    pub(crate) root: SumNode,
    /// For the event that was asked for, where it is in this piece.
    pub(crate) proof: Option<(Leaf, InclusionProof)>,
}

/// The trees of one customer while its events go by.
struct Trees<'a> {
    meters: &'a [Meter],
    customer: CustomerId,
    pieces: BTreeMap<MeterId, Vec<Piece>>,
    open: BTreeMap<(MeterId, Piece), (SumTreeBuilder, Option<Leaf>)>,
    target: Option<[u8; 16]>,
}

impl Trees<'_> {
    fn add(&mut self, event: &CoveredEvent) -> Result<(), BillingError> {
        let damaged = |what: &str| BillingError::Damaged {
            what: format!("event {}: {what}", hex::encode(event.event_id)),
        };
        let kind = EventKind::parse(&event.kind).ok_or_else(|| damaged("its kind"))?;
        let facts = EventFacts {
            kind,
            provider: &event.provider,
            tokens: event.tokens,
            frames_served: event.frames_served,
        };
        let at = Timestamp::from_micros(event.as_of);
        for meter in self.meters {
            let Some(quantity) = meter.definition.takes(&facts) else { continue };
            let pieces = self.pieces.get(&meter.row.meter).map(Vec::as_slice).unwrap_or_default();
            let piece =
                pieces.iter().find(|piece| piece.contains(at)).ok_or_else(|| damaged("no piece has it"))?;
            let leaf = Leaf { event_id: event.event_id, content_hash: event.content_hash, quantity };
            let target = self.target;
            let (tree, found) = self
                .open
                .entry((meter.row.meter.clone(), *piece))
                .or_insert_with(|| (target.map_or_else(SumTreeBuilder::new, SumTreeBuilder::proving), None));
            tree.push(leaf)?;
            if target == Some(event.event_id) {
                *found = Some(leaf);
            }
        }
        Ok(())
    }

    fn finish(self, out: &mut Vec<Counted>) -> Result<(), BillingError> {
        for ((meter, piece), (tree, leaf)) in self.open {
            let (root, proof) = match leaf {
                Some(leaf) => {
                    let (root, inclusion) = tree.finish_proof()?;
                    (root, Some((leaf, inclusion)))
                }
                None => (tree.finish()?, None),
            };
            out.push(Counted { customer: self.customer.clone(), meter, piece, root, proof });
        }
        Ok(())
    }
}

/// Says how a customer's hour is cut, or that the customer is left for later.
pub(crate) trait Cutting {
    async fn pieces(
        &mut self,
        customer: &CustomerId,
    ) -> Result<Option<BTreeMap<MeterId, Vec<Piece>>>, BillingError>;
}

/// A run, made or to be made.
pub(crate) struct Count<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) store: &'a UsageStore,
    pub(crate) platform: &'a PlatformId,
    pub(crate) hour: Hour,
    pub(crate) meters: &'a [Meter],
    /// The hour's runs before this one.
    pub(crate) before: &'a [RunBefore],
    pub(crate) upper: &'a ledger::Cut,
}

impl Count<'_> {
    /// Everything that the run covers, by customer, meter and piece.
    pub(crate) async fn all(&self, cutting: &mut impl Cutting) -> Result<Vec<Counted>, BillingError> {
        let passes = passes(self.before);
        let mut out = Vec::new();
        let mut apart: Vec<String> = Vec::new();
        for (lower, customers) in &passes.own {
            let names: Vec<String> = customers.iter().map(ToString::to_string).collect();
            self.pass(*lower, Customers::Only(&names), None, cutting, &mut out).await?;
            apart.extend(names);
        }
        self.pass(passes.others, Customers::Except(&apart), None, cutting, &mut out).await?;
        out.sort_by(|a, b| (&a.customer, &a.meter, a.piece).cmp(&(&b.customer, &b.meter, b.piece)));
        Ok(out)
    }

    /// What the run covers of one customer, with the proof for one event.
    pub(crate) async fn proving(
        &self,
        customer: &CustomerId,
        event_id: [u8; 16],
        cutting: &mut impl Cutting,
    ) -> Result<Vec<Counted>, BillingError> {
        let mut out = Vec::new();
        let names = [customer.to_string()];
        self.pass(lower(self.before, customer), Customers::Only(&names), Some(event_id), cutting, &mut out)
            .await?;
        Ok(out)
    }

    async fn pass(
        &self,
        lower: Option<u64>,
        customers: Customers<'_>,
        target: Option<[u8; 16]>,
        cutting: &mut impl Cutting,
        out: &mut Vec<Counted>,
    ) -> Result<(), BillingError> {
        let lower = match lower {
            Some(cut_id) => store_cut(&self.ledger.cut_get(cut_id).await?),
            None => usage_store::Cut::default(),
        };
        let upper = store_cut(self.upper);
        let mut events = self.store.events_covered(self.platform, self.hour, &lower, &upper, customers)?;
        let mut current: Option<(String, Option<Trees<'_>>)> = None;
        while let Some(event) = events.next().await? {
            if current.as_ref().is_none_or(|(name, _)| *name != event.customer) {
                if let Some((_, Some(trees))) = current.take() {
                    trees.finish(out)?;
                }
                let customer = CustomerId::parse(event.customer.clone())
                    .map_err(|_| BillingError::Damaged { what: "a customer's id in the store".to_owned() })?;
                let trees = cutting.pieces(&customer).await?.map(|pieces| Trees {
                    meters: self.meters,
                    customer,
                    pieces,
                    open: BTreeMap::new(),
                    target,
                });
                current = Some((event.customer.clone(), trees));
            }
            if let Some((_, Some(trees))) = &mut current {
                trees.add(&event)?;
            }
        }
        if let Some((_, Some(trees))) = current {
            trees.finish(out)?;
        }
        Ok(())
    }
}

pub(crate) fn store_cut(cut: &ledger::Cut) -> usage_store::Cut {
    cut.positions.iter().map(|(epoch, seq)| (*epoch, *seq)).collect()
}

/// The runs of an hour with what each deferred.
pub(crate) async fn runs_of(
    ledger: &Ledger,
    platform: &PlatformId,
    hour: Hour,
) -> Result<Vec<(SealRunRow, RunBefore)>, BillingError> {
    let mut deferred: BTreeMap<u64, BTreeSet<CustomerId>> = BTreeMap::new();
    for row in ledger.seal_deferral_list(platform, hour).await? {
        deferred.entry(row.ordinal).or_default().insert(row.customer);
    }
    let runs = ledger.seal_run_list(platform, hour).await?;
    Ok(runs
        .into_iter()
        .map(|run| {
            let before =
                RunBefore { cut_id: run.cut_id, deferred: deferred.remove(&run.ordinal).unwrap_or_default() };
            (run, before)
        })
        .collect())
}

/// The cutting of a run that was made: what the ledger fixed, and whom the run deferred.
pub(crate) struct Fixed {
    pieces: BTreeMap<CustomerId, BTreeMap<MeterId, Vec<Piece>>>,
    deferred: BTreeSet<CustomerId>,
    whole: BTreeMap<MeterId, Vec<Piece>>,
}

impl Fixed {
    pub(crate) async fn of(
        ledger: &Ledger,
        platform: &PlatformId,
        hour: Hour,
        meters: &[Meter],
        deferred: &BTreeSet<CustomerId>,
    ) -> Result<Self, BillingError> {
        Ok(Self {
            pieces: fixed_pieces(ledger, platform, hour).await?,
            deferred: deferred.clone(),
            whole: meters.iter().map(|meter| (meter.row.meter.clone(), pieces(hour, []))).collect(),
        })
    }
}

impl Cutting for Fixed {
    async fn pieces(
        &mut self,
        customer: &CustomerId,
    ) -> Result<Option<BTreeMap<MeterId, Vec<Piece>>>, BillingError> {
        if self.deferred.contains(customer) {
            return Ok(None);
        }
        // A customer that no run knows comes out as a statement that the ledger does not have.
        Ok(Some(self.pieces.get(customer).unwrap_or(&self.whole).clone()))
    }
}

pub(crate) async fn fixed_pieces(
    ledger: &Ledger,
    platform: &PlatformId,
    hour: Hour,
) -> Result<BTreeMap<CustomerId, BTreeMap<MeterId, Vec<Piece>>>, BillingError> {
    let mut pieces: BTreeMap<CustomerId, BTreeMap<MeterId, Vec<Piece>>> = BTreeMap::new();
    for row in ledger.piece_list(platform, hour).await? {
        let piece = Piece { start: row.start, end: row.end };
        pieces.entry(row.customer).or_default().entry(row.meter).or_default().push(piece);
    }
    Ok(pieces)
}
