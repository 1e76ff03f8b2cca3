//! Tests of quarantined rows: reasons that allow a release, and metrics that are limited to days from a given day on.

use std::collections::BTreeSet;
use std::sync::Arc;

use market::dated_text::LimitToHistory;
use market::event::{Action, DecisionVerdict};
use market::history::History;
use market::metrics;
use market::metrics::derive;
use market::row::{Metrics, QuarantineReason};

use crate::decided::decision;
use crate::figures::in_market;
use crate::lives::{Life, date};

fn life() -> Life {
    Life::new("held", "2024-06-28")
}

fn session(change: impl FnOnce(&mut market::bars::Bars)) -> History {
    let mut history = life().close("2024-06-27", "40").history();
    change(Arc::make_mut(&mut history.prices[0].bars));
    history
}

/// Adds a decision with this verdict about every quarantined row.
fn judged(history: &History, verdict: DecisionVerdict) -> History {
    let held = in_market(|market| metrics::quarantined_rows(history, market));
    assert!(!held.is_empty());
    // Of two decisions about a row, the one with the higher line number counts.
    let line = 1 + history.decisions.len() as u64;
    let said = held.iter().map(|(_, row)| decision(row, verdict, Action::Put, line));
    History { decisions: history.decisions.iter().cloned().chain(said).collect(), ..history.clone() }
}

fn held(history: &History) -> Vec<QuarantineReason> {
    let held = in_market(|market| metrics::quarantined_rows(history, market));
    held.iter().map(|(row, _)| row.reason.parse().expect("a reason")).collect()
}

#[test]
fn a_person_can_release_what_is_held_for_its_neighbours_and_nothing_that_is_wrong_by_itself() {
    let outlier = life().every(91, "2023-03-27", &[("0.05", 5), ("5", 1)]).history();
    let mut undated = life().pay("2024-01-02", "1").history();
    undated.dividends[0].record.ex_date = None;
    let closes = ["19", "20", "21", "24", "25", "26"].iter().fold(life(), |life, day| {
        life.close(&format!("2024-06-{day}"), if *day == "24" { "4000" } else { "40" })
    });
    let cases = [
        life().close("2024-01-02", "10").pay("2024-01-03", "12").history(),
        judged(&outlier, DecisionVerdict::Confirm),
        outlier,
        life().pay("2052-01-02", "1").history(),
        session(|bars| (bars.high[0], bars.low[0]) = (3_900, 4_000)),
        session(|bars| bars.low[0] = -1),
        session(|bars| bars.volume[0] = -1),
        session(|bars| bars.close[0] = 0),
        undated,
        life().pay("2024-01-02", "-1").history(),
        life().split("2024-01-02", 2, 2).history(),
        life().split("2024-01-02", 0, 2).history(),
        closes.history(),
        life().close("2024-06-25", "40").close("2024-06-26", "300").close("2024-06-27", "41").history(),
        life().close("2024-06-26", "40").close("2024-06-27", "41").close("2024-06-28", "300").history(),
        life().close("2024-06-26", "40").close("2024-06-27", "41").split("2024-06-27", 1, 4).history(),
    ];
    let mut seen = BTreeSet::new();
    for history in cases {
        let reasons = held(&history);
        let [reason] = reasons.as_slice() else { panic!("{reasons:?}") };
        let left = held(&judged(&history, DecisionVerdict::Release));
        assert_eq!(left.is_empty(), reason.is_releasable(), "{reason} {left:?}");
        seen.insert(*reason);
    }
    assert_eq!(seen, QuarantineReason::ALL.iter().copied().collect(), "every reason has its case");
}

/// Limits the lists of the metrics to days from `first` on. Returns the years of the annual totals, followed by the
/// days of the quarantined rows. `-` is a quarantined row without a day.
fn since(metrics: &Metrics, first: &str) -> String {
    let told = metrics.clone().limit_to_days_from(date(first));
    let years = told.annual_totals.0.iter().map(|total| total.year.to_string());
    let days = told.quarantined.0.iter().map(|row| row.date.map_or("-".to_owned(), |day| day.to_string()));
    years.chain(days).collect::<Vec<_>>().join(" ")
}

#[test]
fn totals_and_held_rows_are_told_from_a_day_on() {
    let life = life().every(91, "2021-01-04", &[("0.25", 14)]);
    let life = life.pay("2022-12-30", "-1").pay("2023-01-01", "-2").pay("2024-01-02", "-3");
    let mut history = life.pay("2024-01-03", "-4").history();
    history.dividends.last_mut().expect("a row").record.ex_date = None;
    let metrics = in_market(|market| derive(&history, market)).metrics;
    for (first, told) in [
        ("2020-12-31", "2021 2022 2023 2024 - 2022-12-30 2023-01-01 2024-01-02"),
        ("2021-01-02", "2022 2023 2024 - 2022-12-30 2023-01-01 2024-01-02"),
        // The total of a year is listed only if the year begins on or after `first`.
        ("2023-01-01", "2023 2024 - 2023-01-01 2024-01-02"),
        ("2023-01-02", "2024 - 2024-01-02"),
        ("2024-01-02", "- 2024-01-02"),
        ("2024-01-03", "-"),
    ] {
        assert_eq!(since(&metrics, first), told, "{first}");
    }
}
