//! Texts of explanations for plans with a short history. No text has a day or a year from before the history.

use market::dated_text::LimitToHistory;
use market::event::{Action, DecisionVerdict};
use market::history::{History, Observation};
use market::metrics::quarantined_rows;

use crate::decided::decision;
use crate::explained::company;
use crate::figures::{derived, explained, in_market, limited};
use crate::lives::{Life, date};
use crate::older_dates::find_older_dates;

fn formula(history: &History, first: &str, name: &str) -> (String, Option<String>) {
    let explained = limited(history, date(first)).metrics;
    let metric = explained.into_iter().find(|metric| metric.metric == name).expect("a metric");
    (metric.formula.to_string(), metric.value)
}

/// Histories whose explanations mention days or years for different reasons: unusual payments, splits, corrections,
/// withdrawn and quarantined rows, and review decisions.
fn histories() -> Vec<History> {
    let mut corrected = company();
    let mut withdrawn = corrected.dividends[0].clone();
    (withdrawn.revision, withdrawn.action) = (9, Action::Retract);
    withdrawn.id = Some("paid-2019-03-07".to_owned());
    corrected.dividends[0].id = withdrawn.id.clone();
    corrected.dividends.push(withdrawn);
    let cut = Life::new("cut", "2024-06-28")
        .every(91, "2016-01-04", &[("0.5", 8), ("0.3", 4), ("0.31", 20)])
        .close("2019-06-28", "20")
        .close("2024-06-28", "30");
    let gap = Life::new("gap", "2024-06-28")
        .pay("2018-12-31", "0.5")
        .pay("2019-04-01", "0.5")
        .every(91, "2020-01-06", &[("0.5", 9)])
        .pay("2023-09-01", "0.5")
        .close("2021-03-01", "9");
    let outlier =
        Life::new("held", "2024-06-28").every(91, "2022-03-28", &[("0.05", 5), ("5", 1), ("0.05", 4)]);
    let split = Life::new("split", "2024-06-28")
        .every(91, "2022-03-28", &[("0.5", 9)])
        .close("2023-06-26", "40")
        .close("2023-06-27", "10")
        .split("2023-06-30", 1, 4)
        .split("2019-06-28", 1, 2);
    let lapsed =
        Life::new("lapsed", "2024-06-28").every(91, "2017-01-03", &[("0.5", 9)]).close("2019-01-02", "8");
    let mut all = vec![corrected];
    all.extend([cut, gap, outlier, split, lapsed].map(|life| life.history()));
    let mut decided = all[3].clone();
    let decided_at = "2024-06-28T10:00:00Z".parse().expect("an instant");
    for (_, row) in in_market(|market| quarantined_rows(&all[3], market)) {
        let decision = decision(&row, DecisionVerdict::Confirm, Action::Put, 7);
        decided.decisions.push(Observation { observed_at: decided_at, ..decision });
    }
    assert!(!decided.decisions.is_empty());
    all.push(decided);
    all
}

#[test]
fn no_text_has_a_day_or_year_from_before_the_history() {
    for history in histories() {
        for first in ["2019-06-28", "2022-01-01", "2023-06-28", "2024-06-28"] {
            let metrics = derived(&history).metrics.limit_to_days_from(date(first));
            let explanation = explained(&history).limit_to_days_from(date(first), &metrics);
            let mut told = serde_json::to_value((&metrics, &explanation)).expect("JSON");
            // The latest price is in every plan, and so is its session.
            told[0]["price_date"].take();
            for metric in told[1]["metrics"].as_array_mut().expect("metrics") {
                if metric["metric"] == "price_date" {
                    metric["value"].take();
                }
            }
            let older = find_older_dates(&told.to_string(), date(first));
            assert!(older.is_empty(), "{} since {first}: {older:?}\n{told:#}", history.symbol);
        }
    }
}

#[test]
fn earlier_terms_are_counted_and_their_figures_are_left_out() {
    let company = company();
    for (first, name, expected) in [
        (
            "2023-06-28",
            "growth_3y",
            "([1 earlier year outside the plan's history] / [1 earlier year outside the plan's history]) ^ (1/3) - 1, \
             x 100 = 25.9921 %",
        ),
        (
            "2023-10-01",
            "dps_ttm",
            "sum of regular amounts with ex-date in ([1 earlier day outside the plan's history], 2024-06-28], adjusted \
             for splits: [1 earlier day outside the plan's history] + 0.4 (2023-12-07) + 0.5 (2024-03-07) + 0.5 \
             (2024-06-06) = 1.8 USD",
        ),
    ] {
        assert_eq!(formula(&company, first, name).0, expected);
    }
    for (name, whole) in [("streak_started", "2021"), ("first_payment_date", "2019-03-07")] {
        assert_eq!(formula(&company, "2019-01-01", name).1.as_deref(), Some(whole));
        assert_eq!(formula(&company, "2023-06-28", name).1, None);
    }
    let totals = formula(&company, "2024-01-01", "annual_totals").1;
    assert_eq!(totals.as_deref(), Some(r#"[{"amount":1,"complete":false,"year":2024}]"#));
}

#[test]
fn earlier_years_are_counted_and_the_first_listed_year_has_no_change() {
    let years = |first: &str| {
        let explained = limited(&company(), date(first)).metrics;
        let streak = explained.into_iter().find(|metric| metric.metric == "increase_streak_years");
        let streak = streak.expect("a metric");
        let listed = streak.years.iter().map(|year| (year.year, year.change_percent.is_some(), year.counted));
        (listed.collect::<Vec<_>>(), streak.older_years)
    };
    let whole = [
        (2020, false, false),
        (2021, true, true),
        (2022, true, true),
        (2023, true, true),
        (2024, false, false),
    ];
    assert_eq!(years("2020-01-01"), (whole.to_vec(), 0));
    assert_eq!(years("2022-06-01"), (vec![(2023, false, true), (2024, false, false)], 2));
}
