//! Output of the commands, as text or JSON.

use serde_json::Value;
use telemetry::outln;

/// Prints one object, as JSON or as one `name: value` per line.
pub(super) fn print_object(value: &Value, json: bool) {
    if json {
        outln!("{value}");
        return;
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        outln!("{name}: {}", text(value));
    }
}

/// Prints rows, as a JSON array or as columns with a heading.
pub(super) fn print_rows(rows: &[Value], columns: &[&str], json: bool) {
    if json {
        outln!("{}", Value::from(rows.to_vec()));
        return;
    }
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|column| text(&row[*column])).collect()).collect();
    let width = |index: usize| {
        cells.iter().map(|row| row[index].chars().count()).chain([columns[index].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        outln!("{}", padded.join("  ").trim_end());
    };
    line(&mut columns.iter().copied());
    for row in &cells {
        line(&mut row.iter().map(String::as_str));
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
