//! Tests of the choice and conversion of exchange rates.

use chrono::DateTime;

use super::*;
use crate::history::PolicyRule;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn row(source: &str, second: i64, pair: [&str; 2], day: &str, rate: Decimal) -> Observation<FxRate> {
    Observation {
        source: source.into(),
        id: None,
        security_ref: None,
        revision: 0,
        action: Action::Put,
        observed_at: DateTime::from_timestamp(second, 0).unwrap(),
        line: 1,
        frame: [0; 16],
        record: FxRate::new(pair[0], pair[1], date(day), rate),
    }
}

fn ecb(rows: &[(&str, &str, Decimal)]) -> ExchangeRates {
    let rows: Vec<_> =
        rows.iter().map(|(quote, day, rate)| row("ecb", 1, ["EUR", quote], day, *rate)).collect();
    ExchangeRates::new(&rows, &SourcePolicy::default())
}

fn text(rates: &ExchangeRates, from: &str, to: &str, day: &str) -> Option<String> {
    let rate = rates.rate(from, to, date(day), date("2030-01-01"))?;
    let through = rate.through.map(|hub| format!(" through {hub}")).unwrap_or_default();
    Some(format!("{} of {}{through}", rate.value, rate.date))
}

#[test]
fn a_rate_is_its_own_the_inverse_or_a_cross_rate() {
    let rates = ecb(&[("USD", "2024-06-26", dec!(1.25)), ("GBP", "2024-06-26", dec!(0.8))]);
    assert_eq!(text(&rates, "EUR", "USD", "2024-06-26").as_deref(), Some("1.25 of 2024-06-26"));
    assert_eq!(text(&rates, "USD", "EUR", "2024-06-26").as_deref(), Some("0.8 of 2024-06-26"));
    assert_eq!(text(&rates, "USD", "GBP", "2024-06-26").as_deref(), Some("0.64 of 2024-06-26 through EUR"));
    assert_eq!(text(&rates, "USD", "USD", "2024-06-26"), None);
    assert_eq!(text(&rates, "USD", "JPY", "2024-06-26"), None);
    // 1 / 1.0973 to 15 significant digits.
    let thirds = ecb(&[("USD", "2024-06-26", dec!(1.0973))]);
    let inverse = thirds.rate("USD", "EUR", date("2024-06-26"), date("2024-06-26")).unwrap();
    assert_eq!(inverse.value.to_string(), "0.911327804611319");
}

#[test]
fn a_rate_is_at_most_seven_days_old_and_never_from_the_future() {
    let rates = ecb(&[("USD", "2024-06-14", dec!(1.07)), ("USD", "2024-06-21", dec!(1.08))]);
    assert_eq!(text(&rates, "EUR", "USD", "2024-06-13"), None);
    assert_eq!(text(&rates, "EUR", "USD", "2024-06-20").as_deref(), Some("1.07 of 2024-06-14"));
    assert_eq!(text(&rates, "EUR", "USD", "2024-06-28").as_deref(), Some("1.08 of 2024-06-21"));
    assert_eq!(text(&rates, "EUR", "USD", "2024-06-29"), None);
    let known = rates.rate("EUR", "USD", date("2024-06-28"), date("2024-06-20")).unwrap();
    assert_eq!((known.value, known.date), (dec!(1.07), date("2024-06-14")));
}

#[test]
fn a_rate_that_contradicts_both_neighbours_is_held() {
    let days = |middle: Decimal| {
        ecb(&[("USD", "2024-06-19", dec!(1)), ("USD", "2024-06-20", middle), ("USD", "2024-06-21", dec!(1))])
    };
    let used = |middle: Decimal| text(&days(middle), "EUR", "USD", "2024-06-20").unwrap();
    assert_eq!(used(dec!(3)), "3 of 2024-06-20");
    assert_eq!(used(dec!(3.01)), "1 of 2024-06-19");
    assert_eq!(used(dec!(0.33)), "1 of 2024-06-19");
    // Before the next rate is known, nothing contradicts it.
    let known = days(dec!(100));
    let rate = known.rate("EUR", "USD", date("2024-06-20"), date("2024-06-20")).unwrap();
    assert_eq!(rate.value, dec!(100));
}

#[test]
fn a_series_has_one_rate_for_each_day_on_which_it_is_known() {
    let days = |rates: &ExchangeRates, pair: [&str; 2], from: &str| {
        let series = rates.series(pair[0], pair[1], date(from), date("2024-06-30"));
        series.map(|rate| format!("{} of {}", rate.value, rate.date)).collect::<Vec<_>>()
    };
    let held = ecb(&[
        ("USD", "2024-06-18", dec!(1)),
        ("USD", "2024-06-19", dec!(2)),
        ("USD", "2024-06-20", dec!(100)),
        ("USD", "2024-06-21", dec!(2)),
    ]);
    let expected = ["1 of 2024-06-18", "2 of 2024-06-19", "2 of 2024-06-21"];
    assert_eq!(days(&held, ["EUR", "USD"], "2024-06-01"), expected);
    assert_eq!(days(&held, ["EUR", "USD"], "2024-06-19"), expected[1..]);
    let cross = ecb(&[
        ("USD", "2024-06-18", dec!(2)),
        ("GBP", "2024-06-18", dec!(1)),
        ("USD", "2024-06-19", dec!(4)),
        ("GBP", "2024-06-20", dec!(1)),
        ("USD", "2024-06-20", dec!(5)),
    ]);
    assert_eq!(days(&cross, ["GBP", "USD"], "2024-06-01"), ["2 of 2024-06-18", "5 of 2024-06-20"]);
}

#[test]
fn corrections_retractions_and_the_source_policy_decide_by_day() {
    let pair = ["EUR", "USD"];
    let first = row("ecb", 1, pair, "2024-06-20", dec!(1.07));
    let corrected = row("ecb", 2, pair, "2024-06-20", dec!(1.09));
    let other = row("bank", 3, pair, "2024-06-20", dec!(1.2));
    let rate = |rows: &[&Observation<FxRate>], policy: &SourcePolicy| {
        let rows: Vec<_> = rows.iter().map(|row| (*row).clone()).collect();
        let rates = ExchangeRates::new(&rows, policy);
        rates
            .rate("EUR", "USD", date("2024-06-20"), date("2024-06-20"))
            .map(|rate| (rate.value, rate.source()))
    };
    let none = SourcePolicy::default();
    assert_eq!(rate(&[&corrected, &first], &none), Some((dec!(1.09), "ecb".into())));
    assert_eq!(rate(&[&first, &other], &none), Some((dec!(1.2), "bank".into())));
    let rule = PolicyRule { kind: Kind::Fx, source: "ecb".into(), from: None, to: None, rank: 1 };
    let ranked = SourcePolicy { rules: vec![rule] };
    assert_eq!(rate(&[&first, &other], &ranked), Some((dec!(1.07), "ecb".into())));
    let withdrawn = Observation { action: Action::Retract, ..row("ecb", 3, pair, "2024-06-20", dec!(1)) };
    assert_eq!(rate(&[&first, &withdrawn], &none), None);
    assert_eq!(rate(&[&first, &withdrawn, &other], &ranked), Some((dec!(1.2), "bank".into())));
}

#[test]
fn replaced_years_are_those_of_a_fresh_load() {
    let rates = |rows: &[Observation<FxRate>]| ExchangeRates::new(rows, &SourcePolicy::default());
    let (old, next) = (row("a", 0, ["EUR", "USD"], "2023-12-29", dec!(1.1)), ["EUR", "USD"]);
    let before = row("a", 0, next, "2024-01-02", dec!(1.2));
    let other = row("a", 0, ["EUR", "GBP"], "2024-01-02", dec!(0.8));
    let after = row("b", 0, next, "2024-01-03", dec!(1.3));
    let mut replaced = rates(&[old.clone(), before.clone(), other.clone()]);
    replaced.replace(&["EURUSD:2024"], rates(std::slice::from_ref(&after)));
    assert_eq!(replaced, rates(&[old.clone(), other.clone(), after]));
    replaced.replace(&["EURUSD:2024", "EURGBP:2024"], ExchangeRates::NONE);
    assert_eq!(replaced.pairs, rates(&[old]).pairs);
}
