//! Tests on worked cases of the domain rules. Derived figures are compared with the expected values of each case.
//!
//! The published cases are in a file outside the workspace. If it is missing, their test is recorded as skipped.

mod golden_cases;
#[path = "../../../tests/harness/older_dates.rs"]
#[expect(unreachable_pub, reason = "the harness of the tests exports the function")]
mod older_dates;

use std::path::Path;

use chrono::{Datelike, Months};
use golden_cases::compare::matches;
use golden_cases::inputs::Inputs;
use golden_cases::outputs::Outputs;
use golden_cases::tables;
use market::dated_text::LimitToHistory;
use older_dates::find_older_dates;
use serde_json::Value;
use skipped::Requirement;

/// Expectations about the API's calendars (R20), which have no part in this crate. Only `tests/it/golden.rs` compares
/// them.
const ONLY_SERVED: [&str; 2] = ["ex_date_calendar", "payment_date_calendar"];

fn cases(path: &str) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).ok()?;
    let file: Value = serde_json::from_str(&text).expect("the cases are JSON");
    Some(file["cases"].as_array().expect("the file has cases").clone())
}

#[test]
fn every_bound_holds() {
    hold(&cases("domain-cases.json").expect("the fixture"));
}

#[test]
fn every_worked_case_holds() {
    let Some(cases) = cases("../../../shared/golden/domain-cases.json") else {
        return skipped::record(Requirement::WorkedCases, "");
    };
    hold(&cases);
}

#[test]
fn no_explanation_of_a_case_has_an_older_day_or_year() {
    let cases = cases("domain-cases.json").expect("the fixture").into_iter();
    let cases = cases.chain(self::cases("../../../shared/golden/domain-cases.json").unwrap_or_default());
    let mut explained = 0;
    for case in cases {
        let inputs = Inputs::read(&case);
        let outputs = Outputs::of(&inputs);
        let Some((derived, explanation)) = outputs.explained() else { continue };
        let first = explanation.as_of.checked_sub_months(Months::new(12)).expect("a day");
        // A price such as 2000 would be found as a year.
        let numbers = case["inputs"].to_string();
        if (1900..first.year()).any(|year| numbers.contains(&format!("\"{year}\""))) {
            continue;
        }
        let metrics = derived.metrics.clone().limit_to_days_from(first);
        let mut told =
            serde_json::to_value(explanation.clone().limit_to_days_from(first, &metrics)).expect("JSON");
        for metric in told["metrics"].as_array_mut().expect("metrics") {
            // The latest price is in every plan, and so is its session.
            if metric["metric"] == "price_date" {
                metric["value"].take();
            }
        }
        let older = find_older_dates(&told.to_string(), first);
        assert!(older.is_empty(), "{}: {older:?}\n{told:#}", case["id"]);
        explained += 1;
    }
    assert!(explained > 10, "{explained} cases are explained");
}

fn hold(cases: &[Value]) {
    let failures: Vec<String> = cases.iter().flat_map(check).collect();
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

fn check(case: &Value) -> Vec<String> {
    let id = case["id"].as_str().unwrap_or("?");
    let tolerance = case["tolerance"].as_str().unwrap_or("0");
    let inputs = Inputs::read(case);
    let outputs = Outputs::of(&inputs);
    let expected = case["expected"].as_object().expect("a case expects something");
    expected
        .iter()
        .filter(|(key, _)| !ONLY_SERVED.contains(&key.as_str()))
        .filter_map(|(key, expected)| {
            let found = tables::value(key, &inputs).or_else(|| outputs.value(key));
            match found {
                None => Some(format!("{id}: {key} is not understood")),
                Some(found) if matches(key, expected, &found, tolerance) => None,
                Some(found) => Some(format!("{id}: {key} is {found}, expected {expected}")),
            }
        })
        .collect()
}
