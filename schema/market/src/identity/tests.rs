use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::*;
use crate::event::{Action, FormerSymbol, Kind, Security, SecurityType};
use crate::history::{PolicyRule, SourcePolicy};
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
        frame: [0; 16],
        record: Security { former_symbols, ..record },
    }
}

fn resolve(records: &[Observation<Security>], known: &[&str]) -> SecurityDirectory {
    let known: BTreeSet<Symbol> = known.iter().map(|s| Symbol::parse(s).unwrap()).collect();
    SecurityDirectory::resolve(records, &known, &SourcePolicy::default())
}

fn owner(directory: &SecurityDirectory, symbol: &str, day: &str) -> Vec<String> {
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

/// Reference record of KO. The security has the name of the source, so that a test can see whose record is used.
/// `second` is the Unix time of the observation.
fn named(source: &str, second: i64) -> Observation<Security> {
    let mut said = record(source, source, "KO", &[], None);
    said.record.name = source.to_owned();
    Observation { observed_at: chrono::DateTime::from_timestamp(second, 0).unwrap(), ..said }
}

#[test]
fn the_believed_vendors_record_is_served() {
    let check = |records: &[(&str, i64)], ranks: &[(&str, i32)], expected: &str| {
        let rule = |(source, rank): &(&str, i32)| PolicyRule {
            kind: Kind::Security,
            source: (*source).to_owned(),
            from: None,
            to: None,
            rank: *rank,
        };
        let mut rules: Vec<PolicyRule> = ranks.iter().map(rule).collect();
        // A source rank for dividends does not affect reference records.
        rules.push(PolicyRule { kind: Kind::Dividend, source: "d".into(), from: None, to: None, rank: -1 });
        let mut records: Vec<Observation<Security>> = records.iter().map(|(s, at)| named(s, *at)).collect();
        for _ in 0..records.len() {
            records.rotate_left(1);
            let directory = SecurityDirectory::resolve(
                &records,
                &BTreeSet::new(),
                &SourcePolicy { rules: rules.clone() },
            );
            let served = directory.identities.values().map(|identity| identity.security.as_ref().unwrap());
            assert_eq!(served.map(|s| s.record.name.as_str()).collect::<Vec<_>>(), [expected], "{ranks:?}");
        }
    };
    check(&[("a", 1), ("d", 2)], &[], "d");
    check(&[("a", 2), ("d", 2)], &[], "a");
    check(&[("a", 3), ("d", 2), ("c", 1)], &[("c", 7)], "c");
    check(&[("a", 3), ("d", 2), ("c", 1)], &[("c", 7), ("d", 6)], "d");
    check(&[("a", 3), ("d", 2), ("c", 1)], &[("c", 7), ("d", 6), ("c", 5)], "c");
    check(&[("a", 3), ("d", 2), ("c", 1)], &[("c", 5), ("d", 5)], "d");
    check(&[("a", 3), ("manual", 1)], &[("a", 1)], "manual");
    check(&[("manual", 1), ("zeta", 3)], &[("zeta", 1), ("manual", 9)], "manual");
}

#[test]
fn of_two_records_with_nothing_between_them_the_first_reference_is_served() {
    // Vendor `a` has two records of one company, NEW and OLD. The record of vendor `b` has both symbols, so all three
    // records are one security.
    let mut records = vec![
        record("a", "1", "NEW", &[], None),
        record("a", "2", "OLD", &[], Some("2019-12-31")),
        record("b", "1", "NEW", &[("OLD", "2000-01-03", "2019-12-31")], None),
    ];
    for _ in 0..records.len() {
        records.rotate_left(1);
        let directory = resolve(&records, &[]);
        let served = directory.identities.values().map(|identity| identity.security.clone().unwrap());
        let served: Vec<_> = served.map(|said| (said.source, said.security_ref.unwrap())).collect();
        assert_eq!(served, [("a".into(), "1".to_owned())]);
    }
}

#[test]
fn a_symbol_is_of_the_security_that_still_has_it() {
    // Two companies had XYZ on the same days. One was renamed later; the other was delisted as XYZ.
    let renamed = record("a", "3", "DEF", &[("XYZ", "2010-01-01", "2019-12-31")], None);
    let ended = record("a", "1", "XYZ", &[("OLD", "2000-01-03", "2009-12-31")], Some("2019-12-31"));
    // Vendor `a` has a second record of the delisted company, under ABC. The record of vendor `b` has both ABC and OLD,
    // so it joins the two records of vendor `a`.
    let again = record("a", "2", "ABC", &[("XYZ", "2010-01-01", "2019-12-31")], None);
    let joined = record("b", "1", "ABC", &[("OLD", "2000-01-03", "2009-12-31")], None);
    let owner = |records: &[Observation<Security>]| {
        let directory = resolve(records, &[]);
        directory.symbols[&Symbol::parse("XYZ").unwrap()].to_string()
    };
    assert_eq!(owner(&[renamed.clone(), ended.clone()]), "XYZ");
    assert_eq!(owner(&[renamed, ended, again, joined]), "XYZ");
}

#[test]
fn the_newest_version_of_a_vendors_record_counts() {
    let said = |name: &str, revision, action| {
        let mut said = Observation { revision, action, ..record("a", "1", "KO", &[], None) };
        said.record.name = name.to_owned();
        said
    };
    let names = |records: &[Observation<Security>]| -> Vec<String> {
        let directory = resolve(records, &[]);
        directory.identities.values().map(|i| i.security.as_ref().unwrap().record.name.clone()).collect()
    };
    let (old, new) = (said("old", 1, Action::Put), said("new", 2, Action::Put));
    assert_eq!(names(&[old.clone(), new.clone()]), ["new"]);
    assert_eq!(names(&[new.clone(), old.clone()]), ["new"]);
    assert_eq!(names(&[said("gone", 3, Action::Retract), new, old]), Vec::<String>::new());
    // A record without a security reference is identified by its id. Without an id, it is identified by its symbol.
    let keyed = |id: Option<&str>, symbol: &str, revision| Observation {
        id: id.map(str::to_owned),
        security_ref: None,
        revision,
        ..record("a", "", symbol, &[], None)
    };
    let symbols = |records: &[Observation<Security>]| -> Vec<String> {
        resolve(records, &[]).identities.keys().map(ToString::to_string).collect()
    };
    assert_eq!(symbols(&[keyed(Some("7"), "OLD", 0), keyed(Some("7"), "NEW", 1)]), ["NEW"]);
    assert_eq!(symbols(&[keyed(None, "OLD", 0), keyed(None, "NEW", 1)]), ["NEW", "OLD"]);
    assert_eq!(symbols(&[keyed(Some("7"), "OLD", 0), keyed(Some("8"), "NEW", 1)]), ["NEW", "OLD"]);
}

#[test]
fn vendors_are_joined_through_every_symbol_they_share() {
    let renamed = [("OLD", "2000-01-03", "2019-12-31")];
    let one = [
        record("a", "1", "NEW", &[], None),
        record("b", "1", "NEW", &renamed, None),
        record("c", "1", "OLD", &[], Some("2019-12-31")),
    ];
    assert_eq!(resolve(&one, &[]).identities.len(), 1);
    // The record that joins the others may come last.
    let one = [one[0].clone(), Observation { source: "z".into(), ..one[1].clone() }, one[2].clone()];
    assert_eq!(resolve(&one, &[]).identities.len(), 1);
    // Two records of one vendor are not joined for a common symbol. Records of two vendors are joined only if both have
    // the symbol on a common day.
    let two = [record("a", "1", "XYZ", &[], Some("2010-05-05")), record("a", "2", "XYZ", &[], None)];
    assert_eq!(owner(&resolve(&two, &[]), "XYZ", "2011-01-03"), ["XYZ"]);
    assert_eq!(owner(&resolve(&two, &[]), "XYZ", "2009-01-02"), Vec::<String>::new());
    let mut later = record("b", "2", "XYZ", &[], None);
    later.record.ipo_date = Some(date("2015-01-05"));
    let apart = [record("a", "1", "XYZ", &[], Some("2010-05-05")), later.clone()];
    assert_eq!(owner(&resolve(&apart, &[]), "XYZ", "2009-01-02"), Vec::<String>::new());
    // One common day is enough to join two records.
    later.record.ipo_date = Some(date("2010-05-05"));
    let touching = [record("a", "1", "XYZ", &[], Some("2010-05-05")), later];
    assert_eq!(owner(&resolve(&touching, &[]), "XYZ", "2009-01-02"), ["XYZ"]);
}

#[test]
fn days_that_nobody_claims_go_to_the_holder_before() {
    let mut new = record("a", "2", "XYZ", &[], None);
    new.record.ipo_date = Some(date("2015-01-05"));
    let renamed = record("a", "1", "ABC", &[("XYZ", "2000-01-03", "2009-12-31")], None);
    let directory = resolve(&[renamed, new], &["XYZ", "ABC"]);
    for (day, expected) in [
        ("1999-01-04", "ABC"),
        ("2000-01-03", "ABC"),
        ("2009-12-31", "ABC"),
        ("2012-01-03", "ABC"),
        ("2015-01-04", "ABC"),
        ("2015-01-05", "XYZ"),
        ("2024-01-02", "XYZ"),
    ] {
        assert_eq!(owner(&directory, "XYZ", day), [expected], "{day}");
    }
    let symbol = |text: &str| Symbol::parse(text).unwrap();
    assert_eq!(directory.owners(&symbol("XYZ")), [symbol("ABC"), symbol("XYZ")]);
    assert_eq!(directory.owners(&symbol("ABC")), [symbol("ABC")]);
    assert!(directory.owners(&symbol("NONE")).is_empty());
    let stored = SecurityDirectory::from_identities(directory.identities.clone());
    assert_eq!((stored.identities.len(), stored.symbols.len()), (2, 0));
    let former = stored.identities[&symbol("ABC")].former_symbols();
    assert_eq!(former.iter().map(|f| f.symbol.to_string()).collect::<Vec<_>>(), ["XYZ"]);
    assert!(Identity::provisional(&symbol("P")).former_symbols().is_empty());
    assert!(Identity::provisional(&symbol("P")).owns("P", NaiveDate::MAX));
}

fn listing(symbol: &str, market: &str, delisted: Option<&str>) -> Observation<Security> {
    let mut observation = record("a", symbol, symbol, &[], delisted);
    observation.record.isin = Some("IE00B3XXRP09".to_owned());
    observation.record.exchange = Some(market.to_owned());
    observation
}

fn address_keys(directory: &SecurityDirectory, symbol: &str) -> Vec<String> {
    directory.address_keys(&Symbol::parse(symbol).unwrap(), [symbol].into_iter())
}

#[test]
fn an_identifier_names_a_security_until_a_second_listing_has_it() {
    let london = listing("VUSA", "XLON", None);
    let alone = resolve(std::slice::from_ref(&london), &[]);
    let keys = ["isin:IE00B3XXRP09", "isin:IE00B3XXRP09@XLON", "VUSA@XLON"];
    assert_eq!(address_keys(&alone, "VUSA"), keys);

    let both = resolve(&[london.clone(), listing("VUSA.AS", "XAMS", None)], &[]);
    let keys = ["isin:IE00B3XXRP09 VUSA", "isin:IE00B3XXRP09@XLON", "VUSA@XLON"];
    assert_eq!(address_keys(&both, "VUSA"), keys);
    let listings: BTreeSet<Symbol> = both.identities.keys().cloned().collect();
    assert_eq!(both.changed_owners(&alone), listings);
    assert_eq!(alone.changed_owners(&both), BTreeSet::from([Symbol::parse("VUSA").unwrap()]));
    assert!(both.changed_owners(&both).is_empty());

    let same_market = resolve(&[london.clone(), listing("VUSD", "XLON", None)], &[]);
    let keys = ["isin:IE00B3XXRP09 VUSD", "isin:IE00B3XXRP09@XLON VUSD", "VUSD@XLON"];
    assert_eq!(address_keys(&same_market, "VUSD"), keys);

    let delisted = resolve(&[london, listing("VUSA.AS", "XAMS", Some("2020-01-02"))], &[]);
    assert!(address_keys(&delisted, "VUSA").contains(&"isin:IE00B3XXRP09".to_owned()));
    assert!(!address_keys(&delisted, "VUSA.AS").contains(&"isin:IE00B3XXRP09".to_owned()));
}

#[test]
fn a_wrong_identifier_names_nothing_and_an_american_isin_contains_the_cusip() {
    let mut cola = listing("KO", "New York", None);
    cola.record.isin = Some("US1912161007".to_owned());
    cola.record.figi = Some("BBG000BMX280".to_owned());
    let directory = resolve(&[cola], &[]);
    assert_eq!(address_keys(&directory, "KO"), ["isin:US1912161007", "cusip:191216100"]);
}
