//! From a stored object to the answer: lists filled in, expansions followed, own members dropped.

use serde_json::{Map, Value, json};

use super::{Account, Kind, text};

/// Lines and items that an object shows of its own; the rest is behind its list's address.
const EMBEDDED_MAX: usize = 10;

pub(crate) fn render(account: &Account, object: &Value) -> Value {
    with_expansions(account, object, &[])
}

/// `expansions` are paths such as `data.items.data.price.tiers`.
pub(crate) fn with_expansions(account: &Account, object: &Value, expansions: &[String]) -> Value {
    let mut out = filled(account, object);
    for path in expansions {
        let path: Vec<&str> = path.split('.').collect();
        expand(account, &mut out, &path);
    }
    strip(&mut out);
    out
}

/// With the parts that are kept elsewhere.
fn filled(account: &Account, object: &Value) -> Value {
    match object {
        // An event shows its object as it was then; of what was deleted nothing is left to fill in.
        Value::Object(map)
            if map.get("object").is_some_and(|kind| kind == "event") || map.contains_key("deleted") =>
        {
            object.clone()
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| filled(account, item)).collect()),
        Value::Object(map) => {
            let mut out: Map<String, Value> = map
                .iter()
                .map(|(name, value)| {
                    (
                        name.clone(),
                        if name.starts_with("__") { value.clone() } else { filled(account, value) },
                    )
                })
                .collect();
            match object["object"].as_str() {
                Some("subscription") => {
                    let id = text(object, "id");
                    let items = account
                        .rows(Kind::SubscriptionItem)
                        .filter(|item| item["subscription"] == id.as_str());
                    let items: Vec<Value> = items.map(|item| filled(account, item)).collect();
                    out.insert(
                        "items".into(),
                        json!({ "object": "list", "data": items, "has_more": false,
                            "url": format!("/v1/subscription_items?subscription={id}") }),
                    );
                }
                Some("subscription_item") => {
                    if let Some(price) = object["price"].as_str().and_then(|id| account.get(Kind::Price, id))
                    {
                        out.insert("plan".into(), plan(price));
                        out.insert("price".into(), price.clone());
                    }
                }
                Some("invoice") => {
                    let lines = object["__lines"].as_array().map(Vec::as_slice).unwrap_or_default();
                    let shown: Vec<Value> = lines.iter().take(EMBEDDED_MAX).cloned().collect();
                    out.insert(
                        "lines".into(),
                        json!({ "object": "list", "data": shown, "has_more": lines.len() > EMBEDDED_MAX,
                            "url": format!("/v1/invoices/{}/lines", text(object, "id")) }),
                    );
                }
                _ => {}
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}

fn expand(account: &Account, node: &mut Value, path: &[&str]) {
    let Some((head, rest)) = path.split_first() else { return };
    match node {
        Value::Array(items) => {
            for item in items {
                expand(account, item, path);
            }
        }
        Value::Object(map) => {
            if *head == "tiers"
                && let Some(tiers) = map.get("__tiers").filter(|tiers| tiers.is_array()).cloned()
            {
                map.insert("tiers".into(), tiers);
                return;
            }
            let Some(child) = map.get_mut(*head) else { return };
            if let Some(target) = child.as_str().and_then(|id| target(account, head, id)) {
                *child = filled(account, target);
            }
            expand(account, child, rest);
        }
        _ => {}
    }
}

fn target<'a>(account: &'a Account, member: &str, id: &str) -> Option<&'a Value> {
    let kind = match member {
        "customer" => Kind::Customer,
        "product" => Kind::Product,
        "price" | "default_price" => Kind::Price,
        "latest_invoice" | "invoice" => Kind::Invoice,
        "subscription" => Kind::Subscription,
        "test_clock" => Kind::TestClock,
        _ => return None,
    };
    account.get(kind, id)
}

fn strip(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Object(map) => {
            map.retain(|name, _| !name.starts_with("__"));
            map.values_mut().for_each(strip);
        }
        _ => {}
    }
}

/// The older shape of a price, which subscription items still carry.
fn plan(price: &Value) -> Value {
    let recurring = &price["recurring"];
    json!({
        "id": price["id"], "object": "plan", "active": price["active"], "amount": price["unit_amount"],
        "amount_decimal": price["unit_amount_decimal"], "billing_scheme": price["billing_scheme"], "created": price["created"],
        "currency": price["currency"], "interval": recurring["interval"], "interval_count": recurring["interval_count"],
        "livemode": price["livemode"], "metadata": price["metadata"], "meter": recurring["meter"], "nickname": price["nickname"],
        "product": price["product"], "tiers_mode": price["tiers_mode"], "transform_usage": price["transform_quantity"],
        "trial_period_days": recurring["trial_period_days"], "usage_type": recurring["usage_type"],
    })
}
