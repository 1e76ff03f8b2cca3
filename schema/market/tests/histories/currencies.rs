//! Tests for currencies of payments: rows without a currency, and one payment in two currencies.

use market::event::Dividend;
use market::history::{History, Observation};
use market::metrics::currency::assign_currency;
use market::row::{DividendState, Flag};
use serde_json::{Value, json};

use crate::explained::observed;
use crate::figures::{derived, explained, has, text};
use crate::lives::{self, Life};

/// History of a security with one close. The close is in `quote_unit` (a minor unit such as GBX), or in `currency` if
/// `quote_unit` is `None`. Each dividend is written `ex-date amount currency [payment-date [declaration-date]]`. `-` is
/// an absent value.
pub(crate) fn security(currency: &str, quote_unit: Option<&str>, close: &str, dividends: &[&str]) -> History {
    let mut history = Life::new("currencies", "2024-06-28").close("2024-06-27", close).history();
    history.security = Some(observed(json!({
        "symbol": "LIFE", "name": "Life", "type": "stock", "currency": currency, "quote_unit": quote_unit,
        "status": "active",
    })));
    history.dividends = (1..).zip(dividends).map(|(line, row)| dividend(line, row)).collect();
    assign_currency(&mut history);
    history
}

pub(crate) fn dividend(line: u64, row: &str) -> Observation<Dividend> {
    let words: Vec<&str> = row.split(' ').collect();
    let given = |index: usize| words.get(index).copied().filter(|word| *word != "-");
    let record: Value = json!({
        "symbol": "LIFE", "ex_date": words[0], "amount": words[1], "currency": given(2).unwrap_or_default(),
        "type": "regular", "amount_basis": "raw", "payment_date": given(3), "declaration_date": given(4),
    });
    lives::observed(line, serde_json::from_value(record).expect("a dividend"))
}

/// Dividend rows with an id, each as `ex-date amount currency`. Projected rows have no id and are therefore left out.
fn counted(history: &History) -> Vec<String> {
    let rows = derived(history).dividends;
    let rows = rows.iter().filter(|row| row.id.is_some());
    rows.map(|row| format!("{} {} {}", row.ex_date, row.amount, row.currency)).collect()
}

#[test]
fn a_dividend_without_a_currency_is_in_that_of_its_security() {
    let found = derived(&security("GBP", None, "10", &["2023-06-13 0.20 -", "2024-06-13 0.20 -"]));
    assert_eq!(text(found.metrics.dividend_yield), "2");
    assert_eq!((found.metrics.currency.as_str(), found.metrics.price_currency.as_str()), ("GBP", "GBP"));
    assert!(!has(&found, Flag::CurrencyMismatch));
    // Here, prices and dividends are in pence (GBX).
    let pence = security("GBP", Some("GBX"), "1000", &["2023-06-13 20 -", "2024-06-13 20 -"]);
    assert_eq!(text(derived(&pence).metrics.dividend_yield), "2");
    assert_eq!(counted(&pence), ["2023-06-13 0.2 GBP", "2024-06-13 0.2 GBP"]);
    // Without a reference record, prices are in dollars.
    let mut provisional = security("USD", None, "10", &[]);
    (provisional.security, provisional.dividends) = (None, vec![dividend(1, "2024-06-13 0.20 -")]);
    assign_currency(&mut provisional);
    assert_eq!(counted(&provisional), ["2024-06-13 0.2 USD"]);
}

#[test]
fn rows_with_and_without_the_currency_of_the_security_are_one_record() {
    for rows in [["2024-06-13 0.20 -", "2024-06-13 0.20 GBP"], ["2024-06-13 0.20 GBP", "2024-06-13 0.20 -"]] {
        let history = security("GBP", None, "10", &rows);
        assert_eq!(counted(&history), ["2024-06-13 0.2 GBP"]);
        assert_eq!(explained(&history).unused[0].outcome, "superseded");
    }
    let history = security("GBP", Some("GBX"), "1000", &["2024-06-13 20 -", "2024-06-13 0.20 GBP"]);
    assert_eq!(counted(&history), ["2024-06-13 0.2 GBP"]);
    assert!(!has(&derived(&history), Flag::ConflictingDuplicate));
}

#[test]
fn a_payment_in_two_currencies_counts_in_that_of_the_price() {
    let quarters = ["2023-08-14", "2023-11-14", "2024-02-14", "2024-05-14"];
    let rows: Vec<String> = quarters
        .iter()
        .flat_map(|day| [format!("{day} 0.74 CAD 2024-06-01"), format!("{day} 0.55 USD 2024-06-01")])
        .collect();
    let mut rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    for _ in 0..2 {
        let found = derived(&security("USD", None, "38.5", &rows));
        let figures = [found.metrics.dps_ttm, found.metrics.dps_ttm_total, found.metrics.dps_forward];
        assert_eq!(figures.map(text), ["2.2", "2.2", "2.2"]);
        assert!(has(&found, Flag::PaymentTranslated) && !has(&found, Flag::CurrencyMismatch));
        assert!(found.factors.iter().all(|factor| factor.value.is_some()), "no factor is skipped");
        let unused = explained(&security("USD", None, "38.5", &rows)).unused;
        let unused: Vec<&str> = unused.iter().map(|row| row.outcome.as_str()).collect();
        assert_eq!(unused, ["translation"; 4]);
        rows.reverse();
    }
}

#[test]
fn payments_that_only_share_their_day_are_no_translations() {
    // If both rows have a payment date and the dates differ, they are two payments.
    let check = |first: &str, second: &str, expected: bool| {
        let found = derived(&security("USD", None, "38.5", &[first, second]));
        assert_eq!(has(&found, Flag::PaymentTranslated), expected, "{first} {second}");
    };
    check("2024-05-14 0.74 CAD 2024-06-01", "2024-05-14 0.55 USD 2024-06-01", true);
    check("2024-05-14 0.74 CAD", "2024-05-14 0.55 USD 2024-06-01", true);
    check("2024-05-14 0.74 CAD 2024-06-02", "2024-05-14 0.55 USD 2024-06-01", false);
    check("2024-05-14 0.74 CAD", "2024-05-15 0.55 USD", false);
    // Neither amount is in the currency of the price (USD).
    check("2024-05-14 0.74 CAD", "2024-05-14 0.51 EUR", false);
    // Two payments in one currency remain two payments.
    let mut history = security("USD", None, "38.5", &["2024-05-14 0.55 USD", "2024-05-14 0.10 USD"]);
    history.dividends[1].record.sibling_amounts = vec![history.dividends[0].record.amount];
    assert_eq!(counted(&history).len(), 2);
    assert!(!has(&derived(&history), Flag::PaymentTranslated));
}

#[test]
fn a_passed_ex_date_counts_whatever_its_declaration_date_says() {
    let months = ["2024-01-15", "2024-02-15", "2024-03-15", "2024-04-15", "2024-05-15", "2024-06-15"];
    let rows = |declared: &str| -> Vec<String> {
        let row = |day: &&str| match *day {
            "2024-03-15" => format!("{day} 0.2331 USD - {declared}"),
            day => format!("{day} 0.23 USD"),
        };
        months.iter().map(row).collect()
    };
    let found = |declared: &str| {
        let rows = rows(declared);
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let found = derived(&security("USD", None, "35", &rows));
        (text(found.metrics.dps_ttm), has(&found, Flag::DeclaredAfterEx))
    };
    assert_eq!(found("2024-12-24"), ("1.3831".to_owned(), true));
    assert_eq!(found("2024-03-16"), ("1.3831".to_owned(), true));
    assert_eq!(found("2024-03-15"), ("1.3831".to_owned(), false));
    // A future payment is known from its declaration date on.
    let ahead = security("USD", None, "35", &["2024-06-14 0.23 USD", "2024-07-15 0.23 USD - 2024-06-29"]);
    assert_eq!(counted(&ahead), ["2024-06-14 0.23 USD"]);
    // A declaration date in the future does not end a suspension.
    let rows = rows("2024-12-24");
    let rows: Vec<&str> = rows[..3].iter().map(String::as_str).collect();
    let mut suspended = security("USD", None, "35", &rows);
    suspended.security.as_mut().expect("a record").record.dividend_suspended_on =
        Some(lives::date("2024-04-02"));
    assert_eq!(derived(&suspended).metrics.dividend_status, DividendState::Suspended);
}

#[test]
fn most_rows_of_two_years_decide_the_dividend_currency() {
    let currency = |rows: &[&str]| derived(&security("NOK", None, "256", rows)).metrics.currency;
    let [first, second, third] = ["2024-01-15 1 USD", "2024-03-15 1 USD", "2024-05-15 1 USD"];
    assert_eq!(currency(&[first, second, third]), "USD");
    assert_eq!(currency(&[first, second, "2024-05-15 10 NOK"]), "USD");
    assert_eq!(currency(&[first, "2024-03-15 10 NOK", "2024-05-15 10 NOK"]), "NOK");
    // As many rows: the currency of the prices, then that of the newest row.
    assert_eq!(currency(&[first, "2024-03-15 10 NOK"]), "NOK");
    assert_eq!(currency(&[first, "2024-03-15 1 EUR"]), "EUR");
    assert_eq!(currency(&["2024-01-15 1 EUR", second]), "USD");
    // Rows of more than two years before the newest one have no effect.
    let old = "2022-05-15 10 NOK";
    assert_eq!(currency(&["2022-04-15 10 NOK", "2022-05-14 10 NOK", old, first, third]), "USD");
    assert_eq!(currency(&["2022-05-16 10 NOK", "2022-06-15 10 NOK", third]), "NOK");
}

#[test]
fn a_payer_that_changes_its_currency_stays_active() {
    let rows = ["2023-03-15", "2023-06-15", "2023-09-15"].map(|day| format!("{day} 1 NOK"));
    let new = ["2023-12-15", "2024-03-15", "2024-06-14"].map(|day| format!("{day} 0.1 USD"));
    let rows: Vec<&str> = rows.iter().chain(&new).map(String::as_str).collect();
    let found = derived(&security("NOK", None, "256", &rows));
    assert_eq!(found.metrics.dividend_status, DividendState::Active);
    assert_eq!((found.metrics.dps_ttm, found.metrics.dividend_yield), (None, None));
    assert!(has(&found, Flag::CurrencyMismatch));
}

#[test]
fn rows_in_both_currencies_give_the_yields() {
    let quarters = ["2023-08-14", "2023-11-14", "2024-02-14", "2024-05-14"];
    let paid = |both: usize| -> Vec<String> {
        let declared = quarters.iter().map(|day| format!("{day} 0.40 USD"));
        let priced = quarters.iter().rev().take(both).map(|day| format!("{day} 4 NOK"));
        // A fifth row in dollars keeps dollars the dividend currency.
        ["2023-05-15 0.40 USD".to_owned()].into_iter().chain(declared).chain(priced).collect()
    };
    let yields = |both: usize| {
        let rows = paid(both);
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let found = derived(&security("NOK", None, "160", &rows));
        let metrics = &found.metrics;
        assert_eq!([metrics.dps_ttm, metrics.dps_forward].map(text), ["1.6", "1.6"], "{both}");
        (
            [metrics.yield_ttm, metrics.yield_forward, metrics.dividend_yield].map(text),
            has(&found, Flag::CurrencyMismatch),
        )
    };
    let strings = |words: [&str; 3]| words.map(str::to_owned);
    assert_eq!(yields(4), (strings(["10", "10", "10"]), false));
    assert_eq!(yields(3), (strings(["-", "10", "10"]), true));
    assert_eq!(yields(0), (strings(["-", "-", "-"]), true));
    let rows = paid(4);
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let told = explained(&security("NOK", None, "160", &rows));
    let formula = |name: &str| {
        let metric = told.metrics.iter().find(|metric| metric.metric == name).expect("a metric");
        metric.formula.to_string()
    };
    assert_eq!(
        formula("dividend_yield"),
        "forward dividend 1.6 x 10 NOK per USD / close 160 of 2024-06-27 x 100; R39: the payments have rows in both currencies = 10 %"
    );
}
