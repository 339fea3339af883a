//! The operations that the sandbox answers, read from the OpenAPI file that its answers are tested against: one table for routes and parameters.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

static FILE: LazyLock<Api> = LazyLock::new(|| {
    // The file is part of the binary; a test reads it.
    let file = serde_json::from_str(include_str!("../openapi/stripe-billing.json")).unwrap_or(Value::Null);
    Api::of(&file)
});

pub(crate) struct Api {
    operations: Vec<Operation>,
}

pub(crate) struct Operation {
    /// `POST /v1/customers/{id}`
    pub(crate) name: String,
    method: String,
    segments: Vec<String>,
    /// Query and body as one object schema, the path's id apart.
    pub(crate) params: Value,
}

impl Api {
    pub(crate) fn get() -> &'static Self {
        &FILE
    }

    fn of(file: &Value) -> Self {
        let mut operations = Vec::new();
        for (path, methods) in file["paths"].as_object().into_iter().flatten() {
            for (method, operation) in methods.as_object().into_iter().flatten() {
                operations.push(Operation::of(path, method, operation));
            }
        }
        // Bound to a platform by its account: the reduced file lacks the one route that names it.
        operations.push(Operation::of("/v1/account", "get", &json!({ "parameters": [] })));
        // `create_preview` before `{id}`.
        operations
            .sort_by_key(|operation| operation.segments.iter().filter(|segment| *segment == "{id}").count());
        Self { operations }
    }

    pub(crate) fn find(&self, method: &str, path: &str) -> Option<(&Operation, Option<String>)> {
        self.operations.iter().find_map(|operation| operation.matches(method, path).map(|id| (operation, id)))
    }

    #[cfg(test)]
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.operations.iter().map(|operation| operation.name.as_str())
    }
}

impl Operation {
    fn of(path: &str, method: &str, operation: &Value) -> Self {
        let method = method.to_uppercase();
        let mut properties = Map::new();
        let mut required = Vec::new();
        for parameter in operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "query")
        {
            let name = parameter["name"].as_str().unwrap_or_default().to_owned();
            if parameter["required"] == true {
                required.push(Value::from(name.clone()));
            }
            properties.insert(name, parameter["schema"].clone());
        }
        let content = &operation["requestBody"]["content"];
        let json_body = content["application/json"].is_object();
        let body = if json_body {
            &content["application/json"]["schema"]
        } else {
            &content["application/x-www-form-urlencoded"]["schema"]
        };
        for (name, schema) in body["properties"].as_object().into_iter().flatten() {
            properties.insert(name.clone(), schema.clone());
        }
        required.extend(body["required"].as_array().into_iter().flatten().cloned());
        Self {
            name: format!("{method} {path}"),
            method,
            segments: path.split('/').map(ToOwned::to_owned).collect(),
            params: json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false }),
        }
    }

    fn matches(&self, method: &str, path: &str) -> Option<Option<String>> {
        let given: Vec<&str> = path.split('/').collect();
        if self.method != method || given.len() != self.segments.len() {
            return None;
        }
        let mut id = None;
        for (segment, given) in self.segments.iter().zip(given) {
            if segment == "{id}" {
                if given.is_empty() {
                    return None;
                }
                id = Some(given.to_owned());
            } else if segment != given {
                return None;
            }
        }
        Some(id)
    }
}
