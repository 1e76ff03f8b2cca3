//! Tests of the fast path for a single source, which must give the same results as the merge. Other tests check years
//! that are loaded with closes only.

use chrono::Days;

use super::*;
use crate::event::Decision;
use crate::metrics::Derivation;

/// Adds a second source without bars, so that the fast path is not used.
fn accompanied(history: &History) -> History {
    let mut both = history.clone();
    both.prices.push(source("b", 0, &[]));
    both
}

/// Derived rows without the versions of the bars, which are not derived.
fn without_versions(rows: DerivedRows) -> DerivedRows {
    DerivedRows { bars: rows.bars.slice_values(0..rows.bars.len()).into(), ..rows }
}

#[test]
fn a_source_counts_alike_alone_and_beside_another() {
    let whole =
        |day: &str, close: i64| Bar { open: 4_000, high: 4_100, low: 3_900, vwap: 3_999, ..bar(day, close) };
    let days = ["2024-06-20", "2024-06-21", "2024-06-24", "2024-06-25", "2024-06-26", "2024-06-27"];
    // Calm closes, rises and falls by half and more, doubling, wrong units, missing prices, a low first and last close.
    for closes in [
        [4_000, 4_010, 4_020, 4_000, 3_990, 4_000],
        [4_000, 6_000, 4_000, 2_000, 4_000, 4_000],
        [1_000, 2_000, 4_000, 8_000, 16_000, 32_000],
        [4_000, 400_000, 4_000, 4_000, 40, 4_000],
        [4_000, 4_000, 4_000, 0, 4_000, 4_000],
        [10, 4_000, 4_000, 4_000, 4_000, 10],
        [1, 100, 1, 1, 1, 1],
        [2, 2, 190, 2, 2, 2],
    ] {
        let rows: Vec<Bar> = days.iter().zip(closes).map(|(day, close)| whole(day, close)).collect();
        let alone = history(vec![source("a", 2, &rows)]);
        let found = derived(&alone, &[]);
        let merged = derived(&accompanied(&alone), &[]);
        assert_eq!(without_versions(merged), without_versions(found.clone()), "{closes:?}");
        // All columns of the derived bars have equal lengths. Otherwise, the bars could not be stored.
        assert!(found.bars.has_equal_lengths());
    }
}

#[test]
fn what_is_traded_later_does_not_say_when_figures_were_observed() {
    let days = ["2024-06-26", "2024-06-27", "2024-07-01", "2024-07-02"];
    // Each bar is observed one second after the bar before it. The as-of date is 28 June.
    for (bars, seconds) in [(0..2, Some(2)), (0..4, Some(2)), (1..4, Some(2)), (0..1, Some(1)), (2..4, None)]
    {
        let mut alone = history(vec![source("a", 2, &[])]);
        for index in bars.clone() {
            let version = BarVersion { observed_at: (index as i64 + 1) * 1_000_000, ..BarVersion::UNKNOWN };
            let read = Arc::make_mut(&mut alone.prices[0].bars);
            read.push(bar(days[index], 4_000), u16::try_from(read.versions.len()).expect("few"));
            read.versions.push(version);
        }
        for history in [accompanied(&alone), alone] {
            let updated = derived(&history, &[]).quote.updated_at.timestamp();
            assert_eq!(updated, seconds.unwrap_or_default(), "{bars:?}");
        }
    }
}

#[test]
fn a_mean_price_says_nothing_of_a_bar() {
    let day = "2024-06-25";
    let fine = [
        bar(day, 4_000),
        Bar { open: 4_000, high: 4_000, low: 4_000, ..bar(day, 4_000) },
        Bar { high: 4_100, ..bar(day, 4_000) },
        Bar { low: 3_900, ..bar(day, 4_000) },
        Bar { open: 0, high: 0, low: 0, volume: 0, ..bar(day, 4_000) },
        Bar { volume: MISSING, ..bar(day, 4_000) },
    ];
    // Ingest rejects rows with a negative mean price (`vwap`). The merge does not check the mean price again, and uses
    // the close of such a bar.
    for bar in fine.map(|bar| Bar { vwap: -1, ..bar }) {
        let alone = history(vec![source("a", 2, &[bar])]);
        for history in [accompanied(&alone), alone] {
            let found = derived(&history, &[]);
            assert_eq!((closes(&found), held(&found)), (vec!["2024-06-25 40".to_owned()], vec![]), "{bar:?}");
        }
    }
}

#[test]
fn a_jump_between_two_closes_is_told() {
    let told = |before: i64, after: i64| {
        let rows = [bar("2024-06-27", before), bar("2024-06-28", after)];
        let flags = derived(&history(vec![source("a", 2, &rows)]), &[]).metrics.flags.0;
        flags.iter().any(|flag| flag == "price_jump_without_split")
    };
    assert!(told(2_000, 4_000) && told(4_000, 2_000));
    assert!(!told(2_000, 2_750) && !told(2_750, 2_000) && !told(2_000, 2_000));
}

fn confirmed(kind: &str, day: &str, value: &str) -> Observation<Decision> {
    observed(serde_json::json!({
        "symbol": "TEST", "verdict": "confirm", "kind": kind, "source": "a", "date": day, "value": value,
        "reason": "price_unit_error", "note": "seen",
    }))
}

#[test]
fn a_close_like_any_other_is_held_where_a_person_says_it_is_wrong() {
    let mut calm = history(vec![source("a", 2, &[bar("2024-06-27", 4_000), bar("2024-06-28", 4_010)])]);
    calm.decisions = vec![confirmed("price", "2024-06-28", "40.1")];
    let found = derived(&calm, &[]);
    assert_eq!(
        (closes(&found), held(&found)),
        (vec!["2024-06-27 40".to_owned()], vec!["2024-06-28 confirmed a 3".to_owned()])
    );
}

#[test]
fn a_row_is_as_new_as_the_prices_that_count() {
    let seen = |mut prices: SourceBars, second: i64| {
        Arc::make_mut(&mut prices.bars).versions[0].observed_at = second * 1_000_000;
        prices
    };
    let newest =
        |prices: &[SourceBars]| derived(&history(prices.to_vec()), &[]).stock.listed.updated_at.timestamp();
    let a = seen(source("a", 2, &[bar("2024-06-27", 4_000)]), 5);
    let b = seen(source("b", 2, &[bar("2024-06-28", 4_010)]), 7);
    let without = seen(source("c", 2, &[]), 9);
    assert_eq!(newest(std::slice::from_ref(&a)), 5);
    assert_eq!(newest(&[a.clone(), b.clone()]), 7);
    assert_eq!(newest(&[a, b, without]), 7);
}

/// Result of `closes_suffice` for weekly bars from 2022 to June 2024, modified by `change`. Only 2022 is loaded with
/// closes only.
fn suffice(change: &dyn Fn(&mut History)) -> bool {
    let days =
        (0..).map(|n| date("2022-01-03") + Days::new(7 * n)).take_while(|day| *day <= date("2024-06-28"));
    let rows: Vec<Bar> = days.map(|day| bar(&day.to_string(), 4_000)).collect();
    let mut history = history(vec![source("a", 2, &rows)]);
    history.prices[0].closes_only = vec![2022];
    change(&mut history);
    let (as_of, policy) = (date("2024-06-28"), SourcePolicy::default());
    let context = DerivationContext {
        as_of,
        newest: as_of,
        benchmark: None,
        rates: &crate::metrics::ExchangeRates::NONE,
        reporting_currency: "USD",
        policy: &policy,
        rules: &Rules::DEFAULT,
    };
    Derivation::new(&history, &context).closes_suffice()
}

#[test]
fn closes_are_enough_where_bars_are_taken_as_they_are() {
    let plain: [&dyn Fn(&mut Bars); 6] = [
        &|_| (),
        &|bars| bars.volume[110] = 0,
        &|bars| (bars.open[110], bars.high[110], bars.low[110]) = (0, 0, 0),
        &|bars| (bars.high[110], bars.low[110]) = (4_000, 4_000),
        // A fall to a hundredth that lasts longer than the earlier data is a real fall, not a wrong unit.
        &|bars| bars.close[..50].fill(400_000),
        &|bars| bars.close[100..].fill(6_000),
    ];
    for (number, change) in plain.into_iter().enumerate() {
        assert!(suffice(&|history| change(Arc::make_mut(&mut history.prices[0].bars))), "{number}");
    }
    // Bars that are quarantined in other years do not matter.
    let elsewhere: [&dyn Fn(&mut Bars); 4] = [
        &|bars| bars.close[100..].fill(400_000),
        &|bars| bars.close[100] = 400_000,
        &|bars| bars.close[100] = 0,
        &|bars| bars.volume[110] = -1,
    ];
    for (number, change) in elsewhere.into_iter().enumerate() {
        assert!(suffice(&|history| change(Arc::make_mut(&mut history.prices[0].bars))), "{number}");
    }
    let other: [&dyn Fn(&mut Bars); 4] = [
        &|bars| bars.close[20] = 400_000,
        &|bars| bars.close[20] = 0,
        &|bars| bars.versions[0].retracted = true,
        &|bars| bars.versions[0].basis_day = Some(0),
    ];
    for (number, change) in other.into_iter().enumerate() {
        assert!(!suffice(&|history| change(Arc::make_mut(&mut history.prices[0].bars))), "{number}");
    }
    // A second source may have bars, if the prices of neither source are converted, for example to another scale, and if
    // no bar of 2022 is used.
    let second = |day: &str, close: i64| source("b", 2, &[bar(day, close)]);
    assert!(suffice(&|history| history.prices.push(second("2024-06-28", 4_000))));
    assert!(suffice(&|history| history.prices.push(second("2021-12-31", 4_000))));
    assert!(suffice(&|history| history.prices.insert(0, second("2023-06-28", 4_010))));
    assert!(suffice(&|history| history.prices.push(second("2022-06-27", 4_010))));
    assert!(!suffice(&|history| history.prices.push(second("2022-06-28", 4_000))));
    let preferred = |history: &mut History| {
        history.prices.insert(0, SourceBars { source: "0".into(), ..second("2022-06-27", 4_000) })
    };
    assert!(!suffice(&preferred));
    assert!(suffice(&|history| {
        preferred(history);
        let rows = history.prices[1].bars.clone();
        history.prices[0] = SourceBars { source: "0".into(), bars: rows, closes_only: vec![2022] };
    }));
    assert!(!suffice(&|history| history.prices.push(source("b", 3, &[bar("2024-06-28", 40_001)]))));
    assert!(!suffice(&|history| {
        let mut adjusted = second("2024-06-28", 4_000);
        Arc::make_mut(&mut adjusted.bars).versions[0].basis_day = Some(0);
        history.prices.push(adjusted);
    }));
    assert!(!suffice(&|history| {
        Arc::make_mut(&mut history.prices[0].bars).close[20] = 400_000;
        history.prices.push(second("2024-06-28", 4_000));
    }));
    // A price decision may concern any bar. A dividend decision concerns no bar.
    assert!(suffice(&|history| history.decisions = vec![confirmed("dividend", "2022-03-07", "40")]));
    assert!(!suffice(&|history| history.decisions = vec![confirmed("price", "2022-03-07", "40")]));
}
