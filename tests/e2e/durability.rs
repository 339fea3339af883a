//! G1 and G2 on the real process: acknowledged means durable, and once.

use std::sync::Arc;

use contextmeter_tests::{
    Service,
    auditor::Auditor,
    load::{Seed, Turn, turn},
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::{past_hour, world};

/// How often the process is killed, and from which seed: `make soak` asks for more.
#[expect(clippy::disallowed_methods, reason = "a campaign is asked for by the environment alone")]
#[expect(clippy::print_stdout, reason = "a campaign prints its seed")]
fn campaign() -> (usize, u64) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (kills, seed) = (number("KILLS").unwrap_or(3), number("SEED").unwrap_or(20_261_130));
    println!("KILLS={kills} SEED={seed}");
    (usize::try_from(kills).expect("a small number"), seed)
}

/// Posts until the service is gone; returns what was acknowledged.
async fn post_until_killed(service: &Arc<Service>, key: &str, turns: &[Turn]) -> Vec<Turn> {
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let mut hosts = tokio::task::JoinSet::new();
    for lane in 0..4 {
        let (service, key, acknowledged) = (Arc::clone(service), key.to_owned(), Arc::clone(&acknowledged));
        let turns: Vec<Turn> = turns.iter().skip(lane).step_by(4).cloned().collect();
        hosts.spawn(async move {
            for turn in turns {
                match service.try_post_as(Some(&key), "/v1/reports", turn.bytes()).await {
                    Ok(answer) if answer.status == 200 => acknowledged.lock().await.push(turn),
                    Ok(answer) => assert!(answer.status >= 500, "{answer:?}"),
                    Err(_) => return,
                }
            }
        });
    }
    while let Some(host) = hosts.join_next().await {
        host.expect("a host does not panic");
    }
    Arc::try_unwrap(acknowledged).expect("all hosts ended").into_inner()
}

#[tokio::test]
async fn g1_what_was_acknowledged_survives_kill_9_and_is_counted_once() {
    let (kills, seed) = campaign();
    let world = world();
    let mut seed = Seed::new(seed);
    let mut auditor = Auditor::default();
    let as_of = past_hour(10);
    let mut key = String::new();
    let mut open: Vec<Turn> = Vec::new();

    for round in 0..kills {
        let service = Arc::new(world.start("up", "data").await);
        if key.is_empty() {
            key = service.given_platform("reseller", &["ingest", "read"]).await;
        }
        // What had no answer is posted again, as a host's outbox does; then new turns.
        let mut turns = std::mem::take(&mut open);
        for n in 0..400 {
            let customer = format!("customer-{}", seed.below(3));
            turns.push(turn(&mut seed, &customer, &format!("req-{round}-{n}"), "1", &as_of));
        }
        let after = 40 + seed.below(120);
        let kill = async {
            contextmeter_tests::wait::until("enough reports are in", async || {
                let metrics = service.get_as(None, "/metrics").await;
                let text = metrics.body.as_str().unwrap_or_default().to_owned();
                let accepted: u64 = text
                    .lines()
                    .find_map(|line| line.strip_prefix("contextmeter_reports_accepted_total "))
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(0);
                if accepted >= after { Ok(()) } else { Err(format!("{accepted} of {after}")) }
            })
            .await;
            service.signal("KILL").await;
        };
        let (acknowledged, ()) = tokio::join!(post_until_killed(&service, &key, &turns), kill);
        println!("round {round}: {} of {} acknowledged before kill -9", acknowledged.len(), turns.len());
        assert!(acknowledged.len() < turns.len(), "the kill came in the middle");
        for turn in &acknowledged {
            auditor.acknowledged(turn);
        }
        let known: std::collections::BTreeSet<String> =
            acknowledged.iter().map(|t| t.request.clone()).collect();
        open = turns.into_iter().filter(|turn| !known.contains(&turn.request)).collect();
    }

    let service = world.start("up", "data").await;
    for turn in open.iter().chain(open.iter()) {
        service.post_as(Some(&key), "/v1/reports", turn.bytes()).await.expect(200);
        auditor.acknowledged(turn);
    }
    service.stored_tokens("reseller", auditor.tokens()).await;

    // And once in the statements, whatever crashed in between.
    service.sealed_tokens("reseller", auditor.tokens()).await;
    let statements = service.operator_get("reseller", "/v1/statements?limit=1000").await.expect(200);
    auditor.judge_statements(statements["data"].as_array().unwrap());
    let verified = service.operator_post("reseller", "/v1/verify", &json!({})).await.expect(200);
    assert_eq!(verified["ok"], true, "{verified}");
    assert_eq!(service.stop().await, 0);
}

#[tokio::test]
async fn g1_reports_are_taken_while_the_store_is_absent_and_are_stored_when_it_is_back() {
    let postgres = ledger::testing::PostgresServer::start().await.expect("run scripts/install-postgres.sh");
    let mut world = world();
    let port = free_port();
    world
        .set("CONTEXTMETER_LEDGER_URL", postgres.database("absent").await.expect("a database"))
        .set("CONTEXTMETER_STORE_URL", format!("http://127.0.0.1:{port}"))
        .set("CONTEXTMETER_STORE_USER", "contextmeter")
        .set("CONTEXTMETER_STORE_PASSWORD", "secret")
        .set("CONTEXTMETER_ENGINE_PASSWORD", "secret")
        .set("CONTEXTMETER_ENGINE_READ_ONLY", "false")
        .set("CONTEXTMETER_ENGINE_LISTEN", format!("127.0.0.1:{port}"));

    let (_, first_seed) = campaign();
    let mut seed = Seed::new(first_seed);
    let mut auditor = Auditor::default();
    let ingest = world.start_unready("ingest", "ingest").await;
    let key = ingest.given_platform("reseller", &["ingest", "read"]).await;
    for n in 0..50 {
        let report = turn(&mut seed, "acme", &format!("req-{n}"), "1", &past_hour(1));
        ingest.post_as(Some(&key), "/v1/reports", report.bytes()).await.expect(200);
        auditor.acknowledged(&report);
    }
    let ready = ingest.get_as(None, "/readyz").await;
    assert_eq!(ready.status, 503, "readiness says what is missing: {}", ready.body);
    ingest.kill_9().await;

    // The journal's process comes back before the store does.
    let ingest = world.start_unready("ingest", "ingest").await;
    let again = turn(&mut Seed::new(first_seed), "acme", "req-0", "1", &past_hour(1));
    let answer = ingest.post_as(Some(&key), "/v1/reports", again.bytes()).await.expect(200);
    assert_eq!(answer["status"], "duplicate", "{answer}");

    let engine = world.start("engine", "engine").await;
    let billing = world.start("billing", "billing").await;
    billing.stored_tokens("reseller", auditor.tokens()).await;

    // The store is killed under the writer and comes back: nothing is lost, nothing twice.
    engine.kill_9().await;
    for n in 50..80 {
        let report = turn(&mut seed, "globex", &format!("req-{n}"), "1", &past_hour(2));
        ingest.post_as(Some(&key), "/v1/reports", report.bytes()).await.expect(200);
        auditor.acknowledged(&report);
    }
    let engine = world.start("engine", "engine").await;
    billing.stored_tokens("reseller", auditor.tokens()).await;
    billing.sealed_tokens("reseller", auditor.tokens()).await;
    let statements: Value = billing.operator_get("reseller", "/v1/statements?limit=1000").await.expect(200);
    auditor.judge_statements(statements["data"].as_array().unwrap());

    for service in [ingest, billing, engine] {
        assert_eq!(service.stop().await, 0);
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .expect("a port is free")
        .local_addr()
        .expect("it has an address")
        .port()
}
