//! Tests for price levels (R36): bars far from the bars around them, and splits that the prices contradict.

use std::sync::Arc;

use chrono::Days;
use market::event::{Action, DecisionVerdict, ShareBasis};
use market::history::SourceBars;
use market::metrics::quarantined_rows;
use market::row::Flag;

use crate::decided::decision;
use crate::figures::{has, in_market, text};
use crate::lives::date;
use crate::tables::{Tables, bars, closes, derived_on, held};

fn priced(prices: &str) -> Tables<'_> {
    Tables { prices, ..Tables::default() }
}

#[test]
fn newest_bars_in_pence_are_held() {
    let listed =
        "2020-04-15,600.2 2020-04-16,605.4 2020-04-17,610.1 2020-04-20,612.200012 2020-04-21,609.599976
        2020-04-22,5.854 2020-04-23,5.872 2020-04-24,5.73";
    let found = priced(listed).on("2020-04-24");
    assert_eq!(text(found.quote.price), "609.599976");
    assert_eq!(
        held(&found),
        ["2020-04-22", "2020-04-23", "2020-04-24"].map(|day| format!("price {day} price_unit_error"))
    );
    // On the first of these days, the bar is only unconfirmed.
    let found = priced(listed).on("2020-04-22");
    assert_eq!(held(&found), ["price 2020-04-22 unconfirmed_price"]);
    assert_eq!(text(found.quote.price), "609.599976");
}

#[test]
fn one_impossible_bar_changes_no_volatility() {
    let series = |close: Option<&str>| {
        let line = |index: u64| {
            let close =
                close.filter(|_| index == 60).map_or_else(|| (50 + index % 5).to_string(), str::to_owned);
            format!("{},{close}", date("2023-10-26") + Days::new(index))
        };
        let lines = (0..100).filter(|index| close.is_some() || *index != 60);
        lines.map(line).collect::<Vec<_>>().join(" ")
    };
    let sound = priced(&series(None)).on("2024-02-02");
    for close in ["50000", "500000", "365", "0.005"] {
        let found = priced(&series(Some(close))).on("2024-02-02");
        assert_eq!(found.quarantined.len(), 1, "{close}");
        assert_eq!(found.metrics.volatility_1y, sound.metrics.volatility_1y, "{close}");
        assert!(!has(&found, Flag::PriceLevelBreak));
    }
}

#[test]
fn a_newest_move_waits_for_a_session_or_a_source() {
    let moved = "2024-06-25,10 2024-06-26,11 2024-06-27,10 2024-06-28,34";
    let found = priced(moved).on("2024-06-28");
    assert_eq!(
        (held(&found), text(found.quote.price)),
        (vec!["price 2024-06-28 unconfirmed_price".to_owned()], "10".to_owned())
    );
    assert!(!has(&found, Flag::PriceLevelBreak));
    // The next session confirms the move. The move is then flagged as a break of the price level.
    let later = format!("{moved} 2024-07-01,35");
    let found = priced(&later).on("2024-07-01");
    assert!(has(&found, Flag::PriceLevelBreak) && held(&found).is_empty());
    // If the next close is near the old level, the moved close is quarantined as isolated.
    let later = format!("{moved} 2024-07-01,11");
    assert_eq!(held(&priced(&later).on("2024-07-01")), ["price 2024-06-28 isolated_price"]);
    // A similar close of a second source confirms the move. A decision also confirms it.
    let mut history = priced(moved).history();
    let second =
        |prices: &str| SourceBars { source: "b".into(), bars: bars(prices).into(), closes_only: Vec::new() };
    history.prices.push(second("2024-06-28,30"));
    assert!(held(&derived_on("2024-06-28", &history)).is_empty());
    history.prices[1] = second("2024-06-28,11");
    assert_eq!(derived_on("2024-06-28", &history).quarantined.len(), 1);
    let rows = in_market(|market| quarantined_rows(&history, market));
    history.decisions = vec![decision(&rows[0].1, DecisionVerdict::Release, Action::Put, 1)];
    assert!(held(&derived_on("2024-06-28", &history)).is_empty());
    // If no session follows for several days, the security has stopped trading, and the bar counts.
    assert!(held(&priced(moved).on("2024-07-08")).is_empty());
    // A known split or payment explains the move.
    let split = Tables { splits: "2024-06-28,4,1", ..priced(moved) };
    assert!(held(&split.on("2024-06-28")).is_empty());
    let fallen = Tables {
        dividends: "2024-06-28,7,special",
        ..priced("2024-06-25,10 2024-06-26,11 2024-06-27,10 2024-06-28,3")
    };
    assert!(held(&fallen.on("2024-06-28")).is_empty());
    assert_eq!(held(&Tables { dividends: "", ..fallen }.on("2024-06-28")).len(), 1);
}

#[test]
fn another_source_takes_the_day_of_a_held_bar() {
    let day = "2024-06-28";
    let served = |prices: &[(&str, &str)]| {
        let mut history = priced("").history();
        history.prices = prices
            .iter()
            .map(|(source, rows)| SourceBars {
                source: (*source).into(),
                bars: bars(rows).into(),
                closes_only: Vec::new(),
            })
            .collect();
        let found = derived_on(day, &history);
        (held(&found), closes(&found).pop().expect("a close"), text(found.quote.price))
    };
    let moved = ("a", "2024-06-25,10 2024-06-26,11 2024-06-27,10 2024-06-28,34");
    let unconfirmed = vec!["price 2024-06-28 unconfirmed_price".to_owned()];
    // While a close is unconfirmed, the quote uses the bar of the second source for this day. Without such a bar, it
    // uses the bar of the day before.
    let expected = (unconfirmed.clone(), "2024-06-28 11".to_owned(), "11".to_owned());
    assert_eq!(served(&[moved, ("b", "2024-06-26,11 2024-06-28,11")]), expected);
    let before = (unconfirmed.clone(), "2024-06-27 10".to_owned(), "10".to_owned());
    assert_eq!(served(&[moved, ("b", "2024-06-26,11")]), before);
    // Three sources have three different closes. Each close that moves too far is quarantined.
    let twice = [unconfirmed.clone(), unconfirmed].concat();
    assert_eq!(served(&[moved, ("b", "2024-06-28,90"), ("c", "2024-06-28,9")]).0, twice);
    assert_eq!(served(&[moved, ("b", "2024-06-28,90"), ("c", "2024-06-28,9")]).2, "9");
    assert_eq!(served(&[moved, ("b", "2024-06-28,90")]).2, "10");
    // An isolated bar is also replaced by the bar of another source. If that bar is wrong too, both are quarantined.
    let isolated = ("a", "2024-06-25,10 2024-06-26,73 2024-06-27,10 2024-06-28,10");
    let found = |second: &str| {
        let mut history = priced(isolated.1).history();
        history.prices.push(SourceBars {
            source: "b".into(),
            bars: bars(second).into(),
            closes_only: Vec::new(),
        });
        let found = derived_on(day, &history);
        (held(&found), closes(&found)[1].clone())
    };
    let one = "price 2024-06-26 isolated_price".to_owned();
    assert_eq!(found("2024-06-26,11"), (vec![one.clone()], "2024-06-26 11".to_owned()));
    assert_eq!(found("2024-06-26,72"), (vec![one.clone(), one], "2024-06-27 10".to_owned()));
}

#[test]
fn moves_over_a_gap_are_flagged_and_not_held() {
    for (prices, expected) in [
        ("2018-12-31,188 2020-12-31,18 2022-12-30,182", true),
        ("2018-12-31,188 2020-12-31,63 2022-12-30,182", false),
    ] {
        let found = priced(prices).on("2022-12-30");
        assert!(held(&found).is_empty());
        assert_eq!(has(&found, Flag::PriceLevelBreak), expected, "{prices}");
    }
}

#[test]
fn a_large_payment_on_the_ex_date_hides_a_split_in_the_price() {
    // The special takes half of the value, and the 70:33 consolidation restores the price.
    let consolidated = Tables {
        splits: "2023-05-16,70,33",
        dividends: "2023-05-16,2.4394,special",
        prices: "2023-05-11,2.15 2023-05-12,2.114 2023-05-15,2.174 2023-05-16,2.051 2023-05-17,1.979",
        ..Tables::default()
    };
    let found = consolidated.on("2023-05-17");
    assert!(held(&found).is_empty() && !has(&found, Flag::SplitNotInPrice), "{:?}", held(&found));
    assert_eq!(found.splits.len(), 1);
    // The same with a later split, and with split-adjusted amounts.
    for dividends in ["2023-05-16,2.4394,special", "2023-05-16,0.24394,special"] {
        let splits = "2023-05-16,70,33 2023-06-01,10,1";
        let mut history = Tables { splits, dividends, ..consolidated }.history();
        let adjusted = dividends.contains(",0.2");
        if adjusted {
            history.splits[1].record.ex_date = date("2023-05-17");
            (history.splits[1].record.from, history.splits[1].record.to) = (1.into(), 10.into());
            history.dividends[0].record.amount_basis = ShareBasis::SplitAdjusted;
            history.prices[0].bars =
                bars("2023-05-12,2.114 2023-05-15,2.174 2023-05-16,2.051 2023-05-17,0.198").into();
        }
        assert!(held(&derived_on("2023-05-17", &history)).is_empty(), "{dividends}");
    }
    // The price contradicts the split if the payment is missing, small, on another day or in another currency.
    let denies = |held: Vec<String>| held.iter().any(|row| row == "split 2023-05-16 split_denied");
    for dividends in ["", "2023-05-16,0.05,special", "2023-05-18,2.4394,special", "2023-05-15,2.4394,special"]
    {
        assert!(denies(held(&Tables { dividends, ..consolidated }.on("2023-05-17"))), "{dividends}");
    }
    let mut foreign = consolidated.history();
    foreign.dividends[0].record.currency = "EUR".into();
    assert!(denies(held(&derived_on("2023-05-17", &foreign))));
}

#[test]
fn a_split_that_the_price_contradicts_is_flagged() {
    let merged = Tables {
        splits: "2019-05-10,12,1",
        prices: "2019-05-08,0.42 2019-05-09,0.41 2019-05-10,8.10 2019-05-13,8.00",
        ..Tables::default()
    };
    let found = merged.on("2019-05-13");
    assert!(has(&found, Flag::SplitNotInPrice) && held(&found).is_empty());
    assert_eq!(found.splits.len(), 1);
    let sound = Tables { prices: "2019-05-08,0.42 2019-05-09,0.41 2019-05-10,5.10 2019-05-13,5", ..merged };
    assert!(!has(&sound.on("2019-05-13"), Flag::SplitNotInPrice));
    // For a 2:1 split, the adjusted price may change by a factor of at most 2 to the power of 0.4.
    let halved = |close: &str| {
        let prices = format!("2019-05-08,100 2019-05-09,100 2019-05-10,{close} 2019-05-13,{close}");
        let found =
            Tables { splits: "2019-05-10,1,2", prices: &prices, ..Tables::default() }.on("2019-05-13");
        (has(&found, Flag::SplitNotInPrice), found.splits.len())
    };
    assert_eq!(
        ["50", "65.9", "66", "37.9", "37.8", "87", "88", "20"].map(halved),
        [(false, 1), (false, 1), (true, 1), (false, 1), (true, 1), (true, 1), (true, 0), (true, 1),]
    );
}

#[test]
fn a_split_that_the_price_denies_is_held_with_prices_and_dividends_unchanged() {
    let denied = Tables {
        splits: "2014-03-03,1,22",
        dividends: "2013-02-14,2 2013-05-15,2 2013-08-14,2 2013-11-13,2",
        prices: "2014-02-28,280 2014-03-03,279 2014-03-04,281",
        ..Tables::default()
    };
    let found = denied.on("2014-03-04");
    assert_eq!(held(&found), ["split 2014-03-03 split_denied"]);
    assert!(has(&found, Flag::SplitNotInPrice) && !has(&found, Flag::PriceLevelBreak));
    assert!(found.splits.is_empty() && found.factors.iter().all(|factor| factor.split.is_one()));
    assert_eq!(text(found.metrics.dps_ttm), "6");
    assert_eq!(closes(&found)[0], "2014-02-28 280");
    // A decision releases the split.
    let mut history = denied.history();
    let rows = in_market(|market| quarantined_rows(&history, market));
    history.decisions = vec![decision(&rows[0].1, DecisionVerdict::Release, Action::Put, 1)];
    let found = derived_on("2014-03-04", &history);
    assert_eq!((found.splits.len(), found.quarantined.len()), (1, 0));
    // Dividends or a share count that change by the ratio of the split confirm the split.
    let dividends = "2013-08-14,2 2013-11-13,2 2014-03-03,0.09";
    assert_eq!(Tables { dividends, ..denied }.on("2014-03-04").splits.len(), 1);
    let fundamentals = "2013-12-31,1000,5 2014-03-04,22000,0.2";
    assert_eq!(Tables { fundamentals, ..denied }.on("2014-03-04").splits.len(), 1);
    // Without a bar in the week before the split, the prices cannot contradict it.
    let prices = "2014-02-14,280 2014-03-03,279";
    assert!(held(&Tables { prices, ..denied }.on("2014-03-04")).is_empty());
    // Split-adjusted closes of a vendor have no step at a split, so these closes do not contradict it.
    let mut history = denied.history();
    Arc::make_mut(&mut history.prices[0].bars).versions[0].basis_day = Some(0);
    let found = derived_on("2014-03-04", &history);
    assert_eq!((closes(&found)[0].as_str(), found.splits.len()), ("2014-02-28 6160", 1));
}

#[test]
fn of_two_equal_splits_the_price_shows_one() {
    let twice = Tables {
        splits: "2017-04-10,1,2 2017-04-11,1,2",
        dividends:
            "2015-02-14,0.40 2015-05-15,0.40 2015-08-14,0.40 2015-11-13,0.40 2016-02-14,0.42 2016-05-15,0.42
            2016-08-14,0.42 2016-11-13,0.42",
        prices: "2017-04-07,62.00 2017-04-10,62.10 2017-04-11,31.20 2017-04-12,31.30",
        ..Tables::default()
    };
    let found = twice.on("2017-04-12");
    assert_eq!(held(&found), ["split 2017-04-10 split_denied"]);
    assert_eq!(text(found.metrics.dps_ttm), "0.63");
    assert_eq!(found.splits.iter().map(|row| row.ex_date).collect::<Vec<_>>(), [date("2017-04-11")]);
    // Both splits are between the same two bars.
    let prices = "2017-04-07,62.00 2017-04-12,31.30";
    assert_eq!(held(&Tables { prices, ..twice }.on("2017-04-12")), ["split 2017-04-10 split_denied"]);
    // Here, the prices show both splits.
    let prices = "2017-04-07,62.00 2017-04-10,31 2017-04-11,15.6 2017-04-12,15.3";
    let found = Tables { prices, ..twice }.on("2017-04-12");
    assert!(held(&found).is_empty() && !has(&found, Flag::SplitNotInPrice));
}

#[test]
fn an_early_split_is_effective_where_the_price_moves() {
    let early = |move_on: usize| {
        let days = ["03-01", "03-04", "03-05", "03-06", "03-07", "03-08"];
        let close = |(index, day): (usize, &&str)| {
            format!("2024-{day},{}", if index < move_on { "100" } else { "25" })
        };
        let prices = days.iter().enumerate().map(close).collect::<Vec<_>>().join(" ");
        let life = Tables {
            splits: "2024-03-04,1,4",
            dividends: "2023-11-01,4 2024-05-01,1",
            prices: &prices,
            ..Tables::default()
        };
        let found = life.on("2024-06-28");
        assert_eq!(found.splits[0].cumulative_price_factor, found.splits[0].price_factor);
        let factor = found.factors.iter().find(|factor| !factor.split.is_one()).map(|factor| factor.ex_date);
        let ex_dates: Vec<String> = found.splits.iter().map(|row| row.ex_date.to_string()).collect();
        let flags = [Flag::SplitNotInPrice, Flag::PriceLevelBreak].map(|flag| has(&found, flag));
        (factor.map(|date| date.to_string()), ex_dates.len(), flags)
    };
    let on = |day: &str| Some(format!("2024-{day}"));
    assert_eq!(early(1), (on("03-04"), 1, [false, false]));
    assert_eq!(early(2), (on("03-05"), 1, [true, false]));
    assert_eq!(early(4), (on("03-07"), 1, [true, false]));
    // The price changes too late for this split. The split still counts, because the amounts confirm it.
    assert_eq!(early(5), (on("03-04"), 1, [true, true]));
}

#[test]
fn of_equal_early_splits_a_manual_one_is_used() {
    let life = Tables {
        splits: "2024-03-04,1,4 2024-03-05,1,4",
        prices: "2024-03-01,100 2024-03-04,100 2024-03-05,100 2024-03-06,100 2024-03-07,25 2024-03-08,25",
        ..Tables::default()
    };
    let mut history = life.history();
    assert_eq!(held(&derived_on("2024-03-08", &history)), ["split 2024-03-05 split_denied"]);
    history.splits[1].source = "manual".into();
    assert_eq!(held(&derived_on("2024-03-08", &history)), ["split 2024-03-04 split_denied"]);
}

#[test]
fn a_value_spun_off_is_no_jump() {
    let life = Tables {
        dividends: "2024-06-27,50,spin_off",
        prices: "2024-06-25,100 2024-06-26,100 2024-06-27,50 2024-06-28,51",
        ..Tables::default()
    };
    assert!(!has(&life.on("2024-06-28"), Flag::PriceJumpWithoutSplit));
    assert!(has(&Tables { dividends: "", ..life }.on("2024-06-28"), Flag::PriceJumpWithoutSplit));
}
