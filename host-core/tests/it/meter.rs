use std::{
    collections::VecDeque,
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    routing::post,
};
use host_core::{Delivery, Meter, MeterError, MeterOptions, question};
use serde_json::json;
use usage::{HostId, Position, TurnReport};

use crate::support::{Scripted, ask, frame, turn_report};

/// A stand-in for ingest that answers by a script and keeps what it was sent.
#[derive(Clone, Default)]
struct Ingest {
    answers: Arc<Mutex<VecDeque<(u16, String)>>>,
    posts: Arc<Mutex<Vec<Post>>>,
}

/// The key's header and the body.
type Post = (String, Vec<u8>);

impl Ingest {
    /// Answers in this order, then 503.
    async fn start(answers: Vec<(u16, String)>) -> (Self, String) {
        let ingest = Self { answers: Arc::new(Mutex::new(answers.into())), ..Self::default() };
        let routes = Router::new().route("/v1/reports", post(take)).with_state(ingest.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        (ingest, address)
    }

    fn reports(&self) -> Vec<TurnReport> {
        self.posts.lock().unwrap().iter().map(|(_, body)| TurnReport::from_json(body).unwrap()).collect()
    }
}

async fn take(State(ingest): State<Ingest>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    let key = headers[header::AUTHORIZATION].to_str().unwrap().to_owned();
    ingest.posts.lock().unwrap().push((key, body.to_vec()));
    let (status, answer) =
        ingest.answers.lock().unwrap().pop_front().unwrap_or_else(|| problem(503, "not_durable"));
    (StatusCode::from_u16(status).unwrap(), answer)
}

fn taken(status: &str, seq: u64) -> (u16, String) {
    let acknowledgement = json!({"epoch": 3, "seq": seq, "at": "2026-11-30T12:00:00Z", "kid": "0011223344556677", "signature": "AA=="});
    (200, json!({"status": status, "tokens": 1, "events": [], "warnings": [], "acknowledgement": acknowledgement}).to_string())
}

fn problem(status: u16, code: &str) -> (u16, String) {
    (status, json!({"type": "about:blank", "status": status, "code": code, "detail": "No."}).to_string())
}

async fn open(folder: &Path, endpoint: &str) -> Meter {
    Meter::open(options(folder, endpoint)).await.unwrap()
}

fn options(folder: &Path, endpoint: &str) -> MeterOptions {
    MeterOptions::new(folder, endpoint, "cm_test_key", HostId::parse("host-a").unwrap())
}

async fn report() -> TurnReport {
    turn_report(&ask(&question("q", 100, 8), vec![Scripted::serving("p", vec![frame("f", "four")])]).await)
}

/// Nobody listens there.
async fn nowhere() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn an_acknowledged_report_leaves_the_outbox() {
    let folder = tempfile::tempdir().unwrap();
    let (ingest, endpoint) = Ingest::start(vec![taken("accepted", 7), taken("duplicate", 7)]).await;
    let meter = open(folder.path(), &endpoint).await;
    let position = Position { epoch: 3, seq: 7 };
    let first = meter.record(report().await).await.unwrap();
    assert_eq!(first.delivery, Delivery::Acknowledged { position, duplicate: false });
    let second = meter.record(report().await).await.unwrap();
    assert_eq!(second.delivery, Delivery::Acknowledged { position, duplicate: true });
    assert_eq!((first.origin.seq, second.origin.seq), (1, 2));
    assert_eq!(meter.pending_count().await.unwrap(), 0);

    let mut posted = ingest.reports().remove(0);
    assert_eq!(posted.origin.take(), Some(first.origin));
    let mut made = report().await;
    (made.legs[0].elapsed_micros, posted.legs[0].elapsed_micros) = (0, 0);
    assert_eq!(posted, made);
    assert!(ingest.posts.lock().unwrap().iter().all(|(key, _)| key == "Bearer cm_test_key"));
}

#[tokio::test]
async fn the_outbox_survives_an_outage_and_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let meter = open(folder.path(), &nowhere().await).await;
    let mut origins = Vec::new();
    for _ in 0..3 {
        let recorded = meter.record(report().await).await.unwrap();
        assert!(matches!(recorded.delivery, Delivery::Kept { .. }));
        origins.push(recorded.origin);
    }
    assert!(meter.flush().await.unwrap().why_kept.is_some());
    drop(meter);
    fs::write(folder.path().join("pending/half.json.tmp"), "{\"cust").unwrap();

    let answers = vec![problem(503, "overloaded"), taken("accepted", 1), taken("accepted", 2)];
    let (ingest, endpoint) = Ingest::start(answers).await;
    let meter = open(folder.path(), &endpoint).await;
    assert_eq!(meter.pending_count().await.unwrap(), 3);
    let stopped = meter.flush().await.unwrap();
    assert_eq!((stopped.acknowledged, stopped.kept), (0, 3));
    assert_eq!(stopped.why_kept.as_deref(), Some("the answer is 503 overloaded"));
    let stopped = meter.flush().await.unwrap();
    assert_eq!((stopped.acknowledged, stopped.kept), (2, 1));
    ingest.answers.lock().unwrap().extend([taken("accepted", 3), taken("accepted", 4)]);
    assert_eq!(meter.flush().await.unwrap().kept, 0);

    // Oldest first, with the numbers of the life that made them; a new life has its own.
    let posted: Vec<_> = ingest.reports().into_iter().map(|report| report.origin.unwrap()).collect();
    let [a, b, c] = &origins[..] else { panic!() };
    assert_eq!(posted.iter().collect::<Vec<_>>(), [a, a, b, c, c]);
    let fresh = meter.record(report().await).await.unwrap().origin;
    assert_eq!(fresh.seq, 1);
    assert!(fresh.epoch > a.epoch, "epochs sort by their time");
    assert!(!folder.path().join("pending/half.json.tmp").exists());
}

#[tokio::test]
async fn a_report_refused_for_its_content_lies_aside_with_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (_ingest, endpoint) =
        Ingest::start(vec![problem(409, "report_conflict"), taken("accepted", 1)]).await;
    let meter = open(folder.path(), &endpoint).await;
    let refused = meter.record(report().await).await.unwrap();
    assert_eq!(refused.delivery, Delivery::Refused { status: 409, code: "report_conflict".to_owned() });
    assert_eq!((meter.pending_count().await.unwrap(), meter.refused_count().await.unwrap()), (0, 1));
    let name = format!("{}-{:020}", refused.origin.epoch, 1);
    let aside = folder.path().join("refused");
    let answer = fs::read_to_string(aside.join(format!("{name}.problem.json"))).unwrap();
    assert!(answer.contains("report_conflict"));
    let kept = TurnReport::from_json(&fs::read(aside.join(format!("{name}.json"))).unwrap()).unwrap();
    assert_eq!(kept.origin, Some(refused.origin));
    // It holds nothing up.
    assert!(matches!(meter.record(report().await).await.unwrap().delivery, Delivery::Acknowledged { .. }));
}

#[tokio::test]
async fn what_is_not_the_reports_fault_keeps_it() {
    let nonsense = |status: u16, body: &str| (status, body.to_owned());
    for answer in [
        problem(401, "unknown_key"),
        problem(403, "missing_scope"),
        problem(404, "unknown_route"),
        problem(429, "rate_limited"),
        problem(500, "internal"),
        problem(503, "not_durable"),
        nonsense(422, "<h1>a proxy's page</h1>"),
        nonsense(200, "<h1>please sign in</h1>"),
        nonsense(200, "{\"status\":\"accepted\"}"),
        nonsense(202, &taken("accepted", 1).1),
        nonsense(302, ""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (_ingest, endpoint) = Ingest::start(vec![answer.clone()]).await;
        let meter = open(folder.path(), &endpoint).await;
        let recorded = meter.record(report().await).await.unwrap();
        assert!(matches!(recorded.delivery, Delivery::Kept { .. }), "{answer:?}: {recorded:?}");
        assert_eq!(meter.pending_count().await.unwrap(), 1);
    }
}

#[tokio::test]
async fn an_inconsistent_report_is_refused_before_it_takes_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let meter = open(folder.path(), &nowhere().await).await;
    let mut wrong = report().await;
    wrong.report.budget_consumed += 1;
    assert!(matches!(meter.record(wrong).await, Err(MeterError::Report(_))));
    assert_eq!(meter.pending_count().await.unwrap(), 0);
    assert_eq!(meter.record(report().await).await.unwrap().origin.seq, 1);
}

#[tokio::test]
async fn an_outbox_has_one_meter_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = nowhere().await;
    let meter = open(folder.path(), &endpoint).await;
    let second = Meter::open(options(folder.path(), &endpoint)).await;
    assert!(matches!(second, Err(MeterError::InUse { .. })));
    drop(meter);
    open(folder.path(), &endpoint).await;
}

#[tokio::test]
async fn reports_recorded_at_once_are_numbered_without_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let meter = open(folder.path(), &nowhere().await).await;
    let made = report().await;
    let recorded = futures_util::future::join_all((0..20).map(|_| meter.record(made.clone()))).await;
    let mut seqs: Vec<_> = recorded.into_iter().map(|one| one.unwrap().origin.seq).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=20).collect::<Vec<_>>());
    assert_eq!(meter.pending_count().await.unwrap(), 20);
}
