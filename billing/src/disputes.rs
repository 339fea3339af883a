//! From a frame, an event, a turn, a statement, a Stripe identifier or an invoice line to the whole chain.

use std::collections::HashSet;

use ledger::{HeadRow, InvoiceLineRow, PlacementRow, StatementRow};
use proof::{
    EventOpening, FileFormat, FrameOpening, KeyFamily, MeterOpening, OpenedFrame, OpenedTurn, ProofFile,
    PublicKey, Signature, SignedHead, Statement, SumNode, VerifyingKey, log,
};
use usage::{ContentHash, EventId, Hour, PlatformId, ReportKey, RequestId, Timestamp, TurnId, UsageEvent};
use usage_store::{EventRow, FrameQuery};

use crate::BillingError;
use crate::billing::Billing;
use crate::count::{Fixed, Meter, meters_of, store_cut};

/// What support has in hand.
#[derive(Debug, Clone)]
pub(crate) enum Handle {
    Frame(FrameQuery),
    Event(EventId),
    Turn(RequestId, TurnId),
    Statement(String),
    StripeIdentifier(String),
    InvoiceLine(String),
}

/// An event that was found, with the content and the place in it where the handle says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Found {
    event: EventId,
    content: Option<ContentHash>,
    place: Option<u32>,
}

impl Found {
    fn event(event: EventId) -> Self {
        Self { event, content: None, place: None }
    }
}

/// Everything from a frame to the invoice.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    pub(crate) event: UsageEvent,
    pub(crate) row: EventRow,
    /// The frame that was asked for, by its place.
    pub(crate) place: Option<u32>,
    /// Another content of the same event is stored too.
    pub(crate) in_conflict: bool,
    pub(crate) billed: Vec<Billed>,
}

/// The event in one meter's statement, and what became of that.
#[derive(Debug, Clone)]
pub(crate) struct Billed {
    pub(crate) statement: StatementRow,
    pub(crate) placements: Vec<(PlacementRow, Vec<InvoiceLineRow>)>,
    pub(crate) proof: Option<ProofFile>,
}

impl Billing {
    pub(crate) async fn chains(
        &self,
        platform: &PlatformId,
        handle: &Handle,
        limit: u32,
    ) -> Result<Vec<Chain>, BillingError> {
        let store = &self.inner().store;
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut found: Vec<Found> = match handle {
            Handle::Frame(query) => store
                .frame_find(platform, query, None, limit)
                .await?
                .into_iter()
                .map(|hit| Found {
                    event: hit.event_id,
                    content: Some(hit.content_hash),
                    place: Some(hit.place),
                })
                .collect(),
            Handle::Event(event) => vec![Found::event(*event)],
            Handle::Turn(request, turn) => store
                .events_of_turn(platform, ReportKey::new(platform, request, turn))
                .await?
                .into_iter()
                .map(|row| Found::event(EventId(row.event_id)))
                .collect(),
            Handle::Statement(id) => self.events_of(platform, std::slice::from_ref(id), most).await?,
            Handle::StripeIdentifier(identifier) => {
                let placement = self.inner().ledger.placement_by_identifier(platform, identifier).await?;
                let ids: Vec<String> = placement.into_iter().map(|row| row.statement_id).collect();
                self.events_of(platform, &ids, most).await?
            }
            Handle::InvoiceLine(line) => {
                let placements = self.inner().ledger.placements_for_invoice_line(platform, line).await?;
                let ids: Vec<String> = placements.into_iter().map(|row| row.statement_id).collect();
                self.events_of(platform, &ids, most).await?
            }
        };
        let mut seen = HashSet::new();
        found.retain(|found| seen.insert(*found));
        found.truncate(most);
        let log = self.log(platform).await?;
        let mut chains = Vec::new();
        for found in found {
            chains.extend(self.chain(platform, log.as_ref(), found).await?);
        }
        Ok(chains)
    }

    /// The first events of statements.
    async fn events_of(
        &self,
        platform: &PlatformId,
        ids: &[String],
        most: usize,
    ) -> Result<Vec<Found>, BillingError> {
        let inner = self.inner();
        let mut events = Vec::new();
        for id in ids {
            let Some(statement) = inner.ledger.statement_get(platform, id).await? else { continue };
            let runs = inner.runs_of(platform, statement.hour).await?;
            let before: Vec<_> = runs
                .iter()
                .take_while(|(run, _)| run.run_id != statement.run_id)
                .map(|(_, b)| b.clone())
                .collect();
            let Some((run, _)) = runs.iter().find(|(run, _)| run.run_id == statement.run_id) else {
                continue;
            };
            let upper = inner.ledger.cut_get(run.cut_id).await?;
            let lower = match crate::rules::cuts::lower(&before, &statement.customer) {
                Some(cut_id) => store_cut(&inner.ledger.cut_get(cut_id).await?),
                None => usage_store::Cut::default(),
            };
            let names = [statement.customer.to_string()];
            let only = usage_store::Customers::Only(&names);
            let mut stream =
                inner.store.events_covered(platform, statement.hour, &lower, &store_cut(&upper), only)?;
            while let Some(event) = stream.next().await? {
                if events.len() >= most {
                    return Ok(events);
                }
                if (statement.piece_start..statement.piece_end).contains(&Timestamp::from_micros(event.as_of))
                {
                    events.push(Found {
                        event: EventId(event.event_id),
                        content: Some(ContentHash(event.content_hash)),
                        place: None,
                    });
                }
            }
        }
        Ok(events)
    }

    /// The chain of one content; where none is asked for, of the one that is in a statement, or else of the first accepted.
    async fn chain(
        &self,
        platform: &PlatformId,
        log: Option<&Log>,
        found: Found,
    ) -> Result<Option<Chain>, BillingError> {
        let copies = self.inner().store.event_get(platform, found.event).await?;
        let in_conflict =
            copies.windows(2).any(|pair| matches!(pair, [a, b] if a.report_hash != b.report_hash));
        let mut seen = HashSet::new();
        let mut first = None;
        for row in &copies {
            let asked = found.content.is_none_or(|content| content.0 == row.content_hash);
            if !asked || !seen.insert(row.content_hash) {
                continue;
            }
            let event = row.to_event()?;
            let billed = self.billed(platform, log, &event, &copies).await?;
            let counted = !billed.is_empty();
            let chain = Chain { event, row: row.clone(), place: found.place, in_conflict, billed };
            if counted {
                return Ok(Some(chain));
            }
            first.get_or_insert(chain);
        }
        Ok(first)
    }

    /// The statements that count a content of an event: those of the first run that reaches a copy of the event and did not
    /// defer its customer, where they have this content.
    async fn billed(
        &self,
        platform: &PlatformId,
        log: Option<&Log>,
        event: &UsageEvent,
        copies: &[EventRow],
    ) -> Result<Vec<Billed>, BillingError> {
        let inner = self.inner();
        let hour = Hour::of(event.as_of);
        let meters = meters_of(&inner.ledger, platform, hour).await?;
        let mut before = Vec::new();
        for (run, deferred) in inner.runs_of(platform, hour).await? {
            let upper = inner.ledger.cut_get(run.cut_id).await?;
            let reached = copies.iter().any(|copy| {
                (copy.hour, copy.customer.as_str()) == (hour.index(), event.customer.as_str())
                    && copy.seq <= upper.seq(copy.epoch)
            });
            if !reached || deferred.deferred.contains(&event.customer) {
                before.push(deferred);
                continue;
            }
            let mut fixed = Fixed::of(&inner.ledger, platform, hour, &meters, &deferred.deferred).await?;
            let count = inner.count(platform, hour, &meters, &before, &upper);
            let counted = count.proving(&event.customer, event.event_id.0, &mut fixed).await?;
            let statements = inner.ledger.statements_of_hour(platform, hour, &event.customer).await?;
            let mut billed = Vec::new();
            for item in counted {
                let Some((leaf, inclusion)) = item.proof else { continue };
                if leaf.content_hash != event.content_hash.0 {
                    continue;
                }
                let statement = statements.iter().find(|statement| {
                    statement.run_id == run.run_id
                        && statement.meter == item.meter
                        && statement.piece_start == item.piece.start
                        && statement.recorded
                });
                let Some(statement) = statement else { continue };
                let meter = meters.iter().find(|meter| meter.row.meter == item.meter);
                let proof =
                    log.map(|log| log.proof(statement, leaf, inclusion, event, meter)).transpose()?.flatten();
                let mut placements = Vec::new();
                for placement in
                    inner.ledger.placement_by_statement(platform, &statement.statement_id).await?
                {
                    let lines =
                        inner.ledger.invoice_lines_for_placement(platform, &placement.placement_id).await?;
                    placements.push((placement, lines));
                }
                billed.push(Billed { statement: statement.clone(), placements, proof });
            }
            return Ok(billed);
        }
        Ok(Vec::new())
    }

    /// The platform's log up to its newest head; none before the first one may be shown.
    async fn log(&self, platform: &PlatformId) -> Result<Option<Log>, BillingError> {
        let ledger = &self.inner().ledger;
        let Some(head) = ledger.head_list(platform, None, 1).await?.into_iter().next() else {
            return Ok(None);
        };
        let entries = ledger.statement_hashes(platform, head.size).await?;
        Ok(Some(Log { entries, head: signed(platform, head)?, keys: self.public_keys().await? }))
    }

    async fn public_keys(&self) -> Result<Vec<PublicKey>, BillingError> {
        let rows = self.inner().ledger.public_key_list().await?;
        rows.into_iter()
            .filter(|row| row.family == KeyFamily::Head.as_str())
            .map(|row| Ok(PublicKey::new(KeyFamily::Head, VerifyingKey::from_bytes(&row.public_key)?)))
            .collect()
    }
}

/// What every proof of a look-up ends in, read once for all of them.
struct Log {
    entries: Vec<[u8; 32]>,
    head: SignedHead,
    keys: Vec<PublicKey>,
}

impl Log {
    fn proof(
        &self,
        statement: &StatementRow,
        leaf: proof::Leaf,
        inclusion: proof::InclusionProof,
        event: &UsageEvent,
        meter: Option<&Meter>,
    ) -> Result<Option<ProofFile>, BillingError> {
        if statement.log_index > self.head.size {
            // A run before it in the log is not recorded yet: no head that may be shown has it.
            return Ok(None);
        }
        let index = statement.log_index.saturating_sub(1);
        Ok(Some(ProofFile {
            format: FileFormat::V1,
            statement: Statement {
                platform: statement.platform.to_string(),
                customer: statement.customer.to_string(),
                meter: statement.meter.to_string(),
                definition_hash: statement.definition_hash,
                piece_start: statement.piece_start.as_micros(),
                piece_end: statement.piece_end.as_micros(),
                revision: statement.revision,
                root: SumNode { hash: statement.root, count: statement.count, sum: statement.sum },
            },
            leaf,
            inclusion,
            log: log::inclusion(&self.entries, index)?,
            head: self.head.clone(),
            keys: self.keys.clone(),
            event: Some(opening(event)),
            meter: meter.map(|meter| MeterOpening {
                kind: meter.definition.filter.kind.as_str().to_owned(),
                providers: meter
                    .definition
                    .filter
                    .providers
                    .as_ref()
                    .map(|providers| providers.iter().map(ToString::to_string).collect()),
                quantity: meter.definition.quantity.as_str().to_owned(),
            }),
        }))
    }
}

pub(crate) fn signed(platform: &PlatformId, head: HeadRow) -> Result<SignedHead, BillingError> {
    Ok(SignedHead {
        platform: platform.to_string(),
        size: head.size,
        root: head.root,
        at: head.at.as_micros(),
        kid: head.kid,
        signature: Signature::from_base64(&head.signature)?,
    })
}

fn opening(event: &UsageEvent) -> EventOpening {
    let frames = event.frames.iter().zip(0u32..).map(|(frame, place)| FrameOpening {
        cost: frame.cost,
        commitment: frame.commitment.0,
        opened: Some(OpenedFrame {
            salt: event.salt.of_frame(place).0,
            frame_id: frame.frame_id.to_string(),
            content_digest: frame.digest.as_ref().map(usage::Digest::to_received),
        }),
    });
    EventOpening {
        kind: event.kind.as_str().to_owned(),
        provider: event.provider_id.to_string(),
        as_of: event.as_of.as_micros(),
        tokens: event.tokens,
        frames_served: event.frames_served,
        frames_rejected: event.frames_rejected,
        frames: frames.collect(),
        turn: Some(OpenedTurn {
            request_id: event.request_id.to_string(),
            turn_id: event.turn_id.to_string(),
        }),
    }
}
