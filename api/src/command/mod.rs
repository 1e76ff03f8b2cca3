//! Commands of the operator: `api account …`, `api key …`, `api usage`, `api audit` and `api maintenance …`.
//!
//! Functions that the commands share: parsing of times, and output as text or JSON.
//!
//! The commands connect as the owner of the database.

mod accounts;
pub mod cli;
mod keys;
mod maintenance;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use telemetry::outln;
use telemetry::table::{Column, ListArgs, Table};

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

/// Prints each member of an object that has another value than before: `tier: free -> starter`.
pub(super) fn print_changes(before: &Value, after: &Value) {
    let members = after.as_object().into_iter().flatten();
    let changed: Vec<_> = members.filter(|(name, value)| before[name.as_str()] != **value).collect();
    for (name, value) in &changed {
        outln!("{name}: {} -> {}", text(&before[name.as_str()]), text(value));
    }
    if changed.is_empty() {
        outln!("nothing changed");
    }
}

/// Texts that [`print_rows`] prints.
#[derive(Debug)]
pub(super) struct RowList<'a> {
    /// Singular and plural noun for the rows, for example `account` and `accounts`.
    pub(super) nouns: [&'static str; 2],
    /// Columns of the table, each with the name of a JSON field and a header.
    pub(super) columns: &'a [(&'static str, &'static str)],
    /// Sentence that is printed for an empty list.
    pub(super) empty: &'a str,
}

/// Prints rows as a JSON array or as a table.
pub(super) fn print_rows<T: Serialize>(rows: &[T], list: &RowList<'_>, output: &ListArgs) {
    let rows: Vec<Value> = rows.iter().map(|row| json!(row)).collect();
    if output.json {
        outln!("{}", Value::from(rows[..rows.len().min(output.max_rows())].to_vec()));
        return;
    }
    let columns: Vec<Column> = list
        .columns
        .iter()
        .map(|(field, header)| match rows.iter().any(|row| row[*field].is_number()) {
            true => Column::Number(header),
            false => Column::Text(header),
        })
        .collect();
    let mut table = Table::new(list.nouns, &columns, output.max_rows());
    for row in &rows {
        table.add_row(list.columns.iter().map(|(field, _)| text(&row[*field])));
    }
    table.print(list.empty);
}

/// Value as text. Times are in UTC, to the minute.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => DateTime::parse_from_rfc3339(text)
            .map_or_else(|_| text.clone(), |time| time.to_utc().format("%Y-%m-%d %H:%M").to_string()),
        Value::Object(members) => {
            let known = members.iter().filter(|(_, value)| !value.is_null());
            let members: Vec<String> = known
                .map(|(name, value)| match value.is_object() {
                    true => format!("{name} ({})", text(value)),
                    false => format!("{name} {}", text(value)),
                })
                .collect();
            members.join(", ")
        }
        other => other.to_string(),
    }
}

/// Parses a command-line time: an RFC 3339 time, or a day. A day means the end of the day in UTC.
pub(super) fn parse_instant(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Ok(instant.to_utc());
    }
    let day: chrono::NaiveDate =
        text.parse().map_err(|_| "must be a day (YYYY-MM-DD) or an RFC 3339 time".to_owned())?;
    let next = day.succ_opt().and_then(|next| next.and_hms_opt(0, 0, 0)).ok_or("is out of range")?;
    Ok(next.and_utc())
}
