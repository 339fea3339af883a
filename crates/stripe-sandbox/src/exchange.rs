//! One request and its answer.
//!
//! The order is Stripe's: key, route, global limit, idempotency, parameters, endpoint limits and locks, work. What comes before the idempotency layer
//! is not kept under a key; what comes after is.

mod arrive;

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use serde_json::Value;

use crate::api::Operation;
use crate::control;
use crate::error::ApiError;
use crate::faults::{Fault, FaultKind};
use crate::idempotency::StoredAnswer;
use crate::routes::{self, Call};
use crate::sandbox::Sandbox;
use crate::state::{API_VERSION, World, new_id, text, with_expansions};

const BODY_BYTES_MAX: usize = 1 << 20;

/// Marks an answer whose connection is to be dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropped;

/// What came.
struct Incoming {
    method: String,
    path: String,
    query: String,
    headers: HeaderMap,
    body: Vec<u8>,
    request_id: String,
}

/// Work that may begin.
struct Run {
    operation: &'static Operation,
    id: Option<String>,
    account: String,
    livemode: bool,
    params: Value,
    fault: Option<Fault>,
    guard: Guard,
}

/// What a request holds while it runs. A client that goes away frees it.
struct Guard {
    sandbox: Sandbox,
    /// Account, mode, idempotency key.
    key: Option<(String, bool, String)>,
    flight: Option<String>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.key.is_none() && self.flight.is_none() {
            return;
        }
        self.sandbox.with(|world| {
            if let Some((account, livemode, key)) = &self.key {
                world.accounts.of(account, *livemode).idempotency.release(key);
            }
            if let Some(flight) = &self.flight
                && let Some(running) = world.in_flight.get_mut(flight)
            {
                *running = running.saturating_sub(1);
                if *running == 0 {
                    world.in_flight.remove(flight);
                }
            }
        });
    }
}

struct Answer {
    status: u16,
    body: String,
    should_retry: Option<bool>,
    limit_reason: Option<String>,
    /// The request whose answer this is, when it is not this one.
    original: Option<String>,
    stored: bool,
    code: Option<String>,
    message: Option<String>,
}

pub(crate) async fn answer(State(sandbox): State<Sandbox>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return plain(
            StatusCode::PAYLOAD_TOO_LARGE,
            "text/plain",
            "the body is too large or did not arrive\n".to_owned(),
        );
    };
    let incoming = Incoming {
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().trim_end_matches('/').to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
        body: body.to_vec(),
        request_id: new_id("req"),
    };
    if let Some(rest) = incoming.path.strip_prefix("/_sandbox") {
        return control::answer(&sandbox, &incoming.method, rest, &incoming.query, &incoming.body);
    }
    exchange(&sandbox, &incoming).await
}

async fn exchange(sandbox: &Sandbox, incoming: &Incoming) -> Response {
    let (seq, arrival) = sandbox.with(|world| arrive::arrive(sandbox, world, incoming));
    let mut run = match arrival {
        Err(answer) => return respond(sandbox, incoming, seq, &answer),
        Ok(run) => run,
    };
    if let Some(fault) = run.fault.clone().filter(|fault| !fault.commits()) {
        match fault.kind {
            FaultKind::DropConnection => return drop_connection(),
            FaultKind::Html502 => return bad_gateway(sandbox, seq),
            FaultKind::DelayMs => tokio::time::sleep(Duration::from_millis(fault.ms)).await,
            _ => {}
        }
    }
    let (answer, work_millis) = sandbox.with(|world| {
        let answer = execute(sandbox, world, incoming, &mut run);
        (answer, if run.guard.flight.is_some() { world.settings.meter_event_millis } else { 0 })
    });
    if work_millis > 0 {
        tokio::time::sleep(Duration::from_millis(work_millis)).await;
    }
    if let Some(fault) = run.fault.clone().filter(Fault::commits) {
        match fault.kind {
            FaultKind::DropConnection => return drop_connection(),
            FaultKind::Html502 => return bad_gateway(sandbox, seq),
            FaultKind::DelayMs => tokio::time::sleep(Duration::from_millis(fault.ms)).await,
            _ => {}
        }
    }
    respond(sandbox, incoming, seq, &answer)
}

/// Does the work, keeps the answer under its key, tells the receivers and writes the state: in one step, before anyone is answered.
fn execute(sandbox: &Sandbox, world: &mut World, incoming: &Incoming, run: &mut Run) -> Answer {
    let now = world.clock.now();
    let idempotency_key = arrive::header(incoming, "idempotency-key");
    let account = world.accounts.of(&run.account, run.livemode);
    account.request = Some((incoming.request_id.clone(), idempotency_key));
    let reject = run.fault.as_ref().filter(|fault| fault.kind == FaultKind::AcceptThenReject);
    let reject =
        reject.map(|fault| fault.code.clone().unwrap_or_else(|| "meter_event_customer_not_found".to_owned()));
    let mut call = Call {
        account,
        settings: &world.settings,
        now,
        params: run.params.clone(),
        id: run.id.clone(),
        reject,
    };
    let second_version = incoming.path.starts_with("/v2/");
    let result = routes::run(&run.operation.name, &mut call);
    let expansions: Vec<String> = run.params["expand"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(ToOwned::to_owned)
        .collect();
    let mut answer = match result {
        Ok(object) => Answer::ok(with_expansions(call.account, &object, &expansions).to_string()),
        Err(error) => {
            let error = in_other_mode(world, run, error);
            Answer::refused(&error, second_version, &incoming.request_id)
        }
    };
    if run.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::FailAfterCommit) {
        answer = Answer::refused(&ApiError::internal(), second_version, &incoming.request_id);
    }
    world.accounts.of(&run.account, run.livemode).request = None;
    keep(world, run, &answer, second_version, &incoming.request_id);
    sandbox.run_due(world);
    sandbox.tell(world);
    if incoming.method != "GET"
        && let Err(error) = sandbox.save(world)
    {
        tracing::error!(%error, "failed to write the sandbox's state file");
        return Answer::refused(&ApiError::internal(), second_version, &incoming.request_id);
    }
    answer
}

/// The second version of the API runs failed work again: it keeps successes only.
fn keep(world: &mut World, run: &mut Run, answer: &Answer, second_version: bool, request_id: &str) {
    let Some((account, livemode, key)) = run.guard.key.take() else { return };
    let store = &mut world.accounts.of(&account, livemode).idempotency;
    if answer.stored && !(second_version && answer.status != 200) {
        store.finish(&key, answer.to_stored(request_id));
    } else {
        store.release(&key);
    }
}

fn in_other_mode(world: &World, run: &Run, mut error: ApiError) -> ApiError {
    let other = world.accounts.other_mode(&run.account, run.livemode);
    if let Some(id) = &error.missing_id
        && other.is_some_and(|other| other.holds(id))
    {
        let (there, here) = if run.livemode { ("test", "live") } else { ("live", "test") };
        error.message = format!(
            "{}; a similar object exists in {there} mode, but a {here} mode key was used to make this request.",
            error.message
        );
    }
    error
}

impl Answer {
    fn ok(body: String) -> Self {
        Self {
            status: 200,
            body,
            should_retry: None,
            limit_reason: None,
            original: None,
            stored: true,
            code: None,
            message: None,
        }
    }

    fn refused(error: &ApiError, second_version: bool, request_id: &str) -> Self {
        Self {
            status: error.status,
            body: error.body(second_version, request_id).to_string(),
            should_retry: error.should_retry,
            limit_reason: error.limit_reason.clone(),
            original: None,
            stored: error.stored,
            code: error.code.clone(),
            message: Some(error.message.clone()),
        }
    }

    fn replayed(stored: StoredAnswer) -> Self {
        let said: Value = serde_json::from_str(&stored.body).unwrap_or_default();
        Self {
            status: stored.status,
            code: said["error"]["code"].as_str().map(ToOwned::to_owned),
            message: Some(text(&said["error"], "message")).filter(|message| !message.is_empty()),
            body: stored.body,
            should_retry: stored.should_retry,
            limit_reason: stored.limit_reason,
            original: Some(stored.request_id),
            stored: true,
        }
    }

    fn to_stored(&self, request_id: &str) -> StoredAnswer {
        StoredAnswer {
            status: self.status,
            body: self.body.clone(),
            request_id: request_id.to_owned(),
            should_retry: self.should_retry,
            limit_reason: self.limit_reason.clone(),
        }
    }
}

fn respond(sandbox: &Sandbox, incoming: &Incoming, seq: u64, answer: &Answer) -> Response {
    sandbox.with(|world| {
        if let Some(entry) = world.journal.entry(seq) {
            entry.status = Some(answer.status);
            entry.code.clone_from(&answer.code);
            entry.message.clone_from(&answer.message);
            entry.replayed = answer.original.is_some();
        }
    });
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = plain(status, "application/json", answer.body.clone());
    let mut set = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    };
    set("request-id", &incoming.request_id);
    set("stripe-version", arrive::header(incoming, "stripe-version").as_deref().unwrap_or(API_VERSION));
    if let Some(key) = arrive::header(incoming, "idempotency-key") {
        set("idempotency-key", &key);
    }
    if let Some(original) = &answer.original {
        set("original-request", original);
        set("idempotent-replayed", "true");
    }
    if let Some(should_retry) = answer.should_retry {
        set("stripe-should-retry", if should_retry { "true" } else { "false" });
    }
    if let Some(reason) = &answer.limit_reason {
        set("stripe-rate-limited-reason", reason);
    }
    if answer.status == 401 {
        set("www-authenticate", "Bearer realm=\"Stripe\"");
    }
    response
}

fn bad_gateway(sandbox: &Sandbox, seq: u64) -> Response {
    sandbox.with(|world| {
        if let Some(entry) = world.journal.entry(seq) {
            entry.status = Some(502);
        }
    });
    let page = "<html>\n<head><title>502 Bad Gateway</title></head>\n<body><h1>502 Bad Gateway</h1></body>\n</html>\n";
    plain(StatusCode::BAD_GATEWAY, "text/html", page.to_owned())
}

fn drop_connection() -> Response {
    let mut response = plain(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", String::new());
    response.extensions_mut().insert(Dropped);
    response
}

pub(crate) fn plain(status: StatusCode, content_type: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
