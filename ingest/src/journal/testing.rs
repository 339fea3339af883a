//! A journal alone, for tests of what it decides and notes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use ledger::testing::TestLedger;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use serde_json::json;
use tokio::sync::{Semaphore, oneshot};
use usage::{
    AuditPolicy, ErasureKey, ManualClock, PlatformId, ReportKey, ReportRecord, RequestId, Timestamp, TurnId,
    TurnReport, audit_content,
};

use super::{
    Decision, IndexEntry, Journal, Submission,
    appender::{Waiting, append},
};

pub(crate) struct Desk {
    pub(crate) journal: Journal,
    pub(crate) clock: ManualClock,
    test: TestLedger,
    folder: tempfile::TempDir,
}

pub(crate) fn platform() -> PlatformId {
    PlatformId::parse("acme").unwrap()
}

impl Desk {
    pub(crate) async fn open() -> Desk {
        let clock = ManualClock::new(Timestamp::parse_rfc3339("2026-11-30T12:00:00Z").unwrap());
        let test = ledger::testing::sqlite(Some(Arc::new(clock.clone()))).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let shared = Arc::new(clock.clone());
        let journal = Journal::open(folder.path().join("journal"), &test.ledger, shared).await.unwrap();
        Desk { journal, clock, test, folder }
    }

    /// The same folder in its next epoch, as after a crash.
    pub(crate) async fn reopened(self) -> Desk {
        let Desk { journal, clock, test, folder } = self;
        drop(journal);
        let shared = Arc::new(clock.clone());
        let journal = Journal::open(folder.path().join("journal"), &test.ledger, shared).await.unwrap();
        Desk { journal, clock, test, folder }
    }

    /// Decides on submissions as one group.
    pub(crate) fn decide(&self, submissions: Vec<Submission>) -> Vec<Decision> {
        let places = Arc::new(Semaphore::new(submissions.len()));
        let (group, mut decisions): (Vec<_>, Vec<_>) = submissions
            .into_iter()
            .map(|submission| {
                let (answer, decision) = oneshot::channel();
                let _permit = Arc::clone(&places).try_acquire_owned().unwrap();
                (Waiting { submission, answer, _permit }, decision)
            })
            .unzip();
        append(&self.journal, group).unwrap();
        decisions.iter_mut().map(|decision| decision.try_recv().unwrap()).collect()
    }

    /// Accepts reports of these turns and costs, each in a group of its own.
    pub(crate) fn accept(&self, reports: &[(&str, u64)]) -> Vec<IndexEntry> {
        let accept =
            |(turn, cost): &(&str, u64)| match self.decide(vec![submission(turn, &[*cost])]).remove(0) {
                Decision::Accepted(entry) => entry,
                other => panic!("turn {turn}: {other:?}"),
            };
        reports.iter().map(accept).collect()
    }

    pub(crate) fn find(&self, turn: &str) -> Option<IndexEntry> {
        let (request, turn) = (RequestId::parse("req-1").unwrap(), TurnId::parse(turn).unwrap());
        self.journal.find(&platform(), ReportKey::new(&platform(), &request, &turn)).unwrap()
    }
}

/// A report at noon with one provider of one frame for each cost.
pub(crate) fn submission(turn: &str, costs: &[u64]) -> Submission {
    Submission::new(&record(turn, costs), None)
}

/// The same, a year after its time.
pub(crate) fn late(turn: &str, costs: &[u64]) -> Submission {
    let record = record(turn, costs);
    let policy = AuditPolicy::new(Timestamp::parse_rfc3339("2027-11-30T12:00:00Z").unwrap());
    let untimely = record.audited.check_time(&policy).unwrap_err();
    Submission::new(&record, Some(untimely))
}

fn record(turn: &str, costs: &[u64]) -> ReportRecord {
    let providers: Vec<_> = costs
        .iter()
        .enumerate()
        .map(|(at, cost)| {
            let id = format!("p{at}");
            let frame = json!({"frame": {"provider_id": id, "frame_id": "f"}, "token_cost": cost});
            json!({"provider_id": id, "frames_served": 1, "frames_rejected": 0, "token_cost": cost, "served_frames": [frame]})
        })
        .collect();
    let body = json!({"customer_id": "globex", "request_id": "req-1", "turn_id": turn,
        "report": {"budget_requested": 4096, "budget_consumed": costs.iter().sum::<u64>(),
            "as_of": "2026-11-30T12:00:00Z", "providers": providers}});
    let audited = audit_content(TurnReport::from_json(body.to_string().as_bytes()).unwrap()).unwrap();
    ReportRecord::build(&platform(), &audited, &ErasureKey::from_bytes([1; 32]))
}

/// Keeps the metrics of the code that runs under it; gauges as the bits of their floats.
#[derive(Default)]
pub(crate) struct Metrics(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Metrics {
    pub(crate) fn read(&self, name: &str) -> u64 {
        self.cell(name).load(Ordering::SeqCst)
    }

    fn cell(&self, name: &str) -> Arc<AtomicU64> {
        Arc::clone(self.0.lock().unwrap().entry(name.to_owned()).or_default())
    }
}

impl Recorder for Metrics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key.name()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key.name()))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
