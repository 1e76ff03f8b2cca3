//! Tests on histories that resemble those of real companies. Metrics are derived for every month end.
//!
//! Each history must satisfy three conditions. The dividend status is active, except in a suspension. The status does
//! not change in January. Fewer than one in 100 rows is quarantined.

use crate::figures::held_dividends;
use crate::lives::{Life, date};
use chrono::{Datelike, Days, NaiveDate};
use market::history::SourcePolicy;
use market::metrics::{DerivationContext, DerivedRows, Rules, derive};
use market::row::{DividendState, Flag};
use rust_decimal::Decimal;

fn decimal(text: &str) -> Decimal {
    text.parse().expect("a decimal")
}

fn asked(life: &Life, as_of: NaiveDate) -> DerivedRows {
    let policy = SourcePolicy::default();
    derive(
        &life.history(),
        &DerivationContext {
            as_of,
            newest: life.until,
            benchmark: None,
            rates: &market::metrics::ExchangeRates::NONE,
            reporting_currency: "USD",
            policy: &policy,
            rules: &Rules::DEFAULT,
        },
    )
}

fn month_ends(life: &Life) -> Vec<NaiveDate> {
    let days = life.first().iter_days().take_while(|day| *day <= life.until);
    days.filter(|day| (*day + Days::new(1)).day() == 1).collect()
}

/// Checks the three conditions of the module documentation. `paused` are the periods in which the company suspends its
/// payments, each as first and last day. In these periods, the dividend status is not checked.
#[track_caller]
fn check(life: &Life, paused: &[(&str, &str)]) {
    let is_paused = |day: NaiveDate| paused.iter().any(|(from, to)| date(from) <= day && day <= date(to));
    let mut before: Option<DividendState> = None;
    for day in month_ends(life) {
        let status = asked(life, day).metrics.dividend_status;
        if !is_paused(day) {
            assert_eq!(status, DividendState::Active, "{} on {day}", life.name);
        }
        if day.month() == 1 && !is_paused(day) {
            assert_eq!(Some(status), before.or(Some(status)), "{} in January {}", life.name, day.year());
        }
        before = Some(status);
    }
    let held = held_dividends(&asked(life, life.until).metrics);
    assert!(held * 100 < life.rows.len(), "{}: {held} of {} rows are held", life.name, life.rows.len());
}

fn flagged(derived: &DerivedRows, flag: Flag) -> bool {
    derived.metrics.flags.0.iter().any(|word| word == flag.as_str())
}

fn forward(derived: &DerivedRows) -> Option<Decimal> {
    derived.metrics.dps_forward.map(|amount| amount.0)
}

#[test]
fn a_dividend_resumed_after_17_years_counts_at_once() {
    let life = Life::new("resumed", "2016-08-31")
        .every(91, "1988-02-15", &[("0.11", 16), ("0.12", 16)])
        .every(91, "2012-08-09", &[("2.65", 4), ("3.05", 4), ("3.29", 4), ("0.52", 4)]);
    check(&life, &[("1996-01-01", "2012-07-31")]);
    // One payment is not enough for a frequency; two are enough.
    assert_eq!(forward(&asked(&life, date("2012-08-31"))), None);
    let found = asked(&life, date("2012-11-30"));
    assert_eq!(forward(&found), Some(decimal("10.6")));
    assert_eq!(held_dividends(&found.metrics), 0);
}

#[test]
fn a_bank_that_restores_its_dividend_is_believed_with_the_second_payment() {
    let life = Life::new("restored", "2013-10-31").every(
        91,
        "2000-02-03",
        &[("0.14", 36), ("0.01", 8), ("0.18", 11)],
    );
    check(&life, &[]);
    let first = life.rows[44].0;
    let held = asked(&life, first);
    assert_eq!((forward(&held), flagged(&held, Flag::InferredSpecial)), (Some(decimal("0.04")), true));
    let restored = asked(&life, life.rows[45].0);
    assert_eq!(
        (forward(&restored), flagged(&restored, Flag::InferredSpecial)),
        (Some(decimal("0.72")), false)
    );
    assert_eq!(restored.metrics.payment_count, 46);
}

#[test]
fn a_bond_fund_pays_twice_in_december_and_not_in_january() {
    let mut life = Life::new("bond fund", "2022-11-30");
    for year in 2003..=2022 {
        for month in 2..=12 {
            life = life.pay(&format!("{year}-{month:02}-01"), "0.25");
        }
        life = life.pay(&format!("{year}-12-{}", 15 + year % 4), "0.26");
    }
    life.rows.retain(|row| row.0 <= life.until);
    check(&life, &[]);
    assert_eq!(asked(&life, life.until).metrics.payments_per_year, Some(12));
}

#[test]
fn a_weekly_payer_skips_a_holiday_week() {
    let mut life = Life::new("weekly", "2024-11-29").every(7, "2022-01-06", &[("0.11", 151)]);
    life.rows.retain(|row| {
        !((row.0.month() == 12 && row.0.day() > 24) || (row.0.month() == 1 && row.0.day() < 4))
    });
    check(&life, &[]);
}

#[test]
fn every_four_weeks_is_thirteen_a_year() {
    let life = Life::new("four weeks", "2024-11-29").every(28, "2021-01-07", &[("0.50", 50)]);
    check(&life, &[]);
    let found = asked(&life, date("2024-10-31"));
    assert_eq!((found.metrics.frequency.as_str(), forward(&found)), ("four_weekly", Some(decimal("6.5"))));
}

#[test]
fn a_ten_for_one_split_beside_a_raise_is_a_raise() {
    let life = Life::new("split", "2026-03-31")
        .every(91, "2010-03-10", &[("0.04", 57)])
        .every(91, "2024-06-11", &[("0.01", 7)])
        .split("2024-06-10", 1, 10);
    check(&life, &[]);
    let found = asked(&life, date("2024-06-30"));
    assert_eq!((forward(&found), held_dividends(&found.metrics)), (Some(decimal("0.04")), 0));
    assert_eq!(found.metrics.latest_increase_percent.map(|percent| percent.0), Some(decimal("150")));
}

#[test]
fn a_yearly_extra_is_special_every_year() {
    let mut life = Life::new("yearly extra", "2018-06-30");
    for year in 2010..=2018 {
        for month in 1..=12 {
            let amount = if month == 12 { "0.25" } else { "0.02" };
            life = life.pay(&format!("{year}-{month:02}-10"), amount);
        }
    }
    life.rows.retain(|row| row.0 <= life.until);
    check(&life, &[]);
    let first = asked(&life, date("2011-10-31"));
    assert_eq!((held_dividends(&first.metrics), forward(&first)), (0, Some(decimal("0.24"))));
    let second = asked(&life, date("2011-12-31"));
    assert_eq!((held_dividends(&second.metrics), forward(&second)), (0, Some(decimal("0.24"))));
    assert_eq!(second.metrics.dps_ttm.map(|amount| amount.0), Some(decimal("0.24")));
    assert_eq!(second.metrics.dps_ttm_total.map(|amount| amount.0), Some(decimal("0.47")));
}

#[test]
fn pence_sent_as_pounds_are_held() {
    let once = Life::new("pence once", "2024-05-31").every(
        182,
        "1970-03-05",
        &[("0.05", 104), ("5", 1), ("0.05", 4)],
    );
    check(&once, &[]);
    let found = asked(&once, once.until);
    assert_eq!((held_dividends(&found.metrics), forward(&found)), (1, Some(decimal("0.1"))));
    // Two amounts in another unit stay quarantined after the old amount returns. Three in a row count as a new level,
    // and the return to the old amount counts too.
    let twice = Life::new("pence twice", "2023-12-31").every(
        91,
        "1970-03-05",
        &[("0.05", 204), ("5", 2), ("0.05", 10)],
    );
    check(&twice, &[]);
    assert_eq!(held_dividends(&asked(&twice, twice.until).metrics), 2);
    let thrice = Life::new("pence thrice", "2024-03-31").every(
        91,
        "1970-03-05",
        &[("0.05", 204), ("5", 3), ("0.05", 10)],
    );
    check(&thrice, &[]);
    assert_eq!(held_dividends(&asked(&thrice, thrice.until).metrics), 0);
}

#[test]
fn a_liquidation_ends_a_life_without_a_rate() {
    let life = Life::new("liquidated", "2015-08-31")
        .every(91, "2000-02-03", &[("0.25", 60)])
        .of_type("2014-12-01", "24", "liquidation")
        .close("2014-11-28", "26")
        .close("2014-12-01", "2");
    check(&life, &[("2015-03-01", "2015-08-31")]);
    let found = asked(&life, date("2014-12-31"));
    assert_eq!((held_dividends(&found.metrics), forward(&found)), (0, Some(decimal("1"))));
    assert_eq!(asked(&life, life.until).metrics.dividend_status, DividendState::Lapsed);
}

#[test]
fn a_spin_off_sent_as_a_regular_dividend_is_no_rate() {
    let life = Life::new("spin-off", "2019-06-30")
        .every(91, "2000-02-03", &[("0.45", 78)])
        .pay("2013-01-02", "12")
        .close("2012-12-31", "65")
        .close("2013-01-02", "53.50")
        .close("2019-06-28", "80");
    check(&life, &[]);
    for day in ["2013-01-02", "2013-12-31", "2019-06-28"] {
        let found = asked(&life, date(day));
        assert_eq!(forward(&found), Some(decimal("1.8")), "{day}");
        assert!(flagged(&found, Flag::SpecialByPrice), "{day}");
        assert_eq!(held_dividends(&found.metrics), 0, "{day}");
    }
}

#[test]
fn an_untyped_special_is_no_rate_until_confirmed() {
    let life = Life::new("untyped special", "2010-03-31").every(
        91,
        "2000-02-03",
        &[("0.25", 12), ("2", 1), ("0.25", 28)],
    );
    check(&life, &[]);
    let unusual = asked(&life, life.rows[12].0);
    assert_eq!((forward(&unusual), flagged(&unusual, Flag::LatestAmountUnusual)), (Some(decimal("1")), true));
    let after = asked(&life, life.rows[13].0);
    assert_eq!((forward(&after), flagged(&after, Flag::LatestAmountUnusual)), (Some(decimal("1")), false));
}

#[test]
fn a_changed_frequency_is_followed() {
    let life = Life::new("changed frequency", "2024-11-30").every(182, "2000-03-09", &[("0.60", 32)]).every(
        91,
        "2016-05-12",
        &[("0.31", 34)],
    );
    check(&life, &[]);
    assert_eq!(asked(&life, date("2015-12-31")).metrics.payments_per_year, Some(2));
    let found = asked(&life, date("2018-12-31"));
    assert_eq!((found.metrics.payments_per_year, forward(&found)), (Some(4), Some(decimal("1.24"))));
}

#[test]
fn a_steady_raiser_of_half_years_is_not_understated() {
    let raised: Vec<(String, usize)> = (0..20).map(|n| (format!("0.{}", 20 + 3 * n), 1)).collect();
    let amounts: Vec<(&str, usize)> =
        raised.iter().map(|(amount, times)| (amount.as_str(), *times)).collect();
    let life = Life::new("raiser", "2024-11-30").every(182, "2015-03-05", &amounts);
    check(&life, &[]);
    let last = life.rows[life.rows.len() - 1].1;
    assert_eq!(forward(&asked(&life, life.until)), Some(last * Decimal::TWO));
}
