//! Reports accepted, against a handler that only parses the same bodies.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, http::StatusCode, routing::post};
use bytes::Bytes;
use contextmeter_tests::load::{Seed, turn};
use ingest::{Ingest, IngestDeps, IngestOptions};
use serde_json::Value;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    place::{self, AS_OF, Place},
    table::{Rate, Row},
};

const POSTERS: usize = 64;
const BODIES: u64 = 40_000;
/// Of each side; a side also ends when its bodies do.
const TIME: Duration = Duration::from_secs(6);

pub(crate) async fn measure(place: &Place) -> Row {
    let (_, key) = place.platform("accept").await;
    let deps = IngestDeps {
        ledger: place.ledger.clone(),
        store: place.store.clone(),
        clock: place.shared_clock(),
        signer: Arc::clone(&place.signer),
    };
    let ingest = Ingest::open(deps, IngestOptions::new(place.journal())).await.expect("the journal opens");
    let ours = place.serve(ingest.routes()).await;
    let bare = place::serve(Router::new().route("/v1/reports", post(parse_only))).await;

    let bodies = Arc::new(bodies());
    let limit = load(&bare, &key, &bodies).await;
    let ours = load(&ours, &key, &bodies).await;
    ingest.drained().await;
    ingest.shutdown().await;
    Row {
        what: "reports accepted over HTTP by 64 posters (audited, flushed to the disk, signed; stored in the background)",
        unit: "reports/s",
        ours,
        limit,
        named: "an axum handler that parses the same bodies and answers nothing",
    }
}

async fn parse_only(body: Bytes) -> StatusCode {
    match serde_json::from_slice::<Value>(&body) {
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::BAD_REQUEST,
    }
}

fn bodies() -> Vec<Bytes> {
    let mut seed = Seed::new(1);
    (0..BODIES)
        .map(|n| {
            let customer = format!("customer-{}", n % 100);
            turn(&mut seed, &customer, "req-accept", &n.to_string(), AS_OF).bytes().into()
        })
        .collect()
}

/// Every body once, by posters that each wait for their answer, until the time is over.
async fn load(url: &str, key: &str, bodies: &Arc<Vec<Bytes>>) -> Rate {
    let (url, http) = (format!("{url}/v1/reports"), place::client());
    let next = Arc::new(AtomicUsize::new(0));
    let mut posters = JoinSet::new();
    let start = Instant::now();
    for _ in 0..POSTERS {
        let (url, key, http) = (url.clone(), key.to_owned(), http.clone());
        let (bodies, next) = (Arc::clone(bodies), Arc::clone(&next));
        posters.spawn(async move {
            let mut done = 0;
            while start.elapsed() < TIME {
                let Some(body) = bodies.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                assert_eq!(place::post(&http, &url, &key, body.clone()).await, 200, "a report is accepted");
                done += 1;
            }
            done
        });
    }
    let done = posters.join_all().await.into_iter().sum();
    Rate { done, took: start.elapsed() }
}
