//! Everything before the work: who asks, for what, and whether it may begin.

use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use super::{Answer, Guard, Incoming, Run};
use crate::api::{Api, Operation};
use crate::error::ApiError;
use crate::faults::{self, ConcurrencyMode, Fault, FaultKind};
use crate::idempotency::{Begin, KEY_CHARS_MAX};
use crate::journal::Entry;
use crate::params;
use crate::sandbox::Sandbox;
use crate::state::{Kind, World, account_name, text};

const STREAM: &str = "/v2/billing/meter_event_stream";

pub(super) fn header(incoming: &Incoming, name: &str) -> Option<String> {
    incoming.headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned)
}

/// Writes the request down and decides. The number is its place in the journal.
pub(super) fn arrive(
    sandbox: &Sandbox,
    world: &mut World,
    incoming: &Incoming,
) -> (u64, Result<Run, Answer>) {
    if sandbox.run_due(world) {
        // An id that is shown now must be known after a restart.
        sandbox.save_or_log(world);
    }
    let tree = tree(incoming);
    let seq = world.journal.push(Entry {
        seq: 0,
        at: world.clock.now(),
        method: incoming.method.clone(),
        path: incoming.path.clone(),
        account: None,
        livemode: false,
        idempotency_key: header(incoming, "idempotency-key"),
        stripe_version: header(incoming, "stripe-version"),
        params: tree.clone().unwrap_or_default(),
        concurrent: 0,
        status: None,
        code: None,
        message: None,
        replayed: false,
        fault: None,
        request_id: incoming.request_id.clone(),
    });
    let second_version = incoming.path.starts_with("/v2/");
    let decided = decide(sandbox, world, incoming, seq, tree);
    let decided = decided.map_err(|stop| match stop {
        Stop::Refused(error) => Answer::refused(&error, second_version, &incoming.request_id),
        Stop::Answered(answer) => *answer,
    });
    (seq, decided)
}

enum Stop {
    Refused(ApiError),
    Answered(Box<Answer>),
}

impl From<ApiError> for Stop {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

fn decide(
    sandbox: &Sandbox,
    world: &mut World,
    incoming: &Incoming,
    seq: u64,
    tree: Result<Value, ApiError>,
) -> Result<Run, Stop> {
    let (account, livemode) = identify(world, incoming)?;
    if let Some(entry) = world.journal.entry(seq) {
        entry.account = Some(account.clone());
        entry.livemode = livemode;
    }
    let (operation, id) =
        Api::get().find(&incoming.method, &incoming.path).ok_or_else(|| unrecognised(incoming))?;
    let tree = tree?;
    let fault = faults::take(&mut world.faults, &incoming.method, &incoming.path, &tree.to_string());
    if let (Some(fault), Some(entry)) = (&fault, world.journal.entry(seq)) {
        entry.fault =
            serde_json::to_value(fault.kind).ok().and_then(|kind| kind.as_str().map(ToOwned::to_owned));
    }
    global_limit(world, fault.as_ref())?;
    let mut guard = Guard { sandbox: sandbox.clone(), key: None, flight: None };
    // A guard dropped on the way out would take the lock that is held here, so it is emptied by hand.
    let begun = begin(world, incoming, seq, &account, livemode, operation, &tree, fault.as_ref(), &mut guard);
    match begun {
        Ok(params) => Ok(Run { operation, id, account, livemode, params, fault, guard }),
        Err(stop) => {
            let second_version = incoming.path.starts_with("/v2/");
            let stop = match (stop, guard.key.take()) {
                (Stop::Refused(error), Some((account, livemode, key))) => {
                    let answer = Answer::refused(&error, second_version, &incoming.request_id);
                    let store = &mut world.accounts.of(&account, livemode).idempotency;
                    if error.stored && !second_version {
                        store.finish(&key, answer.to_stored(&incoming.request_id));
                        sandbox.save_or_log(world);
                    } else {
                        store.release(&key);
                    }
                    Stop::Answered(Box::new(answer))
                }
                (stop, _) => stop,
            };
            guard.flight = None;
            Err(stop)
        }
    }
}

/// From the idempotency layer to the last lock. What it takes is in the guard.
#[expect(clippy::too_many_arguments, reason = "one step of one pipeline, split off to have one way out")]
fn begin(
    world: &mut World,
    incoming: &Incoming,
    seq: u64,
    account: &str,
    livemode: bool,
    operation: &Operation,
    tree: &Value,
    fault: Option<&Fault>,
    guard: &mut Guard,
) -> Result<Value, Stop> {
    let key = header(incoming, "idempotency-key").filter(|_| incoming.method == "POST");
    if let Some(key) = key {
        if key.chars().count() > KEY_CHARS_MAX {
            return Err(ApiError::invalid(format!(
                "Idempotency keys can be at most {KEY_CHARS_MAX} characters."
            ))
            .unstored()
            .into());
        }
        let fingerprint = format!("{} {}", operation.name, json!([incoming.path, tree]));
        let now = world.clock.now();
        match world.accounts.of(account, livemode).idempotency.begin(&key, &fingerprint, now)? {
            Begin::Replay(stored) => return Err(Stop::Answered(Box::new(Answer::replayed(stored)))),
            Begin::First => guard.key = Some((account.to_owned(), livemode, key)),
        }
    }
    let params = params::checked(&operation.params, tree)?;
    let kind = fault.map(|fault| fault.kind);
    match (kind, fault) {
        (Some(FaultKind::RateLimit), Some(fault)) => {
            return Err(ApiError::rate_limited(fault.reason.as_deref().unwrap_or("endpoint-rate")).into());
        }
        (Some(FaultKind::LockTimeout), _) => return Err(ApiError::lock_timeout().into()),
        (Some(FaultKind::FailBefore), _) => return Err(ApiError::internal().into()),
        _ => {}
    }
    if let Some(flight) = flight_of(world, incoming, account, livemode, &params) {
        let running = world.in_flight.get(&flight).copied().unwrap_or(0);
        if let Some(entry) = world.journal.entry(seq) {
            entry.concurrent = running + 1;
        }
        take_off(world, &flight, incoming.path.starts_with("/v2/"))?;
        guard.flight = Some(flight);
    }
    Ok(params)
}

/// The name of the lock of a meter event: one call at a time for each customer and meter.
fn flight_of(
    world: &mut World,
    incoming: &Incoming,
    account: &str,
    livemode: bool,
    params: &Value,
) -> Option<String> {
    if !matches!(incoming.path.as_str(), "/v1/billing/meter_events" | "/v2/billing/meter_events") {
        return None;
    }
    let event_name = text(params, "event_name");
    let account_row = world.accounts.of(account, livemode);
    let meter = account_row.rows(Kind::Meter).find(|meter| meter["event_name"] == event_name.as_str());
    let mapping = meter.map_or_else(
        || "stripe_customer_id".to_owned(),
        |meter| text(&meter["customer_mapping"], "event_payload_key"),
    );
    let customer = params["payload"][&mapping].as_str()?;
    Some(format!("{}\n{event_name}\n{customer}", account_name(account, livemode)))
}

fn take_off(world: &mut World, flight: &str, second_version: bool) -> Result<(), ApiError> {
    let mode = world.settings.concurrency_mode;
    let running = world.in_flight.entry(flight.to_owned()).or_default();
    if *running > 0 && mode != ConcurrencyMode::Off {
        let text = "Cannot create multiple usage events for the same customer, meter concurrently.";
        return Err(match (second_version, mode) {
            (true, _) => ApiError::invalid(text).status(409).code("too_many_concurrent_requests").unstored(),
            (false, ConcurrencyMode::Conflict) => ApiError::invalid(text).status(409).retry(true).unstored(),
            (false, _) => ApiError::lock_timeout(),
        });
    }
    *running += 1;
    Ok(())
}

fn global_limit(world: &mut World, fault: Option<&Fault>) -> Result<(), ApiError> {
    let asked =
        fault.filter(|fault| fault.kind == FaultKind::RateLimit).and_then(|fault| fault.reason.as_deref());
    if let Some(reason) = asked.filter(|reason| reason.starts_with("global-")) {
        return Err(ApiError::rate_limited(reason));
    }
    let Some(limit) = world.settings.rate_limit_per_second else { return Ok(()) };
    let now = Instant::now();
    let (since, used) = world
        .rate
        .filter(|(since, _)| now.duration_since(*since) < Duration::from_secs(1))
        .unwrap_or((now, 0));
    if used >= limit {
        return Err(ApiError::rate_limited("global-rate"));
    }
    world.rate = Some((since, used + 1));
    Ok(())
}

fn tree(incoming: &Incoming) -> Result<Value, ApiError> {
    let query = params::form_tree(&incoming.query)?;
    if incoming.path.starts_with("/v2/") {
        if incoming.body.is_empty() {
            return Ok(query);
        }
        let body = serde_json::from_slice(&incoming.body).map_err(|error| {
            ApiError::invalid(format!("The body is not JSON: {error}.")).code("invalid_json").unstored()
        })?;
        return Ok(params::merged(query, body));
    }
    let body = std::str::from_utf8(&incoming.body)
        .map_err(|_| ApiError::invalid("The body is not UTF-8.").unstored())?;
    Ok(params::merged(query, params::form_tree(body)?))
}

/// The account and mode of a key. An account is the key's first word: `sk_test_alpha_1` and `sk_live_alpha` are both `acct_alpha`.
fn identify(world: &mut World, incoming: &Incoming) -> Result<(String, bool), ApiError> {
    let given = header(incoming, "authorization").unwrap_or_default();
    let key = match given.split_once(' ') {
        Some(("Bearer", key)) => key.trim().to_owned(),
        Some(("Basic", encoded)) => basic_user(encoded).unwrap_or_default(),
        _ => String::new(),
    };
    if key.is_empty() {
        return Err(unauthorised(
            "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth \
             (e.g. 'Authorization: Bearer YOUR_SECRET_KEY').",
        ));
    }
    if incoming.path == STREAM {
        return stream_session(world, &key);
    }
    if world.settings.expired_keys.contains(&key) {
        return Err(unauthorised("Expired API Key provided.").code("api_key_expired"));
    }
    let mut words = key.split('_');
    let (kind, mode, account) = (words.next(), words.next(), words.next());
    let livemode = match (kind, mode) {
        (Some("sk" | "rk"), Some("test")) => false,
        (Some("sk" | "rk"), Some("live")) => true,
        _ => return Err(invalid_key(&key)),
    };
    match account {
        Some(account) if !account.is_empty() && account.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            Ok((format!("acct_{account}"), livemode))
        }
        _ => Err(invalid_key(&key)),
    }
}

fn stream_session(world: &mut World, token: &str) -> Result<(String, bool), ApiError> {
    let now = world.clock.now();
    for account in world.accounts.all_shared() {
        if let Some(expires) = account.sessions.get(token) {
            if now >= *expires {
                return Err(unauthorised("The session has expired. Create a new one.")
                    .code("billing_meter_event_session_expired"));
            }
            return Ok((account.id.clone(), account.livemode));
        }
    }
    Err(unauthorised("The session is not known.").code("billing_meter_event_session_expired"))
}

fn invalid_key(key: &str) -> ApiError {
    let shown: String = key.chars().take(8).collect();
    unauthorised(&format!("Invalid API Key provided: {shown}****"))
}

fn unauthorised(message: &str) -> ApiError {
    ApiError::invalid(message).status(401).unstored()
}

fn unrecognised(incoming: &Incoming) -> ApiError {
    ApiError::invalid(format!(
        "Unrecognized request URL ({}: {}). If you are trying to list objects, remove the trailing slash. \
         If you are trying to retrieve an object, make sure you passed a valid (non-empty) identifier in your code.",
        incoming.method, incoming.path
    ))
    .status(404)
    .code("resource_missing")
    .unstored()
}

/// The user of `user:password` in base 64.
fn basic_user(encoded: &str) -> Option<String> {
    let text = String::from_utf8(BASE64_STANDARD.decode(encoded.trim()).ok()?).ok()?;
    Some(text.split(':').next().unwrap_or_default().to_owned())
}
