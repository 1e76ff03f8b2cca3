//! Worked cases of figures in two currencies (R41 to R44). Each figure is computed by hand in a comment.

use chrono::DateTime;
use market::event::FxRate;
use market::history::{History, Observation, SourcePolicy};
use market::metrics::{DerivationContext, DerivedRows, ExchangeRates, derive, explain};
use market::row::Flag;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::currencies::{dividend, security};
use crate::explained::observed;
use crate::figures::{has, in_market, text};
use crate::lives::{self, Life, date};

/// Rates, each written as `BASEQUOTE day rate`. A later row is observed later.
fn rates(rows: &[&str]) -> ExchangeRates {
    let rows: Vec<Observation<FxRate>> = (1..)
        .zip(rows)
        .map(|(line, row)| {
            let words: Vec<&str> = row.split(' ').collect();
            let rate: Decimal = words[2].parse().expect("a rate");
            let record = FxRate::new(&words[0][..3], &words[0][3..], date(words[1]), rate);
            let second = i64::try_from(line).expect("a second");
            let observed_at = DateTime::from_timestamp(second, 0).expect("a time");
            Observation { source: "ecb".into(), observed_at, ..lives::observed(line, record) }
        })
        .collect();
    ExchangeRates::new(&rows, &SourcePolicy::default())
}

fn with_rates(history: &History, rows: &[&str]) -> DerivedRows {
    let rates = rates(rows);
    in_market(|market| derive(history, &DerivationContext { rates: &rates, ..*market }))
}

fn formula(history: &History, rows: &[&str], metric: &str) -> String {
    let rates = rates(rows);
    let told = in_market(|market| explain(history, &DerivationContext { rates: &rates, ..*market }));
    let found = told.metrics.into_iter().find(|entry| entry.metric == metric);
    found.expect("an entry").formula.to_string()
}

/// A fund with closes, each written as `day close`.
fn fund(currency: &str, unit: Option<&str>, closes: &[&str], dividends: &[&str]) -> History {
    let mut history = security(currency, unit, "1", dividends);
    if let Some(security) = &mut history.security {
        security.record.r#type = "etf".parse().expect("a type");
    }
    let life = closes.iter().fold(Life::new("fund", "2024-06-28"), |life, row| {
        let (day, close) = row.split_once(' ').expect("a day and a close");
        life.close(day, close)
    });
    history.prices = life.history().prices;
    history
}

const QUARTERS: [&str; 4] = ["2023-09-14", "2023-12-14", "2024-03-14", "2024-06-13"];

fn quarterly(amount: &str, currency: &str) -> Vec<String> {
    QUARTERS.iter().map(|day| format!("{day} {amount} {currency}")).collect()
}

fn lines(rows: &[String]) -> Vec<&str> {
    rows.iter().map(String::as_str).collect()
}

/// Yields: trailing, forward and headline.
fn yields(found: &DerivedRows) -> [String; 3] {
    let metrics = &found.metrics;
    [metrics.yield_ttm, metrics.yield_forward, metrics.dividend_yield].map(text)
}

#[test]
fn a_payment_is_converted_at_the_rate_of_the_session_before_its_ex_date() {
    let closes = ["2024-06-19 40", "2024-06-20 39.60", "2024-06-27 40"];
    let history = fund("GBP", None, &closes, &["2024-06-20 0.50 USD"]);
    // The rate of the ex-date is not used. 0.50 / 1.25 = 0.40 GBP, and 1 - 0.40 / 40 = 0.99.
    let found = with_rates(&history, &["GBPUSD 2024-06-19 1.2500", "GBPUSD 2024-06-20 2"]);
    assert_eq!(text(found.dividends[0].price_factor), "0.99");
    assert_eq!(found.factors[0].value, Some("0.40".parse().expect("a value")));
    // 0.40 / 40 = 1 %. The amounts per share stay in dollars.
    assert_eq!(text(found.metrics.yield_ttm), "1");
    assert_eq!(text(found.metrics.dps_ttm), "0.5");
    assert_eq!(found.metrics.currency, "USD");
    assert!(
        has(&found, Flag::Converted) && !has(&found, Flag::FxMissing) && !has(&found, Flag::FactorSkipped)
    );
    // Total return over the closes: 39.60 x (1 + 0.40 / 39.60) / 40 = 1, then 40 / 39.60.
    let told = formula(&history, &["GBPUSD 2024-06-19 1.25"], "yield_ttm");
    assert_eq!(
        told,
        "dividends of 12 months: (0.5 USD x 0.8 (ecb 2024-06-19)) / close 40 of 2024-06-27 x 100 = 1 %"
    );
}

#[test]
fn a_ucits_fund_in_euros_has_the_yield_of_its_dollars() {
    let rows = quarterly("0.30", "USD");
    let history = fund("EUR", None, &["2023-09-01 30", "2024-06-27 33"], &lines(&rows));
    let rates = [
        "EURUSD 2023-09-13 1.00",
        "EURUSD 2023-12-13 1.20",
        "EURUSD 2024-03-13 1.25",
        "EURUSD 2024-06-12 1.50",
    ];
    // The session before each ex-date is the only earlier bar, 2023-09-01; its rate is unknown.
    assert_eq!(yields(&with_rates(&history, &rates)), ["-", "-", "-"]);
    let closes: Vec<String> = ["2023-09-13", "2023-12-13", "2024-03-13", "2024-06-12", "2024-06-27"]
        .iter()
        .map(|day| format!("{day} 33"))
        .collect();
    let history = fund("EUR", None, &lines(&closes), &lines(&rows));
    // 0.30 + 0.25 + 0.24 + 0.20 = 0.99, and 0.99 / 33 = 3 %.
    let found = with_rates(&history, &rates);
    assert_eq!(yields(&found), ["3", "-", "3"]);
    assert_eq!(text(found.metrics.yield_ttm_total), "3");
}

#[test]
fn the_listing_in_pence_has_the_same_yield() {
    let rows = quarterly("0.33", "USD");
    let closes: Vec<String> = ["2023-09-13", "2023-12-13", "2024-03-13", "2024-06-12", "2024-06-27"]
        .iter()
        .map(|day| format!("{day} 2640"))
        .collect();
    let history = fund("GBP", Some("GBX"), &lines(&closes), &lines(&rows));
    let rates: Vec<String> = ["2023-09-13", "2023-12-13", "2024-03-13", "2024-06-12"]
        .iter()
        .map(|day| format!("GBPUSD {day} 1.25"))
        .collect();
    // 4 x 0.33 / 1.25 = 1.056 pounds, and the close is 26.40 pounds: 4 %.
    assert_eq!(yields(&with_rates(&history, &lines(&rates))), ["4", "-", "4"]);
}

#[test]
fn the_forward_dividend_is_converted_at_the_date_of_the_close() {
    let rows = quarterly("0.25", "USD");
    let history = security("EUR", None, "20", &lines(&rows));
    let rates = ["EURUSD 2024-06-27 1.25"];
    // 4 x 0.25 / 1.25 = 0.80, and 0.80 / 20 = 4 %. The payments of the year have no rates.
    let found = with_rates(&history, &rates);
    assert_eq!(yields(&found), ["-", "4", "4"]);
    assert!(has(&found, Flag::Converted) && has(&found, Flag::FxMissing));
    assert_eq!(
        formula(&history, &rates, "dividend_yield"),
        "forward dividend 1 x 0.8 (ecb 2024-06-27) EUR per USD / close 20 of 2024-06-27 x 100 = 4 %"
    );
}

#[test]
fn a_cross_rate_goes_through_the_euro() {
    let rows = quarterly("2.50", "NOK");
    let history = security("SEK", None, "240", &lines(&rows));
    // 12 SEK / 10 NOK = 1.2: 4 x 2.50 x 1.2 = 12 SEK, and 12 / 240 = 5 %.
    let rates = ["EURSEK 2024-06-26 12", "EURNOK 2024-06-27 10"];
    let found = with_rates(&history, &rates);
    assert_eq!(text(found.metrics.yield_forward), "5");
    // The older of both days is the day of the rate.
    assert_eq!(
        formula(&history, &rates, "yield_forward"),
        "forward dividend 10 x 1.2 (ecb 2024-06-26, through EUR) SEK per NOK / close 240 of 2024-06-27 x 100 = 5 %"
    );
}

#[test]
fn a_week_without_rates_leaves_figures_unknown() {
    let rows = quarterly("0.25", "USD");
    let history = security("EUR", None, "20", &lines(&rows));
    // The close is of 2024-06-27. A rate of 2024-06-20 is seven days old.
    assert_eq!(yields(&with_rates(&history, &["EURUSD 2024-06-20 1.25"]))[1], "4");
    let found = with_rates(&history, &["EURUSD 2024-06-19 1.25"]);
    assert_eq!(yields(&found), ["-", "-", "-"]);
    assert!(
        has(&found, Flag::FxMissing) && has(&found, Flag::CurrencyMismatch) && !has(&found, Flag::Converted)
    );
}

#[test]
fn a_corrected_rate_corrects_the_yield() {
    let rows = quarterly("0.25", "USD");
    let history = security("EUR", None, "20", &lines(&rows));
    let rates = ["EURUSD 2024-06-27 1.25", "EURUSD 2024-06-27 1.00"];
    assert_eq!(yields(&with_rates(&history, &rates))[1], "5");
    // A rate that contradicts both its neighbours is not used.
    let typo = ["EURUSD 2024-06-25 1.25", "EURUSD 2024-06-27 12.5", "EURUSD 2024-06-28 1.25"];
    assert_eq!(yields(&with_rates(&history, &typo))[1], "4");
}

fn with_figures(mut history: History, figures: Value) -> History {
    let mut record = json!({ "symbol": "LIFE", "as_of": "2024-06-01" });
    if let (Some(record), Value::Object(figures)) = (record.as_object_mut(), figures) {
        record.extend(figures);
    }
    history.fundamentals = vec![observed(record)];
    history
}

#[test]
fn a_receipt_has_ratios_in_the_currency_of_its_reports() {
    let rows = quarterly("0.50", "USD");
    let figures = json!({
        "reported_currency": "TWD", "eps_ttm": "160", "book_value_per_share": "640", "revenue_ttm": "6400",
        "shares_outstanding": "10",
    });
    let history = with_figures(security("USD", None, "100", &lines(&rows)), figures);
    let rates: Vec<String> = ["2023-09-13", "2023-12-13", "2024-03-13", "2024-06-12", "2024-06-27"]
        .iter()
        .map(|day| format!("USDTWD {day} 32"))
        .collect();
    let found = with_rates(&history, &lines(&rates));
    let figures = found.fundamentals.as_ref().expect("figures");
    // 100 x 32 / 160 = 20; 3200 / 640 = 5; market value 1,000 dollars = 32,000, and 32,000 / 6,400 = 5.
    assert_eq!([figures.pe_ratio, figures.pb_ratio, figures.ps_ratio].map(text), ["20", "5", "5"]);
    // 4 x 0.50 x 32 = 64, and 64 / 160 = 40 %.
    assert_eq!(text(figures.payout_ratio), "40");
    assert_eq!(figures.market_cap, Some(1_000));
    // Without a rate, there is no ratio of two currencies.
    let found = with_rates(&history, &[]);
    let figures = found.fundamentals.as_ref().expect("figures");
    let ratios = [figures.pe_ratio, figures.pb_ratio, figures.ps_ratio, figures.payout_ratio];
    assert_eq!(ratios.map(text), ["-"; 4]);
}

#[test]
fn a_reported_market_value_is_converted_to_the_currency_of_the_price() {
    let figures = json!({ "reported_currency": "JPY", "market_cap": "150000" });
    let history = with_figures(security("USD", None, "100", &[]), figures);
    let found = with_rates(&history, &["USDJPY 2024-06-27 150"]);
    assert_eq!(found.fundamentals.expect("figures").market_cap, Some(1_000));
}

#[test]
fn a_change_of_the_declared_currency_is_no_raise() {
    let year = |year: i32, amount: &str, currency: &str| -> Vec<String> {
        [2, 5, 8, 11].iter().map(|month| format!("{year}-{month:02}-14 {amount} {currency}")).collect()
    };
    let mut rows = [year(2018, "1", "NOK"), year(2019, "1.1", "NOK"), year(2020, "0.10", "USD")].concat();
    rows.extend([year(2021, "0.11", "USD"), year(2022, "0.12", "USD"), year(2023, "0.13", "USD")].concat());
    let history = security("USD", None, "10", &lines(&rows));
    let found = with_rates(&history, &[]);
    // 2021, 2022 and 2023 are above the year before, all in dollars. 0.52 / 0.48 = 8.3333 %.
    assert_eq!((found.metrics.increase_streak_years, found.metrics.streak_lower_bound), (3, true));
    assert_eq!(text(found.metrics.growth_1y), "8.3333");
    assert_eq!(text(found.metrics.growth_5y), "-");
    assert!(has(&found, Flag::CurrencyChanged));
    // A single row in another currency changes nothing.
    let mut odd = [year(2022, "0.12", "USD"), year(2023, "0.13", "USD")].concat();
    odd[2] = "2022-08-14 1.2 NOK".to_owned();
    assert!(!has(&with_rates(&security("USD", None, "10", &lines(&odd)), &[]), Flag::CurrencyChanged));
}

#[test]
fn payments_of_a_year_in_two_currencies_have_a_yield() {
    let mut rows = ["2023-09-14 4 NOK", "2023-12-14 4 NOK"].map(str::to_owned).to_vec();
    rows.extend(["2024-03-14 0.40 USD", "2024-06-13 0.40 USD"].map(str::to_owned));
    let history = security("NOK", None, "160", &lines(&rows));
    let rates = ["USDNOK 2024-03-13 10", "USDNOK 2024-06-12 10"];
    // 4 + 4 + 4 + 4 = 16, and 16 / 160 = 10 %. A sum of two currencies is not served.
    let found = with_rates(&history, &rates);
    assert_eq!(
        (text(found.metrics.yield_ttm), text(found.metrics.dividend_yield)),
        ("10".into(), "10".into())
    );
    assert_eq!(found.metrics.dps_ttm, None);
}

#[test]
fn the_yield_at_an_ex_date_uses_its_rate() {
    let rows = quarterly("0.25", "USD");
    let closes: Vec<String> = ["2023-09-13", "2023-12-13", "2024-03-13", "2024-06-12", "2024-06-27"]
        .iter()
        .map(|day| format!("{day} 20"))
        .collect();
    let mut history = security("EUR", None, "20", &lines(&rows));
    history.prices = fund("EUR", None, &lines(&closes), &[]).prices;
    let found = with_rates(&history, &["EURUSD 2024-03-13 1.25"]);
    // 4 x 0.25 / 1.25 / 20 = 4 %.
    let at_ex: Vec<String> = found.dividends.iter().take(4).map(|row| text(row.yield_at_ex)).collect();
    assert_eq!(at_ex, ["-", "-", "4", "-"]);
}

#[test]
fn a_total_return_reinvests_the_converted_payment() {
    let mut history = security("EUR", None, "20", &["2024-06-20 0.55 USD"]);
    let closes = ["2023-06-28 20", "2024-06-19 20", "2024-06-20 20", "2024-06-27 20"];
    history.prices = fund("EUR", None, &closes, &[]).prices;
    // 0.55 / 1.10 = 0.50 EUR: (20 + 0.50) / 20 - 1 = 2.5 %.
    let found = with_rates(&history, &["EURUSD 2024-06-19 1.10"]);
    assert_eq!(text(found.metrics.total_return_1y), "2.5");
    assert_eq!(text(with_rates(&history, &[]).metrics.total_return_1y), "-");
}

#[test]
fn without_rates_nothing_changes() {
    let rows = quarterly("0.25", "USD");
    let own = security("USD", None, "20", &lines(&rows));
    let found = with_rates(&own, &["EURUSD 2024-06-27 1.25"]);
    assert_eq!(yields(&found), ["5", "5", "5"]);
    assert!(!has(&found, Flag::Converted) && !has(&found, Flag::FxMissing));
    let row = dividend(1, "2024-06-13 0.25 USD").record;
    assert_eq!(row.currency, "USD");
}
