//! A peer between the room and the real engine: it keeps the inserts that it saw and answers some of them itself.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use clickhouse_embedded::MemConnector;
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};

/// Which inserts the peer refuses, and with which of ClickHouse's codes.
type Rule = Box<dyn Fn(&[u8]) -> Option<u16> + Send>;

#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) url: String,
    state: Arc<Shared>,
}

struct Shared {
    engine: Client<MemConnector, Full<Bytes>>,
    rule: Mutex<Rule>,
    inserts: Mutex<Vec<Bytes>>,
    lose: AtomicU64,
}

impl Proxy {
    pub(crate) async fn start(engine: MemConnector) -> Proxy {
        let engine = Client::builder(TokioExecutor::new()).build(engine);
        let rule: Rule = Box::new(|_| None);
        let state = Arc::new(Shared {
            engine,
            rule: Mutex::new(rule),
            inserts: Mutex::default(),
            lose: AtomicU64::new(0),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(pass).with_state(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Proxy { url, state }
    }

    pub(crate) fn refuse(&self, rule: impl Fn(&[u8]) -> Option<u16> + Send + 'static) {
        *self.state.rule.lock().unwrap() = Box::new(rule);
    }

    /// The next inserts are done, and answered as if nobody knew.
    pub(crate) fn lose_answers(&self, count: u64) {
        self.state.lose.store(count, Ordering::SeqCst);
    }

    /// Bodies of inserts into `usage_events`, refused ones too.
    pub(crate) fn inserts(&self) -> Vec<Bytes> {
        self.state.inserts.lock().unwrap().clone()
    }
}

async fn pass(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let query = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let insert = query.contains("INSERT") && query.contains("usage_events");
    if insert {
        shared.inserts.lock().unwrap().push(body.clone());
        let refused = (shared.rule.lock().unwrap())(&body);
        if let Some(code) = refused {
            return (
                http::StatusCode::BAD_REQUEST,
                format!("Code: {code}. DB::Exception: refused by the test"),
            )
                .into_response();
        }
    }
    let forwarded = http::Request::builder()
        .method(parts.method)
        .uri(format!("http://engine{query}"))
        .body(Full::new(body))
        .unwrap();
    let answer = shared.engine.request(forwarded).await.unwrap().map(Body::new);
    let lost = |left: u64| left.checked_sub(1);
    if insert && shared.lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lost).is_ok() {
        return (http::StatusCode::INTERNAL_SERVER_ERROR, "Code: 210. DB::Exception: lost by the test")
            .into_response();
    }
    answer
}

pub(crate) fn holds(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|window| window == text.as_bytes())
}
