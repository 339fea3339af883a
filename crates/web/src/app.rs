//! The layers around all routes, and the document that describes them.

use std::{any::Any, time::Duration};

use axum::{
    Router,
    extract::{MatchedPath, Request},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use http_body_util::BodyExt as _;
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    KeyRing, Problem, Readiness,
    extract::BodyLimit,
    ops,
    problem::{Cause, codes},
};

/// Routes of a room, with their state applied and their descriptions.
pub type Routes = OpenApiRouter<()>;

/// Bounds of every request.
#[derive(Debug, Clone)]
pub struct WebOptions {
    pub max_body_bytes: usize,
    pub request_timeout: Duration,
    /// Requests handled at once.
    pub concurrency: usize,
    pub metrics: Option<PrometheusHandle>,
}

impl Default for WebOptions {
    fn default() -> WebOptions {
        WebOptions {
            max_body_bytes: 8 << 20,
            request_timeout: Duration::from_secs(30),
            concurrency: 1_024,
            metrics: None,
        }
    }
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Contextmeter",
        description = "Metering and billing for AI context. Errors are application/problem+json; each code has a page at /errors/{code}.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    modifiers(&Bearer)
)]
struct Document;

struct Bearer;

impl utoipa::Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
        let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        document.components.get_or_insert_default().add_security_scheme("key", scheme);
    }
}

/// The OpenAPI document of routes.
pub fn openapi(routes: Routes) -> Value {
    let (_, document) = documented(routes).split_for_parts();
    serde_json::to_value(document).unwrap_or_default()
}

fn documented(routes: Routes) -> Routes {
    OpenApiRouter::with_openapi(Document::openapi()).merge(routes)
}

/// One router of all rooms. The order of the layers, outermost first, and why:
///
/// 1. request id and log line: also a request that times out or panics leaves a line;
/// 2. panics: one request fails, not the process;
/// 3. load shed and concurrency: before anything is read;
/// 4. timeout: inside the log;
/// 5. what extractors need: the keys and the body's bound.
pub fn app(routes: Routes, keyring: KeyRing, readiness: Readiness, options: WebOptions) -> Router {
    let (router, document) = documented(routes).split_for_parts();
    let document = serde_json::to_string(&document).unwrap_or_default();
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(options.concurrency));
    let timeout = options.request_timeout;
    router
        .merge(ops::router(readiness, options.metrics, document))
        .fallback(unknown_route)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(
            ServiceBuilder::new()
                .layer(middleware::from_fn(log))
                .layer(CatchPanicLayer::custom(panicked))
                .layer(middleware::from_fn(move |request, next| shed(gate.clone(), request, next)))
                .layer(middleware::from_fn(move |request, next| limit_time(timeout, request, next)))
                .layer(axum::Extension(keyring))
                .layer(axum::Extension(BodyLimit(options.max_body_bytes))),
        )
}

async fn unknown_route() -> Problem {
    Problem::new(&codes::UNKNOWN_ROUTE).detail("No route has this path; /openapi.json lists them.")
}

async fn method_not_allowed() -> Problem {
    Problem::new(&codes::METHOD_NOT_ALLOWED)
        .detail("The path takes other methods; the header `Allow` lists them.")
}

fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    let mut response = Problem::new(&codes::INTERNAL).into_response();
    response.extensions_mut().insert(Cause(format!("panic: {text}")));
    response
}

async fn shed(gate: std::sync::Arc<tokio::sync::Semaphore>, request: Request, next: Next) -> Response {
    match gate.try_acquire_owned() {
        Ok(_permit) => next.run(request).await,
        Err(_) => Problem::new(&codes::OVERLOADED)
            .detail("Send the same request again after the time in Retry-After.")
            .into_response(),
    }
}

async fn limit_time(limit: Duration, request: Request, next: Next) -> Response {
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(&codes::TIMEOUT)
            .detail("The request took too long; the same bytes may be sent again.")
            .into_response(),
    }
}

/// Gives the request an id, leaves one line about it, and completes a problem's body with both.
async fn log(request: Request, next: Next) -> Response {
    let id = uuid::Uuid::now_v7().simple().to_string();
    let method = request.method().clone();
    // The route, never the path or the query: those hold identities of customers.
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let instance = request.uri().path().to_owned();
    let started = tokio::time::Instant::now();
    let mut response = next.run(request).await;
    let status = response.status();
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    match response.extensions_mut().remove::<Cause>() {
        Some(Cause(cause)) if status.is_server_error() => {
            tracing::error!(request_id = %id, %method, route, status = status.as_u16(), millis, cause, "request failed");
        }
        _ => tracing::debug!(request_id = %id, %method, route, status = status.as_u16(), millis, "request"),
    }
    metrics::counter!("contextmeter_http_requests_total", "route" => route, "status" => status.as_str().to_owned())
        .increment(1);
    if is_problem(&response) {
        response = complete(response, &id, &instance).await;
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), value);
    }
    response
}

fn is_problem(response: &Response) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/problem+json")
}

async fn complete(response: Response, id: &str, instance: &str) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let Ok(mut problem) = serde_json::from_slice::<Value>(&bytes) else {
        return Response::from_parts(parts, axum::body::Body::from(bytes));
    };
    if let Some(members) = problem.as_object_mut() {
        members.insert("request_id".to_owned(), json!(id));
        members.insert("instance".to_owned(), json!(instance));
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, axum::body::Body::from(problem.to_string()))
}
