//! Builder of test histories. Each dividend is written as one line of text.

use chrono::NaiveDate;
use market::event::Dividend;
use market::history::{History, Observation, SourcePolicy};
use market::metrics::{DerivationContext, DerivedRows, Rules, derive};
use market::symbol::Symbol;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) fn day(text: &str) -> NaiveDate {
    text.parse().expect("a date")
}

pub(crate) fn observed<T: DeserializeOwned>(
    line: usize,
    id: Option<&str>,
    action: &str,
    record: Value,
) -> Observation<T> {
    let row = json!({ "source": "test", "id": id, "security_ref": null, "revision": 0, "action": action,
                      "observed_at": "2024-01-01T00:00:00Z", "line": line, "frame": "00000000000000000000000000000000", "record": record });
    serde_json::from_value(row).expect("an observation")
}

/// Parses a dividend from `ex-date payment-date amount [id [action]]`. `-` is an absent value.
pub(crate) fn dividend(line: usize, text: &str) -> Observation<Dividend> {
    let words: Vec<&str> = text.split(' ').collect();
    let given = |index: usize| words.get(index).copied().filter(|word| *word != "-");
    let record = json!({ "symbol": "TEST", "amount": words[2], "currency": "USD", "type": "regular",
                         "amount_basis": "raw", "ex_date": words[0], "payment_date": given(1) });
    observed(line, given(3), given(4).unwrap_or("put"), record)
}

/// History of a security of type `kind`. Each split is given as ex-date and number of new shares per old share. All
/// splits were declared on 2024-01-02.
pub(crate) fn history(kind: &str, dividends: &[&str], splits: &[(&str, &str)]) -> History {
    let split = |(line, (ex_date, to)): (usize, &(&str, &str))| {
        let declared = json!({ "symbol": "TEST", "ex_date": ex_date, "declaration_date": "2024-01-02", "from": "1", "to": to });
        observed(line, None, "put", declared)
    };
    let security =
        json!({ "symbol": "TEST", "name": "Test", "type": kind, "currency": "USD", "status": "active" });
    History {
        symbol: Symbol::parse("TEST").expect("a symbol"),
        former_symbols: Vec::new(),
        security: Some(observed(0, None, "put", security)),
        dividends: dividends.iter().enumerate().map(|(line, text)| dividend(line, text)).collect(),
        splits: splits.iter().enumerate().map(split).collect(),
        fundamentals: Vec::new(),
        etf: Vec::new(),
        holdings: Vec::new(),
        decisions: Vec::new(),
        evidence: Vec::new(),
        dividend_feeds: market::history::DividendFeeds::default(),
        prices: Vec::new(),
    }
}

/// Calls a function with the market of a day, without a source policy.
pub(crate) fn in_market<T>(as_of: &str, compute: impl Fn(&DerivationContext<'_>) -> T) -> T {
    let (as_of, policy) = (day(as_of), SourcePolicy::default());
    let rules = &Rules::DEFAULT;
    compute(&DerivationContext {
        as_of,
        newest: as_of,
        benchmark: None,
        rates: &market::metrics::ExchangeRates::NONE,
        reporting_currency: "USD",
        policy: &policy,
        rules,
    })
}

pub(crate) fn on(as_of: &str, history: &History) -> DerivedRows {
    in_market(as_of, |market| derive(history, market))
}
