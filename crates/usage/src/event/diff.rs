use serde::Serialize;
use serde_json::Value;

use crate::{Timestamp, TurnReport};

/// One place where two reports of the same turn differ. Null stands for what one of them does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub pointer: String,
    pub first: Value,
    pub second: Value,
}

const MAX_DIFFERENCES: usize = 50;

/// Where two reports differ in what the report hash is over: at most 50 places, in the order of the document. Origin, consents
/// and legs are not looked at, and two spellings of one instant are equal.
pub fn report_diff(first: &TurnReport, second: &TurnReport) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(&comparable(first), &comparable(second), &mut String::new(), &mut found);
    found
}

fn comparable(report: &TurnReport) -> Value {
    let mut usage = serde_json::to_value(&report.report).unwrap_or(Value::Null);
    if let (Ok(as_of), Some(member)) =
        (Timestamp::parse_rfc3339(&report.report.as_of), usage.get_mut("as_of"))
    {
        *member = Value::String(as_of.to_string());
    }
    serde_json::json!({
        "customer_id": report.customer_id,
        "request_id": report.request_id,
        "turn_id": report.turn_id,
        "report": usage,
    })
}

fn walk(first: &Value, second: &Value, pointer: &mut String, found: &mut Vec<Difference>) {
    if first == second || found.len() >= MAX_DIFFERENCES {
        return;
    }
    let length = pointer.len();
    match (first, second) {
        (Value::Object(one), Value::Object(other)) => {
            let later = other.keys().filter(|key| !one.contains_key(*key));
            for key in one.keys().chain(later) {
                pointer.push('/');
                pointer.push_str(key); // names of our own members: nothing to escape
                walk(
                    one.get(key).unwrap_or(&Value::Null),
                    other.get(key).unwrap_or(&Value::Null),
                    pointer,
                    found,
                );
                pointer.truncate(length);
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            for at in 0..one.len().max(other.len()) {
                pointer.push_str(&format!("/{at}"));
                walk(
                    one.get(at).unwrap_or(&Value::Null),
                    other.get(at).unwrap_or(&Value::Null),
                    pointer,
                    found,
                );
                pointer.truncate(length);
            }
        }
        _ => {
            found.push(Difference { pointer: pointer.clone(), first: first.clone(), second: second.clone() })
        }
    }
}
