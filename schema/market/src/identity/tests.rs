use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::*;
use crate::event::{Action, FormerSymbol, Security, SecurityType};
use crate::history::SourcePolicy;
use crate::observation::Observation;
use crate::symbol::Symbol;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn record(
    source: &str,
    reference: &str,
    symbol: &str,
    former: &[(&str, &str, &str)],
    delisted: Option<&str>,
) -> Observation<Security> {
    let former_symbols = former
        .iter()
        .map(|(s, from, to)| FormerSymbol {
            symbol: Symbol::parse(s).unwrap(),
            from: Some(date(from)),
            to: Some(date(to)),
        })
        .collect();
    let record: Security = serde_json::from_value(serde_json::json!({
        "symbol": symbol, "name": symbol, "type": SecurityType::Stock, "currency": "USD",
        "status": if delisted.is_some() { "delisted" } else { "active" }, "delisted_on": delisted,
    }))
    .unwrap();
    Observation {
        source: source.into(),
        id: None,
        security_ref: Some(reference.into()),
        revision: 0,
        action: Action::Put,
        observed_at: Default::default(),
        line: 1,
        frame: String::new(),
        record: Security { former_symbols, ..record },
    }
}

fn resolve(records: &[Observation<Security>], known: &[&str]) -> Directory {
    let known: BTreeSet<Symbol> = known.iter().map(|s| Symbol::parse(s).unwrap()).collect();
    Directory::resolve(records, &known, &SourcePolicy::default())
}

fn owner(directory: &Directory, symbol: &str, day: &str) -> Vec<String> {
    directory
        .identities
        .values()
        .filter(|i| i.owns(symbol, date(day)))
        .map(|i| i.symbol.to_string())
        .collect()
}

#[test]
fn a_renamed_company_keeps_its_history_and_a_reused_ticker_is_another_security() {
    let facebook = record("a", "1", "META", &[("FB", "2012-05-18", "2022-06-08")], None);
    let roundhill = record("a", "2", "METV", &[("META", "2021-06-30", "2022-01-30")], None);
    let directory = resolve(&[facebook, roundhill], &["FB", "META", "METV"]);
    assert_eq!(owner(&directory, "FB", "2015-01-02"), ["META"]);
    assert_eq!(owner(&directory, "META", "2021-07-01"), ["METV"]);
    assert_eq!(owner(&directory, "META", "2023-01-03"), ["META"]);
    assert_eq!(directory.symbols[&Symbol::parse("FB").unwrap()].as_str(), "META");
    assert_eq!(directory.symbols[&Symbol::parse("META").unwrap()].as_str(), "META");
}

#[test]
fn an_active_security_takes_over_a_delisted_ones_ticker() {
    let old = record("a", "1", "XYZ", &[], Some("2010-05-05"));
    let new = record("a", "2", "XYZ", &[], None);
    let directory = resolve(&[old, new.clone()], &["XYZ"]);
    let identity = &directory.identities[&Symbol::parse("XYZ").unwrap()];
    assert_eq!(identity.security.as_ref().map(|s| s.security_ref.clone()), Some(new.security_ref));
    assert!(!identity.owns("XYZ", date("2009-01-02")) && identity.owns("XYZ", date("2011-01-03")));
}

#[test]
fn two_vendors_of_one_ticker_are_one_security() {
    let directory = resolve(&[record("a", "1", "KO", &[], None), record("b", "x", "KO", &[], None)], &["KO"]);
    assert_eq!(directory.identities.len(), 1);
    assert_eq!(owner(&directory, "KO", "1990-01-02"), ["KO"]);
}

#[test]
fn unknown_symbols_are_provisional_and_preferred_spellings_find_their_security() {
    let directory = resolve(&[record("a", "1", "BAC.PRL", &[], None)], &["BAC.L", "NEW"]);
    assert_eq!(owner(&directory, "BAC.L", "2020-01-02"), ["BAC.PRL"]);
    assert!(directory.identities[&Symbol::parse("NEW").unwrap()].security.is_none());
}
