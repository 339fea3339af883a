use serde_json::{Value, json};

use super::list::id_in;
use super::{Answer, Call, merge_metadata};
use crate::clock::Interval;
use crate::error::ApiError;
use crate::state::billing::interval_of;
use crate::state::invoices::Span;
use crate::state::{Kind, new_id, text};

/// An item as asked for, with what its price says.
pub(super) struct Wanted {
    pub(super) price: String,
    pub(super) currency: String,
    pub(super) interval: Interval,
    pub(super) interval_name: String,
    quantity: Option<i64>,
    metadata: Value,
}

impl Wanted {
    pub(super) fn of(call: &Call<'_>, given: &Value, at: &str) -> Result<Self, ApiError> {
        const HONOURED: [&str; 10] = [
            "price",
            "quantity",
            "metadata",
            "id",
            "deleted",
            "subscription",
            "proration_behavior",
            "payment_behavior",
            "clear_usage",
            "expand",
        ];
        let inner = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}[{name}]") };
        if let Some(other) = given
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
            .find(|name| !HONOURED.contains(&name.as_str()))
        {
            let text = format!("The sandbox does not implement {}.", inner(other));
            return Err(ApiError::invalid(text)
                .code("sandbox_not_implemented")
                .param(inner(other))
                .unstored());
        }
        let price_id = given["price"].as_str().filter(|id| !id.is_empty());
        let price_id = price_id.ok_or_else(|| {
            ApiError::invalid("Missing required param: price.")
                .code("parameter_missing")
                .param(inner("price"))
        })?;
        let price = call.account.find(Kind::Price, price_id, &inner("price"))?;
        if price["active"] != true {
            return Err(ApiError::invalid(
                "The price specified is inactive. This field only accepts active prices.",
            )
            .param(inner("price")));
        }
        let recurring = &price["recurring"];
        let interval_name = text(recurring, "interval");
        let interval = Interval::parse(&interval_name, recurring["interval_count"].as_i64().unwrap_or(1)).ok_or_else(|| {
            ApiError::invalid("The price specified is set to `type=one_time` but this field only accepts prices with `type=recurring`.")
                .param(inner("price"))
        })?;
        let metered = recurring["usage_type"] == "metered";
        let quantity = given["quantity"].as_i64();
        if metered && quantity.is_some() {
            let text = format!(
                "Quantity should not be specified where usage_type is `metered`. Remove quantity from `{at}`"
            );
            return Err(ApiError::invalid(text).param(inner("quantity")));
        }
        if quantity.is_some_and(|quantity| quantity < 0) {
            return Err(ApiError::invalid("This value must be greater than or equal to 0.")
                .code("parameter_invalid_integer")
                .param(inner("quantity")));
        }
        let mut metadata = json!({});
        merge_metadata(&mut metadata, &given["metadata"]);
        Ok(Self {
            price: price_id.to_owned(),
            currency: text(price, "currency"),
            interval,
            interval_name,
            quantity: if metered { None } else { quantity.or(Some(1)) },
            metadata,
        })
    }
}

pub(super) fn insert(
    call: &mut Call<'_>,
    subscription: &str,
    wanted: &Wanted,
    start: i64,
    end: i64,
) -> Value {
    let mut item = json!({
        "id": new_id("si"), "object": "subscription_item", "billing_thresholds": null, "created": start, "current_period_end": end,
        "current_period_start": start, "current_trial": null, "discounts": [], "metadata": wanted.metadata, "price": wanted.price,
        "subscription": subscription, "tax_rates": [],
    });
    if let Some(quantity) = wanted.quantity {
        item["quantity"] = quantity.into();
    }
    call.account.insert(Kind::SubscriptionItem, item)
}

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    let subscription = call.text("subscription").unwrap_or_default();
    let row = call.account.find(Kind::Subscription, &subscription, "subscription")?;
    let now = call.account.now_of(&id_in(row, "customer"), call.now);
    let wanted = Wanted::of(call, &call.params, "")?;
    add(call, &subscription, &wanted, now)
}

/// Counts from now.
pub(super) fn add(call: &mut Call<'_>, subscription: &str, wanted: &Wanted, now: i64) -> Answer {
    let row = call.account.find(Kind::Subscription, subscription, "subscription")?.clone();
    if row["status"] != "active" {
        return Err(
            ApiError::invalid("Items can only be added to a running subscription.").param("subscription")
        );
    }
    if interval_of(&row) != Some(wanted.interval) || row["currency"] != wanted.currency.as_str() {
        return Err(ApiError::invalid(
            "All items of a subscription need the same currency and the same billing interval.",
        )
        .param("price"));
    }
    if call.account.items_of(subscription).iter().any(|item| item["price"] == wanted.price.as_str()) {
        return Err(
            ApiError::invalid("Cannot add multiple subscription items with the same price.").param("price")
        );
    }
    let end = row["__period_end"].as_i64().unwrap_or(now);
    let item = insert(call, subscription, wanted, now, end);
    tell(call, subscription, now);
    Ok(item)
}

fn tell(call: &mut Call<'_>, subscription: &str, now: i64) {
    if let Some(row) = call.account.get(Kind::Subscription, subscription).cloned() {
        call.account.emit("customer.subscription.updated", &row, now);
    }
}

pub(super) fn list(call: &mut Call<'_>) -> Answer {
    let subscription = call.text("subscription").unwrap_or_default();
    call.account.find(Kind::Subscription, &subscription, "subscription")?;
    call.list(Kind::SubscriptionItem, "/v1/subscription_items", |row| {
        row["subscription"] == subscription.as_str()
    })
}

pub(super) fn retrieve(call: &mut Call<'_>) -> Answer {
    call.own(Kind::SubscriptionItem)
}

pub(super) fn update(call: &mut Call<'_>) -> Answer {
    let item = call.own(Kind::SubscriptionItem)?;
    let subscription = text(&item, "subscription");
    let now = now_of(call, &subscription);
    let params = call.params.clone();
    change(call, &text(&item, "id"), &params, "", now)?;
    tell(call, &subscription, now);
    call.own(Kind::SubscriptionItem)
}

fn now_of(call: &Call<'_>, subscription: &str) -> i64 {
    let customer = call
        .account
        .get(Kind::Subscription, subscription)
        .map(|row| id_in(row, "customer"))
        .unwrap_or_default();
    call.account.now_of(&customer, call.now)
}

/// Another price counts from now. What was used until now is billed at the old one in flexible mode, and lost in classic.
pub(super) fn change(
    call: &mut Call<'_>,
    id: &str,
    given: &Value,
    at: &str,
    now: i64,
) -> Result<(), ApiError> {
    let item = call.account.find(Kind::SubscriptionItem, id, "id")?.clone();
    let mut full = given.clone();
    if full["price"].is_null() {
        full["price"] = item["price"].clone();
    }
    let wanted = Wanted::of(call, &full, at)?;
    let repriced = item["price"] != wanted.price.as_str();
    if repriced && call.account.is_metered(&item) {
        settle_usage(call, &item, now)?;
    }
    if let Some(row) = call.account.table(Kind::SubscriptionItem).get_mut(id) {
        merge_metadata(&mut row["metadata"], &given["metadata"]);
        if repriced {
            row["price"] = wanted.price.clone().into();
            row["__usage_from"] = now.into();
        }
        match (wanted.quantity, given["quantity"].as_i64()) {
            (Some(_), Some(quantity)) => row["quantity"] = quantity.into(),
            (Some(quantity), None) if row["quantity"].is_null() => row["quantity"] = quantity.into(),
            (None, _) => {
                if let Some(members) = row.as_object_mut() {
                    members.remove("quantity");
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Usage of an item that ends or changes its price: an invoice item for each line, waiting for the next invoice.
fn settle_usage(call: &mut Call<'_>, item: &Value, now: i64) -> Result<(), ApiError> {
    let subscription =
        call.account.find(Kind::Subscription, &text(item, "subscription"), "subscription")?.clone();
    if subscription["billing_mode"]["type"] != "flexible" || call.params["proration_behavior"] == "none" {
        return Ok(());
    }
    let customer = id_in(&subscription, "customer");
    let from = item["__usage_from"].as_i64().or_else(|| item["current_period_start"].as_i64()).unwrap_or(now);
    let span = Span { item: text(item, "id"), price: text(item, "price"), start: from, end: now };
    let seen_until = call.now - call.settings.aggregation_lag_seconds;
    for line in call.account.metered_lines(&customer, &span, call.settings, seen_until)? {
        let waiting = json!({
            "id": new_id("ii"), "object": "invoiceitem", "amount": line["amount"], "currency": line["currency"], "customer": customer,
            "customer_account": null, "date": now, "description": line["description"], "discountable": true, "discounts": [], "invoice": null,
            "livemode": call.account.livemode, "metadata": {},
            "parent": { "type": "subscription_details",
                "subscription_details": { "subscription": subscription["id"], "subscription_item": item["id"] } },
            "period": line["period"], "pricing": line["pricing"], "proration": false, "quantity": line["quantity"],
            "quantity_decimal": line["quantity_decimal"], "tax_rates": [], "test_clock": subscription["test_clock"],
        });
        let waiting = call.account.insert(Kind::InvoiceItem, waiting);
        call.account.emit("invoiceitem.created", &waiting, now);
    }
    Ok(())
}

pub(super) fn delete(call: &mut Call<'_>) -> Answer {
    let item = call.own(Kind::SubscriptionItem)?;
    let subscription = text(&item, "subscription");
    let now = now_of(call, &subscription);
    remove(call, &text(&item, "id"), now)?;
    tell(call, &subscription, now);
    Ok(json!({ "id": item["id"], "object": "subscription_item", "deleted": true }))
}

pub(super) fn remove(call: &mut Call<'_>, id: &str, now: i64) -> Result<(), ApiError> {
    let item = call.account.find(Kind::SubscriptionItem, id, "id")?.clone();
    if call.account.items_of(&text(&item, "subscription")).len() < 2 {
        return Err(ApiError::invalid(
            "A subscription must have at least one active item. Cancel the subscription instead.",
        ));
    }
    if call.account.is_metered(&item) {
        settle_usage(call, &item, now)?;
    }
    call.account.table(Kind::SubscriptionItem).remove(id);
    Ok(())
}
