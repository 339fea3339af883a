//! `/_sandbox/…`: what a test sets, breaks and reads. No key is asked: the sandbox listens on loopback.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use crate::clock::BaseClock;
use crate::exchange::plain;
use crate::faults::{Fault, Settings};
use crate::params;
use crate::sandbox::Sandbox;
use crate::state::{Kind, World};
use crate::webhooks;

pub(crate) fn answer(sandbox: &Sandbox, method: &str, path: &str, query: &str, body: &[u8]) -> Response {
    match route(sandbox, method, path, query, body) {
        Ok(value) => plain(StatusCode::OK, "application/json", value.to_string()),
        Err((status, message)) => plain(status, "application/json", json!({ "error": message }).to_string()),
    }
}

type Refusal = (StatusCode, String);

fn bad(error: impl ToString) -> Refusal {
    (StatusCode::BAD_REQUEST, error.to_string())
}

fn route(sandbox: &Sandbox, method: &str, path: &str, query: &str, body: &[u8]) -> Result<Value, Refusal> {
    let filters = params::form_tree(query).map_err(|error| bad(&error.message))?;
    match (method, path) {
        ("GET", "/faults") => sandbox.with(|world| to_value(&world.faults)),
        ("POST", "/faults") => {
            let fault: Fault = serde_json::from_slice(body).map_err(bad)?;
            if fault.route.split_whitespace().count() == 0 || fault.count == 0 {
                return Err(bad("a fault names a route and a count above zero"));
            }
            sandbox.with(|world| {
                world.faults.push(fault);
                to_value(&world.faults)
            })
        }
        ("DELETE", "/faults") => sandbox.with(|world| {
            world.faults.clear();
            Ok(json!([]))
        }),
        ("GET", "/settings") => sandbox.with(|world| to_value(&world.settings)),
        ("POST", "/settings") => sandbox.with(|world| settings(sandbox, world, body)),
        ("GET", "/journal") => sandbox.with(|world| journal(world, &filters)),
        ("DELETE", "/journal") => sandbox.with(|world| {
            world.journal.clear();
            Ok(json!({}))
        }),
        ("GET", "/meter_events") => sandbox.with(|world| meter_events(world, &filters)),
        ("GET", "/thin_events") => sandbox.with(|world| {
            let events: Vec<&Value> = world.accounts.all_shared().flat_map(|account| account.rows(Kind::ThinEvent)).collect();
            Ok(json!({ "data": events }))
        }),
        ("GET", "/webhooks") => sandbox.with(|world| Ok(webhooks::status(&world.deliveries))),
        ("GET", "/clock") => sandbox.with(|world| Ok(clock(world))),
        ("POST", "/clock") => set_clock(sandbox, body),
        _ => Err((
            StatusCode::NOT_FOUND,
            "known: faults, settings, journal, meter_events, thin_events, webhooks, clock (see the crate's README)".to_owned(),
        )),
    }
}

fn to_value(value: &impl serde::Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(value).map_err(bad)
}

/// Only what is named changes.
fn settings(sandbox: &Sandbox, world: &mut World, body: &[u8]) -> Result<Value, Refusal> {
    let change: Value = serde_json::from_slice(body).map_err(bad)?;
    let mut merged = to_value(&world.settings)?;
    let (Some(all), Some(change)) = (merged.as_object_mut(), change.as_object()) else {
        return Err(bad("settings are an object"));
    };
    all.extend(change.clone());
    let settings: Settings = serde_json::from_value(merged).map_err(bad)?;
    world.settings = settings;
    sandbox.save(world).map_err(bad)?;
    to_value(&world.settings)
}

fn journal(world: &World, filters: &Value) -> Result<Value, Refusal> {
    let path = filters["path"].as_str();
    let method = filters["method"].as_str();
    let since = filters["since"].as_str().map(str::parse::<u64>).transpose().map_err(bad)?.unwrap_or(0);
    let entries: Vec<_> = world
        .journal
        .entries()
        .filter(|entry| {
            entry.seq >= since
                && path.is_none_or(|path| entry.path == path)
                && method.is_none_or(|method| entry.method == method)
        })
        .collect();
    Ok(json!({ "data": to_value(&entries)?, "dropped": world.journal.dropped() }))
}

/// Each event as it is counted, which Stripe itself never shows.
fn meter_events(world: &World, filters: &Value) -> Result<Value, Refusal> {
    let wants = |name: &str, value: &str| filters[name].as_str().is_none_or(|wanted| wanted == value);
    let mut shown = Vec::new();
    for account in world.accounts.all_shared() {
        for event in account
            .usage
            .all()
            .iter()
            .filter(|event| wants("customer", &event.customer) && wants("event_name", &event.event_name))
        {
            let mut row = to_value(event)?;
            row["account"] = account.id.clone().into();
            row["livemode"] = account.livemode.into();
            shown.push(row);
        }
    }
    Ok(json!({ "data": shown }))
}

fn clock(world: &World) -> Value {
    json!({ "now": world.clock.now(), "real": world.clock == BaseClock::Real })
}

/// `{"now": …}` or `{"advance_seconds": …}`; a real clock refuses.
fn set_clock(sandbox: &Sandbox, body: &[u8]) -> Result<Value, Refusal> {
    let asked: Value = serde_json::from_slice(body).map_err(bad)?;
    let BaseClock::Standing(at) = sandbox.with(|world| world.clock) else {
        return Err(bad("the clock is the real one; start the sandbox with a start time to move it"));
    };
    let to = match (asked["now"].as_i64(), asked["advance_seconds"].as_i64()) {
        (Some(now), None) => now,
        (None, Some(seconds)) => at.checked_add(seconds).ok_or_else(|| bad("out of range"))?,
        _ => return Err(bad("give now or advance_seconds")),
    };
    sandbox.set_now(to);
    Ok(sandbox.with(|world| clock(world)))
}
