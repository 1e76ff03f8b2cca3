//! Tests on real dividend histories (R34, R8, R28). Some have special dividends in rows that the vendor marks as
//! regular. Others have repeated or missing payments, or ex-dates that shift to another year.

use market::history::SourcePolicy;
use market::metrics::{DerivationContext, DerivedRows, Rules, derive};
use market::row::{AmountReading, Flag};
use rust_decimal::Decimal;

use crate::figures::held_dividends;
use crate::lives::{Life, date};

fn decimal(text: &str) -> Decimal {
    text.parse().expect("a decimal")
}

/// Parses regular payments, one per line in the form `2024-03-08 0.60`.
fn life(as_of: &str, rows: &str) -> Life {
    rows.trim().lines().fold(Life::new("read", as_of), |life, row| {
        let (day, amount) = row.trim().split_once(' ').expect("a day and an amount");
        life.pay(day, amount)
    })
}

fn derived(life: &Life, as_of: &str) -> DerivedRows {
    let (history, policy) = (life.history(), SourcePolicy::default());
    let rules = Rules::DEFAULT;
    let as_of = date(as_of);
    derive(
        &history,
        &DerivationContext {
            as_of,
            newest: life.until,
            benchmark: None,
            rates: &market::metrics::ExchangeRates::NONE,
            reporting_currency: "USD",
            policy: &policy,
            rules: &rules,
        },
    )
}

fn total(derived: &DerivedRows, year: i32) -> Option<Decimal> {
    let totals = &derived.metrics.annual_totals.0;
    totals.iter().find(|total| total.year == year).map(|total| total.amount.0)
}

#[track_caller]
fn assert_flags(derived: &DerivedRows, flags: &[Flag]) {
    for flag in flags {
        assert!(
            derived.metrics.flags.0.contains(&flag.to_string()),
            "{flag} in {:?}",
            derived.metrics.flags.0
        );
    }
}

#[test]
fn a_row_on_a_day_without_a_session_repeats_the_next() {
    let mut life = Life::new("repeated", "2003-12-31");
    for (year, amount) in [(1999, "0.08"), (2000, "0.085"), (2001, "0.09"), (2002, "0.10"), (2003, "0.11")] {
        for day in ["03-13", "06-13", "09-17", "11-28"] {
            life = life.pay(&format!("{year}-{day}"), amount);
        }
    }
    let life = life.pay("2001-09-12", "0.09").close("2003-12-31", "25");
    let found = derived(&life, "2003-12-31");
    assert_eq!((total(&found, 2001), found.metrics.increase_streak_years), (Some(decimal("0.36")), 4));
    assert_eq!(found.metrics.growth_1y.map(|growth| growth.0), Some(decimal("11.1111")));
    assert_flags(&found, &[Flag::NearDuplicate]);
    assert!(found.dividends.iter().all(|row| row.ex_date != date("2001-09-12")));
}

#[test]
fn ex_dates_that_slide_over_new_year_keep_their_years() {
    let life = life(
        "2016-12-30",
        "2011-01-03 0.10\n2011-04-04 0.10\n2011-07-01 0.10\n2011-10-03 0.10\n2011-12-30 0.11\n2012-04-02 0.11
         2012-06-29 0.11\n2012-10-01 0.11\n2012-12-28 0.12\n2013-04-01 0.12\n2013-07-01 0.12\n2013-09-30 0.12
         2013-12-30 0.13\n2014-03-31 0.13\n2014-06-30 0.13\n2014-09-29 0.13\n2015-01-05 0.14\n2015-03-30 0.14
         2015-06-29 0.14\n2015-10-05 0.14\n2016-01-04 0.15\n2016-04-04 0.15\n2016-06-30 0.15\n2016-10-03 0.15",
    );
    let found = derived(&life, "2016-12-30");
    let totals: Vec<Option<Decimal>> = (2011..=2016).map(|year| total(&found, year)).collect();
    let expected = ["0.40", "0.44", "0.48", "0.52", "0.56", "0.60"].map(|amount| Some(decimal(amount)));
    assert_eq!(totals, expected);
    assert_eq!(found.metrics.growth_1y.map(|growth| growth.0), Some(decimal("7.6923")));
    assert_eq!(found.metrics.increase_streak_years, 5);
    assert_flags(&found, &[Flag::BoundaryShift]);
}

#[test]
fn the_rate_rests_on_no_december_extra() {
    let life = life(
        "2020-12-31",
        "2016-03-08 0.60\n2016-06-08 0.60\n2016-09-07 0.60\n2016-12-07 0.60\n2016-12-23 3.25\n2017-03-08 0.66
         2017-06-08 0.66\n2017-09-07 0.66\n2017-12-07 0.66\n2017-12-27 3.50\n2018-03-08 0.70\n2018-06-08 0.70
         2018-09-07 0.70\n2018-12-07 0.70\n2018-12-27 1.75\n2019-03-07 0.75\n2019-06-07 0.75\n2019-09-09 0.75
         2019-12-06 0.75\n2019-12-26 2.50\n2020-03-09 0.85\n2020-06-08 0.85\n2020-09-08 0.85\n2020-12-07 0.85
         2020-12-24 2.50",
    );
    let life = life.close("2018-12-31", "188").close("2020-12-31", "182");
    for (as_of, forward, headline) in [("2018-12-31", "2.8", "1.4894"), ("2020-12-31", "3.4", "1.8681")] {
        let found = derived(&life, as_of);
        assert_eq!(found.metrics.dps_forward.map(|amount| amount.0), Some(decimal(forward)), "{as_of}");
        assert_eq!(found.metrics.dividend_yield.map(|percent| percent.0), Some(decimal(headline)), "{as_of}");
        assert_eq!(held_dividends(&found.metrics), 0);
        assert_flags(&found, &[Flag::InferredSpecial]);
    }
}

#[test]
fn a_special_in_a_regular_row_counts_only_in_totals_and_prices() {
    let life = life(
        "2021-12-31",
        "2018-03-08 0.07\n2018-06-01 0.07\n2018-08-31 0.09\n2018-12-03 0.09\n2019-03-12 0.09\n2019-06-06 0.09
         2019-08-29 0.11\n2019-11-27 0.11\n2020-03-05 0.11\n2020-06-17 0.11\n2020-08-27 0.14\n2020-11-19 5.14
         2021-03-04 0.14\n2021-05-13 0.14\n2021-08-12 0.17\n2021-11-18 0.17",
    );
    let life = life.close("2020-11-18", "131.00").close("2020-11-19", "126.00").close("2021-12-31", "172.80");
    let found = derived(&life, "2021-12-31");
    assert_eq!(total(&found, 2020), Some(decimal("0.50")));
    assert_eq!(found.metrics.growth_1y.map(|growth| growth.0), Some(decimal("25")));
    assert_eq!(found.metrics.increase_streak_years, 3);
    let row = found.dividends.iter().find(|row| row.ex_date == date("2020-11-19")).expect("the row");
    assert_eq!((row.amount.0, row.special_amount.map(|part| part.0)), (decimal("5.14"), Some(decimal("5"))));
    assert_eq!(row.reading, Some(AmountReading::Combined));
    // The price factor uses the whole amount: 1 - 5.14 / 131.
    assert_eq!(row.price_factor.map(|factor| factor.0), Some(decimal("0.960763358779")));
    // Until a later payment shows the new regular amount, the forward rate uses the amount before it.
    let at_once = derived(&life, "2020-11-30");
    assert_eq!(at_once.metrics.dps_forward.map(|amount| amount.0), Some(decimal("0.56")));
    assert_eq!(total(&at_once, 2020), Some(decimal("0.50")));
}

#[test]
fn an_annual_raise_is_confirmed_by_quarterly_payments() {
    let life = life(
        "2021-12-31",
        "2013-03-07 0.25\n2014-03-07 0.27\n2015-03-07 0.29\n2016-03-07 0.31\n2017-03-07 0.35\n2018-03-07 1.05
         2019-03-07 1.75\n2020-03-06 10.00\n2021-03-08 2.75\n2021-06-07 2.75\n2021-09-07 2.75\n2021-12-07 2.75",
    );
    let life =
        life.of_type("2020-03-06", "6.00", "special").close("2020-03-05", "679").close("2020-03-06", "590");
    let found = derived(&life, "2021-12-31");
    assert_eq!((total(&found, 2020), held_dividends(&found.metrics)), (Some(decimal("10")), 0));
    assert_eq!(found.metrics.growth_1y.map(|growth| growth.0), Some(decimal("471.4286")));
    assert!(found.metrics.increase_streak_years >= 8, "{}", found.metrics.increase_streak_years);
}

#[test]
fn two_missing_payments_leave_their_year_unknown() {
    let life = life(
        "2020-12-31",
        "2016-02-14 0.14\n2016-05-15 0.14\n2016-08-14 0.14\n2016-11-13 0.14\n2017-02-14 0.15\n2017-05-15 0.15
         2017-08-14 0.15\n2017-11-13 0.15\n2018-02-14 0.16\n2018-05-15 0.16\n2018-08-14 0.16\n2018-11-13 0.16
         2019-08-14 0.18\n2019-11-13 0.18\n2020-02-14 0.20\n2020-05-15 0.20\n2020-08-14 0.20\n2020-11-13 0.20",
    );
    let found = derived(&life, "2020-12-31");
    assert_flags(&found, &[Flag::PaymentGap]);
    assert_eq!((found.metrics.growth_1y, found.metrics.growth_3y), (None, None));
    assert!(found.metrics.streak_lower_bound);
    assert!(!found.metrics.streak_at_risk);
}

#[test]
fn one_missing_payment_breaks_neither_growth_nor_streak() {
    let amounts = [("0.14", 4), ("0.15", 4), ("0.16", 4), ("0.18", 4), ("0.20", 4)];
    let mut life = Life::new("missing", "2020-12-31").every(91, "2016-02-14", &amounts);
    life.rows.remove(10);
    let found = derived(&life, "2020-12-31");
    assert_eq!(total(&found, 2018), Some(decimal("0.64")));
    assert_eq!(found.metrics.increase_streak_years, 4);
    assert_flags(&found, &[Flag::PaymentGap]);
}

#[test]
fn any_order_of_arrival_gives_the_same_readings() {
    let life = life(
        "2003-12-31",
        "2001-03-13 0.09\n2001-06-13 0.09\n2001-09-12 0.09\n2001-09-17 0.09\n2001-11-28 0.09\n2002-03-13 0.10
         2002-06-13 5.10\n2002-09-17 0.10\n2002-11-28 0.05\n2003-03-13 0.11\n2003-06-13 0.11\n2003-09-17 0.11",
    );
    let expected = derived(&life, "2003-12-31");
    let mut turned = life;
    for _ in 0..turned.rows.len() {
        turned.rows.rotate_left(1);
        let found = derived(&turned, "2003-12-31");
        assert_eq!(
            (&found.metrics.annual_totals, &found.metrics.flags),
            (&expected.metrics.annual_totals, &expected.metrics.flags)
        );
    }
    turned.rows.reverse();
    assert_eq!(derived(&turned, "2003-12-31").metrics.annual_totals, expected.metrics.annual_totals);
}

/// Returns the kind of a day's dividend (for example special) and the special part of its amount.
fn reading(derived: &DerivedRows, day: &str) -> (Option<AmountReading>, Option<Decimal>) {
    let row = derived.dividends.iter().find(|row| row.ex_date == date(day)).expect("a row");
    (row.reading, row.special_amount.as_ref().map(|amount| amount.0))
}

#[test]
fn a_payment_of_an_irregular_payer_is_repeated_on_the_next_day() {
    let life = life(
        "2024-08-22",
        "2022-01-18 3.5\n2022-01-19 3.5\n2022-06-27 10.25\n2023-04-10 2.79\n2024-04-08 3.80",
    );
    let found = derived(&life, "2024-08-22");
    assert_flags(&found, &[Flag::NearDuplicate]);
    let days: Vec<String> = found.dividends.iter().map(|row| row.ex_date.to_string()).collect();
    assert_eq!(days[..2], ["2022-01-19", "2022-06-27"]);
}

#[test]
fn of_two_payments_a_day_apart_the_one_on_the_yearly_schedule_is_regular() {
    let life = life(
        "2024-08-22",
        "2022-07-12 1.813539\n2022-07-13 1.95426\n2023-07-12 1.74283\n2024-05-30 2.743718",
    );
    let found = derived(&life, "2024-08-22");
    assert_eq!(reading(&found, "2022-07-12"), (Some(AmountReading::Regular), None));
    assert_eq!(reading(&found, "2022-07-13"), (Some(AmountReading::Special), Some(decimal("1.95426"))));
    assert_eq!(found.metrics.growth_1y.map(|growth| growth.0), Some(decimal("-3.8990")));
}

#[test]
fn a_distribution_of_a_quarter_of_the_price_has_no_regular_part() {
    let paid = |last: &str| {
        let rows =
            "2022-09-22 0.014\n2022-12-22 0.014\n2023-03-09 0.0142\n2023-06-08 0.0142\n2023-09-21 0.0142
            2023-12-21 0.0142\n2024-03-07 0.0142";
        let life = life("2024-07-05", &format!("{rows}\n2024-07-03 {last}"));
        let found = derived(&life.close("2024-07-02", "0.80").close("2024-07-03", "0.60"), "2024-07-05");
        (
            reading(&found, "2024-07-03"),
            found.metrics.dps_ttm.map(|sum| sum.0),
            found.metrics.dps_forward.map(|rate| rate.0),
        )
    };
    let special = |amount: &str| (Some(AmountReading::Special), Some(decimal(amount)));
    assert_eq!(paid("0.20"), (special("0.20"), Some(decimal("0.0426")), Some(decimal("0.0568"))));
    let combined = (Some(AmountReading::Combined), Some(decimal("0.1857")));
    assert_eq!(paid("0.1999"), (combined, Some(decimal("0.0568")), Some(decimal("0.0568"))));
}

#[test]
fn a_special_in_the_first_year_of_a_new_frequency_is_split_off() {
    let life = life(
        "2006-12-29",
        "2003-02-19 0.08\n2003-10-15 0.16\n2004-08-23 0.08\n2004-11-15 3.08\n2005-02-15 0.08\n2005-05-16 0.08
         2005-08-15 0.08\n2005-11-15 0.08\n2006-02-15 0.09\n2006-05-15 0.09\n2006-08-15 0.09\n2006-11-14 0.10",
    );
    let found = derived(&life, "2006-12-29");
    assert_eq!(reading(&found, "2004-11-15"), (Some(AmountReading::Combined), Some(decimal("3"))));
}
