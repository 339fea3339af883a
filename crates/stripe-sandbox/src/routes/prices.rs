use serde_json::{Value, json};

use super::{Answer, Call, copy, merge_metadata, products};
use crate::clock::Interval;
use crate::decimal::Decimal;
use crate::error::ApiError;
use crate::state::{Kind, new_id, text};

pub(super) const WRITES: &[&str] = &[
    "active",
    "billing_scheme",
    "currency",
    "lookup_key",
    "metadata",
    "nickname",
    "product",
    "product_data",
    "recurring",
    "tax_behavior",
    "tiers",
    "tiers_mode",
    "transform_quantity",
    "unit_amount",
    "unit_amount_decimal",
];
const DECIMALS_MAX: u32 = 12;

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    let currency = call.text("currency").unwrap_or_default().to_lowercase();
    if currency.len() != 3 || !currency.bytes().all(|b| b.is_ascii_lowercase()) {
        return Err(ApiError::invalid(format!("Invalid currency: {currency}.")).param("currency"));
    }
    let recurring = recurring(call)?;
    let tiered = call.params["billing_scheme"] == "tiered";
    let (unit_amount, tiers) = if tiered {
        (None, tiers(call)?)
    } else {
        if call.params.get("tiers").is_some() || call.params.get("tiers_mode").is_some() {
            return Err(
                ApiError::invalid("`tiers` requires `billing_scheme` to be set to `tiered`.").param("tiers")
            );
        }
        let unit = amount(&call.params, "unit_amount", DECIMALS_MAX)?;
        let unit = unit.ok_or_else(|| {
            ApiError::invalid("You must set `unit_amount` or `unit_amount_decimal`.").param("unit_amount")
        })?;
        if unit.is_negative() {
            return Err(ApiError::invalid("Invalid non-negative integer")
                .code("parameter_invalid_integer")
                .param("unit_amount"));
        }
        (Some(unit), Value::Null)
    };
    let transform = transform(call, tiered)?;
    let product = match (call.text("product"), call.params["product_data"].clone()) {
        (Some(id), Value::Null) => text(call.account.find(Kind::Product, &id, "product")?, "id"),
        (None, data @ Value::Object(_)) => text(&products::build(call, &data)?, "id"),
        _ => {
            return Err(
                ApiError::invalid("You must specify either `product` or `product_data`.").param("product")
            );
        }
    };
    let kind = if recurring.is_null() { "one_time" } else { "recurring" };
    let mut price = json!({
        "id": new_id("price"), "object": "price", "active": true, "billing_scheme": if tiered { "tiered" } else { "per_unit" },
        "created": call.now, "currency": currency, "custom_unit_amount": null, "livemode": call.account.livemode, "lookup_key": null,
        "metadata": call.metadata(), "nickname": null, "product": product, "recurring": recurring, "tax_behavior": "unspecified",
        "tiers_mode": call.text("tiers_mode"), "transform_quantity": transform, "type": kind,
        "unit_amount": whole(unit_amount.as_ref()), "unit_amount_decimal": unit_amount.map(|unit| unit.to_string()), "__tiers": tiers,
    });
    copy(&mut price, &call.params, &["active", "lookup_key", "nickname", "tax_behavior"]);
    let price = call.account.insert(Kind::Price, price);
    call.account.emit("price.created", &price, call.now);
    Ok(price)
}

fn recurring(call: &Call<'_>) -> Answer {
    let given = &call.params["recurring"];
    if given.is_null() {
        return Ok(Value::Null);
    }
    let interval = text(given, "interval");
    let count = given["interval_count"].as_i64().unwrap_or(1);
    Interval::parse(&interval, count).ok_or_else(|| {
        ApiError::invalid(format!("Invalid interval count: {count}.")).param("recurring[interval_count]")
    })?;
    let metered = given["usage_type"] == "metered";
    let meter = given["meter"].as_str();
    match (metered, meter) {
        (true, None) => {
            return Err(ApiError::invalid(
                "Metered prices must be backed by a meter: pass `recurring[meter]`.",
            )
            .param("recurring[meter]"));
        }
        (false, Some(_)) => {
            return Err(ApiError::invalid(
                "`recurring[meter]` is only allowed where `recurring[usage_type]` is `metered`.",
            )
            .param("recurring[meter]"));
        }
        _ => {}
    }
    if let Some(id) = meter {
        let meter = call.account.find(Kind::Meter, id, "recurring[meter]")?;
        if meter["status"] != "active" {
            return Err(ApiError::invalid(format!(
                "The meter {id} is inactive: a price needs an active one."
            ))
            .param("recurring[meter]"));
        }
    }
    Ok(json!({
        "interval": interval, "interval_count": count, "meter": meter, "trial_period_days": given["trial_period_days"],
        "usage_type": if metered { "metered" } else { "licensed" },
    }))
}

fn transform(call: &Call<'_>, tiered: bool) -> Answer {
    let given = &call.params["transform_quantity"];
    if given.is_null() {
        return Ok(Value::Null);
    }
    if tiered {
        return Err(ApiError::invalid("`transform_quantity` cannot be combined with `tiers`.")
            .param("transform_quantity"));
    }
    if given["divide_by"].as_i64().is_none_or(|divide_by| divide_by < 1) {
        return Err(ApiError::invalid("This value must be greater than or equal to 1.")
            .param("transform_quantity[divide_by]"));
    }
    Ok(given.clone())
}

fn tiers(call: &Call<'_>) -> Answer {
    let refused = |text: &str| Err(ApiError::invalid(text).param("tiers"));
    if call.text("tiers_mode").is_none() {
        return Err(ApiError::invalid("`tiers_mode` is required where `billing_scheme` is `tiered`.")
            .param("tiers_mode"));
    }
    if call.params.get("unit_amount").is_some() || call.params.get("unit_amount_decimal").is_some() {
        return refused("`unit_amount` cannot be combined with `tiers`.");
    }
    let given = call.params["tiers"].as_array().cloned().unwrap_or_default();
    let Some((last, before)) = given.split_last() else { return refused("`tiers` is empty.") };
    if last["up_to"] != "inf" || before.iter().any(|tier| tier["up_to"] == "inf") {
        return refused("The last tier, and it alone, has `up_to` set to `inf`.");
    }
    let mut below = 0;
    let mut tiers = Vec::new();
    for tier in &given {
        if let Some(up_to) = tier["up_to"].as_i64() {
            if up_to <= below {
                return refused("`up_to` must grow from tier to tier.");
            }
            below = up_to;
        }
        let unit = amount(tier, "unit_amount", DECIMALS_MAX)?;
        let flat = amount(tier, "flat_amount", 0)?;
        if unit.is_none() && flat.is_none() {
            return refused("Each tier needs `unit_amount` or `flat_amount`.");
        }
        tiers.push(json!({
            "flat_amount": whole(flat.as_ref()), "flat_amount_decimal": flat.map(|flat| flat.to_string()),
            "unit_amount": whole(unit.as_ref()), "unit_amount_decimal": unit.map(|unit| unit.to_string()), "up_to": tier["up_to"].as_i64(),
        }));
    }
    Ok(tiers.into())
}

/// An amount in minor units, given as an integer or as a decimal, not both.
fn amount(given: &Value, name: &str, decimals_max: u32) -> Result<Option<Decimal>, ApiError> {
    let decimal_name = format!("{name}_decimal");
    match (given[name].as_i64(), given[&decimal_name].as_str()) {
        (Some(_), Some(_)) => Err(ApiError::invalid(format!(
            "You may only specify one of these parameters: {name}, {decimal_name}."
        ))
        .param(name)),
        (Some(whole), None) => Ok(Some(Decimal::from_i64(whole))),
        (None, Some(text)) => match Decimal::parse(text) {
            Some(decimal) if decimal.decimals() <= decimals_max => Ok(Some(decimal)),
            _ => {
                let text = format!(
                    "Invalid decimal: {text}; must contain at maximum {decimals_max} decimal places."
                );
                Err(ApiError::invalid(text).code("parameter_invalid_decimal").param(decimal_name))
            }
        },
        (None, None) => Ok(None),
    }
}

/// `unit_amount` stands only where the decimal is whole.
fn whole(decimal: Option<&Decimal>) -> Value {
    decimal
        .filter(|decimal| decimal.is_integer())
        .and_then(|decimal| decimal.to_string().parse::<i64>().ok())
        .into()
}

pub(super) fn list(call: &mut Call<'_>) -> Answer {
    let keys = call.params["lookup_keys"].as_array().cloned();
    let recurring = call.params["recurring"].clone();
    call.list(Kind::Price, "/v1/prices", |row| {
        ["active", "currency", "product", "type"].iter().all(|name| call.fits(row, name))
            && keys.as_ref().is_none_or(|keys| keys.contains(&row["lookup_key"]))
            && recurring
                .as_object()
                .into_iter()
                .flatten()
                .all(|(name, wanted)| row["recurring"][name] == *wanted)
    })
}

pub(super) fn retrieve(call: &mut Call<'_>) -> Answer {
    call.own(Kind::Price)
}

pub(super) fn update(call: &mut Call<'_>) -> Answer {
    let price = call.change(Kind::Price, |row, params| {
        copy(row, params, &["active", "lookup_key", "nickname"]);
        merge_metadata(&mut row["metadata"], &params["metadata"]);
    })?;
    call.account.emit("price.updated", &price, call.now);
    Ok(price)
}
