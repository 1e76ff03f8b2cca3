//! Worked examples of the domain rules: inputs and results of the cases in `schema/market/domain-cases.json`.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::dashboard::view::layout::{Text, stacked_table, to_sentence};

const CASES: &str = include_str!("../../../../schema/market/domain-cases.json");
/// A table with more rows is folded.
const FOLDED: usize = 8;

/// Worked example of a rule.
#[derive(Debug, Deserialize)]
pub(crate) struct WorkedCase {
    id: String,
    pub(crate) rule: String,
    as_of: Option<String>,
    inputs: Map<String, Value>,
    expected: Map<String, Value>,
    /// Reason for the result.
    why: String,
}

impl WorkedCase {
    /// All examples; none if the file is not valid, which a test excludes.
    pub(crate) fn all() -> Vec<Self> {
        let mut file: Value = serde_json::from_str(CASES).unwrap_or_default();
        serde_json::from_value(file["cases"].take()).unwrap_or_default()
    }
}

pub(crate) fn render_case(case: &WorkedCase) -> Markup {
    let lists = ["dividends", "splits", "prices", "exchange_rates"];
    let lists = lists.iter().filter_map(|name| Some((*name, case.inputs.get(*name)?)));
    html! {
        section.panel {
            h3 { (to_sentence(&case.why)) }
            @for (name, rows) in lists { (render_rows(&case.id, name, rows)) }
            dl {
                @if let Some(day) = &case.as_of { div { dt { "as of" } dd { (day) } } }
                @for (name, value) in case.inputs.get("profile").and_then(Value::as_object).into_iter().flatten() {
                    (render_entry(&case.id, name, value))
                }
            }
            h4 { "Result" }
            dl { @for (name, value) in &case.expected { (render_entry(&case.id, name, value)) } }
        }
    }
}

/// Entry of a list of inputs or results. A list of records becomes a table.
fn render_entry(case: &str, name: &str, value: &Value) -> Markup {
    html! {
        div {
            dt { (name.replace('_', " ")) }
            dd { @if value[0].is_object() { (render_rows(case, name, value)) } @else { (plain(value)) } }
        }
    }
}

/// Table of records, with a column for each member.
fn render_rows(case: &str, name: &str, rows: &Value) -> Markup {
    let rows: Vec<&Map<String, Value>> =
        rows.as_array().into_iter().flatten().filter_map(Value::as_object).collect();
    let mut columns: Vec<&str> = vec![];
    for column in rows.iter().flat_map(|row| row.keys()) {
        if !columns.contains(&column.as_str()) {
            columns.push(column);
        }
    }
    let name = name.replace('_', " ");
    let titles: Vec<String> = columns.iter().map(|column| column.replace('_', " ")).collect();
    let headings: Vec<_> = titles.iter().map(|title| Text(title)).collect();
    let table = stacked_table(
        &format!("{name} of example {case}"),
        &headings,
        html! {
            @for row in &rows {
                tr { @for (column, title) in columns.iter().zip(&titles) { td data-label=(title) { (plain(row.get(*column).unwrap_or(&Value::Null))) } } }
            }
        },
    );
    html! {
        @if rows.len() > FOLDED { details { summary { (rows.len()) " " (name) } (table) } }
        @else if !rows.is_empty() { h4 { (name) } (table) }
    }
}

/// Value as text. The items of a list are separated by commas.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name}: {}", plain(value)));
            members.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_shows_its_rows_and_its_result() {
        let cases = WorkedCase::all();
        assert!(cases.len() > 90, "{}", cases.len());
        let case = cases.iter().find(|case| case.id == "R9C").expect("an example of R9");
        let shown = render_case(case).into_string();
        for part in ["The latest raw close, not the adjusted one.", "<dt>dividend yield pct</dt><dd>4</dd>"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
