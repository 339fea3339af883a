use serde_json::{Value, json};

use super::list::id_in;
use super::subscription_items::{self, Wanted};
use super::{Answer, Call, copy, merge_metadata};
use crate::clock::{Interval, civil, seconds_of};
use crate::error::ApiError;
use crate::state::invoices::{Draft, Span};
use crate::state::{Kind, new_id, text};

pub(super) const WRITES: &[&str] = &[
    "backdate_start_date",
    "billing_cycle_anchor",
    "billing_cycle_anchor_config",
    "billing_mode",
    "cancel_at",
    "cancel_at_period_end",
    "collection_method",
    "currency",
    "customer",
    "days_until_due",
    "description",
    "items",
    "metadata",
    "off_session",
    "payment_behavior",
    "payment_settings",
    "proration_behavior",
];
pub(super) const UPDATES: &[&str] = &[
    "cancel_at",
    "cancel_at_period_end",
    "cancellation_details",
    "description",
    "items",
    "metadata",
    "off_session",
    "payment_behavior",
    "proration_behavior",
];
const ITEMS_MAX: usize = 20;
const SUBSCRIPTIONS_PER_CLOCK_CUSTOMER_MAX: usize = 3;

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    let customer_id = call.text("customer").ok_or_else(|| {
        ApiError::invalid("Missing required param: customer.")
            .code("parameter_missing")
            .param("customer")
            .unstored()
    })?;
    let customer = call.account.find(Kind::Customer, &customer_id, "customer")?.clone();
    let now = call.account.now_of(&customer_id, call.now);
    let of_customer = |row: &&Value| row["customer"] == customer_id.as_str() && row["status"] == "active";
    let running = call.account.rows(Kind::Subscription).filter(of_customer).count();
    if customer["test_clock"].is_string() && running >= SUBSCRIPTIONS_PER_CLOCK_CUSTOMER_MAX {
        let text = format!(
            "A customer with a test clock can have at most {SUBSCRIPTIONS_PER_CLOCK_CUSTOMER_MAX} subscriptions."
        );
        return Err(ApiError::invalid(text).param("customer"));
    }
    let wanted = wanted_items(call)?;
    let currency = wanted[0].currency.clone();
    let interval = wanted[0].interval;
    if wanted.iter().any(|item| item.interval != interval || item.currency != currency) {
        return Err(ApiError::invalid(
            "All items of a subscription need the same currency and the same billing interval.",
        )
        .param("items"));
    }
    let terms = Start::of(call, interval, now)?;
    let id = new_id("sub");
    let mut subscription = blank(call, &customer, &id, &currency, &terms, now);
    copy(&mut subscription, &call.params, &["collection_method", "days_until_due", "description"]);
    subscription["__interval"] = wanted[0].interval_name.clone().into();
    subscription["__interval_count"] = interval.count.into();
    subscription["__period_start"] = now.into();
    subscription["__period_end"] = terms.period_end.into();
    set_cancel(&mut subscription, &call.params, now);
    call.account.insert(Kind::Subscription, subscription);
    for item in &wanted {
        subscription_items::insert(call, &id, item, now, terms.period_end);
    }
    if customer["currency"].is_null()
        && let Some(row) = call.account.table(Kind::Customer).get_mut(&customer_id)
    {
        row["currency"] = currency.clone().into();
    }
    first_invoice(call, &id, &terms, interval, now)?;
    let subscription = call.account.find(Kind::Subscription, &id, "id")?.clone();
    call.account.emit("customer.subscription.created", &subscription, now);
    Ok(subscription)
}

fn wanted_items(call: &Call<'_>) -> Result<Vec<Wanted>, ApiError> {
    let given = call.params["items"].as_array().cloned().unwrap_or_default();
    if given.is_empty() || given.len() > ITEMS_MAX {
        return Err(ApiError::invalid(format!("Give between 1 and {ITEMS_MAX} items."))
            .code("parameter_missing")
            .param("items"));
    }
    let mut wanted: Vec<Wanted> = Vec::new();
    for (place, item) in given.iter().enumerate() {
        let item = Wanted::of(call, item, &format!("items[{place}]"))?;
        if wanted.iter().any(|other| other.price == item.price) {
            return Err(ApiError::invalid("Cannot add multiple subscription items with the same price.")
                .param(format!("items[{place}][price]")));
        }
        wanted.push(item);
    }
    Ok(wanted)
}

/// When a subscription begins and how its periods are cut.
struct Start {
    anchor: i64,
    anchor_config: Value,
    period_end: i64,
    start_date: i64,
    flexible: bool,
}

impl Start {
    fn of(call: &Call<'_>, interval: Interval, now: i64) -> Result<Self, ApiError> {
        let out_of_range =
            || ApiError::invalid("The billing cycle anchor is out of range.").param("billing_cycle_anchor");
        let config = &call.params["billing_cycle_anchor_config"];
        let anchor = match (call.params["billing_cycle_anchor"].as_i64(), config.is_object()) {
            (Some(_), true) => {
                return Err(ApiError::invalid(
                    "Give `billing_cycle_anchor` or `billing_cycle_anchor_config`, not both.",
                )
                .param("billing_cycle_anchor"));
            }
            (Some(anchor), false) => anchor,
            (None, true) => next_of_config(config, now).ok_or_else(out_of_range)?,
            (None, false) => now,
        };
        let natural = interval.next_after(now, now).ok_or_else(out_of_range)?;
        if anchor < now || anchor > natural {
            let text = format!(
                "`billing_cycle_anchor` must be between now and the next natural billing date ({natural})."
            );
            return Err(ApiError::invalid(text).param("billing_cycle_anchor"));
        }
        let start_date = call.params["backdate_start_date"].as_i64().unwrap_or(now);
        if start_date > now {
            return Err(
                ApiError::invalid("`backdate_start_date` must be in the past.").param("backdate_start_date")
            );
        }
        let config_shown = |name: &str| config[name].clone();
        Ok(Self {
            anchor,
            anchor_config: if config.is_object() {
                json!({ "day_of_month": config["day_of_month"], "hour": config_shown("hour"), "minute": config_shown("minute"),
                    "month": config_shown("month"), "second": config_shown("second") })
            } else {
                Value::Null
            },
            period_end: interval.next_after(anchor, now).ok_or_else(out_of_range)?,
            start_date,
            flexible: call.params["billing_mode"]["type"] != "classic",
        })
    }
}

/// The first time after `now` that fits; what is not given is taken from now.
fn next_of_config(config: &Value, now: i64) -> Option<i64> {
    let today = civil(now)?;
    let given = |name: &str| config[name].as_i64().map(i8::try_from).transpose().ok();
    let day = given("day_of_month")??;
    let month = given("month")?;
    let time = jiff::civil::Time::new(
        given("hour")?.unwrap_or_else(|| today.hour()),
        given("minute")?.unwrap_or_else(|| today.minute()),
        given("second")?.unwrap_or_else(|| today.second()),
        0,
    )
    .ok()?;
    let mut first = today.date().first_of_month();
    for _ in 0..14 {
        if month.is_none_or(|month| month == first.month()) {
            let date =
                jiff::civil::Date::new(first.year(), first.month(), day.clamp(1, first.days_in_month()))
                    .ok()?;
            let at = seconds_of(date.to_datetime(time))?;
            if at > now {
                return Some(at);
            }
        }
        first = first.checked_add(jiff::Span::new().try_months(1).ok()?).ok()?;
    }
    None
}

fn blank(call: &Call<'_>, customer: &Value, id: &str, currency: &str, start: &Start, now: i64) -> Value {
    json!({
        "id": id, "object": "subscription", "application": null, "application_fee_percent": null,
        "automatic_tax": { "disabled_reason": null, "enabled": false, "liability": null },
        "billing_cycle_anchor": start.anchor, "billing_cycle_anchor_config": start.anchor_config,
        "billing_mode": { "flexible": if start.flexible { json!({}) } else { Value::Null }, "type": if start.flexible { "flexible" } else { "classic" } },
        "billing_schedules": [], "billing_thresholds": null, "cancel_at": null, "cancel_at_period_end": false, "canceled_at": null,
        "cancellation_details": { "comment": null, "feedback": null, "feedback_option": null, "reason": null },
        "collection_method": "charge_automatically", "created": now, "currency": currency, "customer": customer["id"],
        "customer_account": null, "days_until_due": null, "default_payment_method": null, "default_source": null, "default_tax_rates": [],
        "description": null, "discounts": [], "ended_at": null,
        "invoice_settings": { "account_tax_ids": null, "custom_fields": null, "description": null, "footer": null, "issuer": { "type": "self" } },
        "latest_invoice": null, "livemode": call.account.livemode, "managed_payments": null, "metadata": call.metadata(),
        "next_pending_invoice_item_invoice": null, "on_behalf_of": null, "pause_collection": null,
        "payment_settings": { "payment_method_options": null, "payment_method_types": null, "save_default_payment_method": "off" },
        "pending_invoice_item_interval": null, "pending_setup_intent": null, "pending_update": null, "schedule": null,
        "start_date": start.start_date, "status": "active", "test_clock": customer["test_clock"], "transfer_data": null, "trial_end": null,
        "trial_settings": null, "trial_start": null,
    })
}

/// What is paid in advance, and usage from before: flexible bills it at once with a line for each period, classic with the next cycle in one line.
fn first_invoice(
    call: &mut Call<'_>,
    id: &str,
    start: &Start,
    interval: Interval,
    now: i64,
) -> Result<(), ApiError> {
    let mut fixed = Vec::new();
    let mut metered = Vec::new();
    for item in call.account.items_of(id) {
        if !call.account.is_metered(&item) {
            fixed.extend(call.account.licensed_lines(&item, (now, start.period_end), call.settings)?);
        } else if start.start_date < now && start.flexible {
            let mut from = start.start_date;
            while from < now {
                let end = interval.next_after(start.anchor, from).map_or(now, |boundary| boundary.min(now));
                metered.push(Span { item: text(&item, "id"), price: text(&item, "price"), start: from, end });
                from = end;
            }
        } else if start.start_date < now
            && let Some(row) = call.account.table(Kind::SubscriptionItem).get_mut(&text(&item, "id"))
        {
            row["__usage_from"] = start.start_date.into();
        }
    }
    if fixed.is_empty() && metered.is_empty() {
        return Ok(());
    }
    let subscription = call.account.find(Kind::Subscription, id, "id")?;
    let draft = Draft {
        customer: text(subscription, "customer"),
        subscription: Some(id.to_owned()),
        reason: "subscription_create",
        currency: text(subscription, "currency"),
        at: now,
        period: (start.start_date, now),
        metered,
        fixed,
        auto_advance: true,
    };
    let seen_until = call.now - call.settings.aggregation_lag_seconds;
    let invoice = call.account.invoice_open_draft(draft, call.settings, seen_until);
    // A first invoice has no grace.
    call.account.invoice_finalize(&invoice, now, call.settings, seen_until, true)?;
    Ok(())
}

fn set_cancel(subscription: &mut Value, params: &Value, now: i64) {
    if let Some(at_end) = params["cancel_at_period_end"].as_bool() {
        subscription["cancel_at_period_end"] = at_end.into();
        subscription["cancel_at"] = if at_end { subscription["__period_end"].clone() } else { Value::Null };
        subscription["canceled_at"] = if at_end { now.into() } else { Value::Null };
    }
    match &params["cancel_at"] {
        Value::Null => {}
        Value::Number(at) => {
            subscription["cancel_at"] = at.clone().into();
            subscription["canceled_at"] = now.into();
        }
        Value::String(text) if text.is_empty() => {
            subscription["cancel_at"] = Value::Null;
            subscription["canceled_at"] = Value::Null;
        }
        _ => {
            subscription["cancel_at"] = subscription["__period_end"].clone();
            subscription["canceled_at"] = now.into();
        }
    }
}

pub(super) fn list(call: &mut Call<'_>) -> Answer {
    let status = call.text("status");
    let named = call.text("customer").is_some();
    let price = call.text("price");
    call.list(Kind::Subscription, "/v1/subscriptions", |row| {
        let of_status = match status.as_deref() {
            None => row["status"] != "canceled",
            Some("all") => true,
            Some("ended") => row["status"] == "canceled",
            Some(status) => row["status"] == status,
        };
        let of_price = || {
            price.as_ref().is_none_or(|price| {
                call.account.items_of(&text(row, "id")).iter().any(|item| item["price"] == price.as_str())
            })
        };
        of_status
            && call.fits(row, "customer")
            && call.fits(row, "collection_method")
            && call.clock_shows(row, named)
            && of_price()
    })
}

pub(super) fn retrieve(call: &mut Call<'_>) -> Answer {
    call.own(Kind::Subscription)
}

pub(super) fn update(call: &mut Call<'_>) -> Answer {
    let subscription = running(call)?;
    let id = text(&subscription, "id");
    let now = call.account.now_of(&id_in(&subscription, "customer"), call.now);
    for (place, item) in call.params["items"].as_array().cloned().unwrap_or_default().iter().enumerate() {
        let at = format!("items[{place}]");
        match (item["id"].as_str(), item["deleted"].as_bool()) {
            (Some(item_id), Some(true)) => subscription_items::remove(call, item_id, now)?,
            (Some(item_id), _) => subscription_items::change(call, item_id, item, &at, now)?,
            (None, _) => {
                let wanted = Wanted::of(call, item, &at)?;
                subscription_items::add(call, &id, &wanted, now)?;
            }
        }
    }
    let subscription = call.change(Kind::Subscription, |row, params| {
        copy(row, params, &["description"]);
        merge_metadata(&mut row["metadata"], &params["metadata"]);
        set_cancel(row, params, now);
        for (name, value) in params["cancellation_details"].as_object().into_iter().flatten() {
            row["cancellation_details"][name] = value.clone();
        }
    })?;
    call.account.emit("customer.subscription.updated", &subscription, now);
    Ok(subscription)
}

fn running(call: &Call<'_>) -> Answer {
    let subscription = call.own(Kind::Subscription)?;
    if subscription["status"] == "canceled" {
        return Err(ApiError::missing(Kind::Subscription.noun(), &call.path_id(), "id").status(404));
    }
    Ok(subscription)
}

/// At once. Usage since the last invoice is billed only with `invoice_now`.
pub(super) fn cancel(call: &mut Call<'_>) -> Answer {
    let subscription = running(call)?;
    let id = text(&subscription, "id");
    let customer = id_in(&subscription, "customer");
    let now = call.account.now_of(&customer, call.now);
    let metered = call.account.metered_spans(&id, now);
    if let Some(row) = call.account.table(Kind::Subscription).get_mut(&id) {
        row["cancellation_details"]["reason"] = "cancellation_requested".into();
        for (name, value) in call.params["cancellation_details"].as_object().into_iter().flatten() {
            row["cancellation_details"][name] = value.clone();
        }
        row["canceled_at"] = now.into();
    }
    call.account.end_subscription(&id, now);
    if call.params["invoice_now"] == true && !metered.is_empty() {
        let draft = Draft {
            customer,
            subscription: Some(id.clone()),
            reason: "subscription_cycle",
            currency: text(&subscription, "currency"),
            at: now,
            period: (subscription["__period_start"].as_i64().unwrap_or(now), now),
            metered,
            fixed: Vec::new(),
            auto_advance: true,
        };
        let seen_until = call.now - call.settings.aggregation_lag_seconds;
        call.account.invoice_open_draft(draft, call.settings, seen_until);
    }
    call.own(Kind::Subscription)
}
