//! Rendering of values from API responses. Digits are copied unchanged, and the unit is added. Flags, which mark something
//! unusual in the data, become sentences.

use std::collections::HashMap;
use std::sync::LazyLock;

use chrono::NaiveDate;
use market::row::Flag;
use maud::{Markup, html};
use serde_json::Value;
use utoipa::PartialSchema;

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

/// Renders a date. `date` is the text in the API response, in the form `YYYY-MM-DD`. Any other text becomes a dash.
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

/// Sentence for each flag. The sentences are parsed from the description of `Flag` in the OpenAPI document.
static SENTENCES: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let schema = serde_json::to_value(Flag::schema()).unwrap_or_default();
    let lines =
        str_of(&schema["description"]).lines().filter_map(|line| line.strip_prefix("- `")?.split_once("`:"));
    lines.map(|(flag, sentence)| (flag.to_owned(), sentence.trim().to_owned())).collect()
});

/// Describes a flag in one sentence.
pub(crate) fn describe_flag(flag: &str) -> String {
    if let Some(id) = flag.strip_prefix("cancelled:") {
        return format!("The source withdrew the record {id}.");
    }
    if flag == "cancelled" {
        return "The source withdrew a record.".to_owned();
    }
    SENTENCES.get(flag).cloned().unwrap_or_else(|| humanize(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_a_sentence() {
        for flag in Flag::ALL {
            assert!(
                describe_flag(flag.as_str()).ends_with('.') || describe_flag(flag.as_str()).ends_with(')'),
                "{flag}"
            );
            assert!(describe_flag(flag.as_str()).contains(' '), "{flag}");
        }
    }
}
