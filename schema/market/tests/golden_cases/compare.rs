//! Comparison of expected and derived values, by the conventions of the worked cases.

use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::Value;

fn places(key: &str) -> u32 {
    let ratio = ["pe_ratio", "beta", "chowder_number"].contains(&key);
    match key {
        "market_cap" => 2,
        _ if ratio || key.ends_with("_pct") => 4,
        _ => 6,
    }
}

/// True if a derived value matches the expected value after rounding, up to `tolerance`. A derived object may have
/// additional fields, and a derived list of flags additional flags.
pub(crate) fn matches(key: &str, expected: &Value, found: &Value, tolerance: &str) -> bool {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => expected.iter().all(|(name, value)| {
            found.get(name).is_some_and(|found| matches(child(key, name), value, found, tolerance))
        }),
        (Value::Array(expected), Value::Array(found)) if key == "flags" => {
            expected.iter().all(|flag| found.contains(flag))
        }
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected
                    .iter()
                    .zip(found)
                    .all(|(expected, found)| matches(key, expected, found, tolerance))
        }
        // For zero payments per year, a case has 0 and the metrics have null.
        (Value::Number(zero), Value::Null) if key == "payments_per_year" => zero.as_i64() == Some(0),
        _ => match (number(expected), number(found)) {
            (Some(expected), Some(found)) => {
                let round = |value: Decimal| {
                    value.round_dp_with_strategy(places(key), RoundingStrategy::MidpointAwayFromZero)
                };
                let tolerance: Decimal = tolerance.parse().expect("a tolerance");
                (round(expected) - round(found)).abs() <= tolerance
            }
            _ => expected == found,
        },
    }
}

/// Key that [`places`] gets for a field: its name, or the object's `key` if the name is a date or a year.
fn child<'a>(key: &'a str, name: &'a str) -> &'a str {
    if name.starts_with(|c: char| c.is_ascii_digit()) { key } else { name }
}

fn number(value: &Value) -> Option<Decimal> {
    match value {
        Value::String(text) if !text.contains(':') => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}
