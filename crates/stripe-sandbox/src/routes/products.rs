use serde_json::{Value, json};

use super::{Answer, Call, copy, merge_metadata};
use crate::error::ApiError;
use crate::state::{Kind, new_id, text};

pub(super) const WRITES: &[&str] = &[
    "active",
    "description",
    "id",
    "images",
    "metadata",
    "name",
    "shippable",
    "statement_descriptor",
    "tax_code",
    "unit_label",
    "url",
];
pub(super) const UPDATES: &[&str] = &[
    "active",
    "default_price",
    "description",
    "images",
    "metadata",
    "name",
    "shippable",
    "statement_descriptor",
    "tax_code",
    "unit_label",
    "url",
];
const COPIED: &[&str] = &[
    "active",
    "default_price",
    "description",
    "images",
    "name",
    "shippable",
    "statement_descriptor",
    "tax_code",
    "unit_label",
    "url",
];

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    let params = call.params.clone();
    let product = build(call, &params)?;
    call.account.emit("product.created", &product, call.now);
    Ok(product)
}

/// Also the `product_data` of a price.
pub(super) fn build(call: &mut Call<'_>, params: &Value) -> Answer {
    let id = params["id"].as_str().map_or_else(|| new_id("prod"), ToOwned::to_owned);
    if call.account.get(Kind::Product, &id).is_some() {
        return Err(ApiError::invalid(format!("Product already exists: {id}."))
            .code("resource_already_exists")
            .param("id"));
    }
    let mut metadata = json!({});
    merge_metadata(&mut metadata, &params["metadata"]);
    let mut product = json!({
        "id": id, "object": "product", "active": true, "created": call.now, "default_price": null, "description": null, "images": [],
        "livemode": call.account.livemode, "marketing_features": [], "metadata": metadata, "name": "", "package_dimensions": null,
        "shippable": null, "statement_descriptor": null, "tax_code": null, "tax_details": null, "type": "service", "unit_label": null,
        "updated": call.now, "url": null,
    });
    copy(&mut product, params, COPIED);
    Ok(call.account.insert(Kind::Product, product))
}

pub(super) fn list(call: &mut Call<'_>) -> Answer {
    let ids = call.params["ids"].as_array().cloned();
    call.list(Kind::Product, "/v1/products", |row| {
        call.fits(row, "active") && ids.as_ref().is_none_or(|ids| ids.contains(&row["id"]))
    })
}

pub(super) fn retrieve(call: &mut Call<'_>) -> Answer {
    call.own(Kind::Product)
}

pub(super) fn update(call: &mut Call<'_>) -> Answer {
    if let Some(price) = call.text("default_price") {
        call.account.find(Kind::Price, &price, "default_price")?;
    }
    let now = call.now;
    call.change(Kind::Product, |row, params| {
        copy(row, params, COPIED);
        merge_metadata(&mut row["metadata"], &params["metadata"]);
        row["updated"] = now.into();
    })
}

pub(super) fn delete(call: &mut Call<'_>) -> Answer {
    let product = call.own(Kind::Product)?;
    let id = text(&product, "id");
    if call.account.rows(Kind::Price).any(|price| price["product"] == id.as_str()) {
        return Err(ApiError::invalid(
            "This product cannot be deleted because it has one or more user-created prices.",
        ));
    }
    call.account.table(Kind::Product).remove(&id);
    Ok(json!({ "id": id, "object": "product", "deleted": true }))
}
