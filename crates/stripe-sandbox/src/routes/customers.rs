use serde_json::{Value, json};

use super::{Answer, Call, copy, merge_metadata};
use crate::error::ApiError;
use crate::state::{Kind, new_id, text};

pub(super) const WRITES: &[&str] = &[
    "address",
    "balance",
    "business_name",
    "description",
    "email",
    "individual_name",
    "invoice_prefix",
    "metadata",
    "name",
    "phone",
    "preferred_locales",
    "shipping",
    "tax_exempt",
    "test_clock",
];
pub(super) const UPDATES: &[&str] = &[
    "address",
    "balance",
    "business_name",
    "description",
    "email",
    "individual_name",
    "invoice_prefix",
    "metadata",
    "name",
    "phone",
    "preferred_locales",
    "shipping",
    "tax_exempt",
];
const COPIED: &[&str] = &[
    "balance",
    "business_name",
    "description",
    "email",
    "individual_name",
    "invoice_prefix",
    "name",
    "phone",
    "preferred_locales",
    "shipping",
    "tax_exempt",
];
const CUSTOMERS_PER_CLOCK_MAX: usize = 3;

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    let clock = call.text("test_clock");
    let mut created = call.now;
    if let Some(clock) = &clock {
        let clock_row = call.account.find(Kind::TestClock, clock, "test_clock")?;
        created = clock_row["frozen_time"].as_i64().unwrap_or(created);
        let on_clock = call
            .account
            .rows(Kind::Customer)
            .filter(|row| row["test_clock"] == clock.as_str() && row["deleted"] != true);
        if on_clock.count() >= CUSTOMERS_PER_CLOCK_MAX {
            return Err(ApiError::invalid(format!(
                "A test clock can have at most {CUSTOMERS_PER_CLOCK_MAX} customers."
            ))
            .param("test_clock"));
        }
    }
    let mut customer = json!({
        "id": new_id("cus"), "object": "customer", "address": null, "balance": 0, "created": created, "currency": null,
        "default_source": null, "delinquent": false, "description": null, "discount": null, "email": null,
        "invoice_prefix": new_id("x").trim_start_matches("x_").chars().take(8).collect::<String>().to_uppercase(),
        "invoice_settings": { "custom_fields": null, "default_payment_method": null, "footer": null, "rendering_options": null },
        "livemode": call.account.livemode, "metadata": call.metadata(), "name": null, "next_invoice_sequence": 1, "phone": null,
        "preferred_locales": [], "shipping": null, "tax_exempt": "none", "test_clock": clock,
    });
    copy(&mut customer, &call.params, COPIED);
    set_address(&mut customer, &call.params);
    let customer = call.account.insert(Kind::Customer, customer);
    call.account.emit("customer.created", &customer, created);
    Ok(customer)
}

/// Stripe answers with all members of an address.
fn set_address(customer: &mut Value, params: &Value) {
    match params.get("address") {
        None => {}
        Some(Value::Object(given)) => {
            let mut address = json!({ "city": null, "country": null, "line1": null, "line2": null, "postal_code": null, "state": null });
            for (name, value) in given {
                address[name] = value.clone();
            }
            customer["address"] = address;
        }
        Some(_) => customer["address"] = Value::Null,
    }
}

pub(super) fn list(call: &mut Call<'_>) -> Answer {
    call.list(Kind::Customer, "/v1/customers", |row| call.clock_shows(row, false) && call.fits(row, "email"))
}

/// A deleted customer still answers, as what is left of it.
pub(super) fn retrieve(call: &mut Call<'_>) -> Answer {
    match call.account.get(Kind::Customer, &call.path_id()) {
        Some(customer) => Ok(customer.clone()),
        None => call.own(Kind::Customer),
    }
}

pub(super) fn update(call: &mut Call<'_>) -> Answer {
    let customer = call.change(Kind::Customer, |row, params| {
        copy(row, params, COPIED);
        set_address(row, params);
        merge_metadata(&mut row["metadata"], &params["metadata"]);
    })?;
    let at = call.account.now_of(&text(&customer, "id"), call.now);
    call.account.emit("customer.updated", &customer, at);
    Ok(customer)
}

pub(super) fn delete(call: &mut Call<'_>) -> Answer {
    let customer = call.own(Kind::Customer)?;
    let at = call.account.now_of(&text(&customer, "id"), call.now);
    delete_customer(call, &text(&customer, "id"), at);
    call.account.emit("customer.deleted", &customer, at);
    Ok(json!({ "id": customer["id"], "object": "customer", "deleted": true }))
}

/// Its subscriptions end at once; what it used since the last invoice is lost, as at Stripe.
pub(super) fn delete_customer(call: &mut Call<'_>, id: &str, at: i64) {
    let running = call
        .account
        .rows(Kind::Subscription)
        .filter(|row| row["customer"] == id && row["status"] == "active");
    let running: Vec<String> = running.map(|row| text(row, "id")).collect();
    for subscription in running {
        call.account.end_subscription(&subscription, at);
    }
    call.account.insert(Kind::Customer, json!({ "id": id, "object": "customer", "deleted": true }));
}
