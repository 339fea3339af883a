//! What people and programs read: tables and figures as text, or one JSON document.

use serde_json::Value;

/// Prints an answer: as it is for programs, as a table or a list of members for people.
#[expect(clippy::print_stdout, reason = "this is the command's voice")]
pub(crate) fn answer(json: bool, body: &Value, columns: &[&str]) {
    if json {
        println!("{body}");
        return;
    }
    match body.get("data").and_then(Value::as_array) {
        Some(rows) if rows.is_empty() => println!("none"),
        Some(rows) => print!("{}", table(rows, columns)),
        None => print!("{}", members(body)),
    }
    if let Some(next) = body.get("next").and_then(Value::as_str) {
        println!("… more after {next}");
    }
}

/// Prints a line of text.
#[expect(clippy::print_stdout, reason = "this is the command's voice")]
pub(crate) fn line(text: &str) {
    println!("{text}");
}

/// Says how far long work is, where a person looks on.
#[expect(clippy::print_stderr, reason = "progress goes beside the result, so that the result can be piped")]
pub(crate) fn progress(text: &str) {
    eprintln!("· {text}");
}

/// Digits in groups of three: 1_234_567 as `1,234,567`.
pub(crate) fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn table(rows: &[Value], columns: &[&str]) -> String {
    let mut cells: Vec<Vec<String>> = vec![columns.iter().map(|c| c.replace('_', " ")).collect()];
    cells.extend(rows.iter().map(|row| columns.iter().map(|c| cell(&row[*c])).collect()));
    let widths: Vec<usize> = (0..columns.len())
        .map(|i| cells.iter().map(|row| row[i].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in cells {
        let line: Vec<String> = row.iter().zip(&widths).map(|(c, w)| format!("{c:<w$}")).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn members(body: &Value) -> String {
    let Some(object) = body.as_object() else { return format!("{}\n", cell(body)) };
    let width = object.keys().map(|k| k.chars().count()).max().unwrap_or(0);
    object
        .iter()
        .map(|(key, value)| {
            let value = if value.is_object() || value.is_array() && value.to_string().len() > 80 {
                serde_json::to_string_pretty(value).unwrap_or_default().replace('\n', "\n    ")
            } else {
                cell(value)
            };
            format!("{:<width$}  {value}\n", key.replace('_', " "))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn digits_are_grouped_from_the_right() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn columns_line_up_and_absent_members_show_as_a_dash() {
        let rows = [json!({"id": "a", "tokens": "10"}), json!({"id": "long-one", "tokens": null})];
        assert_eq!(table(&rows, &["id", "tokens"]), "id        tokens\na         10\nlong-one  –\n");
    }
}
