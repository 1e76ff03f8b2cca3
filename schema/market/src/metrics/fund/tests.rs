use super::*;
use crate::history::{PolicyRule, SourcePolicy};

fn holding(name: &str, weight: Decimal, sector: Option<&str>) -> Holding {
    let record = serde_json::json!({ "name": name, "weight": weight, "sector": sector });
    serde_json::from_value(record).unwrap()
}

#[test]
fn weights_are_summed_by_name_and_the_ten_largest_counted() {
    let mut holdings: Vec<Holding> = (0..11).map(|_| holding("Small", dec!(5), Some("Energy"))).collect();
    holdings.push(holding("Large", dec!(30.12345), Some("Health Care")));
    holdings.push(holding("Cash", dec!(14.5), None));
    assert_eq!(top_weight(&holdings), Some(ExactDecimal::from(dec!(84.6235))));
    assert_eq!(top_weight(&[]), None);
    let sectors: Vec<(String, ExactDecimal)> = weights(&holdings, |holding| &holding.sector).collect();
    let expected = [("Energy", dec!(55)), ("Health Care", dec!(30.1235))];
    assert_eq!(sectors, expected.map(|(name, weight)| (name.to_owned(), ExactDecimal::from(weight))));
}

#[test]
fn positions_are_ranked_by_weight_then_name() {
    let holdings = [holding("B", dec!(1), None), holding("A", dec!(1), None), holding("C", dec!(2), None)];
    let names: Vec<&str> = by_weight(&holdings).iter().map(|holding| holding.name.as_str()).collect();
    assert_eq!(names, ["C", "A", "B"]);
}

use crate::event::Action;
use crate::metrics::{DerivedRows, Rules, derive};
use chrono::DateTime;

/// Builds an observation. `words` is `source revision +second` for a record, or `source revision -second` for its
/// retraction. `second` is the observation time.
fn said<T: serde::de::DeserializeOwned>(words: &str, record: serde_json::Value) -> Observation<T> {
    let words: Vec<&str> = words.split(' ').collect();
    let (action, second) = words[2].split_at(1);
    Observation {
        source: words[0].into(),
        id: None,
        security_ref: None,
        revision: words[1].parse().unwrap(),
        action: if action == "-" { Action::Retract } else { Action::Put },
        observed_at: DateTime::from_timestamp(second.parse().unwrap(), 0).unwrap(),
        line: 1,
        frame: [0; 16],
        record: serde_json::from_value(record).unwrap(),
    }
}

fn etf(words: &str, day: &str, expense_ratio: Option<&str>, issuer: Option<&str>) -> Observation<Etf> {
    said(
        words,
        serde_json::json!({ "symbol": "FUND", "as_of": day, "expense_ratio": expense_ratio, "issuer": issuer }),
    )
}

fn found(
    kind: &str,
    etf: Vec<Observation<Etf>>,
    holdings: Vec<Observation<HoldingSnapshot>>,
) -> Option<FundRows> {
    found_with(kind, etf, holdings, &SourcePolicy::default())
}

fn found_with(
    kind: &str,
    etf: Vec<Observation<Etf>>,
    holdings: Vec<Observation<HoldingSnapshot>>,
    policy: &SourcePolicy,
) -> Option<FundRows> {
    use crate::bars::{Bar, BarVersion, Bars, MISSING};
    use crate::day::day_number;
    let mut bars = Bars { scale: 2, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    let (open, high, low, volume, vwap, trade_count) = (MISSING, MISSING, MISSING, 1, MISSING, MISSING);
    let day = day_number("2024-06-28".parse().unwrap());
    bars.push(Bar { day, open, high, low, close: 4_040, volume, vwap, trade_count }, 0);
    let security = serde_json::json!({ "symbol": "FUND", "name": "Fund", "type": kind, "currency": "USD", "status": "active" });
    let history = History {
        symbol: crate::symbol::Symbol::parse("FUND").unwrap(),
        former_symbols: Vec::new(),
        security: Some(said("a 0 +1", security)),
        dividends: Vec::new(),
        splits: Vec::new(),
        fundamentals: Vec::new(),
        decisions: Vec::new(),
        evidence: Vec::new(),
        dividend_feeds: crate::history::DividendFeeds::default(),
        etf,
        holdings,
        prices: vec![crate::history::SourceBars {
            source: "a".into(),
            bars: bars.into(),
            closes_only: Vec::new(),
        }],
    };
    let as_of = "2024-06-28".parse().unwrap();
    let market = DerivationContext {
        as_of,
        newest: as_of,
        benchmark: None,
        rates: &crate::metrics::ExchangeRates::NONE,
        reporting_currency: "USD",
        policy,
        rules: &Rules::DEFAULT,
    };
    let DerivedRows { stock, metrics, .. } = derive(&history, &market);
    fund(&history, &market, &stock, &metrics)
}

#[test]
fn a_funds_figures_are_the_newest_ones_of_all_sources() {
    let check = |rows: Vec<Observation<Etf>>, expected: (Option<Decimal>, Option<&str>)| {
        for rows in [rows.clone(), rows.into_iter().rev().collect()] {
            let row = found("etf", rows, Vec::new()).unwrap().etf;
            assert_eq!((row.expense_ratio.map(|ratio| ratio.0), row.issuer.as_deref()), expected);
        }
    };
    let (old, new) = (
        etf("a 0 +1", "2024-03-29", Some("0.1"), Some("Old")),
        etf("a 0 +1", "2024-06-28", Some("0.2"), None),
    );
    check(vec![old.clone()], (Some(dec!(0.1)), Some("Old")));
    // Missing fields of the newest record come from an earlier record of its source.
    check(vec![old.clone(), new.clone()], (Some(dec!(0.2)), Some("Old")));
    // Missing fields also come from another source: from its record of the date, or an earlier one.
    check(vec![old.clone(), etf("b 0 +1", "2024-06-28", Some("0.2"), None)], (Some(dec!(0.2)), Some("Old")));
    // The newest observation of a date wins, and the greater version of a source. Retracted records and records of
    // later dates are ignored.
    check(
        vec![new.clone(), etf("b 0 +2", "2024-06-28", Some("0.3"), Some("B"))],
        (Some(dec!(0.3)), Some("B")),
    );
    check(
        vec![new.clone(), etf("b 0 +1", "2024-06-28", Some("0.3"), Some("B"))],
        (Some(dec!(0.2)), Some("B")),
    );
    check(
        vec![new.clone(), etf("a 1 +1", "2024-06-28", Some("0.4"), Some("A"))],
        (Some(dec!(0.4)), Some("A")),
    );
    check(vec![old.clone(), new, etf("a 1 -1", "2024-06-28", None, None)], (Some(dec!(0.1)), Some("Old")));
    check(vec![old.clone(), etf("a 0 +1", "2024-06-29", Some("0.5"), None)], (Some(dec!(0.1)), Some("Old")));
    // A manual record overrides the fields that it has, unless a vendor's record is newer.
    let manual = |day: &str| etf("manual 0 +1", day, Some("0.7"), None);
    for day in ["2024-03-29", "2024-06-28"] {
        check(vec![old.clone(), manual(day)], (Some(dec!(0.7)), Some("Old")));
    }
    check(vec![manual("2024-03-28"), old.clone()], (Some(dec!(0.1)), Some("Old")));
    check(vec![manual("2024-06-28")], (Some(dec!(0.7)), None));
    check(
        vec![etf("b 0 +2", "2024-03-29", Some("0.3"), Some("B")), manual("2024-03-29"), old],
        (Some(dec!(0.7)), Some("B")),
    );
    assert_eq!(found("stock", Vec::new(), Vec::new()), None);
    assert_eq!(found("etf", Vec::new(), Vec::new()).unwrap().etf.holdings_count, None);
}

#[test]
fn a_rank_chooses_the_figures_of_one_source() {
    let rule = PolicyRule { kind: Kind::Etf, source: "a".into(), from: None, to: None, rank: 1 };
    let policy = SourcePolicy { rules: vec![rule] };
    let rows = vec![
        etf("a 0 +1", "2024-06-28", Some("0.2"), None),
        etf("b 0 +2", "2024-06-28", Some("0.3"), Some("B")),
        etf("b 0 +2", "2024-03-29", Some("0.3"), Some("B")),
    ];
    let row = found_with("etf", rows.clone(), Vec::new(), &policy).unwrap().etf;
    assert_eq!((row.expense_ratio.map(|ratio| ratio.0), row.issuer), (Some(dec!(0.2)), None));
    // A newer record of a source without a rank is the base. The rank decides between records of one date.
    let newest = etf("b 0 +2", "2024-06-28", None, Some("B"));
    let rows = vec![newest, etf("a 0 +1", "2024-03-29", Some("0.2"), None), rows[2].clone()];
    let row = found_with("etf", rows, Vec::new(), &policy).unwrap().etf;
    assert_eq!((row.expense_ratio.map(|ratio| ratio.0), row.issuer.as_deref()), (Some(dec!(0.2)), Some("B")));
}

#[test]
fn a_premium_compares_the_close_with_the_assets_of_its_day() {
    let premium = |fields: serde_json::Value| {
        let mut record = serde_json::json!({ "symbol": "FUND", "as_of": "2024-06-28" });
        fields.as_object().unwrap().iter().for_each(|(name, value)| record[name] = value.clone());
        let row = found("etf", vec![said("a 0 +1", record)], Vec::new()).unwrap().etf;
        (row.premium_discount.map(|premium| premium.0), row.nav_date.map(|day| day.to_string()))
    };
    let today = Some("2024-06-28".to_owned());
    assert_eq!(premium(serde_json::json!({ "nav": "40" })), (Some(dec!(1)), today.clone()));
    assert_eq!(
        premium(serde_json::json!({ "nav": "50.5", "nav_date": "2024-06-28" })),
        (Some(dec!(-20)), today.clone())
    );
    assert_eq!(
        premium(serde_json::json!({ "nav": "40", "nav_date": "2024-06-27" })),
        (None, Some("2024-06-27".to_owned()))
    );
    assert_eq!(premium(serde_json::json!({ "nav": "0" })), (None, today));
    assert_eq!(premium(serde_json::json!({})), (None, None));
    // A net asset value from an earlier record keeps its day.
    let earlier = serde_json::json!({ "symbol": "FUND", "as_of": "2024-05-31", "nav": "40" });
    let rows = vec![said("a 0 +1", earlier), etf("a 0 +1", "2024-06-28", Some("0.1"), None)];
    let row = found("etf", rows, Vec::new()).unwrap().etf;
    assert_eq!((row.premium_discount, row.nav_date), (None, "2024-05-31".parse().ok()));
}

#[test]
fn positions_are_those_of_a_whole_snapshot() {
    let snapshot = |words: &str, day: &str, names: &[&str]| {
        let holdings: Vec<serde_json::Value> = names.iter().zip(1..).map(|(name, weight)| serde_json::json!({ "name": name, "weight": weight.to_string(), "country": "US" })).collect();
        said::<HoldingSnapshot>(
            words,
            serde_json::json!({ "symbol": "FUND", "as_of": day, "holdings": holdings }),
        )
    };
    let snapshots = vec![
        snapshot("a 0 +1", "2024-03-29", &["Old"]),
        snapshot("a 0 +1", "2024-06-28", &["Small", "Large"]),
    ];
    let fund = found("etf", Vec::new(), snapshots).unwrap();
    let rows: Vec<String> = fund
        .holdings
        .iter()
        .map(|row| format!("{} {} {} {} {}", row.etf_symbol, row.as_of, row.rank, row.name, row.weight))
        .collect();
    assert_eq!(rows, ["FUND 2024-03-29 1 Old 1", "FUND 2024-06-28 1 Large 2", "FUND 2024-06-28 2 Small 1"]);
    assert_eq!(
        (fund.etf.holdings_count, fund.etf.top_10_weight.map(|weight| weight.0)),
        (Some(2), Some(dec!(3)))
    );
    assert_eq!(fund.etf.country_weights.0.len(), 1);
    // A manual snapshot replaces the snapshot of its day.
    let manual = snapshot("manual 0 +1", "2024-06-28", &["Manual"]);
    let snapshots = vec![manual, snapshot("a 0 +2", "2024-06-28", &["Vendor"])];
    let fund = found("etf", Vec::new(), snapshots).unwrap();
    assert_eq!(fund.holdings.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["Manual"]);
}
