//! Routes for operators and for readers of error pages; they need no key.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, PoisonError, RwLock},
};

use axum::{
    Json, Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{StatusCode, header};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use serde_json::{Map, Value, json};

use crate::{
    Problem, StrictPath,
    problem::codes::{self, ALL, Code},
};

type Check = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// What must hold before traffic is welcome. Cloning shares the list.
#[derive(Clone, Default)]
pub struct Readiness(Arc<RwLock<Vec<(&'static str, Check)>>>);

impl Readiness {
    /// Adds a condition; its error says what is missing.
    pub fn register<F>(&self, name: &'static str, check: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let check: Check = Arc::new(move || Box::pin(check()));
        self.0.write().unwrap_or_else(PoisonError::into_inner).push((name, check));
    }

    async fn report(&self) -> (bool, Map<String, Value>) {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut ready = true;
        let mut report = Map::new();
        for (name, check) in checks {
            let state = match check().await {
                Ok(()) => "ok".to_owned(),
                Err(missing) => {
                    ready = false;
                    missing
                }
            };
            report.insert(name.to_owned(), json!(state));
        }
        (ready, report)
    }
}

/// Collects this process's metrics for `/metrics`. None when something collects them already.
pub fn record_metrics() -> Option<PrometheusHandle> {
    PrometheusBuilder::new().install_recorder().ok()
}

#[derive(Clone)]
struct Ops {
    readiness: Readiness,
    metrics: Option<PrometheusHandle>,
    openapi: Arc<str>,
}

pub(crate) fn router(readiness: Readiness, metrics: Option<PrometheusHandle>, openapi: String) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(render_metrics))
        .route("/openapi.json", get(openapi_document))
        .route("/errors", get(error_index))
        .route("/errors/{code}", get(error_page))
        .with_state(Ops { readiness, metrics, openapi: openapi.into() })
}

async fn readyz(State(ops): State<Ops>) -> Response {
    let (ready, report) = ops.readiness.report().await;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({"ready": ready, "checks": report}))).into_response()
}

async fn render_metrics(State(ops): State<Ops>) -> Response {
    let text = ops.metrics.map(|handle| handle.render()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

async fn openapi_document(State(ops): State<Ops>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], ops.openapi.to_string()).into_response()
}

async fn error_index() -> Response {
    let lines: String = ALL.iter().map(|code| format!("- /errors/{}  {}\n", code.code, code.title)).collect();
    markdown(format!("# Error codes\n\n{lines}"))
}

async fn error_page(StrictPath(name): StrictPath<String>) -> Result<Response, Problem> {
    match ALL.iter().find(|code: &&&Code| code.code == name) {
        Some(code) => Ok(markdown(code.page.to_owned())),
        None => {
            Err(Problem::new(&codes::NOT_FOUND).detail("There is no such error code; /errors lists all."))
        }
    }
}

fn markdown(text: String) -> Response {
    ([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], text).into_response()
}
