//! `/v1/reports`: turns come in.

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use futures_util::{StreamExt as _, stream};
use http::header;
use serde_json::json;
use std::sync::Arc;
use usage::{ReportKey, RequestId, TurnId};
use web::{Auth, Caller, Problem, Scope, StrictPath, codes, read_body, scope};

use super::{
    Desk,
    answer::{Answer, Remembered},
    unreadable,
};
use crate::journal::blocking;

/// Lines of a batch that are prepared at once.
const AT_ONCE: usize = 64;
const LINES: usize = 10_000;

/// Takes one turn's report. The same report again is answered with the first acknowledgement.
#[utoipa::path(post, path = "/v1/reports", tag = "reports", security(("key" = [])),
    request_body(content = Object, description = "A turn report", content_type = "application/json"),
    responses((status = 200, description = "It is on disk", body = Answer),
        (status = 400, description = "malformed_json"), (status = 409, description = "report_conflict"),
        (status = 422, description = "invalid_report, inconsistent_report, customer_unknown"),
        (status = 503, description = "not_durable, ledger_unavailable")))]
pub(super) async fn post_report(
    Auth(caller, _): Auth<scope::Ingest>,
    State(desk): State<Desk>,
    request: Request,
) -> Result<Json<Answer>, Problem> {
    media_type(&request, "application/json")?;
    let body = desk.body(request).await?;
    let standing = desk.take(&caller.platform, backfill(&caller), &body).await?;
    Ok(Json(desk.answer(&standing)))
}

/// Takes many reports, one a line, and answers a line each, in their order: the answer of one report, or its problem.
#[utoipa::path(post, path = "/v1/reports/batch", tag = "reports", security(("key" = [])),
    request_body(content = String, description = "Turn reports, one a line", content_type = "application/x-ndjson"),
    responses((status = 200, description = "A line for each line: {line, status, answer | problem}", content_type = "application/x-ndjson")))]
pub(super) async fn post_reports(
    Auth(caller, _): Auth<scope::Ingest>,
    State(desk): State<Desk>,
    request: Request,
) -> Result<Response, Problem> {
    media_type(&request, "application/x-ndjson")?;
    let body = desk.body(request).await?;
    let lines: Vec<bytes::Bytes> = body
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .map(|line| body.slice_ref(line))
        .collect();
    if lines.len() > LINES {
        return Err(Problem::new(&codes::BODY_TOO_LARGE)
            .detail(format!("A batch may have {LINES} lines at the most; send several batches.")));
    }
    let (backfill, platform, desk_ref) = (backfill(&caller), &caller.platform, &desk);
    let prepared: Vec<_> = stream::iter(lines)
        .map(|line| async move { desk_ref.prepare(platform, backfill, &line).await })
        .buffered(AT_ONCE)
        .collect()
        .await;
    // One after the other: of two lines about one turn the first decides.
    let mut queued = Vec::with_capacity(prepared.len());
    for line in prepared {
        queued.push(match line {
            Ok(prepared) => desk.enqueue(prepared).await,
            Err(problem) => Err(problem),
        });
    }
    let mut text = String::new();
    for (line, queued) in (1_usize..).zip(queued) {
        let standing = match queued {
            Ok(queued) => desk.decided(queued).await,
            Err(problem) => Err(problem),
        };
        let answer = match standing {
            Ok(standing) => json!({"line": line, "status": 200, "answer": desk.answer(&standing)}),
            Err(problem) => {
                json!({"line": line, "status": problem.code().status, "problem": problem.to_json()})
            }
        };
        text.push_str(&answer.to_string());
        text.push('\n');
    }
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], text).into_response())
}

/// What is remembered of a turn's report: its hash, its acknowledgement, and whether it is stored.
#[utoipa::path(get, path = "/v1/reports/{request}/{turn}", tag = "reports", security(("key" = [])),
    params(("request" = String, Path, description = "request_id"), ("turn" = String, Path, description = "turn_id")),
    responses((status = 200, description = "The first acknowledgement", body = Remembered), (status = 404, description = "not_found")))]
pub(super) async fn get_report(
    Auth(caller, _): Auth<scope::Read>,
    State(desk): State<Desk>,
    StrictPath((request, turn)): StrictPath<(String, String)>,
) -> Result<Json<Remembered>, Problem> {
    let absent = || {
        Problem::new(&codes::NOT_FOUND).detail("This journal knows no report of that turn; compare its ids.")
    };
    let (Ok(request), Ok(turn)) = (RequestId::parse(request), TurnId::parse(turn)) else {
        return Err(absent());
    };
    let platform = caller.platform;
    let key = ReportKey::new(&platform, &request, &turn);
    let (parts, of) = (Arc::clone(&desk.0), platform.clone());
    let found = blocking(move || {
        let entry = parts.journal.find(&of, key)?;
        let stored = entry.map(|entry| parts.journal.is_stored(&entry)).transpose()?;
        Ok(entry.zip(stored))
    });
    let (entry, stored) = found.await.map_err(|error| unreadable(&error))?.ok_or_else(absent)?;
    Ok(Json(desk.remembered(&platform, &request, &turn, &entry, stored)))
}

impl Desk {
    async fn body(&self, request: Request) -> Result<bytes::Bytes, Problem> {
        let body = read_body(request).await?;
        let limit = self.0.max_body_bytes;
        if body.len() > limit {
            return Err(Problem::new(&codes::BODY_TOO_LARGE)
                .detail(format!("The body may have {limit} bytes at the most; send reports one by one.")));
        }
        Ok(body)
    }
}

fn backfill(caller: &Caller) -> bool {
    caller.scopes.allows(Scope::Backfill)
}

fn media_type(request: &Request, expected: &'static str) -> Result<(), Problem> {
    let sent = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = sent.and_then(|sent| sent.split(';').next()).map(str::trim);
    if kind.is_some_and(|kind| kind.eq_ignore_ascii_case(expected)) {
        return Ok(());
    }
    Err(Problem::new(&codes::UNSUPPORTED_MEDIA_TYPE).detail(format!("Send `Content-Type: {expected}`.")))
}
