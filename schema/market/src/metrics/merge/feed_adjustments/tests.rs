//! Tables of adjusted amounts and of the splits that feeds list.

use super::*;
use crate::event::{DividendType, Split};
use crate::history::SourceBars;
use crate::metrics::merge::tests::observed;
use crate::metrics::rules::Rules;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

#[test]
fn a_rounded_amount_returns_to_the_declared_one() {
    let check = |adjusted: &str, (from, to): (i64, i64), raw: &str| {
        let ratio = Ratio { from: to.into(), to: from.into() };
        let found = raw_amount(adjusted.parse().unwrap(), ratio);
        assert_eq!(found, raw.parse::<Decimal>().unwrap(), "{adjusted} {from}:{to}");
    };
    check("1.254181", (1000, 1196), "1.5");
    check("1.262542", (1000, 1196), "1.51");
    check("0.094643", (1, 28), "2.65");
    check("0.1666667", (2, 3), "0.25");
    check("0.10416667", (1000, 1253), "0.13052083751");
    // The amounts are exact. A shorter decimal near the product is a coincidence.
    check("0.1175", (1, 28), "3.29");
    check("0.47", (1, 7), "3.29");
    check("0.2356", (4, 9), "0.5301");
    check("0.23556", (4, 9), "0.53");
    check("0.5", (1, 7), "3.5");
    check("0.425", (10, 1), "0.0425");
    check("0.065640", (1, 2), "0.13128");
    check("250", (1, 4), "1000");
    check("1.254181", (1, 1), "1.254181");
    check("0.0000000001", (1, 2), "0.0000000002");
}

fn split(source: &str, ex_date: &str, from: &str, to: &str, word: Option<&str>) -> Observation<Split> {
    let record = serde_json::json!({
        "symbol": "TEST", "ex_date": ex_date, "from": from, "to": to, "type": word,
    });
    Observation { source: source.into(), ..observed(record) }
}

fn history(splits: Vec<Observation<Split>>) -> History {
    let paid = serde_json::json!({
        "symbol": "TEST", "amount": "1", "currency": "USD", "type": "regular", "ex_date": "2020-02-03",
        "amount_basis": "split_adjusted", "basis_as_of": "2024-06-28",
    });
    History { dividends: vec![observed(paid)], splits, ..crate::metrics::merge::tests::history(&[], &[]) }
}

/// Raw amount of the dividend of source `a`, if `merged` are the indexes of the splits after the choice of a source.
fn raw(history: &History, merged: &[usize]) -> String {
    let merged: Vec<MergedSplit> = merged
        .iter()
        .map(|index| {
            let winner = WinningVersion {
                index: *index,
                cancelled: false,
                conflict: false,
                collapsed: false,
                named: *index,
                ordinal: 0,
            };
            merged_split(&history.splits, winner)
        })
        .collect();
    let rules = &Rules::DEFAULT.spin_off;
    let feeds = FeedAdjustments::collect(history, &merged, &[], &|_| Some(0), rules);
    feeds.raw_amount(&history.dividends[0], date("2020-02-03")).normalize().to_string()
}

#[test]
fn a_feed_adjusts_by_the_splits_that_it_lists() {
    let own = split("a", "2022-03-01", "1", "2", None);
    let typed = |source, day, word| split(source, day, "4", "5", Some(word));
    let odd = |source| split(source, "2023-03-01", "1000", "1281", None);
    let check = |splits: Vec<Observation<Split>>, merged: &[usize], expected: &str| {
        assert_eq!(raw(&history(splits), merged), expected, "{merged:?} {expected}");
    };
    check(vec![own.clone()], &[0], "2");
    // Spin-offs and other price-only actions of the list.
    check(vec![own.clone(), odd("a")], &[0, 1], "2.562");
    for word in ["spin_off", "rights", "class_distribution"] {
        check(vec![own.clone(), typed("a", "2023-03-01", word)], &[0, 1], "2.5");
    }
    // A split of the list that another source, a decision or a manual record replaced.
    check(vec![own.clone(), split("b", "2022-03-01", "1", "3", None)], &[1], "2");
    check(vec![own.clone(), split("b", "2022-03-04", "1", "2", None)], &[1], "2");
    check(vec![own.clone(), split("manual", "2022-03-01", "1", "20", None)], &[1], "2");
    check(vec![own.clone()], &[], "2");
    // A split that the feed withdrew, and one that is impossible.
    let withdrawn = Observation { action: Action::Retract, line: 2, ..own.clone() };
    check(vec![own.clone(), withdrawn.clone()], &[], "1");
    check(vec![split("a", "2022-03-01", "0", "2", None)], &[], "1");
    // Splits of other sources: all of them if the feed lists none, else those that change the share count.
    check(vec![split("b", "2022-03-01", "1", "3", None), odd("b")], &[0, 1], "3.843");
    check(vec![own.clone(), split("b", "2023-03-01", "1", "3", None)], &[0, 1], "6");
    check(vec![own.clone(), typed("b", "2023-03-01", "spin_off")], &[0, 1], "2");
    check(vec![own.clone(), odd("b")], &[0, 1], "2");
    check(vec![own.clone(), withdrawn, split("b", "2022-03-01", "1", "3", None)], &[2], "3");
    // Events before the row, and after its basis day.
    check(
        vec![split("a", "2020-02-03", "1", "2", None), split("a", "2024-07-01", "1", "2", None)],
        &[0, 1],
        "1",
    );
}

#[test]
fn a_row_without_a_basis_day_reaches_to_the_newest_day_of_its_feed() {
    let check = |prices_until: Option<&str>, observed_on: &str, expected: &str| {
        let mut history = history(vec![split("a", "2022-03-01", "1", "2", None)]);
        let observed_at = format!("{observed_on}T12:00:00Z").parse().unwrap();
        history.splits[0].observed_at = observed_at;
        history.dividends[0].record.basis_as_of = None;
        let closes: Vec<(&str, i64)> = prices_until.into_iter().map(|day| (day, 40)).collect();
        history.prices = crate::metrics::merge::tests::history(&[], &closes).prices;
        assert_eq!(raw(&history, &[0]), expected, "{prices_until:?} {observed_on}");
    };
    check(Some("2022-03-01"), "1970-01-01", "2");
    check(Some("2022-02-28"), "1970-01-01", "1");
    // Without prices, the newest event counts, even if it was announced for later.
    check(None, "2022-02-01", "2");
    // With prices, a later event counts if it had passed when the feed was read.
    check(Some("2022-02-28"), "2022-02-28", "1");
    check(Some("2022-02-28"), "2022-03-01", "2");
}

#[test]
fn volumes_and_share_dividends_are_adjusted_as_the_feed_says() {
    let mut history = history(vec![
        split("a", "2022-03-01", "1", "2", None),
        split("a", "2023-03-01", "1000", "1046", None),
        split("a", "2024-03-01", "4", "5", Some("spin_off")),
    ]);
    let rules = &Rules::DEFAULT.spin_off;
    let (first, last) = (date("2020-01-02"), date("2024-06-28"));
    let feeds = FeedAdjustments::collect(&history, &[], &[], &|_| Some(0), rules);
    let ListedSplits { splits, of_volumes } = feeds.of_source("a");
    assert_eq!(splits.price_ratio_between(first, last).inverse().factor(), dec!(2.615));
    assert_eq!(of_volumes.price_ratio_between(first, last).inverse().factor(), dec!(2.092));
    // The number of new shares in a stock dividend is not per share of a later day.
    history.dividends[0].record.r#type = DividendType::Stock;
    let feeds = FeedAdjustments::collect(&history, &[], &[], &|_| Some(0), rules);
    assert_eq!(feeds.raw_amount(&history.dividends[0], date("2020-02-03")), dec!(1));
    assert_eq!(feeds.of_source("a").splits.events()[0].ratio, Ratio { from: dec!(1), to: dec!(2) });
    // An amount on the basis of a day before its ex-date changes with the share count only.
    history.dividends[0].record.r#type = DividendType::Regular;
    history.dividends[0].record.basis_as_of = Some(date("2019-01-02"));
    let feeds = FeedAdjustments::collect(&history, &[], &[], &|_| Some(0), rules);
    assert_eq!(feeds.raw_amount(&history.dividends[0], last), dec!(0.5));
}

#[test]
fn plain_histories_need_no_adjustments() {
    let mut plain = history(vec![split("a", "2022-03-01", "1", "2", None)]);
    assert!(has_adjusted_rows(&plain));
    plain.dividends[0].record.amount_basis = ShareBasis::Raw;
    assert!(!has_adjusted_rows(&plain));
    let bars = crate::bars::Bars {
        versions: vec![crate::bars::BarVersion { basis_day: Some(0), ..crate::bars::BarVersion::UNKNOWN }],
        ..Default::default()
    };
    plain.prices = vec![SourceBars { source: "a".into(), bars: bars.into(), closes_only: Vec::new() }];
    assert!(has_adjusted_rows(&plain));
    plain.splits.clear();
    assert!(!has_adjusted_rows(&plain));
}
