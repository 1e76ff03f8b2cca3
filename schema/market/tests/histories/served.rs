//! Tests that derived rows and explanations agree with the facts and with each other.

use std::sync::Arc;

use market::event::Fundamentals;
use market::history::{History, Observation, SourcePolicy};
use market::metrics::{DerivationContext, DerivedRows, Explanation, Rules, derive, explain};
use market::row::Flag;
use serde_json::json;

use crate::figures::has;
use crate::lives::{Life, date, observed};

fn told(history: &History, as_of: &str) -> (DerivedRows, Explanation) {
    let (policy, as_of) = (SourcePolicy::default(), date(as_of));
    let market = DerivationContext {
        as_of,
        newest: as_of,
        benchmark: None,
        rates: &market::metrics::ExchangeRates::NONE,
        reporting_currency: "USD",
        policy: &policy,
        rules: &Rules::DEFAULT,
    };
    (derive(history, &market), explain(history, &market))
}

fn quarterly() -> Life {
    Life::new("quarterly", "2024-12-31").every(91, "2021-02-11", &[("0.50", 4), ("0.55", 4), ("0.60", 8)])
}

fn reported(as_of: &str, figures: serde_json::Value) -> Observation<Fundamentals> {
    let mut record = json!({ "symbol": "LIFE", "as_of": as_of });
    let figures = figures.as_object().cloned().unwrap_or_default();
    figures.into_iter().for_each(|(name, value)| record[name] = value);
    observed(1, serde_json::from_value(record).expect("figures"))
}

#[test]
fn only_the_running_year_is_incomplete() {
    let (derived, _) = told(&quarterly().history(), "2024-06-28");
    let complete: Vec<(i32, bool)> =
        derived.metrics.annual_totals.0.iter().map(|total| (total.year, total.complete)).collect();
    assert_eq!(complete, [(2021, true), (2022, true), (2023, true), (2024, false)]);
}

#[test]
fn a_streak_is_explained_from_the_total_before_its_first_increase() {
    let (derived, explained) = told(&quarterly().history(), "2024-06-28");
    assert_eq!(derived.metrics.streak_started, Some(2022));
    let entry = |name: &str| explained.metrics.iter().find(|entry| entry.metric == name).expect("an entry");
    let streak = entry("increase_streak_years");
    let totals: Vec<String> =
        streak.years.iter().map(|year| format!("{}: {}", year.year, year.total.expect("a total"))).collect();
    assert_eq!(totals, ["2021: 2", "2022: 2.2", "2023: 2.4", "2024: 2.4"]);
    let years: Vec<i32> =
        streak.observations.iter().filter_map(|o| o.date).map(|day| chrono::Datelike::year(&day)).collect();
    assert_eq!((years.first(), years.last(), years.len()), (Some(&2021), Some(&2024), 16));
    let growth = entry("growth_1y");
    let formula = growth.formula.to_string();
    assert!(formula.starts_with("(2.4 in 2023 / 2.2 in 2022) - 1, x 100 = "), "{formula}");
    assert_eq!(growth.observations.len(), 8);
}

#[test]
fn the_price_is_the_same_in_every_row_and_explained_by_its_bar() {
    let life = quarterly().close("2024-06-27", "40.10").close("2024-06-28", "40.20");
    let (derived, explained) = told(&life.history(), "2024-06-28");
    assert_eq!(derived.stock.pricing.0.price, derived.metrics.price);
    assert_eq!(derived.quote.price, derived.metrics.price);
    let price = explained.metrics.iter().find(|entry| entry.metric == "price").expect("an entry");
    let bars: Vec<String> =
        price.observations.iter().map(|o| format!("{} {:?} {:?}", o.outcome, o.date, o.amount)).collect();
    assert_eq!(bars, ["used Some(2024-06-28) Some(40.2)"]);
}

#[test]
fn amounts_of_two_currencies_are_never_added() {
    let mut history = quarterly().close("2024-06-28", "40").history();
    // The payment of 2024-02-08 is in another currency.
    let foreign = history.dividends.iter_mut().find(|row| row.record.ex_date == Some(date("2024-02-08")));
    foreign.expect("a payment").record.currency = "GBP".into();
    let (derived, _) = told(&history, "2024-06-28");
    assert_eq!(
        (derived.metrics.dps_ttm, derived.metrics.yield_ttm, derived.metrics.dividend_yield),
        (None, None, None)
    );
    assert!(has(&derived, Flag::CurrencyMismatch));
    // A year later, this payment is outside the window.
    let (later, _) = told(&history, "2025-02-10");
    assert!(!has(&later, Flag::CurrencyMismatch));
}

#[test]
fn a_figure_missing_in_the_newest_report_is_an_earlier_ones() {
    let mut history = quarterly().history();
    history.fundamentals = vec![
        reported("2023-12-31", json!({ "eps_ttm": "4.8" })),
        reported("2024-03-31", json!({ "shares_outstanding": "1000" })),
    ];
    let (derived, explained) = told(&history, "2024-06-28");
    assert_eq!(derived.metrics.payout_ratio.map(|ratio| ratio.to_string()).as_deref(), Some("50"));
    assert_eq!(explained.payout_status, "ok");
    history.fundamentals.remove(0);
    assert_eq!(told(&history, "2024-06-28").1.payout_status, "missing");
}

#[test]
fn faulty_bars_are_held_and_the_others_served_to_the_cent() {
    let days = ["2024-06-21", "2024-06-24", "2024-06-25", "2024-06-26", "2024-06-27", "2024-06-28"];
    let life = days.iter().fold(quarterly(), |life, day| life.close(day, "40.15"));
    let broken: [fn(&mut market::bars::Bars); 4] = [
        |bars| bars.close[2] = 0,
        |bars| (bars.high[2], bars.low[2]) = (4000, 4100),
        |bars| bars.open[2] = -1,
        |bars| bars.volume[2] = -1,
    ];
    for break_bar in broken {
        let mut history = life.history();
        break_bar(Arc::make_mut(&mut history.prices[0].bars));
        let (derived, _) = told(&history, "2024-06-28");
        assert_eq!(derived.quarantined.len(), 1);
        assert_eq!((derived.quarantined[0].date, derived.bars.len()), (Some(date("2024-06-25")), 5));
    }
    let mut history = life.history();
    Arc::make_mut(&mut history.prices[0].bars).close[2] = 401_500;
    let (derived, _) = told(&history, "2024-06-28");
    assert_eq!(derived.quarantined[0].reason, "price_unit_error");
    assert_eq!(derived.metrics.price.map(|price| price.to_string()).as_deref(), Some("40.15"));
}

#[test]
fn a_move_by_its_own_split_ratio_is_flagged_however_small() {
    let split = || quarterly().split("2022-06-10", 2, 3).close("2022-06-09", "60").close("2022-06-10", "40");
    let jumped = split().close("2024-06-27", "40.00").close("2024-06-28", "58.80");
    assert!(has(&told(&jumped.history(), "2024-06-28").0, Flag::PriceJumpWithoutSplit));
    let rose = split().close("2024-06-27", "40.00").close("2024-06-28", "58.00");
    assert!(!has(&told(&rose.history(), "2024-06-28").0, Flag::PriceJumpWithoutSplit));
}

#[test]
fn a_seeded_streak_says_so() {
    let mut history = quarterly().history();
    let security = json!({ "symbol": "LIFE", "name": "Life", "type": "stock", "currency": "USD", "status": "active",
        "streak_seed_years": 43, "streak_seed_through": 2021 });
    history.security = Some(observed(1, serde_json::from_value(security).expect("a security")));
    let (derived, _) = told(&history, "2024-06-28");
    assert_eq!((derived.metrics.increase_streak_years, derived.metrics.payment_streak_years), (45, 4));
    assert!(has(&derived, Flag::StreakSeeded));
}
