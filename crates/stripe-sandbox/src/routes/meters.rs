use serde_json::{Number, Value, json};
use sha2::{Digest as _, Sha256};

use super::{Answer, Call};
use crate::error::ApiError;
use crate::state::{Kind, new_id, text};

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    let event_name = call
        .text("event_name")
        .ok_or_else(|| ApiError::invalid("`event_name` is empty.").param("event_name"))?;
    one_active(call, &event_name)?;
    let key = |object: &str, default: &str| {
        call.params[object]["event_payload_key"].as_str().unwrap_or(default).to_owned()
    };
    let meter = json!({
        "id": new_id("mtr"), "object": "billing.meter", "created": call.now,
        "customer_mapping": { "event_payload_key": key("customer_mapping", "stripe_customer_id"), "type": "by_id" },
        "default_aggregation": { "formula": call.params["default_aggregation"]["formula"] },
        "display_name": call.params["display_name"], "event_name": event_name, "event_time_window": call.params["event_time_window"],
        "livemode": call.account.livemode, "status": "active", "status_transitions": { "deactivated_at": null }, "updated": call.now,
        "value_settings": { "event_payload_key": key("value_settings", "value") },
    });
    let meter = call.account.insert(Kind::Meter, meter);
    call.account.emit("billing.meter.created", &meter, call.now);
    Ok(meter)
}

fn one_active(call: &Call<'_>, event_name: &str) -> Result<(), ApiError> {
    let taken = call
        .account
        .rows(Kind::Meter)
        .find(|meter| meter["event_name"] == event_name && meter["status"] == "active");
    match taken {
        Some(meter) => Err(ApiError::invalid(format!(
            "An active meter ({}) already exists with the event name `{event_name}`.",
            text(meter, "id")
        ))
        .param("event_name")),
        None => Ok(()),
    }
}

pub(super) fn list(call: &mut Call<'_>) -> Answer {
    call.list(Kind::Meter, "/v1/billing/meters", |row| call.fits(row, "status"))
}

pub(super) fn retrieve(call: &mut Call<'_>) -> Answer {
    call.own(Kind::Meter)
}

/// All but the name that people read is fixed.
pub(super) fn update(call: &mut Call<'_>) -> Answer {
    let now = call.now;
    let meter = call.change(Kind::Meter, |row, params| {
        super::copy(row, params, &["display_name"]);
        row["updated"] = now.into();
    })?;
    call.account.emit("billing.meter.updated", &meter, now);
    Ok(meter)
}

pub(super) fn deactivate(call: &mut Call<'_>) -> Answer {
    switch(call, "active", "inactive", "billing.meter.deactivated")
}

pub(super) fn reactivate(call: &mut Call<'_>) -> Answer {
    let meter = call.own(Kind::Meter)?;
    one_active(call, &text(&meter, "event_name"))?;
    switch(call, "inactive", "active", "billing.meter.reactivated")
}

fn switch(call: &mut Call<'_>, from: &str, to: &str, event: &str) -> Answer {
    let meter = call.own(Kind::Meter)?;
    if meter["status"] != from {
        return Err(ApiError::invalid(format!("The meter is already {to}.")));
    }
    let now = call.now;
    let meter = call.change(Kind::Meter, |row, _| {
        row["status"] = to.into();
        row["updated"] = now.into();
        row["status_transitions"]["deactivated_at"] = if to == "inactive" { now.into() } else { Value::Null };
    })?;
    call.account.emit(event, &meter, now);
    Ok(meter)
}

pub(super) fn event_summaries(call: &mut Call<'_>) -> Answer {
    let meter = call.own(Kind::Meter)?;
    let customer = call.text("customer").unwrap_or_default();
    call.account.find(Kind::Customer, &customer, "customer")?;
    let (start, end) =
        (call.params["start_time"].as_i64().unwrap_or(0), call.params["end_time"].as_i64().unwrap_or(0));
    let window = call.text("value_grouping_window");
    let (step, boundary) = match window.as_deref() {
        Some("hour") => (3_600, "hour"),
        Some("day") => (86_400, "UTC day"),
        _ => (60, "minute"),
    };
    for (name, time) in [("start_time", start), ("end_time", end)] {
        if time.rem_euclid(step) != 0 {
            return Err(ApiError::invalid(format!("`{name}` must be aligned with {boundary} boundaries."))
                .param(name));
        }
    }
    if end <= start {
        return Err(ApiError::invalid("`end_time` must be after `start_time`.").param("end_time"));
    }
    let step = if window.is_some() { step } else { end - start };
    let summaries: Vec<Value> = buckets(start, end, step)
        .filter_map(|(start, end)| summary(call, &meter, &customer, start, end))
        .collect();
    let url = format!("/v1/billing/meters/{}/event_summaries", text(&meter, "id"));
    call.page("meter event summary", &url, summaries.iter().collect())
}

/// Newest first.
fn buckets(start: i64, end: i64, step: i64) -> impl Iterator<Item = (i64, i64)> {
    let count = (end - start) / step;
    (0..count).rev().map(move |place| (start + place * step, start + (place + 1) * step))
}

fn summary(call: &Call<'_>, meter: &Value, customer: &str, start: i64, end: i64) -> Option<Value> {
    let seen_until = call.now - call.settings.aggregation_lag_seconds;
    let sum = call.account.usage.aggregate(meter, customer, start, end, seen_until);
    let sum = sum.or_else(|| call.settings.empty_summaries.then(crate::decimal::Decimal::zero))?;
    // Stripe answers with a floating-point number here, so a client that trusts it past fifteen digits is to fail here too.
    let value = sum.to_string().parse::<f64>().ok().and_then(Number::from_f64)?;
    let name = format!("{}/{customer}/{start}/{end}", text(meter, "id"));
    let id = hex::encode(Sha256::digest(name.as_bytes()));
    Some(json!({
        "id": format!("mtrusg_{}", id.get(..24)?), "object": "billing.meter_event_summary", "aggregated_value": value, "end_time": end,
        "livemode": call.account.livemode, "meter": meter["id"], "start_time": start,
    }))
}
