//! What a client counts on: ids that stay, and a year of expected payments that adds up.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use market::event::{Dividend, Security};
use market::history::{History, Observation, SourcePolicy};
use market::identity::Identity;
use market::measure::{Derived, Market, derive};
use market::row::{AmountStatus, DividendRow, DividendStatus};
use market::symbol::Symbol;
use rust_decimal::Decimal;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn day(text: &str) -> NaiveDate {
    text.parse().expect("a date")
}

fn observed<T: DeserializeOwned>(
    line: usize,
    id: Option<&str>,
    action: &str,
    record: Value,
) -> Observation<T> {
    let row = json!({ "source": "test", "id": id, "security_ref": null, "revision": 0, "action": action,
                      "observed_at": "2024-01-01T00:00:00Z", "line": line, "frame": "", "record": record });
    serde_json::from_value(row).expect("an observation")
}

/// `ex-date payment-date amount [id [action]]`; `-` is none.
fn dividend(line: usize, text: &str) -> Observation<Dividend> {
    let words: Vec<&str> = text.split(' ').collect();
    let given = |index: usize| words.get(index).copied().filter(|word| *word != "-");
    let record = json!({ "symbol": "TEST", "amount": words[2], "currency": "USD", "type": "regular",
                         "amount_basis": "raw", "ex_date": words[0], "payment_date": given(1) });
    observed(line, given(3), given(4).unwrap_or("put"), record)
}

fn history(kind: &str, dividends: &[&str], splits: &[(&str, &str)]) -> History {
    let split = |(line, (ex_date, to)): (usize, &(&str, &str))| {
        let declared = json!({ "symbol": "TEST", "ex_date": ex_date, "declaration_date": "2024-01-02", "from": "1", "to": to });
        observed(line, None, "put", declared)
    };
    let security =
        json!({ "symbol": "TEST", "name": "Test", "type": kind, "currency": "USD", "status": "active" });
    History {
        symbol: Symbol::parse("TEST").expect("a symbol"),
        key: "TEST".to_owned(),
        former_symbols: Vec::new(),
        security: Some(observed(0, None, "put", security)),
        dividends: dividends.iter().enumerate().map(|(line, text)| dividend(line, text)).collect(),
        splits: splits.iter().enumerate().map(split).collect(),
        fundamentals: Vec::new(),
        etf: Vec::new(),
        holdings: Vec::new(),
        prices: Vec::new(),
    }
}

fn on(as_of: &str, history: &History) -> Derived {
    let (as_of, policy) = (day(as_of), SourcePolicy::default());
    derive(history, &Market { as_of, newest: as_of, benchmark: None, policy: &policy })
}

fn projected(derived: &Derived) -> Vec<&DividendRow> {
    derived.dividends.iter().filter(|row| row.status == DividendStatus::Projected).collect()
}

/// The projected rows as `ex-date payment-date amount`.
#[track_caller]
fn check(derived: &Derived, wanted: &[&str]) {
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
    // Lags of 25, 40 and 25 days; 2025-01-18 is a Saturday and the Monday after it a holiday.
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

fn ids(derived: &Derived) -> Vec<String> {
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
    // With an id it is the same record on another day.
    let derived = on("2024-06-28", &history("stock", &["2024-06-06 - 0.5 q2", "2024-06-07 - 0.5 q2"], &[]));
    assert_eq!(ids(&derived), ["TEST/test/dividend/q2 0.5 paid"]);
}

#[test]
fn ids_survive_a_new_ticker_and_tell_reused_ones_apart() {
    let key = |symbol: &str, former: Value, from: &str| {
        let record = json!({ "symbol": symbol, "name": "", "type": "stock", "currency": "USD", "status": "active",
                             "former_symbols": former });
        let security = observed::<Security>(0, None, "put", record);
        let symbol = Symbol::parse(symbol).expect("a symbol");
        let mut identity = Identity { security: Some(security), ..Identity::provisional(&symbol) };
        identity.spans[0].from = from.parse().unwrap_or(NaiveDate::MIN);
        identity.key()
    };
    let former = json!([{ "symbol": "MID", "from": "2010-01-04", "to": "2022-06-08" },
                        { "symbol": "FIRST", "to": "2010-01-03" }]);
    let keys = [
        key("FIRST", json!([]), ""),
        key("NEW", former, ""),
        key("TAKEN", json!([]), ""),
        key("TAKEN", json!([]), "2015-03-02"),
    ];
    assert_eq!(keys, ["FIRST", "FIRST", "TAKEN", "TAKEN~2015-03-02"]);
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 3);
}
