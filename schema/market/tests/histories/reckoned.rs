//! Tests for derived figures: price factors, expected payments, annual totals, Chowder number and beta.

use market::history::{History, SourcePolicy};
use market::metrics::{DerivationContext, DerivedRows, MonthlyReturns, Rules, benchmark, derive};
use market::row::{DividendStatus, Flag};
use serde_json::json;

use crate::explained::observed;
use crate::figures::{derived, has, held_dividends, in_market, text};
use crate::lives::{Life, date};

const TODAY: &str = "2024-06-28";

fn beside(history: &History, benchmark: Option<&MonthlyReturns>) -> DerivedRows {
    in_market(|market| derive(history, &DerivationContext { benchmark, ..*market }))
}

/// Adjustment factors, each as `ex-date factor cash value`, and true if a factor was skipped. `value` is cash plus
/// spin-off value per share.
fn factors(history: &History) -> (Vec<String>, bool) {
    let found = derived(history);
    let told = found.factors.iter().map(|day| {
        let value = day.value.map_or("-".to_owned(), |value| value.normalize().to_string());
        let (factor, cash) = (day.dividend_factor.normalize(), day.dividend.normalize());
        format!("{} {factor} {cash} {value}", day.ex_date)
    });
    (told.collect(), has(&found, Flag::FactorSkipped))
}

#[test]
fn an_ex_date_takes_off_all_that_is_distributed_on_it() {
    let life = || Life::new("off", TODAY).close("2024-03-01", "100").close("2024-03-04", "90");
    let of = |rows: &[(&str, &str)]| {
        rows.iter().fold(life(), |life, (amount, kind)| life.of_type("2024-03-04", amount, kind)).history()
    };
    let check = |history: &History, expected: &str, skipped: bool| {
        assert_eq!(factors(history), (vec![format!("2024-03-04 {expected}")], skipped));
    };
    check(&of(&[("1", "regular")]), "0.99 1 1", false);
    check(&of(&[("1", "regular"), ("2", "special"), ("5", "spin_off")]), "0.92 3 8", false);
    check(&of(&[("5", "spin_off")]), "0.95 0 5", false);
    // Distributions of one cent less than the price, of the whole price, and of more.
    check(&of(&[("99.99", "liquidation")]), "0.0001 99.99 99.99", false);
    check(&of(&[("100", "liquidation")]), "1 100 100", true);
    check(&of(&[("120", "liquidation")]), "1 120 120", true);
    // An amount in another currency cannot be subtracted from the price.
    let mut foreign = of(&[("1", "regular"), ("2", "special")]);
    foreign.dividends[1].record.currency = "GBP".into();
    check(&foreign, "1 1 -", true);
    foreign.dividends[0].record.currency = "GBP".into();
    check(&foreign, "1 0 -", true);
}

#[test]
fn a_payment_due_today_is_not_overdue() {
    // After an ex-date exactly one year ago, the next payment is expected today. After an ex-date one day earlier, it
    // is overdue.
    let life = |last: &str| {
        let life = Life::new("due", TODAY).pay("2022-09-28", "0.5").pay("2022-12-28", "0.5");
        life.pay("2023-03-28", "0.5").pay(last, "0.5").every(91, "2023-09-28", &[("0.5", 3)])
    };
    let told = |last: &str| {
        let found = derived(&life(last).history());
        let expected = found.dividends.iter().find(|row| row.status == DividendStatus::Projected);
        (expected.map(|row| row.ex_date), has(&found, Flag::Overdue))
    };
    assert_eq!(told("2023-06-28"), (Some(date("2024-06-28")), false));
    assert_eq!(told("2023-06-27"), (Some(date("2024-09-30")), true));
}

#[test]
fn payments_expected_of_a_payer_add_up_to_what_is_indicated() {
    let expected = |days, first, amounts: &[&str]| {
        let amounts: Vec<(&str, usize)> = amounts.iter().map(|amount| (*amount, 1)).collect();
        let found = derived(&Life::new("expected", TODAY).every(days, first, &amounts).history());
        let rows = found.dividends.iter().filter(|row| row.status == DividendStatus::Projected);
        let each: Vec<String> = rows.map(|row| row.amount.to_string()).collect();
        (text(found.metrics.dps_forward), each.join(" "))
    };
    let told = |forward: &str, each: &str| (forward.to_owned(), each.to_owned());
    // A half-yearly payer with rising amounts is expected to pay the newest amount twice. A payer with different
    // interim and final amounts is expected to repeat both.
    assert_eq!(
        expected(182, "2022-04-28", &["0.5", "0.52", "0.54", "0.56", "0.58"]),
        told("1.16", "0.58 0.58")
    );
    assert_eq!(expected(182, "2022-04-28", &["0.1", "0.3", "0.1", "0.3", "0.1"]), told("0.4", "0.3 0.1"));
    // Alternating quarterly amounts are not read as interim and final payments.
    assert_eq!(
        expected(91, "2023-03-02", &["0.1", "0.3", "0.1", "0.3", "0.1", "0.3"]),
        told("1.2", "0.3 0.3 0.3 0.3")
    );
}

#[test]
fn a_year_with_a_held_amount_was_paid() {
    // There is one payment a year since 2018. An amount of 50 is in another unit.
    let paid = |amounts: &[(&str, usize)]| Life::new("held", TODAY).every(365, "2018-05-17", amounts);
    let told = |life: Life| {
        let metrics = derived(&life.history()).metrics;
        (held_dividends(&metrics), metrics.payment_streak_years)
    };
    assert_eq!(told(paid(&[("0.5", 7)])), (0, 7));
    assert_eq!(told(paid(&[("0.5", 6), ("50", 1)])), (1, 7));
    assert_eq!(told(paid(&[("0.5", 5), ("50", 1), ("0.5", 1)])), (1, 7));
    // A quarantined payment with a future ex-date does not count.
    assert_eq!(told(paid(&[("0.5", 6)]).pay("2024-07-15", "50")), (1, 6));
}

#[test]
fn a_year_paid_in_another_currency_is_not_summed() {
    let with = |ex_date: &str| {
        let life = Life::new("currencies", TODAY).pay(ex_date, "0.4");
        let mut history = life.every(91, "2023-08-03", &[("0.5", 4)]).history();
        history.dividends[0].record.currency = "GBP".into();
        text(derived(&history).metrics.dps_ttm)
    };
    assert_eq!([with("2023-06-28"), with("2023-06-29")], ["2", "-"]);
    // If one payment is given in two currencies, the amount in the currency of the prices is used.
    assert_eq!(with("2024-02-01"), "2");
}

#[test]
fn only_who_pays_has_a_chowder_number() {
    let amounts = ["1", "1.1", "1.21", "1.331", "1.4641", "1.61051", "2"].map(|amount| (amount, 1));
    let life = Life::new("grower", TODAY).every(365, "2018-05-17", &amounts).close(TODAY, "50");
    let told = |suspended_on: Option<&str>| {
        let security = json!({ "symbol": "LIFE", "name": "Life", "type": "stock", "currency": "USD",
            "status": "active", "dividend_suspended_on": suspended_on });
        let metrics = derived(&History { security: Some(observed(security)), ..life.history() }).metrics;
        [metrics.growth_5y, metrics.yield_forward, metrics.chowder_number].map(text)
    };
    assert_eq!(told(None), ["10", "4", "14"]);
    assert_eq!(told(Some("2024-06-03")), ["10", "0", "-"]);
}

/// History with one close a month, on the 28th, from May 2022 to June 2024. `close` returns the close of a month. May
/// 2022 is month 0.
fn monthly(close: impl Fn(i32) -> &'static str) -> History {
    let days = (4..30).map(|month| format!("{}-{:02}-28", 2022 + month / 12, month % 12 + 1));
    let life = (0..)
        .zip(days)
        .fold(Life::new("monthly", TODAY), |life, (number, day)| life.close(&day, close(number)));
    life.history()
}

#[test]
fn a_beta_is_told_against_the_market() {
    let (policy, rules) = (SourcePolicy::default(), Rules::DEFAULT);
    let swinging = monthly(|month| if month % 2 == 0 { "100" } else { "110" });
    let against = |history: &History, as_of: &str| {
        let market =
            benchmark(&swinging, date(as_of), &market::metrics::ExchangeRates::NONE, &policy, &rules);
        text(beside(history, Some(&market)).metrics.beta_5y)
    };
    assert_eq!(against(&swinging, TODAY), "1");
    assert_eq!(against(&monthly(|_| "100"), TODAY), "0");
    // This security moves opposite to the benchmark, by the same amounts.
    let mirrored = monthly(|month| if month % 2 == 0 { "110" } else { "100" });
    assert!(against(&mirrored, TODAY).starts_with('-'));
    // A beta needs 24 monthly returns of both series.
    assert_eq!([against(&swinging, "2024-05-31"), against(&swinging, "2024-04-30")], ["1", "-"]);
    assert_eq!(text(derived(&swinging).metrics.beta_5y), "-");
}
