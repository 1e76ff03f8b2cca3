//! Tests for the ids of dividends and splits. Clients upsert rows by these ids. Each id must therefore be unique, and
//! must not change when further facts arrive.

use std::collections::BTreeSet;

use chrono::{Days, NaiveDate};
use market::event::{Action, Dividend, EventRow, FormerSymbol};
use market::history::{History, Observation};
use market::metrics::DerivedRows;
use market::sibling_payments::SiblingDetector;
use market::symbol::Symbol;
use proptest::prelude::*;
use rust_decimal::Decimal;
use written::{day, dividend, history, on};

mod written;

fn ids(derived: &DerivedRows) -> Vec<String> {
    let recorded = derived.dividends.iter().filter_map(|row| row.id.clone().map(|id| (id, row)));
    recorded.map(|(id, row)| format!("{id} {} {}", row.amount, row.status)).collect()
}

#[test]
fn ids_name_security_source_and_record() {
    let rows = ["2024-03-07 - 0.5", "2024-06-06 - 0.5 q2"];
    let derived = on("2024-06-28", &history("stock", &rows, &[("2024-05-01", "2")]));
    assert_eq!(
        ids(&derived),
        ["TEST/test/dividend@2024-03-07.regular.USD 0.5 paid", "TEST/test/dividend/q2 0.5 paid"]
    );
    assert_eq!(derived.splits[0].id, "TEST/test/split@2024-05-01");
}

#[test]
fn a_corrected_ex_date_cancels_the_id_it_had() {
    let rows = ["2024-06-06 - 0.5", "2024-06-06 - 0.5 - retract", "2024-06-07 - 0.5"];
    let derived = on("2024-06-28", &history("stock", &rows, &[]));
    assert_eq!(
        ids(&derived),
        [
            "TEST/test/dividend@2024-06-06.regular.USD 0.5 cancelled",
            "TEST/test/dividend@2024-06-07.regular.USD 0.5 paid"
        ]
    );
    // Two rows with the same vendor id are versions of one record.
    let derived = on("2024-06-28", &history("stock", &["2024-06-06 - 0.5 q2", "2024-06-07 - 0.5 q2"], &[]));
    assert_eq!(ids(&derived), ["TEST/test/dividend/q2 0.5 paid"]);
}

fn symbol(text: &str) -> Symbol {
    Symbol::parse(text).expect("a symbol")
}

fn filed_under(ticker: &str) -> Observation<Dividend> {
    let mut row = dividend(1, "2024-06-06 - 0.5");
    row.record.symbol = symbol(ticker);
    row
}

fn renamed(rows: &[&str], former: &[(&str, Option<NaiveDate>)]) -> History {
    let former =
        former.iter().map(|(ticker, to)| FormerSymbol { symbol: symbol(ticker), from: None, to: *to });
    History {
        symbol: symbol("NEW"),
        former_symbols: former.collect(),
        dividends: rows.iter().map(|ticker| filed_under(ticker)).collect(),
        ..history("stock", &[], &[])
    }
}

#[test]
fn a_new_ticker_renames_no_payment() {
    let check = |rows: &[&str], former: &[(&str, Option<NaiveDate>)], expected: &str| {
        let found = ids(&on("2024-06-28", &renamed(rows, former)));
        assert_eq!(found, [format!("{expected}/test/dividend@2024-06-06.regular.USD 0.5 paid")], "{rows:?}");
    };
    let former = [("MID", Some(day("2024-06-10"))), ("FIRST", Some(day("2010-01-03")))];
    check(&["MID"], &former, "MID");
    // The vendor repeats past payments under the new ticker, or has them only under the new ticker.
    check(&["MID", "NEW"], &former, "MID");
    check(&["NEW", "MID"], &former, "MID");
    check(&["NEW"], &former, "NEW");
    // The id is the same before a former ticker becomes known.
    check(&["NEW"], &[], "NEW");
    check(&["MID"], &former[..1], "MID");
}

/// Rows of one file with several payments of one day, marked as different payments by [`SiblingDetector`].
fn file(seen: NaiveDate, amounts: &[Decimal]) -> Vec<Observation<Dividend>> {
    let mut same_day = SiblingDetector::default();
    let row = |(line, amount): (u64, &Decimal)| {
        let observed_at = seen.and_time(chrono::NaiveTime::MIN).and_utc();
        let said = dividend(1, &format!("2024-06-06 - {amount}"));
        let mut row = EventRow {
            line,
            id: None,
            revision: 0,
            action: Action::Put,
            observed_at,
            security_ref: None,
            record: said.record.clone(),
        };
        same_day.set_siblings(&mut row, "");
        Observation { line, observed_at, record: row.record, ..said }
    };
    (1..).zip(amounts).map(row).collect()
}

proptest! {
    /// Once one file contains all payments of a day, the ids of these payments no longer change. Earlier and later
    /// files may contain any of these payments, in any order.
    #[test]
    fn payments_of_one_day_keep_their_ids(
        count in 2usize..4,
        together in 0usize..4,
        cuts in prop::collection::vec(prop::sample::subsequence(vec![0usize, 1, 2], 1..=3).prop_shuffle(), 4),
    ) {
        let amounts = [Decimal::new(1, 1), Decimal::new(2, 1), Decimal::new(4, 1)];
        let mut market = history("stock", &[], &[]);
        for (place, cut) in cuts.iter().enumerate() {
            let wanted = if place == together { &[2, 0, 1] } else { cut.as_slice() };
            let sent: Vec<Decimal> = wanted.iter().filter(|n| **n < count).map(|n| amounts[*n]).collect();
            market.dividends.extend(file(day("2024-06-01") + Days::new(place as u64), &sent));
            let found = ids(&on("2024-06-28", &market));
            prop_assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
            if place >= together {
                let wanted: Vec<String> = ["", ".2", ".3"][..count].iter().zip(amounts)
                    .map(|(part, amount)| format!("TEST/test/dividend@2024-06-06.regular.USD{part} {amount} paid"))
                    .collect();
                prop_assert_eq!(found, wanted);
            }
        }
    }
}

#[test]
fn a_withdrawn_payment_leaves_the_other_its_id() {
    let mut market = history("stock", &[], &[]);
    market.dividends = file(day("2024-06-01"), &[Decimal::new(1, 1), Decimal::new(4, 1)]);
    let withdrawn = Observation { action: Action::Retract, ..market.dividends[0].clone() };
    market.dividends.push(withdrawn);
    let id = "TEST/test/dividend@2024-06-06.regular.USD";
    assert_eq!(ids(&on("2024-06-28", &market)), [format!("{id} 0.1 cancelled"), format!("{id}.2 0.4 paid")]);
}
