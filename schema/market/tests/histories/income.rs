//! Tests for income figures, such as the dividends of the last twelve months: their completeness, currencies and flags.
//! The expected values were worked out by hand.

use market::event::DividendType;
use market::history::History;
use market::row::{DividendState, Flag};
use serde_json::{Value, json};

use crate::explained::observed;
use crate::figures::{derived, has};
use crate::lives::Life;

/// Adds a reference record with the required fields and the given `fields`.
fn said(life: &Life, fields: &Value) -> History {
    let mut record =
        json!({ "symbol": "LIFE", "name": "Life", "type": "stock", "currency": "USD", "status": "active" });
    fields.as_object().expect("fields").iter().for_each(|(name, value)| record[name] = value.clone());
    History { security: Some(observed(record)), ..life.history() }
}

fn year_from(first: &str) -> Life {
    Life::new("year", "2024-06-28").every(91, first, &[("0.5", 4)])
}

#[test]
fn a_year_is_partial_when_it_was_listed_or_begins_within_it() {
    let partial = |history: &History| {
        let found = derived(history);
        assert_eq!(found.metrics.ttm_complete, !has(&found, Flag::TtmIncomplete));
        !found.metrics.ttm_complete
    };
    // If the data begins with a payment, the twelve months are complete if this payment is at most 91 days after their
    // start.
    assert!(!partial(&year_from("2023-09-27").history()));
    assert!(partial(&year_from("2023-09-28").history()));
    // A bar before the first payment is the beginning of the data. A bar on or after the first payment has no effect.
    let young = || year_from("2023-09-28");
    assert!(!partial(&young().close("2023-06-28", "40").history()));
    assert!(partial(&young().close("2023-06-29", "40").history()));
    for close in ["2023-06-29", "2023-06-30"] {
        assert!(!partial(&year_from("2023-06-29").close(close, "40").history()), "{close}");
    }
    // The listing date takes precedence over the first bar and the first payment.
    assert!(!partial(&said(&young(), &json!({ "ipo_date": "2023-06-28" }))));
    assert!(partial(&said(&young(), &json!({ "ipo_date": "2023-06-29" }))));
    assert!(partial(&said(&young().close("2023-06-28", "40"), &json!({ "ipo_date": "2023-07-03" }))));
    assert!(!partial(&Life::new("never", "2024-06-28").close("2024-06-27", "40").history()));
}

#[test]
fn an_unusual_number_of_payments_is_flagged_of_whole_years() {
    let unusual = |life: &Life| has(&derived(&life.history()), Flag::TtmPaymentCountUnusual);
    let two_years = || Life::new("two years", "2024-06-28").every(91, "2022-07-07", &[("0.5", 8)]);
    assert!(!unusual(&two_years()));
    let mut skipped = two_years();
    skipped.rows.remove(5);
    assert!(unusual(&skipped));
    assert!(unusual(&two_years().pay("2024-06-03", "0.5")));
    // A new payer may have fewer payments than usual.
    let young = Life::new("young", "2024-06-28").every(91, "2023-12-28", &[("0.5", 3)]);
    assert!(!unusual(&young));
    // More payments than usual are flagged even for a new payer.
    let listed = |life: &Life| derived(&said(life, &json!({ "ipo_date": "2023-07-03" })));
    let five = year_from("2023-07-06").pay("2024-06-03", "0.5");
    assert!(has(&listed(&five), Flag::TtmPaymentCountUnusual));
    assert!(!has(&listed(&year_from("2023-07-06")), Flag::TtmPaymentCountUnusual));
    // A payer that stopped has the status lapsed and needs no flag.
    let mut stopped = two_years();
    stopped.rows.truncate(5);
    let found = derived(&stopped.history());
    assert_eq!(found.metrics.dividend_status, DividendState::Lapsed);
    assert!(!has(&found, Flag::TtmPaymentCountUnusual));
}

#[test]
fn a_special_counts_in_its_year_and_its_currency_alone() {
    let total = |ex_date: &str, currency: &str| {
        let life = Life::new("special", "2024-06-28").every(91, "2023-08-03", &[("0.5", 4)]);
        let mut history = life.of_type(ex_date, "3", "special").history();
        let special = history.dividends.iter_mut().find(|row| row.record.r#type == DividendType::Special);
        special.expect("the special").record.currency = currency.into();
        let metrics = derived(&history).metrics;
        assert_eq!(metrics.dps_ttm.map(|sum| sum.to_string()).as_deref(), Some("2"));
        metrics.dps_ttm_total.map(|sum| sum.to_string())
    };
    let (with, without) = (Some("5".to_owned()), Some("2".to_owned()));
    assert_eq!([total("2023-06-28", "USD"), total("2023-06-29", "USD")], [without.clone(), with.clone()]);
    assert_eq!([total("2024-06-28", "USD"), total("2024-07-01", "USD")], [with, without.clone()]);
    assert_eq!([total("2024-03-01", "GBP"), total("2023-06-28", "GBP")], [None, without]);
}

#[test]
fn yields_need_dividends_and_prices_of_one_currency() {
    let life = year_from("2023-08-03").close("2024-06-28", "40");
    let in_pounds = |life: &Life| {
        let mut history = life.history();
        history.dividends.iter_mut().for_each(|row| row.record.currency = "GBP".into());
        history
    };
    let found = derived(&in_pounds(&life));
    assert!(has(&found, Flag::CurrencyMismatch));
    assert_eq!((found.metrics.currency.as_str(), found.metrics.price_currency.as_str()), ("GBP", "USD"));
    assert_eq!(found.metrics.dps_ttm.map(|sum| sum.to_string()).as_deref(), Some("2"));
    assert_eq!(
        (found.metrics.yield_ttm, found.metrics.dividend_yield, found.metrics.yield_forward),
        (None, None, None)
    );
    assert_eq!(found.quote.dividend_currency.as_deref(), Some("GBP"));
    assert!(!has(&derived(&life.history()), Flag::CurrencyMismatch));
    // A security that never paid has no dividend currency, so there is no mismatch.
    let silent = derived(&Life::new("silent", "2024-06-28").close("2024-06-28", "40").history());
    assert!(!has(&silent, Flag::CurrencyMismatch));
    assert_eq!(
        (silent.metrics.dividend_status, silent.quote.dividend_currency),
        (DividendState::NonPayer, None)
    );
    // Most payments of two years are in the currency of the prices, so rows in others do not change the currency.
    let currency_of = |newest: [&str; 2]| {
        let mut history = year_from("2023-08-03").pay("2024-06-20", "0.5").pay("2024-06-20", "0.6").history();
        let count = history.dividends.len();
        history.dividends[count - 2].record.currency = newest[0].into();
        history.dividends[count - 1].record.currency = newest[1].into();
        derived(&history).metrics.currency
    };
    assert_eq!([["GBP", "USD"], ["USD", "GBP"], ["GBP", "EUR"]].map(currency_of), ["USD"; 3]);
}

#[test]
fn payments_of_one_day_are_one_rate() {
    let life = year_from("2023-08-03").of_type("2024-05-02", "0.25", "irregular");
    let metrics = derived(&life.history()).metrics;
    assert_eq!((metrics.ttm_payment_count, metrics.payment_count), (4, 4));
    assert_eq!(metrics.dps_ttm.map(|sum| sum.to_string()).as_deref(), Some("2.25"));
    assert_eq!(metrics.dps_forward.map(|sum| sum.to_string()).as_deref(), Some("3"));
}

#[test]
fn what_is_known_of_a_security_is_flagged() {
    let life = year_from("2023-08-03");
    assert!(has(&derived(&life.history()), Flag::Provisional));
    assert!(!has(&derived(&said(&life, &json!({}))), Flag::Provisional));
    assert!(!has(&derived(&life.history()), Flag::UnknownType));
    assert!(has(
        &derived(&year_from("2023-08-03").of_type("2024-06-20", "1", "unknown").history()),
        Flag::UnknownType
    ));
}

#[test]
fn real_estate_is_measured_by_its_funds_from_operations() {
    let payout = |fields: Value, currency: &str| {
        let mut history = said(&year_from("2023-08-03").close("2024-06-28", "40"), &fields);
        let report = json!({ "symbol": "LIFE", "as_of": "2024-03-31", "eps_ttm": "1", "ffo_per_share_ttm": "4",
            "reported_currency": currency });
        history.fundamentals = vec![observed(report)];
        let found = derived(&history);
        (
            found.metrics.payout_ratio.map(|ratio| ratio.to_string()),
            found.quote.pe_ratio.map(|ratio| ratio.to_string()),
        )
    };
    let (by_eps, by_ffo, pe) = (Some("200".to_owned()), Some("50".to_owned()), Some("40".to_owned()));
    assert_eq!(payout(json!({}), "USD"), (by_eps, pe.clone()));
    assert_eq!(payout(json!({ "type": "reit" }), "USD"), (by_ffo.clone(), pe.clone()));
    assert_eq!(payout(json!({ "sector": "Real Estate" }), "USD"), (by_ffo.clone(), pe.clone()));
    assert_eq!(payout(json!({ "sector": "real estate" }), "USD"), (by_ffo, pe));
    // The earnings are in another currency than the dividends and prices.
    assert_eq!(payout(json!({}), "GBP"), (None, None));
}

#[test]
fn a_spin_off_within_a_streak_is_to_be_reviewed() {
    let grower = |spin_off: &str| {
        let life = Life::new("grower", "2024-06-28").every(
            91,
            "2020-02-06",
            &[("0.5", 4), ("0.6", 4), ("0.7", 4), ("0.8", 6)],
        );
        let found = derived(&life.of_type(spin_off, "9", "spin_off").history());
        (found.metrics.increase_streak_years, has(&found, Flag::SpinOffReview))
    };
    assert_eq!(grower("2022-05-02"), (3, true));
    assert_eq!(grower("2020-05-04"), (3, false));
    assert_eq!(grower("2024-07-05"), (3, false));
}
