//! Tests for several rows of one ex-date, of which one may contain the others (R45).

use market::history::History;
use market::metrics::DerivedRows;
use market::row::Flag;

use crate::figures::{explained, has, text};
use crate::tables::{Tables, derived_on};

const AS_OF: &str = "2024-06-28";

/// History with payments on 2024-06-20, each as `amount[,type]`, a close of 100 before them, and the close `after`.
fn paid(payments: &[&str], after: &str) -> History {
    let rows: Vec<String> = payments.iter().map(|row| format!("2024-06-20,{row}")).collect();
    let prices = format!("2024-06-18,100 2024-06-20,{after}");
    let mut history = Tables { dividends: &rows.join(" "), prices: &prices, ..Tables::default() }.history();
    // Rows of one type and file are different payments.
    let amounts: Vec<_> = history.dividends.iter().map(|row| row.record.amount).collect();
    history.dividends.iter_mut().for_each(|row| row.record.sibling_amounts.clone_from(&amounts));
    history
}

fn found(payments: &[&str], after: &str) -> DerivedRows {
    derived_on(AS_OF, &paid(payments, after))
}

/// Trailing sum of the regular amounts, trailing sum of all amounts, and number of rows.
fn figures(payments: &[&str], after: &str) -> (String, String, usize) {
    let found = found(payments, after);
    let rows = found.dividends.iter().filter(|row| row.id.is_some()).count();
    (text(found.metrics.dps_ttm), text(found.metrics.dps_ttm_total), rows)
}

fn is(regular: &str, total: &str, rows: usize) -> (String, String, usize) {
    (regular.to_owned(), total.to_owned(), rows)
}

#[test]
fn a_clear_fall_of_the_price_decides() {
    let rows = ["10", "8,capital_gain"];
    // A fall of 0.6 to 1.4 times 10 is 6 to 14, and of 18 is 10.8 to 25.2.
    assert_eq!(figures(&rows, "94"), is("2", "10", 1));
    assert_eq!(figures(&rows, "89.3"), is("2", "10", 1));
    assert_eq!(figures(&rows, "85.9"), is("10", "18", 2));
    // Both or neither fit.
    assert_eq!(figures(&rows, "88"), is("10", "18", 2));
    assert_eq!(figures(&rows, "95"), is("10", "18", 2));
    // Amounts below 5 % of the price are not visible in it.
    assert_eq!(figures(&["4", "3,capital_gain"], "96"), is("4", "7", 2));
}

#[test]
fn the_sum_of_two_parts_is_their_total() {
    let rows = ["4", "3,capital_gain", "1.02,supplemental"];
    assert_eq!(figures(&rows, "98"), is("0", "4", 1));
    assert_eq!(figures(&["4", "3,capital_gain", "1.2,supplemental"], "98"), is("4", "8.2", 3));
    assert_eq!(figures(&["4", "2,capital_gain", "0.8,supplemental"], "98"), is("4", "6.8", 3));
    // The regular part may be the smaller row.
    assert_eq!(figures(&["4,capital_gain", "3,special", "1"], "98"), is("1", "4", 1));
}

#[test]
fn parts_larger_than_the_total_are_no_parts() {
    assert_eq!(figures(&["10", "8,capital_gain", "7,special"], "90"), is("10", "25", 3));
    assert_eq!(figures(&["10", "8,capital_gain", "2,special"], "90"), is("0", "10", 1));
}

#[test]
fn rows_of_one_class_and_rows_of_equal_amounts_are_decided_too() {
    assert_eq!(figures(&["10", "8"], "90.5"), is("10", "10", 1));
    assert_eq!(figures(&["10", "10,capital_gain"], "91"), is("0", "10", 1));
}

#[test]
fn an_explanation_names_the_parts() {
    let history = paid(&["10", "8,capital_gain"], "91");
    let told = explained(&history);
    assert!(
        told.unused[0]
            .reason
            .to_string()
            .starts_with("R45: the amount of another row of its ex-date contains it")
    );
    assert_eq!(told.unused[0].outcome, "part");
    let trailing = told.metrics.iter().find(|metric| metric.metric == "dps_ttm").expect("a metric");
    assert_eq!(
        trailing.observations[0].reason.to_string(),
        "R45: contains the other rows of its ex-date; 2 is regular, 8 is special"
    );
    let found = derived_on(AS_OF, &history);
    assert!(has(&found, Flag::DuplicateCollapsed) && has(&found, Flag::InferredSpecial));
}
