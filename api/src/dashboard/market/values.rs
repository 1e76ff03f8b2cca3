//! Rendering of values from API responses. Numbers are rounded for readers, and the exact value is in the element. Flags,
//! which mark something unusual in the data, become sentences.

use std::collections::HashMap;
use std::sync::LazyLock;

use chrono::NaiveDate;
use market::reference::{Country, Exchange};
use market::row::Flag;
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;
use utoipa::PartialSchema;

use crate::dashboard::view::{format_amount, format_decimal, format_large};

/// Unit of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit<'a> {
    /// Percent, with two decimal places.
    Percent,
    /// Amount in a currency, or in the currency of its column if the text is empty. It has two decimal places.
    Money(&'a str),
    /// Amount a share in a currency, with up to [`SHARE_PLACES`] decimal places.
    PerShare(&'a str),
    /// Large amount in a currency, like [`Unit::Money`], for example a market value: two decimal places and T, B or M.
    Large(&'a str),
    /// Ratio, with two decimal places.
    Ratio,
    Years,
    /// Number without a unit, or a word.
    Plain,
    Date,
}

/// Maximum number of decimal places of an amount a share, and of a number without a unit.
const SHARE_PLACES: u32 = 4;

impl Unit<'_> {
    /// Rounds a number for readers.
    fn format(self, number: Decimal) -> String {
        match self {
            Unit::Percent | Unit::Ratio => format_decimal(number, 2, 2),
            Unit::Money(_) => format_amount(number, 2),
            Unit::PerShare(_) => format_amount(number, SHARE_PLACES),
            Unit::Large(_) => format_large(number),
            Unit::Years | Unit::Plain | Unit::Date => format_decimal(number, 0, SHARE_PLACES),
        }
    }

    /// Text that follows the number `digits`.
    fn suffix(self, digits: &str) -> String {
        match self {
            Unit::Percent => "%".to_owned(),
            Unit::Money("") | Unit::PerShare("") | Unit::Large("") => String::new(),
            Unit::Money(currency) | Unit::PerShare(currency) | Unit::Large(currency) => {
                format!(" {currency}")
            }
            Unit::Years if digits == "1" => " year".to_owned(),
            Unit::Years => " years".to_owned(),
            Unit::Ratio | Unit::Plain | Unit::Date => String::new(),
        }
    }
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

pub(crate) fn decimal_of(value: &Value) -> Option<Decimal> {
    digits(value)?.parse().ok()
}

/// Number as text, rounded and with its unit; `None` for null.
pub(crate) fn format_value(value: &Value, unit: Unit<'_>) -> Option<String> {
    let digits = digits(value)?;
    Some(format!("{}{}", unit.format(digits.parse().ok()?), unit.suffix(&digits)))
}

/// Renders a value with its unit. Null becomes a dash. A rounded number has the exact digits as its tooltip.
pub(crate) fn render_value(value: &Value, unit: Unit<'_>) -> Markup {
    render_described(value, unit, None)
}

/// Renders an amount in the currency that the reader chose. The tooltip has the original amount, and the rate with its
/// source and day. `converted` is null without an exchange rate, and `None` if the reader chose no currency.
pub(crate) fn render_converted<'a>(
    amount: &'a Value,
    currency: &'a str,
    converted: Option<&'a Value>,
    unit: fn(&'a str) -> Unit<'a>,
) -> Markup {
    let original = render_value(amount, unit(currency));
    let Some(converted) = converted.filter(|_| !amount.is_null()) else { return original };
    if converted.is_null() {
        let hint = format!("no exchange rate of {currency} is known");
        return html! { (original) " " span.tag.off title=(hint) { "no rate" } };
    }
    // Without a source, the amount is in the chosen currency, and the rate is 1.
    let Some(source) = converted["rate_source"].as_str() else { return original };
    let (amount, rate) = (digits(amount).unwrap_or_default(), digits(&converted["rate"]).unwrap_or_default());
    let described = format!("{amount} {currency} × {rate} ({source} {})", str_of(&converted["rate_date"]));
    render_described(&converted["amount"], unit(str_of(&converted["currency"])), Some(described))
}

/// Renders a value with its unit. Without a description, a rounded number has its exact digits as tooltip.
fn render_described(value: &Value, unit: Unit<'_>, description: Option<String>) -> Markup {
    let word = match value {
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        value => digits(value),
    };
    let Some(word) = word else { return html! { span.muted { "–" } } };
    if matches!(unit, Unit::Date) {
        return render_date(&word);
    }
    let number: Option<Decimal> = word.parse().ok();
    let shown = number.map_or_else(|| humanize(&word), |number| unit.format(number));
    let title = description.or_else(|| (number.is_some() && shown != word).then(|| word.clone()));
    html! {
        data value=(word) title=[title] { (shown) (padding(unit, &shown)) } (unit.suffix(&word))
    }
}

/// Zeros that align the decimal points of a column of amounts a share. They are invisible.
fn padding(unit: Unit<'_>, shown: &str) -> Markup {
    let places = shown.split_once('.').map_or(0, |(_, places)| places.len());
    let zeros: String = (0..SHARE_PLACES).skip(places).map(|_| '0').collect();
    html! { @if matches!(unit, Unit::PerShare(_)) && !zeros.is_empty() { span.pad aria-hidden="true" { (zeros) } } }
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

/// Name of the exchange with a market identifier code; the code if the exchange is unknown.
pub(crate) fn exchange_name(code: &str) -> &str {
    Exchange::find(code).map_or(code, |exchange| exchange.name)
}

/// Name of the country with an ISO 3166 code; the code if the country is unknown.
pub(crate) fn country_name(code: &str) -> &str {
    Country::find(code).map_or(code, |country| country.name)
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
    fn a_rounded_number_keeps_its_exact_digits() {
        let shown = |digits: &str, unit| render_value(&Value::from(digits), unit).into_string();
        assert_eq!(shown("3.2149", Unit::Percent), "<data value=\"3.2149\" title=\"3.2149\">3.21</data>%");
        assert_eq!(shown("60.50", Unit::Money("USD")), "<data value=\"60.50\">60.50</data> USD");
        assert_eq!(
            shown("0.485", Unit::PerShare("USD")),
            "<data value=\"0.485\">0.485<span class=\"pad\" aria-hidden=\"true\">0</span></data> USD"
        );
        assert_eq!(shown("semi_annual", Unit::Plain), "<data value=\"semi_annual\">semi annual</data>");
        assert_eq!(
            render_value(&Value::from(1), Unit::Years).into_string(),
            "<data value=\"1\">1</data> year"
        );
    }

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
