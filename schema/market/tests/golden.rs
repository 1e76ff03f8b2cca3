//! Tests on worked cases of the domain rules. Derived figures are compared with the expected values of each case.
//!
//! The published cases are in a file outside the workspace. If it is missing, their test is recorded as skipped.

mod golden_cases;

use std::path::Path;

use golden_cases::compare::matches;
use golden_cases::inputs::Inputs;
use golden_cases::outputs::Outputs;
use golden_cases::tables;
use serde_json::Value;
use skipped::Requirement;

fn cases(path: &str) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).ok()?;
    let file: Value = serde_json::from_str(&text).expect("the cases are JSON");
    Some(file["cases"].as_array().expect("the file has cases").clone())
}

#[test]
fn every_bound_holds() {
    hold(&cases("../../tests/fixtures/domain-cases.json").expect("the fixture"));
}

#[test]
fn every_worked_case_holds() {
    let Some(cases) = cases("../../../shared/golden/domain-cases.json") else {
        return skipped::record(Requirement::WorkedCases, "");
    };
    hold(&cases);
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
