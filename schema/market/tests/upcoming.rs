//! Tests for projected payments: the payments of one year add up to the forward dividend (R19).

use market::metrics::DerivedRows;
use market::row::{AmountStatus, DividendRow, DividendStatus};
use rust_decimal::Decimal;
use written::{day, history, on};

mod written;

fn projected(derived: &DerivedRows) -> Vec<&DividendRow> {
    derived.dividends.iter().filter(|row| row.status == DividendStatus::Projected).collect()
}

/// Checks the projected rows, each written as `ex-date payment-date amount`.
#[track_caller]
fn check(derived: &DerivedRows, wanted: &[&str]) {
    let told = |row: &&DividendRow| {
        let paid = row.payment_date.map_or("-".to_owned(), |date| date.to_string());
        format!("{} {paid} {}", row.ex_date, row.amount)
    };
    assert_eq!(projected(derived).iter().map(told).collect::<Vec<_>>(), wanted);
    assert!(
        projected(derived).iter().all(|row| row.amount_status == AmountStatus::Estimated && row.id.is_none())
    );
}

const QUARTERLY: [&str; 4] = [
    "2023-09-07 2023-10-02 0.48",
    "2023-12-07 2024-01-16 0.48",
    "2024-03-07 2024-04-01 0.5",
    "2024-06-06 2024-07-01 0.5",
];

#[test]
fn a_year_of_projections_is_the_indicated_dividend() {
    let derived = on("2024-06-28", &history("stock", &QUARTERLY, &[]));
    // The payments are 25, 40 and 25 days after their ex-dates. 2025-01-18 is a Saturday, and the next Monday is a
    // holiday.
    check(
        &derived,
        &[
            "2024-09-09 2024-10-04 0.5",
            "2024-12-09 2025-01-21 0.5",
            "2025-03-07 2025-04-01 0.5",
            "2025-06-06 2025-07-01 0.5",
        ],
    );
    let year: Decimal = projected(&derived).iter().map(|row| row.amount.0).sum();
    assert_eq!(Some(year), derived.metrics.dps_forward.map(|forward| forward.0));
    let next = derived.metrics.next.0.expect("a next payment");
    assert_eq!((next.ex_date, next.payment_date), (day("2024-09-09"), Some(day("2024-10-04"))));
    assert_eq!(next.amount.map(|amount| amount.to_string()), Some("0.5".to_owned()));
}

#[test]
fn an_interim_and_a_final_repeat_themselves() {
    let halves = ["2022-05-10 - 1", "2022-11-10 - 2", "2023-05-10 - 1.1", "2023-11-10 - 2.2"];
    let derived = on("2023-12-29", &history("stock", &halves, &[]));
    check(&derived, &["2024-05-10 - 1.1", "2024-11-11 - 2.2"]);
}

#[test]
fn a_fund_repeats_the_slot_of_last_year() {
    let fund = ["2023-09-07 - 0.3", "2023-12-07 - 0.7", "2024-03-07 - 0.2", "2024-06-06 - 0.4"];
    let derived = on("2024-06-28", &history("etf", &fund, &[]));
    check(&derived, &["2024-09-09 - 0.3", "2024-12-09 - 0.7", "2025-03-07 - 0.2", "2025-06-06 - 0.4"]);
}

#[test]
fn an_announced_split_divides_what_comes_behind_it() {
    let derived = on("2024-06-28", &history("stock", &QUARTERLY[1..], &[("2024-11-01", "2")]));
    let amounts: Vec<String> = projected(&derived).iter().map(|row| row.amount.to_string()).collect();
    assert_eq!(amounts, ["0.5", "0.25", "0.25", "0.25"]);
    assert!(projected(&derived).iter().all(|row| row.adjusted_amount.to_string() == "0.5"));
}

#[test]
fn nothing_is_expected_of_who_stopped_paying() {
    check(&on("2025-01-31", &history("stock", &QUARTERLY, &[])), &[]);
}
