use serde_json::{Value, json};

use super::list::id_in;
use super::{Answer, Call, copy, merge_metadata};
use crate::error::ApiError;
use crate::state::invoices::Draft;
use crate::state::{Kind, text};

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    let subscription = call.text("subscription");
    let customer = match (&call.text("customer"), &subscription) {
        (Some(customer), _) => customer.clone(),
        (None, Some(id)) => id_in(call.account.find(Kind::Subscription, id, "subscription")?, "customer"),
        (None, None) => {
            return Err(ApiError::invalid("Missing required param: customer.")
                .code("parameter_missing")
                .param("customer")
                .unstored());
        }
    };
    let row = call.account.find(Kind::Customer, &customer, "customer")?;
    let currency = call
        .text("currency")
        .or_else(|| row["currency"].as_str().map(ToOwned::to_owned))
        .unwrap_or_else(|| "usd".to_owned());
    let now = call.account.now_of(&customer, call.now);
    let draft = Draft {
        customer: customer.clone(),
        subscription,
        reason: "manual",
        currency,
        at: now,
        period: (now, now),
        metered: Vec::new(),
        fixed: Vec::new(),
        auto_advance: call.params["auto_advance"].as_bool().unwrap_or(false),
    };
    let seen_until = seen_until(call);
    let id = if call.params["pending_invoice_items_behavior"] == "include" || draft.subscription.is_some() {
        call.account.invoice_open_draft(draft, call.settings, seen_until)
    } else {
        let invoice = call.account.invoice_drafted(&draft, call.settings, seen_until);
        let invoice = call.account.insert(Kind::Invoice, invoice);
        call.account.emit("invoice.created", &invoice, now);
        text(&invoice, "id")
    };
    let metadata = call.metadata();
    let params = call.params.clone();
    let invoice = call.account.find_mut(Kind::Invoice, &id, "id")?;
    copy(invoice, &params, &["collection_method", "description"]);
    invoice["metadata"] = metadata;
    Ok(invoice.clone())
}

fn seen_until(call: &Call<'_>) -> i64 {
    call.now - call.settings.aggregation_lag_seconds
}

/// What the period would cost if it ended now. Nothing is stored.
pub(super) fn create_preview(call: &mut Call<'_>) -> Answer {
    let customer = call.text("customer");
    let subscription = match call.text("subscription") {
        Some(id) => call.account.find(Kind::Subscription, &id, "subscription")?.clone(),
        None => {
            let running =
                |row: &&Value| row["status"] == "active" && Some(id_in(row, "customer")) == customer;
            call.account.rows(Kind::Subscription).find(running).cloned().ok_or_else(no_upcoming)?
        }
    };
    if subscription["status"] != "active" {
        return Err(no_upcoming());
    }
    let id = text(&subscription, "id");
    let end = subscription["__period_end"].as_i64().unwrap_or(call.now);
    let draft = Draft {
        customer: id_in(&subscription, "customer"),
        subscription: Some(id.clone()),
        reason: "upcoming",
        currency: text(&subscription, "currency"),
        at: end,
        period: (subscription["__period_start"].as_i64().unwrap_or(end), end),
        metered: call.account.metered_spans(&id, end),
        fixed: Vec::new(),
        auto_advance: true,
    };
    let mut invoice = call.account.invoice_drafted(&draft, call.settings, seen_until(call));
    invoice["id"] = format!("upcoming_{}", text(&invoice, "id")).into();
    Ok(invoice)
}

fn no_upcoming() -> ApiError {
    ApiError::invalid("No upcoming invoices for customer").code("invoice_upcoming_none").status(404)
}

pub(super) fn list(call: &mut Call<'_>) -> Answer {
    let subscription = call.text("subscription");
    let shown =
        !call.settings.hide_clocked_invoices || call.text("customer").is_some() || subscription.is_some();
    call.list(Kind::Invoice, "/v1/invoices", |row| {
        let of_subscription = || {
            let of = row["parent"]["subscription_details"]["subscription"].as_str();
            subscription.as_deref().is_none_or(|wanted| of == Some(wanted))
        };
        ["customer", "status", "collection_method"].iter().all(|name| call.fits(row, name))
            && call.clock_shows(row, shown)
            && of_subscription()
    })
}

pub(super) fn retrieve(call: &mut Call<'_>) -> Answer {
    call.own(Kind::Invoice)
}

pub(super) fn update(call: &mut Call<'_>) -> Answer {
    let invoice = call.own(Kind::Invoice)?;
    let draft = invoice["status"] == "draft";
    let now = call.account.now_of(&id_in(&invoice, "customer"), call.now);
    if !draft {
        let fixed = ["automatically_finalizes_at", "description", "footer"]
            .into_iter()
            .find(|name| call.params.get(name).is_some());
        if let Some(param) = fixed {
            let text = "Finalized invoices can't be updated in this way.";
            return Err(ApiError::invalid(text).code("invoice_not_editable").param(param));
        }
    }
    let grace = call.settings.grace_seconds;
    let invoice = call.change(Kind::Invoice, |row, params| {
        copy(row, params, &["description", "footer"]);
        merge_metadata(&mut row["metadata"], &params["metadata"]);
        if let Some(auto_advance) = params["auto_advance"].as_bool() {
            row["auto_advance"] = auto_advance.into();
            if draft {
                let created = row["created"].as_i64().unwrap_or(now);
                let at =
                    if auto_advance { created.saturating_add(grace).max(now).into() } else { Value::Null };
                row["automatically_finalizes_at"] = at.clone();
                row["next_payment_attempt"] = at;
            }
        }
        copy(row, params, &["automatically_finalizes_at"]);
    })?;
    call.account.emit("invoice.updated", &invoice, now);
    Ok(invoice)
}

pub(super) fn delete(call: &mut Call<'_>) -> Answer {
    let invoice = call.own(Kind::Invoice)?;
    let id = text(&invoice, "id");
    if invoice["status"] != "draft" {
        return Err(ApiError::invalid("You can only delete draft invoices.").code("invoice_not_editable"));
    }
    if invoice["parent"]["subscription_details"].is_object() && invoice["billing_reason"] != "manual" {
        return Err(ApiError::invalid("You can't delete invoices created by subscriptions.")
            .code("invoice_not_editable"));
    }
    let attached = call.account.rows(Kind::InvoiceItem).filter(|item| item["invoice"] == id.as_str());
    let attached: Vec<String> = attached.map(|item| text(item, "id")).collect();
    for item in attached {
        call.account.table(Kind::InvoiceItem).remove(&item);
    }
    call.account.table(Kind::Invoice).remove(&id);
    Ok(json!({ "id": id, "object": "invoice", "deleted": true }))
}

/// Quantities are those of this instant. Only an invoice that advances by itself is charged.
pub(super) fn finalize(call: &mut Call<'_>) -> Answer {
    let invoice = call.own(Kind::Invoice)?;
    let now = call.account.now_of(&id_in(&invoice, "customer"), call.now);
    let charge = call.params["auto_advance"].as_bool().unwrap_or(invoice["auto_advance"] == true);
    call.account.invoice_finalize(&text(&invoice, "id"), now, call.settings, seen_until(call), charge)
}

pub(super) fn lines(call: &mut Call<'_>) -> Answer {
    let invoice = call.own(Kind::Invoice)?;
    let lines = invoice["__lines"].as_array().cloned().unwrap_or_default();
    call.page(
        "invoice line item",
        &format!("/v1/invoices/{}/lines", text(&invoice, "id")),
        lines.iter().collect(),
    )
}

pub(super) fn pay(call: &mut Call<'_>) -> Answer {
    let invoice = call.own(Kind::Invoice)?;
    let id = text(&invoice, "id");
    let now = call.account.now_of(&id_in(&invoice, "customer"), call.now);
    if invoice["status"] == "draft" {
        return call.account.invoice_finalize(&id, now, call.settings, seen_until(call), true);
    }
    call.account.invoice_pay(&id, now)
}

pub(super) fn void(call: &mut Call<'_>) -> Answer {
    let invoice = call.own(Kind::Invoice)?;
    if invoice["status"] != "open" {
        return Err(ApiError::invalid("You can only void open invoices.").code("invoice_not_editable"));
    }
    let now = call.account.now_of(&id_in(&invoice, "customer"), call.now);
    let invoice = call.change(Kind::Invoice, |row, _| {
        row["status"] = "void".into();
        row["auto_advance"] = false.into();
        row["status_transitions"]["voided_at"] = now.into();
    })?;
    call.account.emit("invoice.voided", &invoice, now);
    Ok(invoice)
}
