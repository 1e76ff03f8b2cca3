//! Tests for the unit of prices that a load names (R4): `--currency GBX`, or the constant currency of a map.

use market::event::DividendEvidence;
use market::history::History;
use market::metrics::DerivedRows;
use market::row::Flag;
use serde_json::json;

use crate::figures::{has, text};
use crate::lives::observed;
use crate::tables::{Tables, closes, derived_on};

/// History with a close of 262 and two payments of 0.0525 GBP. `named` is the unit that the load names, and `record` the
/// currency and unit of the reference record.
fn history(named: Option<&str>, record: Option<(&str, Option<&str>)>) -> History {
    let table = Tables {
        dividends: "2023-11-09,0.0525 2024-05-09,0.0525",
        prices: "2024-05-09,262",
        ..Tables::default()
    };
    let mut history = table.history();
    history.dividends.iter_mut().for_each(|row| row.record.currency = "GBP".into());
    history.evidence = named
        .map(|unit| {
            let record = json!({ "symbol": "LIFE", "price_unit": unit });
            observed(1, serde_json::from_value::<DividendEvidence>(record).expect("evidence"))
        })
        .into_iter()
        .collect();
    history.security = record.map(|(currency, unit)| {
        let record = json!({
            "symbol": "LIFE", "name": "Life", "type": "stock", "status": "active", "currency": currency,
            "quote_unit": unit,
        });
        observed(1, serde_json::from_value(record).expect("a security"))
    });
    history
}

fn on(named: Option<&str>, record: Option<(&str, Option<&str>)>) -> (String, String, String) {
    let found: DerivedRows = derived_on("2024-06-28", &history(named, record));
    assert_eq!(has(&found, Flag::CurrencyMismatch), found.metrics.dividend_yield.is_none());
    let close = closes(&found)[0].split(' ').next_back().unwrap_or_default().to_owned();
    (close, found.metrics.price_currency.clone(), text(found.metrics.dividend_yield))
}

fn is(close: &str, currency: &str, dividend_yield: &str) -> (String, String, String) {
    (close.to_owned(), currency.to_owned(), dividend_yield.to_owned())
}

#[test]
fn a_named_unit_is_that_of_the_prices() {
    assert_eq!(on(None, None), is("262", "USD", "-"));
    assert_eq!(on(Some("GBX"), None), is("2.62", "GBP", "4.0076"));
    assert_eq!(on(Some("GBP"), None), is("262", "GBP", "0.0401"));
}

#[test]
fn a_named_unit_of_the_same_currency_replaces_that_of_the_reference_record() {
    let pence = Some(("GBP", Some("GBX")));
    assert_eq!(on(None, pence), is("2.62", "GBP", "4.0076"));
    assert_eq!(on(Some("GBX"), pence), is("2.62", "GBP", "4.0076"));
    assert_eq!(on(Some("GBP"), pence), is("262", "GBP", "0.0401"));
    assert_eq!(on(Some("GBX"), Some(("GBP", None))), is("2.62", "GBP", "4.0076"));
    // The currency is always that of the reference record.
    assert_eq!(on(Some("GBX"), Some(("USD", None))), is("262", "USD", "-"));
    assert_eq!(on(Some("USD"), pence), is("2.62", "GBP", "4.0076"));
}

#[test]
fn a_unit_belongs_to_its_source() {
    let mut history = history(Some("GBX"), Some(("GBP", None)));
    history.evidence[0].source = "b".into();
    let found = derived_on("2024-06-28", &history);
    assert_eq!(closes(&found), ["2024-05-09 262"]);
}
