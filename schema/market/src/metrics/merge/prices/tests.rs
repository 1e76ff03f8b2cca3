//! Tests of the merge of prices from several sources. The tests compare the derived bars and the quarantined rows.

mod alone;

use super::*;
use crate::bars::Bar;
use crate::event::Split;
use crate::history::{Observation, PolicyRule};
use crate::metrics::merge::tests::observed;
use crate::metrics::{DerivationContext, DerivedRows, Rules, derive};
use crate::symbol::Symbol;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn bar(day: &str, close: i64) -> Bar {
    let (open, high, low, volume, vwap, trade_count) = (MISSING, MISSING, MISSING, 100, MISSING, MISSING);
    Bar { day: day_number(date(day)), open, high, low, close, volume, vwap, trade_count }
}

fn source(name: &str, scale: u32, rows: &[Bar]) -> SourceBars {
    let mut bars =
        Bars { scale, versions: vec![BarVersion { line: 3, ..BarVersion::UNKNOWN }], ..Bars::default() };
    rows.iter().for_each(|bar| bars.push(*bar, 0));
    SourceBars { source: name.into(), bars: bars.into(), closes_only: Vec::new() }
}

fn history(prices: Vec<SourceBars>) -> History {
    History {
        symbol: Symbol::parse("TEST").unwrap(),
        former_symbols: Vec::new(),
        security: None,
        dividends: Vec::new(),
        splits: Vec::new(),
        fundamentals: Vec::new(),
        etf: Vec::new(),
        holdings: Vec::new(),
        decisions: Vec::new(),
        evidence: Vec::new(),
        dividend_feeds: crate::history::DividendFeeds::default(),
        prices,
    }
}

fn derived(history: &History, rules: &[PolicyRule]) -> DerivedRows {
    let policy = SourcePolicy { rules: rules.to_vec() };
    let as_of = date("2024-06-28");
    derive(
        history,
        &DerivationContext {
            as_of,
            newest: as_of,
            benchmark: None,
            rates: &crate::metrics::ExchangeRates::NONE,
            reporting_currency: "USD",
            policy: &policy,
            rules: &Rules::DEFAULT,
        },
    )
}

fn closes(derived: &DerivedRows) -> Vec<String> {
    let close = |index: usize| derived.bars.decimal(derived.bars.close[index]).unwrap().normalize();
    (0..derived.bars.len())
        .map(|index| format!("{} {}", date_of(derived.bars.day[index]), close(index)))
        .collect()
}

/// Quarantined rows, each as `date reason source line`.
fn held(derived: &DerivedRows) -> Vec<String> {
    let told = |row: &crate::row::Quarantined| {
        format!("{} {} {} {}", row.date.unwrap(), row.reason, row.source, row.line)
    };
    derived.quarantined.iter().map(told).collect()
}

#[test]
fn a_bar_that_cannot_be_is_held_by_itself() {
    let whole = |day: &str| Bar { open: 4_000, high: 4_100, low: 3_900, ..bar(day, 4_000) };
    // The two middle bars have the same fault, and both are quarantined.
    let found = |change: &dyn Fn(Bar) -> Bar| {
        let days = ["2024-06-21", "2024-06-24", "2024-06-25", "2024-06-26"].map(whole);
        let bars = [days[0], change(days[1]), change(days[2]), days[3]];
        let derived = derived(&history(vec![source("a", 2, &bars)]), &[]);
        (held(&derived), derived.bars.len())
    };
    let fine: [&dyn Fn(Bar) -> Bar; 8] = [
        &|bar| bar,
        &|bar| Bar { close: 3_000, ..bar },
        &|bar| Bar { high: 3_900, ..bar },
        &|bar| Bar { open: 0, high: 0, low: 0, volume: 0, ..bar },
        &|bar| Bar { open: MISSING, ..bar },
        &|bar| Bar { high: MISSING, ..bar },
        &|bar| Bar { low: MISSING, ..bar },
        &|bar| Bar { volume: MISSING, ..bar },
    ];
    for (number, change) in fine.into_iter().enumerate() {
        assert_eq!(found(change), (vec![], 4), "{number}");
    }
    let faulty: [(&dyn Fn(Bar) -> Bar, &str); 7] = [
        (&|bar| Bar { close: 0, ..bar }, "non_positive_close"),
        (&|bar| Bar { close: -1, ..bar }, "non_positive_close"),
        (&|bar| Bar { high: 3_899, ..bar }, "high_below_low"),
        (&|bar| Bar { open: -1, ..bar }, "negative_price"),
        (&|bar| Bar { high: -1, low: MISSING, ..bar }, "negative_price"),
        (&|bar| Bar { low: -1, ..bar }, "negative_price"),
        (&|bar| Bar { volume: -1, ..bar }, "negative_volume"),
    ];
    for (change, reason) in faulty {
        let expected = ["2024-06-24", "2024-06-25"].map(|day| format!("{day} {reason} a 3"));
        assert_eq!(found(change), (expected.to_vec(), 2), "{reason}");
    }
}

#[test]
fn a_close_far_from_its_neighbours_is_held_where_both_say_so() {
    let check = |prices: &[i64], wrong: &[(usize, &str)]| {
        let days = ["2024-06-20", "2024-06-21", "2024-06-24", "2024-06-25", "2024-06-26"];
        let rows: Vec<Bar> = days.iter().zip(prices).map(|(day, close)| bar(day, *close)).collect();
        let expected: Vec<String> =
            wrong.iter().map(|(at, reason)| format!("{} {reason} a 3", days[*at])).collect();
        let found = derived(&history(vec![source("a", 2, &rows)]), &[]);
        assert_eq!(held(&found), expected, "{prices:?}");
        assert_eq!(found.bars.len(), prices.len() - wrong.len());
    };
    let (isolated, unit) = ("isolated_price", "price_unit_error");
    for (close, reason) in
        [(869_565, isolated), (869_566, unit), (1_150_000, unit), (1_150_001, isolated), (30_001, isolated)]
    {
        check(&[10_000, close, 10_000], &[(1, reason)]);
    }
    check(&[10_000, 30_000, 10_000], &[]);
    // The same limits apply to a close far below the closes around it.
    for (around, reason) in [(869_565, isolated), (869_566, unit), (1_150_000, unit), (1_150_001, isolated)] {
        check(&[around, 10_000, around], &[(1, reason)]);
    }
    // A bar is wrong only if its close is far from the closes on both sides. The first bar has no earlier close. After
    // a lasting move, the next close agrees with the bar. The newest bar is only unconfirmed.
    check(&[1_000_000, 10_000, 10_000], &[]);
    check(&[10_000, 1_000_000, 1_000_000, 1_000_000], &[]);
    check(&[10_000, 10_000, 1_000_000], &[(2, "unconfirmed_price")]);
    check(&[10_000, 1_000_000, 11_000], &[(1, unit)]);
    check(&[10_000, 1_000_000, 15_001], &[(2, "unconfirmed_price")]);
    // A bar between two errors is not an error.
    check(&[10_000, 1_000_000, 10_000, 1_000_000, 10_000], &[(1, unit), (3, unit)]);
    check(&[1_000_000, 1_000_000, 10_000, 1_000_000, 1_000_000], &[(2, unit)]);
    check(&[10_000, 1_000_000, 10_000, 1_000_000, 1_000_000], &[(1, unit)]);
}

#[test]
fn withdrawn_bars_and_those_of_tomorrow_are_none() {
    let mut some =
        source("a", 2, &[bar("2024-06-27", 4_000), bar("2024-06-28", 4_100), bar("2024-07-01", 4_200)]);
    assert_eq!(closes(&derived(&history(vec![some.clone()]), &[])), ["2024-06-27 40", "2024-06-28 41"]);
    let bars = Arc::make_mut(&mut some.bars);
    bars.versions.push(BarVersion { retracted: true, ..BarVersion::UNKNOWN });
    bars.version[0] = 1;
    let mut faulty = some.clone();
    assert_eq!(closes(&derived(&history(vec![some]), &[])), ["2024-06-28 41"]);
    // Impossible values in retracted bars and in bars after the as-of date are not quarantined.
    let close = &mut Arc::make_mut(&mut faulty.bars).close;
    (close[0], close[2]) = (0, 0);
    let found = derived(&history(vec![faulty]), &[]);
    assert_eq!((closes(&found), held(&found)), (vec!["2024-06-28 41".to_owned()], vec![]));
}

#[test]
fn a_newer_bar_of_another_day_moves_no_bar() {
    // The second version of `a` is newer than the correction by `b`, the first is older.
    let version = |second: i64| BarVersion { observed_at: second, ..BarVersion::UNKNOWN };
    let mut daily = Bars { scale: 0, versions: vec![version(1), version(3)], ..Bars::default() };
    for (day, close, version) in [("2024-06-26", 40, 0), ("2024-06-27", 41, 0), ("2024-06-28", 42, 1)] {
        daily.push(bar(day, close), version);
    }
    let mut correction = Bars { scale: 0, versions: vec![version(2)], ..Bars::default() };
    for day in ["2024-06-27", "2024-06-28"] {
        correction.push(bar(day, 43), 0);
    }
    let of = |source: &str, bars: Bars| SourceBars {
        source: source.into(),
        bars: bars.into(),
        closes_only: Vec::new(),
    };
    let prices = [of("a", daily), of("b", correction)];
    for prices in [prices.to_vec(), prices.iter().rev().cloned().collect()] {
        let found = derived(&history(prices), &[]);
        assert_eq!(closes(&found), ["2024-06-26 40", "2024-06-27 43", "2024-06-28 42"]);
    }
}

#[test]
fn each_day_has_the_bar_of_the_believed_source_that_has_one() {
    let seen = |mut prices: SourceBars, second: i64| {
        Arc::make_mut(&mut prices.bars).versions[0].observed_at = second * 1_000_000;
        prices
    };
    let a = seen(
        source("a", 2, &[bar("2024-06-24", 4_001), bar("2024-06-25", 4_002), bar("2024-06-28", 4_004)]),
        1,
    );
    let b =
        seen(source("b", 1, &[bar("2024-06-21", 391), bar("2024-06-25", 392), bar("2024-06-27", 393)]), 2);
    let manual = seen(source("manual", 0, &[bar("2024-06-24", 39), bar("2024-06-28", 38)]), 0);
    let rule = |source: &str, from: Option<&str>, to: Option<&str>| PolicyRule {
        kind: Kind::Price,
        source: source.into(),
        from: from.map(date),
        to: to.map(date),
        rank: 1,
    };
    let check = |prices: [&SourceBars; 2], rules: &[PolicyRule], expected: &[&str]| {
        for prices in [prices, [prices[1], prices[0]]] {
            let found = derived(&history(prices.into_iter().cloned().collect()), rules);
            assert_eq!(closes(&found), expected, "{rules:?}");
        }
    };
    // Without a rule, the newest bar of a day is used. The other source fills in the missing days.
    check(
        [&a, &b],
        &[],
        &["2024-06-21 39.1", "2024-06-24 40.01", "2024-06-25 39.2", "2024-06-27 39.3", "2024-06-28 40.04"],
    );
    let with_a =
        ["2024-06-21 39.1", "2024-06-24 40.01", "2024-06-25 40.02", "2024-06-27 39.3", "2024-06-28 40.04"];
    check([&a, &b], &[rule("a", None, None)], &with_a);
    check([&a, &b], &[rule("a", Some("2024-06-25"), Some("2024-06-25"))], &with_a);
    check(
        [&a, &b],
        &[rule("a", Some("2024-06-26"), None), rule("a", None, Some("2024-06-24"))],
        &["2024-06-21 39.1", "2024-06-24 40.01", "2024-06-25 39.2", "2024-06-27 39.3", "2024-06-28 40.04"],
    );
    // Manual bars override the policy.
    check([&a, &manual], &[rule("a", None, None)], &["2024-06-24 39", "2024-06-25 40.02", "2024-06-28 38"]);
    let held_of = derived(
        &history(vec![
            source("b", 2, &[bar("2024-06-25", 0)]),
            source("a", 2, &[bar("2024-06-26", 0), bar("2024-06-25", 0)]),
        ]),
        &[],
    );
    assert_eq!(
        held(&held_of),
        [
            "2024-06-25 non_positive_close a 3",
            "2024-06-25 non_positive_close b 3",
            "2024-06-26 non_positive_close a 3"
        ]
    );
}

#[test]
fn a_wrong_unit_is_told_of_the_source_it_came_from() {
    let mut a = source("a", 2, &[bar("2024-06-24", 4_000), bar("2024-06-26", 4_000)]);
    Arc::make_mut(&mut a.bars).versions[0].observed_at = 5;
    let mut b =
        source("b", 2, &[bar("2024-06-24", 4_000), bar("2024-06-25", 400_000), bar("2024-06-27", 4_000)]);
    let bars = Arc::make_mut(&mut b.bars);
    bars.versions.push(BarVersion { line: 8, ..BarVersion::UNKNOWN });
    bars.version[1] = 1;
    let found = derived(&history(vec![a, b]), &[]);
    assert_eq!(held(&found), ["2024-06-25 price_unit_error b 8"]);
    assert_eq!(closes(&found), ["2024-06-24 40", "2024-06-26 40", "2024-06-27 40"]);
    assert!(found.quarantined[0].message.contains("the close 4000"), "{}", found.quarantined[0].message);
}

#[test]
fn a_price_too_large_for_a_finer_scale_rounds_the_others() {
    let large = source("a", 0, &[bar("2024-06-21", 9_000_000_000_000_000_000)]);
    let fine = Bar { high: 299, low: 51, ..bar("2024-06-28", 250) };
    let rows =
        [bar("2024-06-24", 149), bar("2024-06-25", 150), bar("2024-06-26", 49), bar("2024-06-27", 50), fine];
    let found = derived(&history(vec![large, source("b", 2, &rows)]), &[]);
    assert_eq!(
        closes(&found),
        ["2024-06-21 9000000000000000000", "2024-06-24 1", "2024-06-25 2", "2024-06-27 1", "2024-06-28 3"]
    );
    assert_eq!((found.bars.high[4], found.bars.low[4], found.bars.open[4]), (3, 1, MISSING));
    // Both sources are converted to one decimal place, because the large close does not fit with two places.
    let large = source("a", 0, &[bar("2024-06-21", 900_000_000_000_000_000)]);
    let found = derived(&history(vec![large, source("b", 2, &rows)]), &[]);
    assert_eq!(closes(&found)[1..3], ["2024-06-24 1.5", "2024-06-25 1.5"]);
}

#[test]
fn pence_are_hundredths() {
    let mut pence = history(vec![source("a", 0, &[bar("2024-06-27", 4_015), bar("2024-06-28", 4_020)])]);
    let security = serde_json::json!({ "symbol": "TEST", "name": "Test", "type": "stock", "currency": "GBP", "status": "active", "quote_unit": "GBX" });
    pence.security = Some(observed(security));
    assert_eq!(closes(&derived(&pence, &[])), ["2024-06-27 40.15", "2024-06-28 40.2"]);
    let faulty = source("b", 0, &[bar("2024-06-26", 4_010), Bar { high: 1, low: 2, ..bar("2024-06-28", 1) }]);
    pence.prices.push(faulty);
    let found = derived(&pence, &[]);
    assert_eq!(closes(&found), ["2024-06-26 40.1", "2024-06-27 40.15", "2024-06-28 40.2"]);
    assert!(found.quarantined[0].message.contains("the high 0.01"), "{}", found.quarantined[0].message);
}

#[test]
fn adjusted_closes_return_to_the_shares_of_their_day() {
    let mut adjusted =
        source("a", 2, &[bar("2024-06-21", 1_000), bar("2024-06-24", 1_010), bar("2024-06-28", 1_030)]);
    Arc::make_mut(&mut adjusted.bars).versions[0].basis_day = Some(0);
    let mut halved = history(vec![adjusted]);
    let split = serde_json::json!({ "symbol": "TEST", "ex_date": "2024-06-24", "from": "1", "to": "2" });
    halved.splits = vec![observed::<Split>(split)];
    let found = derived(&halved, &[]);
    assert_eq!(closes(&found), ["2024-06-21 20", "2024-06-24 10.1", "2024-06-28 10.3"]);
    assert_eq!((found.bars.volume[0], found.bars.volume[1]), (50, 100));
    // The source adjusts its prices for splits up to the last day of its data. The later split therefore does not
    // change the close.
    halved.prices[0].bars = halved.prices[0].bars.slice(0..1).into();
    assert_eq!(closes(&derived(&halved, &[])), ["2024-06-21 10"]);
}

#[test]
fn each_bar_is_on_the_shares_that_it_says_itself() {
    let rows = [bar("2024-06-20", 1_000), bar("2024-06-21", 2_000), bar("2024-06-28", 1_030)];
    let mut mixed = source("a", 2, &rows);
    // The second bar is raw. All other bars are adjusted for splits up to the newest day.
    let bars = Arc::make_mut(&mut mixed.bars);
    bars.versions = vec![BarVersion { basis_day: Some(0), ..BarVersion::UNKNOWN }, BarVersion::UNKNOWN];
    bars.version[1] = 1;
    let mut halved = history(vec![mixed]);
    let split = serde_json::json!({ "symbol": "TEST", "ex_date": "2024-06-24", "from": "1", "to": "2" });
    halved.splits = vec![observed::<Split>(split)];
    assert_eq!(closes(&derived(&halved, &[])), ["2024-06-20 20", "2024-06-21 20", "2024-06-28 10.3"]);
}
