//! Tests of decisions about quarantined rows. The quarantine lists each row with the values that identify it in a
//! decision. Of several decisions about a row, the newest is found.

use market::event::{Action, DecidedRow, Decision, DecisionVerdict};
use market::history::{History, Observation};
use market::metrics::{newest_decisions, quarantined_rows};
use market::row::Quarantined;
use serde_json::json;

use crate::explained::observed;
use crate::figures::{derived, in_market};
use crate::lives::Life;

fn held_rows(history: &History) -> Vec<(Quarantined, DecidedRow)> {
    in_market(|market| quarantined_rows(history, market))
}

/// History with two quarantined rows. One is a dividend whose amount is 100 times the earlier amounts. The other is a
/// close that is 100 times the closes around it.
fn contradicted() -> History {
    let closes =
        ["2024-06-19", "2024-06-20", "2024-06-21", "2024-06-24", "2024-06-25", "2024-06-26", "2024-06-27"];
    let life = Life::new("held", "2024-06-28").every(91, "2023-03-27", &[("0.05", 5), ("5", 1)]);
    let life = closes
        .iter()
        .fold(life, |life, day| life.close(day, if *day == "2024-06-21" { "4000" } else { "40" }));
    let mut history = life.history();
    history.dividends[5].id = Some("r6".into());
    history
}

pub(crate) fn decision(
    row: &DecidedRow,
    verdict: DecisionVerdict,
    action: Action,
    line: u64,
) -> Observation<Decision> {
    let symbol = "LIFE".parse().expect("a symbol");
    let (reason, note) = ("held".to_owned(), "looked at the filing".to_owned());
    let said = observed(json!(Decision { symbol, verdict, row: row.clone(), reason, note }));
    Observation { source: "manual".into(), id: None, action, line, ..said }
}

#[test]
fn every_held_row_is_released_by_the_name_that_it_is_held_under() {
    let history = contradicted();
    let rows = held_rows(&history);
    let told: Vec<String> = rows
        .iter()
        .map(|(row, named)| {
            let id = named.row_id.as_deref().unwrap_or("-");
            format!("{} {} {id} {} {}", row.kind, row.reason, named.date.expect("a date"), named.value)
        })
        .collect();
    assert_eq!(
        told,
        ["dividend amount_outlier r6 2024-06-24 5", "price price_unit_error - 2024-06-21 4000.00"]
    );
    let listed = derived(&history).quarantined;
    assert_eq!(rows.iter().map(|(row, _)| row.clone()).collect::<Vec<_>>(), listed);
    for (place, (_, named)) in rows.iter().enumerate() {
        let decided = vec![decision(named, DecisionVerdict::Release, Action::Put, 1)];
        let mut others = rows.clone();
        others.remove(place);
        assert_eq!(held_rows(&History { decisions: decided, ..history.clone() }), others);
    }
}

#[test]
fn of_each_row_the_newest_decision_is_told_also_when_it_was_taken_back() {
    let mut history = contradicted();
    let rows = held_rows(&history);
    let (payment, close) = (&rows[0].1, &rows[1].1);
    assert!(newest_decisions(&history).is_empty());
    history.decisions = vec![
        decision(payment, DecisionVerdict::Release, Action::Put, 1),
        decision(payment, DecisionVerdict::Confirm, Action::Put, 2),
        decision(close, DecisionVerdict::Release, Action::Put, 3),
        decision(close, DecisionVerdict::Release, Action::Retract, 4),
    ];
    let newest = newest_decisions(&history);
    let told: Vec<_> = newest.iter().map(|(row, one)| (*row, one.record.verdict, one.action)).collect();
    assert_eq!(
        told,
        [
            (close, DecisionVerdict::Release, Action::Retract),
            (payment, DecisionVerdict::Confirm, Action::Put)
        ]
    );
}
