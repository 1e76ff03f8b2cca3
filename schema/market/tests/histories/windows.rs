//! Tests for explanations: a metric's explanation lists exactly the records and bars in the metric's period.

use std::sync::Arc;

use chrono::{Datelike, NaiveDate, Weekday};
use market::bars::BarVersion;
use market::event::Security;
use market::history::History;
use market::metrics::explain::ExplainedMetric;
use market::metrics::{YearStatus, explain_session};
use serde_json::json;

use crate::explained::observed;
use crate::figures::{explained, in_market, limited, text};
use crate::lives::{Life, date};

fn metric(history: &History, name: &str) -> ExplainedMetric {
    explained(history).metrics.into_iter().find(|metric| metric.metric == name).expect("a metric")
}

/// Records and bars in the explanation of a metric, each as `kind date amount currency`.
fn seen(metric: &ExplainedMetric) -> Vec<String> {
    let told = metric.observations.iter().map(|seen| {
        let day = seen.date.map_or("-".to_owned(), |day| day.to_string());
        format!("{} {day} {} {}", seen.kind, text(seen.amount), seen.currency.as_deref().unwrap_or("-"))
    });
    told.collect()
}

#[test]
fn a_payment_of_a_year_ago_to_the_day_is_not_of_the_year() {
    let life = Life::new("window", "2024-06-28")
        .pay("2023-06-28", "0.4")
        .pay("2023-06-29", "0.5")
        .pay("2024-06-28", "0.6")
        .pay("2024-07-01", "0.7");
    let trailing = metric(&life.history(), "dps_ttm");
    assert_eq!(trailing.value.as_deref(), Some("1.1"));
    assert_eq!(seen(&trailing), ["dividend 2023-06-29 0.5 USD", "dividend 2024-06-28 0.6 USD"]);
    assert!(
        trailing.formula.to_string().ends_with(": 0.5 (2023-06-29) + 0.6 (2024-06-28) = 1.1 USD"),
        "{}",
        trailing.formula
    );
    let total = metric(&life.history(), "dps_ttm_total");
    assert_eq!((seen(&total), total.value), (seen(&trailing), trailing.value));
}

#[test]
fn a_split_is_behind_a_sum_when_it_came_after_a_payment_in_it() {
    // A payment on the day of a split is already per new share.
    let behind = |ex_date: &str| {
        let life = Life::new("behind", "2024-06-28").pay("2023-09-07", "0.4").pay("2024-03-07", "0.4");
        seen(&metric(&life.split(ex_date, 1, 2).history(), "dps_ttm"))
    };
    let payments = ["dividend 2023-09-07 0.4 USD", "dividend 2024-03-07 0.4 USD"];
    let with = |split| [payments.as_slice(), &[split]].concat();
    assert_eq!(behind("2023-09-07"), payments);
    assert_eq!(behind("2023-09-08"), with("split 2023-09-08 - -"));
    assert_eq!(behind("2024-06-28"), with("split 2024-06-28 - -"));
    assert_eq!(behind("2024-07-01"), payments);
}

#[test]
fn an_explanation_names_the_currency_that_was_paid_and_the_one_that_is_quoted() {
    let mut history = Life::new("pounds", "2024-06-28")
        .pay("2023-12-07", "0.4")
        .pay("2024-06-06", "0.5")
        .close("2024-06-28", "50")
        .history();
    history.dividends.iter_mut().for_each(|row| row.record.currency = "GBP".into());
    let told = metric(&history, "yield_ttm");
    assert_eq!(told.formula.to_string(), "null: dividends in GBP, prices in USD");
    assert_eq!(
        seen(&told),
        ["dividend 2023-12-07 0.4 GBP", "dividend 2024-06-06 0.5 GBP", "price 2024-06-28 50 USD"]
    );
}

#[test]
fn the_first_of_252_returns_needs_the_close_before_it() {
    let sessions = date("2023-01-02").iter_days().take_while(|day| *day <= date("2024-06-28"));
    let days: Vec<NaiveDate> =
        sessions.filter(|day| !matches!(day.weekday(), Weekday::Sat | Weekday::Sun)).collect();
    let oldest = |days: &[NaiveDate]| {
        let life = days.iter().fold(Life::new("daily", "2024-06-28"), |life, day| {
            life.close(&day.to_string(), if day.day() % 2 == 0 { "40" } else { "41" })
        });
        metric(&life.history(), "volatility_1y").observations[0].date
    };
    let newest = |count: usize| &days[days.len() - count..];
    assert_eq!(oldest(&days), Some(newest(253)[0]));
    assert_eq!(oldest(newest(253)), Some(newest(253)[0]));
    assert_eq!(oldest(newest(100)), Some(newest(100)[0]));
}

#[test]
fn without_a_streak_the_two_years_that_end_it_are_compared() {
    let life = Life::new("fallen", "2024-06-28")
        .every(182, "2020-02-06", &[("1", 4)])
        .every(182, "2022-02-03", &[("0.9", 2), ("0.8", 2)])
        .pay("2024-02-08", "0.7");
    let told = metric(&life.history(), "increase_streak_years");
    assert_eq!(told.value.as_deref(), Some("0"));
    let years: Vec<(i32, String, YearStatus, bool)> = told
        .years
        .iter()
        .map(|year| (year.year, year.total.expect("a total").to_string(), year.status, year.counted))
        .collect();
    let year = |year: i32, total: &str, status| (year, total.to_owned(), status, false);
    let expected = [
        year(2022, "1.8", YearStatus::Lower),
        year(2023, "1.6", YearStatus::Lower),
        year(2024, "0.7", YearStatus::Running),
    ];
    assert_eq!(years, expected);
    assert_eq!(seen(&told).first().map(String::as_str), Some("dividend 2022-02-03 0.9 USD"));
}

#[test]
fn who_has_suspended_its_dividend_is_said_to_pay_nothing() {
    let mut history = Life::new("suspended", "2024-06-28").every(91, "2023-03-27", &[("0.5", 5)]).history();
    let told = |history: &History| {
        let told = metric(history, "dps_forward");
        (told.value.expect("a figure"), told.formula.to_string())
    };
    let indicated = "latest regular amount declared 0.5 (2024-03-25) x 4 payments a year = 2 USD";
    assert_eq!(told(&history), ("2".to_owned(), indicated.to_owned()));
    history.security = Some(observed::<Security>(json!({
        "symbol": "LIFE", "name": "Life", "type": "stock", "currency": "USD", "status": "active",
        "dividend_suspended_on": "2024-05-02",
    })));
    assert_eq!(
        told(&history),
        ("0".to_owned(), "the payer is suspended, so the forward dividend = 0 USD".to_owned())
    );
}

#[test]
fn what_comes_next_is_declared_or_expected_or_overdue() {
    let told = |first: &str, times: usize| {
        let life = Life::new("next", "2024-06-28").every(91, first, &[("0.5", times)]);
        metric(&life.history(), "next").formula.to_string()
    };
    // The fifth, sixth and seventh payments are on 2024-02-20, 2024-05-21 and 2024-08-20. Today is 2024-06-28.
    assert_eq!(told("2023-02-21", 5), "the expected ex-date has passed: overdue");
    assert_eq!(
        told("2023-02-21", 6),
        "same slot of last year + 12 months, rolled forward to a session: 2024-08-22"
    );
    assert_eq!(told("2023-02-21", 7), "earliest declared ex-date from 2024-06-28 on: 2024-08-20");
    assert_eq!(told("2021-02-21", 5), "nothing declared and nothing to expect");
}

#[test]
fn held_rows_are_listed_from_a_day_on_and_those_without_a_day_always() {
    let life = Life::new("held", "2024-06-28").every(91, "2023-03-27", &[("0.05", 5), ("5", 1)]);
    let mut history = life.history();
    history.dividends[0].record.ex_date = None;
    let since = |first: &str| {
        let held = limited(&history, date(first)).quarantined;
        held.iter().map(|row| format!("{:?} {}", row.date, row.reason)).collect::<Vec<_>>()
    };
    let dateless = "None no_ex_date";
    assert_eq!(since("2024-06-24"), [dateless, "Some(2024-06-24) amount_outlier"]);
    assert_eq!(since("2024-06-25"), [dateless]);
}

#[test]
fn the_close_of_a_session_is_what_the_source_that_is_believed_says() {
    let mut history =
        Life::new("told", "2024-06-28").close("2024-06-27", "50").close("2024-06-28", "51").history();
    let told = |history: &History, session: &str| {
        let told = in_market(|market| explain_session(history, market, date(session)));
        (told.value, told.formula.to_string(), told.observations.len())
    };
    let counts = |close: &str, day: &str| {
        let formula = format!("raw close of {day} from a (the only source of the day) = {close} USD");
        (Some(close.to_owned()), formula, 1)
    };
    let nothing = |day: &str, seen: usize| (None, format!("null: no bar of {day} counts"), seen);
    assert_eq!(told(&history, "2024-06-27"), counts("50", "2024-06-27"));
    assert_eq!(told(&history, "2024-06-28"), counts("51", "2024-06-28"));
    assert_eq!(told(&history, "2024-06-26"), nothing("2024-06-26", 0));
    // A retracted close is listed in the explanation, but is not used.
    let bars = Arc::make_mut(&mut history.prices[0].bars);
    bars.versions.push(BarVersion { retracted: true, ..BarVersion::UNKNOWN });
    bars.version[1] = 1;
    assert_eq!(told(&history, "2024-06-27"), counts("50", "2024-06-27"));
    assert_eq!(told(&history, "2024-06-28"), nothing("2024-06-28", 1));
}
