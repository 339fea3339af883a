//! `contextmeter verify`: makes every statement again from what is stored, and names the first difference.

use std::collections::{BTreeMap, BTreeSet};

use ledger::StatementRow;
use proof::{StatementFacts, log, statement_hash};
use serde::Serialize;
use usage::{Hour, PlatformId};
use utoipa::ToSchema;

use crate::billing::{Billing, Inner};
use crate::count::{Counted, Fixed, meters_of};
use crate::{BillingError, worker::seal::sum_events};

/// What an audit of one platform found.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct Verification {
    pub ok: bool,
    /// Statements that were made again and are equal.
    pub statements: u64,
    /// Stored events whose content was hashed again and is equal.
    pub events: u64,
    pub first_difference: Option<Difference>,
}

/// Where the books stop agreeing.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Difference {
    /// `statement`, `log`, `event`, `journal` or `position`.
    pub what: &'static str,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hour: Option<Hour>,
}

impl Difference {
    fn new(what: &'static str, message: String) -> Self {
        Self { what, message, statement_id: None, event_id: None, hour: None }
    }

    fn of_event(event: &usage_store::EventRow, message: String) -> Self {
        let event_id = hex::encode(event.event_id);
        Self {
            event_id: Some(event_id.clone()),
            hour: Hour::from_index(event.hour),
            ..Self::new("event", format!("event {event_id}: {message}"))
        }
    }

    fn of_statement(statement: &StatementRow, message: String) -> Self {
        Self {
            statement_id: Some(statement.statement_id.clone()),
            hour: Some(statement.hour),
            ..Self::new("statement", format!("statement {}: {message}", statement.statement_id))
        }
    }
}

impl Billing {
    /// Reads everything of a platform and makes it again. Long for much usage; bounded in memory by one hour's statements. What it
    /// answers is of this platform alone; for the journals, which all platforms share, see
    /// [`verify_journals`](Self::verify_journals).
    pub async fn verify(&self, platform: &PlatformId) -> Result<Verification, BillingError> {
        let mut found = Verification::default();
        found.first_difference = self.inner().first_difference(platform, &mut found).await?;
        found.ok = found.first_difference.is_none();
        Ok(found)
    }

    /// Whether every position up to each journal's confirmed one is stored. For the operator: whose report a missing one held
    /// cannot be told, and one that the store refused for its values is missing too.
    pub async fn verify_journals(&self) -> Result<Option<Difference>, BillingError> {
        self.inner().position_missing().await
    }
}

impl Inner {
    async fn first_difference(
        &self,
        platform: &PlatformId,
        found: &mut Verification,
    ) -> Result<Option<Difference>, BillingError> {
        let cut = self.ledger.cut_take().await?;
        let mut hours: BTreeMap<Hour, BTreeMap<u64, ledger::HourCount>> = BTreeMap::new();
        for (epoch, count) in self.ledger.epoch_counts_latest(&cut).await? {
            if count.platform == *platform {
                hours.entry(count.hour).or_default().insert(epoch, count);
            }
        }
        for hour in hours.keys() {
            // Contents first: they name the event, where a sum could only name its statement.
            if let Some(difference) = self.event_differs(platform, *hour, found).await? {
                return Ok(Some(difference));
            }
            if let Some(difference) = self.statement_differs(platform, *hour, found).await? {
                return Ok(Some(difference));
            }
        }
        if let Some(difference) = self.log_differs(platform).await? {
            return Ok(Some(difference));
        }
        for (hour, counts) in &hours {
            if let Some(message) = self.difference(platform, *hour, &cut, counts).await? {
                let difference = Difference::new("journal", format!("hour {hour}: {message}"));
                return Ok(Some(Difference { hour: Some(*hour), ..difference }));
            }
            sum_events(counts)?;
        }
        self.stray(platform, &cut).await
    }

    async fn event_differs(
        &self,
        platform: &PlatformId,
        hour: Hour,
        found: &mut Verification,
    ) -> Result<Option<Difference>, BillingError> {
        let mut events = self.store.events_whole(platform, hour)?;
        while let Some(row) = events.next().await? {
            let Ok(event) = row.to_event() else {
                return Ok(Some(Difference::of_event(
                    &row,
                    "it has a form that was never accepted".to_owned(),
                )));
            };
            let sum = event.frames.iter().try_fold(0u64, |sum, frame| sum.checked_add(frame.cost));
            if event.kind == usage::EventKind::Context && sum != Some(event.tokens) {
                let message = format!("it has {} tokens, its frames do not add up to them", event.tokens);
                return Ok(Some(Difference::of_event(&row, message)));
            }
            if event.recompute_content_hash() != event.content_hash {
                return Ok(Some(Difference::of_event(
                    &row,
                    "its content does not give its content hash".to_owned(),
                )));
            }
            found.events = found.events.saturating_add(1);
        }
        Ok(None)
    }

    async fn statement_differs(
        &self,
        platform: &PlatformId,
        hour: Hour,
        found: &mut Verification,
    ) -> Result<Option<Difference>, BillingError> {
        let meters = meters_of(&self.ledger, platform, hour).await?;
        let runs = self.runs_of(platform, hour).await?;
        let mut before = Vec::new();
        for (run, deferred) in runs {
            let upper = self.ledger.cut_get(run.cut_id).await?;
            let mut fixed = Fixed::of(&self.ledger, platform, hour, &meters, &deferred.deferred).await?;
            let count = self.count(platform, hour, &meters, &before, &upper);
            let counted = count.all(&mut fixed).await?;
            let statements = self.ledger.statements_of_run(&run.run_id).await?;
            if let Some(difference) = compare(&statements, &counted) {
                return Ok(Some(Difference { hour: Some(hour), ..difference }));
            }
            found.statements =
                found.statements.saturating_add(u64::try_from(statements.len()).unwrap_or(u64::MAX));
            before.push(deferred);
        }
        Ok(None)
    }

    async fn log_differs(&self, platform: &PlatformId) -> Result<Option<Difference>, BillingError> {
        let Some(head) = self.ledger.head_list(platform, None, 1).await?.into_iter().next() else {
            return Ok(None);
        };
        let entries = self.ledger.statement_hashes(platform, head.size).await?;
        let complete = u64::try_from(entries.len()) == Ok(head.size);
        if complete && log::root(&entries) == head.root {
            return Ok(None);
        }
        Ok(Some(Difference::new(
            "log",
            format!("the log does not give the signed head of size {}", head.size),
        )))
    }

    async fn position_missing(&self) -> Result<Option<Difference>, BillingError> {
        for (epoch, seq) in &self.ledger.cut_take().await?.positions {
            let held = self.store.positions(*epoch, *seq).await?;
            // A report takes a position for each of its events; one without events has its own.
            if *seq > 0 && (held.gap != 0 || held.last != *seq) {
                let missing = if held.gap == 0 { held.last.saturating_add(1) } else { held.gap };
                let message = format!(
                    "journal {epoch}: position {missing} of {seq} is not stored; look whether the journal has it in quarantine"
                );
                return Ok(Some(Difference::new("position", message)));
            }
        }
        Ok(None)
    }

    /// A row of the platform that no journal accounts for.
    async fn stray(
        &self,
        platform: &PlatformId,
        cut: &ledger::Cut,
    ) -> Result<Option<Difference>, BillingError> {
        let epochs: Vec<u64> = cut.positions.keys().copied().collect();
        Ok(self.store.stray_find(platform, &epochs).await?.map(|stray| {
            let position = format!("{}/{}", stray.epoch, stray.seq);
            Difference::new(
                "position",
                format!("a row at position {position} is no journal's, or not its only one"),
            )
        }))
    }
}

/// The statements of a run against what counting it again gives.
fn compare(statements: &[StatementRow], counted: &[Counted]) -> Option<Difference> {
    let mut again: BTreeMap<_, &Counted> =
        counted.iter().map(|item| ((&item.customer, &item.meter, item.piece.start), item)).collect();
    for statement in statements {
        let key = (&statement.customer, &statement.meter, statement.piece_start);
        let Some(item) = again.remove(&key) else {
            return Some(Difference::of_statement(statement, "nothing of it is stored any more".to_owned()));
        };
        if (item.root.count, item.root.sum) != (statement.count, statement.sum) {
            let message = format!(
                "it says {} events with a sum of {}; stored are {} with {}",
                statement.count, statement.sum, item.root.count, item.root.sum
            );
            return Some(Difference::of_statement(statement, message));
        }
        let hash = statement_hash(&StatementFacts {
            platform: statement.platform.as_str(),
            customer: statement.customer.as_str(),
            meter: statement.meter.as_str(),
            definition_hash: statement.definition_hash,
            piece_start: statement.piece_start.as_micros(),
            piece_end: statement.piece_end.as_micros(),
            revision: statement.revision,
            root: item.root,
        });
        if item.root.hash != statement.root || hash != statement.statement_hash {
            return Some(Difference::of_statement(statement, "its root commits to other events".to_owned()));
        }
    }
    let extra: BTreeSet<_> =
        again.into_values().map(|item| (&item.customer, &item.meter, item.root.count)).collect();
    extra.into_iter().next().map(|(customer, meter, count)| {
        let message = format!(
            "{count} events of customer {customer}, meter {meter} are stored and in no statement of their run"
        );
        Difference::new("statement", message)
    })
}
