//! The OpenAPI file as a judge of answers.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

static FILE: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../openapi/stripe-billing.json")).expect("the OpenAPI file is JSON")
});
static COMPONENTS: LazyLock<Value> = LazyLock::new(|| converted(&FILE["components"]));

/// Fails with every place where the answer is not what the operation's schema says.
pub(crate) fn check(method: &str, path: &str, status: u16, answer: &Value) {
    if path.starts_with("/_sandbox") || path == "/v1/account" {
        return;
    }
    let responses = operation(method, path).map(|operation| &operation["responses"]);
    let response = match (responses, status) {
        (Some(responses), 200) => &responses["200"],
        (Some(responses), _) => &responses["default"],
        // An unknown route still answers with an error of the first version's shape.
        (None, _) => &FILE["paths"]["/v1/customers"]["post"]["responses"]["default"],
    };
    let mut schema = converted(&response["content"]["application/json"]["schema"]);
    schema["components"] = COMPONENTS.clone();
    let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
    let faults: Vec<String> = validator
        .iter_errors(answer)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .take(10)
        .collect();
    assert!(
        faults.is_empty(),
        "{method} {path} answered {status} outside its schema:\n{}\n{answer:#}",
        faults.join("\n")
    );
}

fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let method = method.to_lowercase();
    let fits = |template: &str| {
        let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
        template.len() == path.len() && template.iter().zip(&path).all(|(t, p)| t == p || *t == "{id}")
    };
    let paths = FILE["paths"].as_object().expect("paths");
    // A literal path before one with an id.
    let exact = paths.get(path).and_then(|methods| methods.get(&method));
    exact.or_else(|| {
        paths.iter().filter(|(template, _)| fits(template)).find_map(|(_, methods)| methods.get(&method))
    })
}

/// OpenAPI 3.0 as JSON Schema: `nullable` becomes a null among the types, and an object that lists its members has no others,
/// so that a misspelt one is found.
fn converted(node: &Value) -> Value {
    match node {
        Value::Array(items) => Value::Array(items.iter().map(converted).collect()),
        Value::Object(map) => {
            let mut out = Map::new();
            for (name, value) in map {
                let value = match (name.as_str(), value) {
                    ("nullable" | "format", _) => continue,
                    ("properties", Value::Object(members)) => Value::Object(
                        members.iter().map(|(name, schema)| (name.clone(), converted(schema))).collect(),
                    ),
                    ("enum" | "required", value) => value.clone(),
                    (_, value) => converted(value),
                };
                out.insert(name.clone(), value);
            }
            if out.contains_key("properties") && !out.contains_key("additionalProperties") {
                out.insert("additionalProperties".into(), json!(false));
            }
            if map.get("nullable") == Some(&json!(true)) {
                if let Some(Value::String(name)) = out.get("type").cloned() {
                    out.insert("type".into(), json!([name, "null"]));
                }
                if let Some(Value::Array(values)) = out.get_mut("enum")
                    && !values.contains(&Value::Null)
                {
                    values.push(Value::Null);
                }
                if let Some(Value::Array(choices)) = out.get_mut("anyOf") {
                    choices.push(json!({ "type": "null" }));
                }
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}

#[test]
fn the_judge_finds_a_missing_member_a_wrong_type_and_a_misspelt_one() {
    let meter = json!({ "object": "billing.meter_event", "created": 1, "event_name": "e", "identifier": "i", "livemode": false,
        "payload": { "value": "1" }, "timestamp": 1 });
    check("POST", "/v1/billing/meter_events", 200, &meter);
    for (member, value) in [
        ("timestamp", json!("1")),
        ("payload", json!({ "value": 1 })),
        ("time_stamp", json!(1)),
        ("created", Value::Null),
    ] {
        let mut wrong = meter.clone();
        wrong[member] = value;
        let judged = std::panic::catch_unwind(|| check("POST", "/v1/billing/meter_events", 200, &wrong));
        assert!(judged.is_err(), "{member} passed");
    }
}
