//! The routes of this room. Each handler has its platform from the key.

mod answer;
mod first;
mod reports;
mod settings;

use std::sync::Arc;

use tokio::sync::oneshot;
use usage::{
    AuditPolicy, AuditedReport, PlatformId, Rejection, ReportRecord, TurnReport, audit_content, report_diff,
};
use utoipa_axum::{router::OpenApiRouter, routes};
use web::{Problem, Routes, codes};

use crate::{
    IngestError, Parts,
    journal::{Decision, IndexEntry, REMEMBERED_MICROS, Submission},
};
pub(crate) use settings::Settings;

pub(crate) fn routes(parts: Arc<Parts>) -> Routes {
    OpenApiRouter::new()
        .routes(routes!(reports::post_report))
        .routes(routes!(reports::post_reports))
        .routes(routes!(reports::get_report))
        .with_state(Desk(parts))
}

/// What handlers share.
#[derive(Clone)]
pub(crate) struct Desk(Arc<Parts>);

struct Prepared {
    record: ReportRecord,
    submission: Submission,
}

struct Queued {
    record: ReportRecord,
    decision: oneshot::Receiver<Decision>,
}

/// A report that stands in the journal.
struct Standing {
    record: ReportRecord,
    entry: IndexEntry,
    duplicate: bool,
}

impl Desk {
    /// Takes one report: whatever is answered was decided by the journal and is on its disk.
    async fn take(&self, platform: &PlatformId, backfill: bool, body: &[u8]) -> Result<Standing, Problem> {
        let queued = self.enqueue(self.prepare(platform, backfill, body).await?).await?;
        self.decided(queued).await
    }

    /// Everything that can be computed before the journal decides.
    async fn prepare(&self, platform: &PlatformId, backfill: bool, body: &[u8]) -> Result<Prepared, Problem> {
        let audited = audit_content(TurnReport::from_json(body)?)?;
        let settings = self.0.settings.of(platform).await?;
        let customer = &audited.report().customer_id;
        if settings.strict_customers {
            self.0.settings.known_customer(platform, customer).await?;
        }
        let erasure = self.0.settings.erasure_key(platform, customer).await?;
        let record = ReportRecord::build(platform, &audited, &erasure);
        let untimely = self.timeliness(&audited, backfill, settings.accept_back_us).err();
        let submission = Submission::new(&record, untimely);
        Ok(Prepared { record, submission })
    }

    /// Gives a report its place in the order of decisions.
    async fn enqueue(&self, prepared: Prepared) -> Result<Queued, Problem> {
        let Prepared { record, submission } = prepared;
        let decision = self.0.appender.enqueue(submission).await.ok_or_else(not_durable)?;
        Ok(Queued { record, decision })
    }

    async fn decided(&self, queued: Queued) -> Result<Standing, Problem> {
        let Queued { record, decision } = queued;
        match decision.await {
            Ok(Decision::Accepted(entry)) => Ok(Standing { record, entry, duplicate: false }),
            Ok(Decision::Duplicate(entry)) => Ok(Standing { record, entry, duplicate: true }),
            Ok(Decision::Conflict(first)) => Err(self.conflict(&record, &first).await),
            Ok(Decision::Untimely(rejection)) => Err(rejection.into()),
            Err(_) => Err(not_durable()),
        }
    }

    fn timeliness(&self, audited: &AuditedReport, backfill: bool, accept_back: i64) -> Result<(), Rejection> {
        let mut policy = AuditPolicy::new(self.0.clock.now());
        // Beyond what the index remembers a repeat could not be told from a new report.
        policy.accept_back_micros =
            if backfill { REMEMBERED_MICROS } else { accept_back.min(REMEMBERED_MICROS) };
        audited.check_time(&policy)
    }

    async fn conflict(&self, record: &ReportRecord, first: &IndexEntry) -> Problem {
        let problem = Problem::new(&codes::REPORT_CONFLICT)
            .detail("This turn was reported before with other content, which stands; report new content as a new turn.")
            .with("first_report_hash", serde_json::json!(hex::encode(first.report_hash)))
            .with("first_received_at", serde_json::json!(first.received_at()))
            .with("report_hash", serde_json::json!(record.report_hash));
        match self.first_report(record, first).await {
            Some(report) => {
                let differences = report_diff(&report, record.audited.report());
                let problem = match differences.first() {
                    Some(difference) => problem.pointer(difference.pointer.clone()),
                    None => problem,
                };
                problem.with("differences", serde_json::json!(differences))
            }
            // The first content is in the store, which is away; that it differs is certain all the same.
            None => problem.with("differences", serde_json::Value::Null),
        }
    }
}

fn not_durable() -> Problem {
    Problem::new(&codes::NOT_DURABLE)
        .detail("The journal cannot make the report durable now; send the same report again, here or to another address.")
}

/// A failure of the journal while it is only read.
fn unreadable(error: &IngestError) -> Problem {
    Problem::new(&codes::INTERNAL).internal(error)
}
