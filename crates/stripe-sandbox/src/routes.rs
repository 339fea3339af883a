//! What each operation does. A parameter that Stripe knows and an operation here does not honour is refused, never ignored.

mod customers;
mod events;
mod invoice_items;
mod invoices;
mod list;
mod meter_event_adjustments;
mod meter_events;
mod meters;
mod prices;
mod products;
mod subscription_items;
mod subscriptions;
mod test_clocks;
mod v2;
mod webhook_endpoints;

use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::faults::Settings;
use crate::state::{Account, Kind};

/// One operation at work.
pub(crate) struct Call<'a> {
    pub(crate) account: &'a mut Account,
    pub(crate) settings: &'a Settings,
    /// The sandbox's clock; a customer may live in another time.
    pub(crate) now: i64,
    pub(crate) params: Value,
    /// `{id}` of the path.
    pub(crate) id: Option<String>,
    /// A fault asks that what is taken now be refused later, with this code.
    pub(crate) reject: Option<String>,
}

pub(crate) type Answer = Result<Value, ApiError>;

struct Route {
    name: &'static str,
    /// The parameters that it honours, beside `expand`, `limit` and the cursors.
    reads: &'static [&'static str],
    run: fn(&mut Call<'_>) -> Answer,
}

const fn route(
    name: &'static str,
    reads: &'static [&'static str],
    run: fn(&mut Call<'_>) -> Answer,
) -> Route {
    Route { name, reads, run }
}

#[rustfmt::skip]
static ROUTES: &[Route] = &[
    route("GET /v1/account", &[], account),
    route("POST /v1/customers", customers::WRITES, customers::create),
    route("GET /v1/customers", &["created", "email", "test_clock"], customers::list),
    route("GET /v1/customers/{id}", &[], customers::retrieve),
    route("POST /v1/customers/{id}", customers::UPDATES, customers::update),
    route("DELETE /v1/customers/{id}", &[], customers::delete),
    route("POST /v1/products", products::WRITES, products::create),
    route("GET /v1/products", &["active", "created", "ids"], products::list),
    route("GET /v1/products/{id}", &[], products::retrieve),
    route("POST /v1/products/{id}", products::UPDATES, products::update),
    route("DELETE /v1/products/{id}", &[], products::delete),
    route("POST /v1/prices", prices::WRITES, prices::create),
    route("GET /v1/prices", &["active", "created", "currency", "lookup_keys", "product", "recurring", "type"], prices::list),
    route("GET /v1/prices/{id}", &[], prices::retrieve),
    route("POST /v1/prices/{id}", &["active", "lookup_key", "metadata", "nickname"], prices::update),
    route("POST /v1/billing/meters", &["customer_mapping", "default_aggregation", "display_name", "event_name", "event_time_window", "value_settings"], meters::create),
    route("GET /v1/billing/meters", &["status"], meters::list),
    route("GET /v1/billing/meters/{id}", &[], meters::retrieve),
    route("POST /v1/billing/meters/{id}", &["display_name"], meters::update),
    route("POST /v1/billing/meters/{id}/deactivate", &[], meters::deactivate),
    route("POST /v1/billing/meters/{id}/reactivate", &[], meters::reactivate),
    route("GET /v1/billing/meters/{id}/event_summaries", &["customer", "start_time", "end_time", "value_grouping_window"], meters::event_summaries),
    route("POST /v1/billing/meter_events", &["event_name", "identifier", "payload", "timestamp"], meter_events::create),
    route("POST /v1/billing/meter_event_adjustments", &["cancel", "event_name", "type"], meter_event_adjustments::create),
    route("POST /v1/subscriptions", subscriptions::WRITES, subscriptions::create),
    route("GET /v1/subscriptions", &["collection_method", "created", "customer", "price", "status", "test_clock"], subscriptions::list),
    route("GET /v1/subscriptions/{id}", &[], subscriptions::retrieve),
    route("POST /v1/subscriptions/{id}", subscriptions::UPDATES, subscriptions::update),
    route("DELETE /v1/subscriptions/{id}", &["cancellation_details", "invoice_now", "prorate"], subscriptions::cancel),
    route("POST /v1/subscription_items", &["metadata", "payment_behavior", "price", "proration_behavior", "quantity", "subscription"], subscription_items::create),
    route("GET /v1/subscription_items", &["subscription"], subscription_items::list),
    route("GET /v1/subscription_items/{id}", &[], subscription_items::retrieve),
    route("POST /v1/subscription_items/{id}", &["metadata", "payment_behavior", "price", "proration_behavior", "quantity"], subscription_items::update),
    route("DELETE /v1/subscription_items/{id}", &["clear_usage", "payment_behavior", "proration_behavior"], subscription_items::delete),
    route("POST /v1/invoices", &["auto_advance", "collection_method", "currency", "customer", "description", "metadata", "pending_invoice_items_behavior", "subscription"], invoices::create),
    route("GET /v1/invoices", &["collection_method", "created", "customer", "status", "subscription"], invoices::list),
    route("POST /v1/invoices/create_preview", &["customer", "subscription", "currency", "preview_mode"], invoices::create_preview),
    route("GET /v1/invoices/{id}", &[], invoices::retrieve),
    route("POST /v1/invoices/{id}", &["auto_advance", "automatically_finalizes_at", "description", "footer", "metadata"], invoices::update),
    route("DELETE /v1/invoices/{id}", &[], invoices::delete),
    route("POST /v1/invoices/{id}/finalize", &["auto_advance"], invoices::finalize),
    route("GET /v1/invoices/{id}/lines", &[], invoices::lines),
    route("POST /v1/invoices/{id}/pay", &["off_session", "paid_out_of_band"], invoices::pay),
    route("POST /v1/invoices/{id}/void", &[], invoices::void),
    route("POST /v1/invoiceitems", invoice_items::WRITES, invoice_items::create),
    route("GET /v1/invoiceitems", &["created", "customer", "invoice", "pending"], invoice_items::list),
    route("GET /v1/invoiceitems/{id}", &[], invoice_items::retrieve),
    route("DELETE /v1/invoiceitems/{id}", &[], invoice_items::delete),
    route("POST /v1/test_helpers/test_clocks", &["frozen_time", "name"], test_clocks::create),
    route("GET /v1/test_helpers/test_clocks", &[], test_clocks::list),
    route("GET /v1/test_helpers/test_clocks/{id}", &[], test_clocks::retrieve),
    route("DELETE /v1/test_helpers/test_clocks/{id}", &[], test_clocks::delete),
    route("POST /v1/test_helpers/test_clocks/{id}/advance", &["frozen_time"], test_clocks::advance),
    route("GET /v1/events", &["created", "type", "types"], events::list),
    route("GET /v1/events/{id}", &[], events::retrieve),
    route("POST /v1/webhook_endpoints", &["api_version", "description", "enabled_events", "metadata", "url"], webhook_endpoints::create),
    route("GET /v1/webhook_endpoints", &[], webhook_endpoints::list),
    route("GET /v1/webhook_endpoints/{id}", &[], webhook_endpoints::retrieve),
    route("POST /v1/webhook_endpoints/{id}", &["description", "disabled", "enabled_events", "metadata", "url"], webhook_endpoints::update),
    route("DELETE /v1/webhook_endpoints/{id}", &[], webhook_endpoints::delete),
    route("POST /v2/billing/meter_events", &["event_name", "identifier", "payload", "timestamp"], v2::meter_event),
    route("POST /v2/billing/meter_event_adjustments", &["cancel", "event_name", "type"], v2::adjustment),
    route("POST /v2/billing/meter_event_session", &[], v2::session),
    route("POST /v2/billing/meter_event_stream", &["events"], v2::stream),
    route("GET /v2/core/events/{id}", &[], v2::event),
];

/// Runs the operation of this name.
pub(crate) fn run(name: &str, call: &mut Call<'_>) -> Answer {
    const EVERYWHERE: [&str; 4] = ["expand", "limit", "starting_after", "ending_before"];
    let Some(route) = ROUTES.iter().find(|route| route.name == name) else {
        return Err(ApiError::invalid(format!("The sandbox does not implement {name}."))
            .status(501)
            .unstored());
    };
    for param in call.params.as_object().into_iter().flat_map(Map::keys) {
        if !route.reads.contains(&param.as_str()) && !EVERYWHERE.contains(&param.as_str()) {
            let text = format!(
                "The sandbox does not implement the parameter {param} of {name}; it is refused so that no test relies on it."
            );
            return Err(ApiError::invalid(text).code("sandbox_not_implemented").param(param).unstored());
        }
    }
    (route.run)(call)
}

fn account(call: &mut Call<'_>) -> Answer {
    Ok(json!({
        "id": call.account.id, "object": "account", "business_type": null, "charges_enabled": true, "country": "US",
        "default_currency": "usd", "details_submitted": true, "email": null, "payouts_enabled": true, "type": "standard",
    }))
}

impl Call<'_> {
    /// A text parameter; empty counts as absent.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.params[name].as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned)
    }

    pub(crate) fn path_id(&self) -> String {
        self.id.clone().unwrap_or_default()
    }

    /// The object of the path; 404 when there is none.
    pub(crate) fn own(&self, kind: Kind) -> Result<Value, ApiError> {
        self.account.find(kind, &self.path_id(), "id").cloned().map_err(|error| error.status(404))
    }

    /// Changes the object of the path and hands it back as it then is.
    pub(crate) fn change(&mut self, kind: Kind, change: impl FnOnce(&mut Value, &Value)) -> Answer {
        let id = self.path_id();
        let params = self.params.clone();
        let row = self.account.find_mut(kind, &id, "id").map_err(|error| error.status(404))?;
        change(row, &params);
        Ok(row.clone())
    }

    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({});
        merge_metadata(&mut metadata, &self.params["metadata"]);
        metadata
    }
}

/// An empty value drops its key, an empty `metadata` drops all.
pub(crate) fn merge_metadata(metadata: &mut Value, given: &Value) {
    if *given == "" {
        *metadata = json!({});
        return;
    }
    if !metadata.is_object() {
        *metadata = json!({});
    }
    let (Some(metadata), Some(given)) = (metadata.as_object_mut(), given.as_object()) else { return };
    for (key, value) in given {
        match value.as_str() {
            Some("") => drop(metadata.remove(key)),
            Some(text) => drop(metadata.insert(key.clone(), text.into())),
            None => drop(metadata.insert(key.clone(), value.to_string().into())),
        }
    }
}

/// Members that are named among the parameters, as they came; empty text becomes null.
pub(crate) fn copy(row: &mut Value, params: &Value, names: &[&str]) {
    for name in names {
        if let Some(value) = params.get(name) {
            row[*name] = if *value == "" { Value::Null } else { value.clone() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Api;

    #[test]
    fn each_operation_of_the_file_has_its_work_and_no_other() {
        let mut described: Vec<&str> = Api::get().names().collect();
        let mut done: Vec<&str> = ROUTES.iter().map(|route| route.name).collect();
        described.sort_unstable();
        done.sort_unstable();
        assert!(described.len() > 50, "the file was read");
        assert_eq!(described, done);
    }

    #[test]
    fn each_parameter_that_is_honoured_is_in_the_file() {
        for route in ROUTES {
            let (method, path) = route.name.split_once(' ').unwrap_or_default();
            let (operation, _) = Api::get()
                .find(method, &path.replace("{id}", "x"))
                .unwrap_or_else(|| panic!("{}", route.name));
            for param in route.reads {
                assert!(operation.params["properties"].get(param).is_some(), "{}: {param}", route.name);
            }
        }
    }
}
