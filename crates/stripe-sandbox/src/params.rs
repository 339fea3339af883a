//! What a request says: form, query or JSON into one tree, then held against the operation's schema.
//!
//! Brackets may come literal or percent-encoded. Nothing that the schema does not name passes.

use serde_json::{Map, Value};

use crate::error::ApiError;

const DEPTH_MAX: usize = 10;

/// `a[b][0]=x&a[b][1]=y` as a tree. Lists are objects with number keys until the schema says that they are lists.
pub(crate) fn form_tree(text: &str) -> Result<Value, ApiError> {
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(text)
        .map_err(|_| ApiError::invalid("Invalid request: the parameters are not form-encoded.").unstored())?;
    let mut root = Map::new();
    for (key, value) in pairs {
        let path = key_path(&key)?;
        insert(&mut root, &path, value, &key)?;
    }
    Ok(Value::Object(root))
}

fn key_path(key: &str) -> Result<Vec<String>, ApiError> {
    let bad = || ApiError::invalid(format!("Invalid parameter name: {key}")).param(key).unstored();
    let (head, mut rest) = match key.find('[') {
        Some(at) => key.split_at(at),
        None => (key, ""),
    };
    let mut path = vec![head.to_owned()];
    while !rest.is_empty() {
        let inner = rest.strip_prefix('[').ok_or_else(bad)?;
        let (part, after) = inner.split_once(']').ok_or_else(bad)?;
        path.push(part.to_owned());
        rest = after;
    }
    if path.len() > DEPTH_MAX { Err(bad()) } else { Ok(path) }
}

fn insert(map: &mut Map<String, Value>, path: &[String], value: String, key: &str) -> Result<(), ApiError> {
    let clash = || {
        ApiError::invalid(format!("Invalid parameter: {key} is given twice, as a value and as an object."))
            .param(key)
            .unstored()
    };
    let Some((head, rest)) = path.split_first() else { return Err(clash()) };
    // `expand[]=a&expand[]=b` numbers itself.
    let head = if head.is_empty() { map.len().to_string() } else { head.clone() };
    if rest.is_empty() {
        map.insert(head, Value::String(value));
        return Ok(());
    }
    let child = map.entry(head).or_insert_with(|| Value::Object(Map::new()));
    insert(child.as_object_mut().ok_or_else(clash)?, rest, value, key)
}

/// Two trees of one request, query and body, as one.
pub(crate) fn merged(query: Value, body: Value) -> Value {
    match (query, body) {
        (Value::Object(mut query), Value::Object(body)) => {
            query.extend(body);
            Value::Object(query)
        }
        (_, body) => body,
    }
}

/// The tree with the types that the schema gives, or the refusal of its first fault.
pub(crate) fn checked(schema: &Value, tree: &Value) -> Result<Value, ApiError> {
    coerce(schema, tree, "").map_err(ApiError::unstored)
}

fn coerce(schema: &Value, tree: &Value, at: &str) -> Result<Value, ApiError> {
    if let Some(choices) = schema["anyOf"].as_array() {
        return any_of(choices, tree, at);
    }
    let value = match schema["type"].as_str() {
        Some("object") => object(schema, tree, at)?,
        Some("array") => array(schema, tree, at)?,
        Some("integer") => integer(tree, at)?,
        Some("boolean") => boolean(tree, at)?,
        Some("number") => match tree {
            Value::Number(_) => tree.clone(),
            _ => tree
                .as_str()
                .and_then(|text| text.parse::<f64>().ok())
                .and_then(serde_json::Number::from_f64)
                .map(Value::Number)
                .ok_or_else(|| wrong("Invalid decimal", tree, at))?,
        },
        Some("string") => string(schema, tree, at)?,
        _ => tree.clone(),
    };
    bounds(schema, &value, at)?;
    Ok(value)
}

/// The first choice that fits; the refusal is that of the choice of the tree's own shape.
fn any_of(choices: &[Value], tree: &Value, at: &str) -> Result<Value, ApiError> {
    let mut refusal = None;
    for choice in choices {
        match coerce(choice, tree, at) {
            Ok(value) => return Ok(value),
            Err(error) => {
                let same_shape = matches!(
                    (choice["type"].as_str(), tree),
                    (Some("object" | "array"), Value::Object(_) | Value::Array(_))
                        | (Some("integer"), Value::String(_))
                );
                if refusal.is_none() || same_shape {
                    refusal = Some(error);
                }
            }
        }
    }
    Err(refusal.unwrap_or_else(|| wrong("Invalid value", tree, at)))
}

fn object(schema: &Value, tree: &Value, at: &str) -> Result<Value, ApiError> {
    let Value::Object(given) = tree else { return Err(wrong("Invalid object", tree, at)) };
    let properties = schema["properties"].as_object();
    let mut out = Map::new();
    for (name, value) in given {
        let here = place(at, name);
        let of_name = properties.and_then(|properties| properties.get(name));
        let value = match (of_name, &schema["additionalProperties"]) {
            (Some(of_name), _) => coerce(of_name, value, &here)?,
            (None, more @ Value::Object(_)) => coerce(more, value, &here)?,
            (None, Value::Bool(true)) => value.clone(),
            (None, Value::Null) if properties.is_none() => value.clone(),
            (None, _) => {
                return Err(ApiError::invalid(format!("Received unknown parameter: {here}"))
                    .code("parameter_unknown")
                    .param(here));
            }
        };
        out.insert(name.clone(), value);
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !out.contains_key(name) {
            let here = place(at, name);
            return Err(ApiError::invalid(format!("Missing required param: {here}."))
                .code("parameter_missing")
                .param(here));
        }
    }
    Ok(Value::Object(out))
}

fn array(schema: &Value, tree: &Value, at: &str) -> Result<Value, ApiError> {
    let items: Vec<&Value> = match tree {
        Value::Array(items) => items.iter().collect(),
        Value::Object(map) => {
            let mut numbered = Vec::new();
            for (key, value) in map {
                numbered.push((key.parse::<u32>().map_err(|_| wrong("Invalid array", tree, at))?, value));
            }
            numbered.sort_by_key(|(number, _)| *number);
            numbered.into_iter().map(|(_, value)| value).collect()
        }
        _ => return Err(wrong("Invalid array", tree, at)),
    };
    if schema["maxItems"].as_u64().is_some_and(|max| items.len() as u64 > max) {
        return Err(wrong("Array above its maximum length", &Value::from(items.len()), at));
    }
    if schema["minItems"].as_u64().is_some_and(|min| (items.len() as u64) < min) {
        return Err(wrong("Array below its minimum length", &Value::from(items.len()), at));
    }
    let checked = items
        .iter()
        .enumerate()
        .map(|(index, item)| coerce(&schema["items"], item, &place(at, &index.to_string())));
    Ok(Value::Array(checked.collect::<Result<_, _>>()?))
}

fn integer(tree: &Value, at: &str) -> Result<Value, ApiError> {
    let parsed = match tree {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse::<i64>().ok(),
        _ => None,
    };
    parsed
        .map(Value::from)
        .ok_or_else(|| wrong("Invalid integer", tree, at).code("parameter_invalid_integer"))
}

fn boolean(tree: &Value, at: &str) -> Result<Value, ApiError> {
    match (tree, tree.as_str()) {
        (Value::Bool(_), _) => Ok(tree.clone()),
        (_, Some("true" | "1")) => Ok(Value::Bool(true)),
        (_, Some("false" | "0")) => Ok(Value::Bool(false)),
        _ => Err(wrong("Invalid boolean", tree, at)),
    }
}

fn string(schema: &Value, tree: &Value, at: &str) -> Result<Value, ApiError> {
    let Value::String(text) = tree else { return Err(wrong("Invalid string", tree, at)) };
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(tree)
    {
        let names: Vec<&str> =
            allowed.iter().filter_map(Value::as_str).filter(|name| !name.is_empty()).collect();
        return Err(ApiError::invalid(format!("Invalid {at}: must be one of {}", names.join(", "))).param(at));
    }
    if let Some(max) = schema["maxLength"].as_u64()
        && text.chars().count() as u64 > max
    {
        return Err(
            ApiError::invalid(format!("Invalid string: {at} must be at most {max} characters")).param(at)
        );
    }
    Ok(tree.clone())
}

fn bounds(schema: &Value, value: &Value, at: &str) -> Result<(), ApiError> {
    let Some(number) = value.as_i64() else { return Ok(()) };
    let below = schema["minimum"].as_i64().filter(|minimum| number < *minimum);
    let above = schema["maximum"].as_i64().filter(|maximum| number > *maximum);
    let text = match (below, above) {
        (Some(minimum), _) => format!("This value must be greater than or equal to {minimum}."),
        (_, Some(maximum)) => format!("This value must be less than or equal to {maximum}."),
        _ => return Ok(()),
    };
    Err(ApiError::invalid(text).code("parameter_invalid_integer").param(at))
}

fn wrong(what: &str, tree: &Value, at: &str) -> ApiError {
    let shown = tree.as_str().map_or_else(|| tree.to_string(), ToOwned::to_owned);
    ApiError::invalid(format!("{what}: {shown}")).param(at)
}

fn place(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}[{name}]") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed parse is the failure")]
    use serde_json::json;

    use super::*;

    #[test]
    fn brackets_come_literal_or_encoded() {
        let literal = form_tree("payload[value]=1&expand[]=a&expand[]=b&items[0][price]=p").unwrap();
        let encoded =
            form_tree("payload%5Bvalue%5D=1&expand%5B%5D=a&expand%5B%5D=b&items%5B0%5D%5Bprice%5D=p")
                .unwrap();
        assert_eq!(literal, encoded);
        assert_eq!(
            literal,
            json!({"payload": {"value": "1"}, "expand": {"0": "a", "1": "b"}, "items": {"0": {"price": "p"}}})
        );
    }

    #[test]
    fn odd_names_are_refused() {
        for text in ["a[b=1", "a[b]c=1", "a=1&a[b]=2", "a[1][2][3][4][5][6][7][8][9][10]=x"] {
            assert!(form_tree(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_refusal_names_the_parameter() {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["n"],
            "properties": {"n": {"type": "integer", "maximum": 100}, "o": {"type": "object", "properties": {}, "additionalProperties": false}}});
        for (tree, code, param) in [
            (json!({}), Some("parameter_missing"), "n"),
            (json!({"n": "1", "x": "1"}), Some("parameter_unknown"), "x"),
            (json!({"n": "1", "o": {"y": "1"}}), Some("parameter_unknown"), "o[y]"),
            (json!({"n": "one"}), Some("parameter_invalid_integer"), "n"),
            (json!({"n": "101"}), Some("parameter_invalid_integer"), "n"),
        ] {
            let error = checked(&schema, &tree).unwrap_err();
            assert_eq!((error.code.as_deref(), error.param.as_deref()), (code, Some(param)), "{tree}");
            assert!(!error.stored);
        }
    }
}
