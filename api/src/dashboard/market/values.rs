//! Rendering of values from API responses. Digits are copied unchanged, and the unit is added.

use chrono::NaiveDate;
use maud::{Markup, html};
use serde_json::Value;

/// Unit of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit<'a> {
    /// Percent.
    Percent,
    /// Amount in a currency.
    Money(&'a str),
    Years,
    /// Number without a unit, or a word.
    Plain,
    Date,
}

/// Text of a JSON string; empty for any other value.
pub(crate) fn str_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Items of a JSON array; empty for any other value.
pub(crate) fn rows_of(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Digits of a number, exactly as in the response; `None` for null. The number is a JSON string if the API was called
/// with `decimals=string`.
pub(crate) fn digits(value: &Value) -> Option<String> {
    match value {
        Value::String(digits) => Some(digits.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Renders a value with its unit. Null becomes a dash.
pub(crate) fn render_value(value: &Value, unit: Unit<'_>) -> Markup {
    let word = match value {
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        value => digits(value),
    };
    let Some(word) = word else { return html! { span.muted { "–" } } };
    html! {
        @match unit {
            Unit::Percent => { data value=(word) { (word) } " %" },
            Unit::Money(currency) => { data value=(word) { (word) } " " (currency) },
            Unit::Years => { data value=(word) { (word) } @if word == "1" { " year" } @else { " years" } },
            Unit::Plain => data value=(word) { (humanize(&word)) },
            Unit::Date => (render_date(&word)),
        }
    }
}

/// Renders a date of the API, `YYYY-MM-DD`.
pub(crate) fn render_date(date: &str) -> Markup {
    match date.parse::<NaiveDate>() {
        Ok(day) => html! { time datetime=(date) { (day.format("%-d %b %Y")) } },
        Err(_) => html! { span.muted { "–" } },
    }
}

/// Replaces the underscores of an enumeration value by spaces.
pub(crate) fn humanize(word: &str) -> String {
    word.replace('_', " ")
}
