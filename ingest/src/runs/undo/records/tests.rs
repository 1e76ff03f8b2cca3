use chrono::NaiveDate;
use market::event::{DividendType, ShareBasis};
use market::symbol::Symbol;
use rust_decimal::Decimal;

use super::*;

fn dividend(id: Option<&str>, action: Action, seconds: i64, cents: i64) -> EventRow<Dividend> {
    EventRow {
        line: 2,
        id: id.map(str::to_owned),
        revision: 0,
        action,
        observed_at: DateTime::from_timestamp(seconds, 0).unwrap(),
        security_ref: None,
        record: Dividend {
            symbol: Symbol::parse("KO").unwrap(),
            amount: Decimal::new(cents, 2),
            currency: "USD".into(),
            r#type: DividendType::Regular,
            amount_basis: ShareBasis::Raw,
            ex_date: NaiveDate::from_ymd_opt(2024, 3, 14),
            record_date: None,
            payment_date: None,
            declaration_date: None,
            frequency: None,
            basis_as_of: None,
            sibling_amounts: Vec::new(),
        },
    }
}

fn put(id: Option<&str>, seconds: i64, cents: i64) -> EventRow<Dividend> {
    dividend(id, Action::Put, seconds, cents)
}

fn retraction(id: Option<&str>, seconds: i64) -> EventRow<Dividend> {
    dividend(id, Action::Retract, seconds, 10)
}

/// Undoes a run with the rows `own`. `others` are the rows of other runs. Returns the published rows, each as
/// `id action seconds+microseconds amount revision`, and the counts of changes.
fn undone(own: &[EventRow<Dividend>], others: &[EventRow<Dividend>]) -> (Vec<String>, UndoChanges) {
    undone_with(SecurityCurrencies::default(), own, others)
}

fn undone_with(
    currencies: SecurityCurrencies,
    own: &[EventRow<Dividend>],
    others: &[EventRow<Dividend>],
) -> (Vec<String>, UndoChanges) {
    let mut table = RecordTable { currencies, ..RecordTable::default() };
    own.iter().for_each(|row| table.add_own(row, BatchId([1; 16])));
    others.iter().for_each(|row| table.add_other(row, BatchId([2; 16])));
    let (rows, changes) = table.undo();
    let line = |row: &EventRow<Dividend>| {
        let (id, after) = (row.id.as_deref().unwrap_or("-"), row.observed_at.timestamp_subsec_micros());
        let seconds = row.observed_at.timestamp();
        format!("{id} {} {seconds}+{after} {} r{}", row.action, row.record.amount, row.revision)
    };
    (rows.iter().map(line).collect(), UndoChanges { examples: Vec::new(), ..changes })
}

fn check(own: &[EventRow<Dividend>], others: &[EventRow<Dividend>], expected: &[&str]) {
    assert_eq!(undone(own, others).0, expected);
}

#[test]
fn what_stood_before_comes_back_and_what_is_new_is_retracted() {
    check(&[put(None, 5, 10)], &[], &["- retract 5+0 0.10 r0"]);
    check(&[put(None, 5, 10)], &[put(None, 1, 20), put(None, 2, 30)], &["- put 5+1 0.30 r0"]);
    check(&[put(None, 5, 10)], &[put(None, 1, 20), retraction(None, 2)], &["- retract 5+0 0.10 r0"]);
    check(&[retraction(None, 5)], &[put(None, 1, 20)], &["- put 5+1 0.20 r0"]);
}

#[test]
fn corrections_since_and_rows_that_changed_nothing_stay() {
    let (rows, changes) = undone(&[put(None, 5, 10)], &[put(None, 1, 20), put(None, 6, 30)]);
    assert_eq!((rows.len(), changes.corrected_since), (0, 1));
    let (rows, changes) = undone(&[put(None, 5, 10)], &[put(None, 1, 10)]);
    assert_eq!((rows.len(), changes.unchanged), (0, 1));
    assert_eq!(undone(&[retraction(None, 5)], &[]).0.len(), 0);
}

#[test]
fn a_row_with_an_id_is_retracted_by_its_date_so_that_it_can_come_again() {
    check(&[put(Some("a"), 5, 10)], &[], &["- retract 5+0 0.10 r0"]);
}

#[test]
fn rows_with_other_ids_outlive_a_retraction_of_their_date() {
    let other = put(Some("b"), 1, 10);
    let expected = ["- retract 5+0 0.10 r0", "b put 5+1 0.10 r0"];
    check(&[put(Some("a"), 5, 10)], std::slice::from_ref(&other), &expected);
    check(&[put(None, 5, 10)], std::slice::from_ref(&other), &expected);
    // Row `b` was already retracted before the run, so the undo does not restore it.
    check(&[put(None, 5, 10)], &[other, retraction(None, 2)], &["- retract 5+0 0.10 r0"]);
}

#[test]
fn what_a_retraction_withdrew_comes_back() {
    check(&[retraction(None, 5)], &[put(Some("a"), 5, 10)], &["a put 5+1 0.10 r0"]);
    // A retraction with an id outranks all other rows of its revision. The restored row therefore has a greater
    // revision.
    check(&[retraction(Some("a"), 5)], &[put(Some("a"), 1, 20)], &["a put 5+1 0.20 r1"]);
}

#[test]
fn a_row_without_a_currency_has_that_of_its_security() {
    let in_currency = |row: EventRow<Dividend>, currency: &str| {
        let record = Dividend { currency: currency.into(), ..row.record };
        EventRow { record, ..row }
    };
    let security = |currency: &str| {
        let record: Security = serde_json::from_value(serde_json::json!({
            "symbol": "KO", "name": "KO", "type": "stock", "currency": currency, "status": "active",
        }))
        .unwrap();
        let mut currencies = SecurityCurrencies::default();
        let EventRow { line, id, revision, action, observed_at, security_ref, .. } = put(None, 1, 1);
        currencies.add_row(&EventRow { line, id, revision, action, observed_at, security_ref, record });
        currencies
    };
    let (own, before) = (put(None, 5, 10), put(None, 1, 20));
    // A row without a currency has the currency of the security (CAD). The two rows are then one payment, and the undo
    // restores the earlier row.
    for (own_currency, other_currency) in [("", "CAD"), ("CAD", ""), ("", "")] {
        let (own, before) =
            (in_currency(own.clone(), own_currency), in_currency(before.clone(), other_currency));
        let found = undone_with(security("CAD"), &[own], &[before]).0;
        assert_eq!(found, ["- put 5+1 0.20 r0"], "{own_currency} {other_currency}");
    }
    // The two rows are in different currencies, so they are two payments. The undo only retracts the row of the run.
    for (own_currency, other_currency) in [("", "USD"), ("USD", ""), ("CAD", "USD")] {
        let (own, other) =
            (in_currency(own.clone(), own_currency), in_currency(before.clone(), other_currency));
        let found = undone_with(security("CAD"), &[own], &[other]).0;
        assert_eq!(found, ["- retract 5+0 0.10 r0"], "{own_currency} {other_currency}");
    }
    // Without a reference record, the currency of a security is the US dollar.
    assert_eq!(undone(&[in_currency(own, "")], &[before]).0, ["- put 5+1 0.20 r0"]);
}
