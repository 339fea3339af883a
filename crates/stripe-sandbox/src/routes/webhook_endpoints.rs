use serde_json::{Value, json};

use super::{Answer, Call, copy, merge_metadata};
use crate::error::ApiError;
use crate::state::{API_VERSION, Kind, new_id, text};

pub(super) fn create(call: &mut Call<'_>) -> Answer {
    plain_http(call)?;
    let secret = new_id("whsec");
    let endpoint = json!({
        "id": new_id("we"), "object": "webhook_endpoint",
        "api_version": call.text("api_version").unwrap_or_else(|| API_VERSION.to_owned()), "application": null, "created": call.now,
        "description": call.text("description"), "enabled_events": call.params["enabled_events"], "livemode": call.account.livemode,
        "metadata": call.metadata(), "status": "enabled", "url": call.params["url"], "__secret": secret,
    });
    let mut endpoint = call.account.insert(Kind::WebhookEndpoint, endpoint);
    // Said once.
    endpoint["secret"] = secret.into();
    Ok(endpoint)
}

fn plain_http(call: &Call<'_>) -> Result<(), ApiError> {
    match call.text("url") {
        Some(url) if !url.starts_with("http://") => {
            Err(ApiError::invalid("The sandbox delivers over plain http only.")
                .code("url_invalid")
                .param("url"))
        }
        _ => Ok(()),
    }
}

pub(super) fn list(call: &mut Call<'_>) -> Answer {
    call.list(Kind::WebhookEndpoint, "/v1/webhook_endpoints", |_| true)
}

pub(super) fn retrieve(call: &mut Call<'_>) -> Answer {
    call.own(Kind::WebhookEndpoint)
}

pub(super) fn update(call: &mut Call<'_>) -> Answer {
    plain_http(call)?;
    call.change(Kind::WebhookEndpoint, |row, params| {
        copy(row, params, &["description", "enabled_events", "url"]);
        merge_metadata(&mut row["metadata"], &params["metadata"]);
        if let Value::Bool(disabled) = params["disabled"] {
            row["status"] = if disabled { "disabled" } else { "enabled" }.into();
        }
    })
}

pub(super) fn delete(call: &mut Call<'_>) -> Answer {
    let endpoint = call.own(Kind::WebhookEndpoint)?;
    call.account.table(Kind::WebhookEndpoint).remove(&text(&endpoint, "id"));
    Ok(json!({ "id": endpoint["id"], "object": "webhook_endpoint", "deleted": true }))
}
