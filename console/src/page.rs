//! `/console`: one page, its script and its style, behind headers that let nothing else in.

use askama::Template;
use axum::{
    http::header,
    response::{IntoResponse, Response},
    routing::get,
};
use utoipa_axum::router::OpenApiRouter;
use web::{Problem, Routes, codes};

use crate::views::{HANDLES, Handle, VIEWS, View};

/// Only what this service serves; nothing inline; no form that the browser sends by itself; in nobody's frame.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// The page is the same for everybody and has no data in it, so it needs no key. It is no part of the documented interface.
pub fn routes() -> Routes {
    OpenApiRouter::new()
        .route("/console", get(page))
        .route("/console/app.js", get(script))
        .route("/console/style.css", get(style))
}

#[derive(Template)]
#[template(path = "console.html")]
struct Console {
    views: &'static [View],
    handles: &'static [Handle],
}

async fn page() -> Result<Response, Problem> {
    let page = Console { views: VIEWS, handles: HANDLES };
    let text = page.render().map_err(|error| Problem::new(&codes::INTERNAL).internal(&error))?;
    Ok(guarded("text/html; charset=utf-8", text))
}

async fn script() -> Response {
    guarded("text/javascript; charset=utf-8", include_str!("../assets/app.js"))
}

async fn style() -> Response {
    guarded("text/css; charset=utf-8", include_str!("../assets/style.css"))
}

fn guarded(kind: &'static str, body: impl IntoResponse) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, body).into_response()
}
