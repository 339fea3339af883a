use serde_json::{Value, json};

use super::list::id_in;
use super::{Answer, Call};
use crate::decimal::Decimal;
use crate::error::ApiError;
use crate::state::{Kind, new_id, text};

pub(super) const WRITES: &[&str] = &[
    "amount",
    "currency",
    "customer",
    "description",
    "discountable",
    "invoice",
    "metadata",
    "period",
    "quantity",
    "subscription",
    "unit_amount_decimal",
];

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    let customer = call.text("customer").unwrap_or_default();
    let customer_row = call.account.find(Kind::Customer, &customer, "customer")?;
    let test_clock = customer_row["test_clock"].clone();
    let default_currency = customer_row["currency"].as_str().unwrap_or("usd").to_owned();
    let now = call.account.now_of(&customer, call.now);
    let quantity = call.params["quantity"].as_i64().unwrap_or(1);
    let (amount, unit) = amount(call, quantity)?;
    if let Some(id) = call.text("subscription") {
        call.account.find(Kind::Subscription, &id, "subscription")?;
    }
    let invoice = call.text("invoice");
    if let Some(id) = &invoice {
        let row = call.account.find(Kind::Invoice, id, "invoice")?;
        if row["status"] != "draft" || row["customer"] != customer.as_str() {
            return Err(ApiError::invalid(
                "Invoice items can only be added to a draft invoice of the same customer.",
            )
            .code("invoice_not_editable")
            .param("invoice"));
        }
    }
    let parent = match call.text("subscription") {
        Some(id) => json!({ "type": "subscription_details", "subscription_details": { "subscription": id } }),
        None => Value::Null,
    };
    let period = if call.params["period"].is_object() {
        call.params["period"].clone()
    } else {
        json!({ "start": now, "end": now })
    };
    let item = json!({
        "id": new_id("ii"), "object": "invoiceitem", "amount": amount, "currency": call.text("currency").unwrap_or(default_currency),
        "customer": customer, "customer_account": null, "date": now, "description": call.text("description"),
        "discountable": call.params["discountable"].as_bool().unwrap_or(amount >= 0), "discounts": [], "invoice": invoice,
        "livemode": call.account.livemode, "metadata": call.metadata(), "parent": parent, "period": period,
        "pricing": { "type": "price_details", "unit_amount_decimal": unit }, "proration": false, "quantity": quantity,
        "quantity_decimal": quantity.to_string(), "tax_rates": [], "test_clock": test_clock,
    });
    let item = call.account.insert(Kind::InvoiceItem, item);
    if let Some(id) = &invoice {
        let line = call.account.line_of_item(&item);
        change_draft(call, id, |fixed| fixed.push(line))?;
    }
    call.account.emit("invoiceitem.created", &item, now);
    Ok(item)
}

fn amount(call: &Call<'_>, quantity: i64) -> Result<(i64, String), ApiError> {
    match (call.params["amount"].as_i64(), call.text("unit_amount_decimal")) {
        (Some(amount), None) => {
            let unit = if quantity == 1 {
                amount.to_string()
            } else {
                amount.checked_div(quantity).unwrap_or(amount).to_string()
            };
            Ok((amount, unit))
        }
        (None, Some(text)) => {
            let unit = Decimal::parse(&text).ok_or_else(|| {
                ApiError::invalid(format!("Invalid decimal: {text}")).param("unit_amount_decimal")
            })?;
            let amount = unit.mul(&Decimal::from_i64(quantity)).round_half_up().to_string().parse::<i64>();
            Ok((
                amount.map_err(|_| ApiError::invalid("The amount is too large.").code("amount_too_large"))?,
                text,
            ))
        }
        _ => Err(ApiError::invalid("You must set `amount` or `unit_amount_decimal`.")
            .code("parameter_missing")
            .param("amount")),
    }
}

/// Changes the fixed lines of a draft and sums it again.
fn change_draft(call: &mut Call<'_>, id: &str, change: impl FnOnce(&mut Vec<Value>)) -> Result<(), ApiError> {
    let mut invoice = call.account.find(Kind::Invoice, id, "invoice")?.clone();
    if let Some(fixed) = invoice["__fixed"].as_array_mut() {
        change(fixed);
    }
    call.account.recompute(&mut invoice, call.settings, call.now - call.settings.aggregation_lag_seconds);
    call.account.insert(Kind::Invoice, invoice);
    Ok(())
}

pub(super) fn list(call: &mut Call<'_>) -> Answer {
    let pending = call.params["pending"].as_bool();
    call.list(Kind::InvoiceItem, "/v1/invoiceitems", |row| {
        call.fits(row, "customer")
            && call.fits(row, "invoice")
            && pending.is_none_or(|pending| row["invoice"].is_null() == pending)
    })
}

pub(super) fn retrieve(call: &mut Call<'_>) -> Answer {
    call.own(Kind::InvoiceItem)
}

pub(super) fn delete(call: &mut Call<'_>) -> Answer {
    let item = call.own(Kind::InvoiceItem)?;
    let id = text(&item, "id");
    if item["invoice"].is_string() {
        let invoice = id_in(&item, "invoice");
        if call.account.find(Kind::Invoice, &invoice, "invoice")?["status"] != "draft" {
            return Err(ApiError::invalid("This invoice item is on a finalized invoice.")
                .code("invoice_not_editable"));
        }
        change_draft(call, &invoice, |fixed| {
            fixed.retain(|line| line["parent"]["invoice_item_details"]["invoice_item"] != id.as_str())
        })?;
    }
    call.account.table(Kind::InvoiceItem).remove(&id);
    Ok(json!({ "id": id, "object": "invoiceitem", "deleted": true }))
}
