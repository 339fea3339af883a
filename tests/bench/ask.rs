//! Queries over three providers, against calling them without a host.

use std::time::Duration;

use async_trait::async_trait;
use host_core::{
    Host, Provider, ProviderError,
    protocol::{ContextQuery, ContextQueryResult},
    providers::NotesProvider,
    question,
};
use tokio::time::Instant;
use usage::ProviderId;

use crate::table::{Rate, Row};

const NAMES: [&str; 3] = ["docs", "notes", "tickets"];
const NOTES: u32 = 50;
const QUERIES: u64 = 500;
const ROUNDS: u32 = 6;
const FAR: Duration = Duration::from_millis(5);

pub(crate) async fn measure() -> [Row; 2] {
    let query = question("When is the coffee machine of floor 7 cleaned?", 2_000, 8);
    [near(&query).await, far(&query).await]
}

/// What the host's own work costs: the providers answer from memory.
async fn near(query: &ContextQuery) -> Row {
    let providers = NAMES.map(notes);
    let host = providers.iter().cloned().fold(Host::builder(), |host, one| host.provider(one));
    let host = host.build().expect("a host");
    let (mut ours, mut limit) = (Rate::default(), Rate::default());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..QUERIES {
            assert!(host.query_all(query).await.tokens() > 0, "frames are served");
        }
        ours.add(QUERIES, start.elapsed());
        let start = Instant::now();
        for _ in 0..QUERIES {
            for provider in &providers {
                let answer = provider.query(query).await.expect("an answer");
                assert!(!answer.frames.is_empty(), "frames are served");
            }
        }
        limit.add(QUERIES, start.elapsed());
    }
    Row {
        what: "queries over three providers in memory (asked at once, audited, packed)",
        unit: "queries/s",
        ours,
        limit,
        named: "the same three called one after the other, unaudited",
    }
}

/// What asking at once is for: the providers take 5 ms each.
async fn far(query: &ContextQuery) -> Row {
    let providers = NAMES.map(|name| Far(notes(name)));
    let host = providers.iter().cloned().fold(Host::builder(), |host, one| host.provider(one));
    let host = host.build().expect("a host");
    let (mut ours, mut limit) = (Rate::default(), Rate::default());
    for _ in 0..300 {
        let start = Instant::now();
        assert!(host.query_all(query).await.tokens() > 0, "frames are served");
        ours.add(1, start.elapsed());
        let start = Instant::now();
        providers[0].query(query).await.expect("an answer");
        limit.add(1, start.elapsed());
    }
    Row {
        what: "queries over three providers that take 5 ms each",
        unit: "queries/s",
        ours,
        limit,
        named: "one of the three called alone",
    }
}

fn notes(name: &str) -> NotesProvider {
    let id = ProviderId::parse(name).expect("a name of a provider");
    (0..NOTES).fold(NotesProvider::new(id), |provider, n| {
        let text = format!("The coffee machine of floor {n} is cleaned on Fridays, says {name}. ").repeat(4);
        provider.note(&format!("note-{n}"), &format!("Floor {n}"), &text)
    })
}

#[derive(Clone)]
struct Far(NotesProvider);

#[async_trait]
impl Provider for Far {
    fn id(&self) -> &ProviderId {
        self.0.id()
    }

    async fn query(&self, query: &ContextQuery) -> Result<ContextQueryResult, ProviderError> {
        tokio::time::sleep(FAR).await;
        self.0.query(query).await
    }
}
