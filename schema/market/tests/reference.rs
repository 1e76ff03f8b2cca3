//! Property tests on random histories. Derived figures are compared with a slow reference model in exact rationals. The
//! order of observations must not matter, and deriving must never fail.

mod reference_model;

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{Datelike, Days, TimeDelta};
use foldhash::quality::FixedState;
use market::bars::{Bars, MISSING};
use market::day::{date_of, day_number};
use market::decimal::ExactDecimal;
use market::history::{History, SourceBars, SourcePolicy};
use market::metrics::{
    CloseSeries, Derivation, DerivationContext, DerivedRows, Rules, derive, explain, total_return,
};
use market::price::{CumulativeFactors, PriceBasis, PriceMultiplier};
use proptest::prelude::*;
use reference_model::exact::{self, Rational, nearest};
use reference_model::market::{Case, as_of, case};
use reference_model::noise::{noise, policy, shuffled};
use rust_decimal::Decimal;

fn decimal(value: Option<ExactDecimal>) -> Option<Decimal> {
    value.map(|value| value.0)
}

fn rounded(value: Option<Rational>, places: u32) -> Option<Decimal> {
    value.map(|value| nearest(&value, places))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sums_yields_and_growth_agree(case in case()) {
        let policy = SourcePolicy::default();
        let derived = derive(&case.history(), &DerivationContext { as_of: as_of(), newest: as_of(), benchmark: None, rates: &market::metrics::ExchangeRates::NONE, reporting_currency: "USD", policy: &policy, rules: &Rules::DEFAULT });
        let metrics = &derived.metrics;
        // Random amounts may look like a special or a dip. The reference model does not detect these.
        let readings = ["boundary_shift", "amount_dip", "inferred_special", "near_duplicate", "payment_gap"];
        let is_face_value = !metrics.flags.0.iter().any(|flag| readings.contains(&flag.as_str()));
        prop_assume!(is_face_value);
        prop_assert_eq!(decimal(metrics.dps_ttm), rounded(Some(exact::trailing(&case, false)), 6));
        prop_assert_eq!(decimal(metrics.dps_ttm_total), rounded(Some(exact::trailing(&case, true)), 6));
        prop_assert_eq!(decimal(metrics.yield_ttm), rounded(exact::trailing_yield(&case), 4));
        prop_assert_eq!(decimal(metrics.price), rounded(exact::price(&case), 6));
        for total in metrics.annual_totals.0.iter() {
            prop_assert_eq!(total.amount.0, nearest(&exact::annual_total(&case, total.year), 6), "{}", total.year);
        }
        let found = [(1, metrics.growth_1y), (3, metrics.growth_3y), (5, metrics.growth_5y)];
        for (span, growth) in found {
            if let Some(growth) = growth {
                prop_assert!(exact::is_growth(&case, span, growth.0), "{span} years: {growth}");
            }
        }
        // Amounts around a split may be equal by chance. Their share basis is then suspect.
        if !metrics.flags.0.contains(&"amount_basis_suspect".to_owned()) {
            prop_assert_eq!(metrics.increase_streak_years, exact::streak(&case));
        }
    }

    #[test]
    fn adjusted_prices_and_returns_agree(case in case()) {
        let policy = SourcePolicy::default();
        let market = DerivationContext { as_of: as_of(), newest: as_of(), benchmark: None, rates: &market::metrics::ExchangeRates::NONE, reporting_currency: "USD", policy: &policy, rules: &Rules::DEFAULT };
        let derived = derive(&case.history(), &market);
        let factors = CumulativeFactors::new(&derived.factors, None);
        for (index, day) in derived.bars.day.iter().enumerate() {
            let factor = factors.at(factors.position(*day));
            let served = |basis| {
                let multiplier = PriceMultiplier::new(factor, basis, derived.bars.scale);
                Decimal::from_i128_with_scale(multiplier.micros(derived.bars.close[index]), 6)
            };
            prop_assert_eq!(served(PriceBasis::SPLIT), nearest(&exact::split_adjusted(&case, date_of(*day)), 6));
            prop_assert_eq!(served(PriceBasis::ALL), nearest(&exact::adjusted(&case, date_of(*day)), 6));
        }
        let close = |index: usize| Decimal::new(derived.bars.close[index], derived.bars.scale);
        let closes = CloseSeries { days: &derived.bars.day, close: &close, factors: &derived.factors };
        let total = total_return(&closes, 0, derived.bars.len() - 1).map(|total| ExactDecimal::percent(total).0);
        prop_assert_eq!(total, rounded(Some(exact::total_return(&case)), 4));
        let found = decimal(derived.metrics.volatility_1y);
        prop_assert!(exact::is_volatility(&case, found), "{found:?}");
        prop_assert_eq!(decimal(derived.quote.year_high), rounded(exact::year_extreme(&case, true), 6));
        prop_assert_eq!(decimal(derived.quote.year_low), rounded(exact::year_extreme(&case, false), 6));
        prop_assert_eq!(decimal(derived.quote.sma_50), rounded(exact::average_close(&case, 50), 6));
        prop_assert_eq!(decimal(derived.quote.sma_200), rounded(exact::average_close(&case, 200), 6));
    }

    #[test]
    fn split_adjusted_feeds_give_the_same_numbers(case in case()) {
        let policy = SourcePolicy::default();
        let market = DerivationContext { as_of: as_of(), newest: as_of(), benchmark: None, rates: &market::metrics::ExchangeRates::NONE, reporting_currency: "USD", policy: &policy, rules: &Rules::DEFAULT };
        let plain = derive(&case.history(), &market);
        let adjusted = derive(&case.history_adjusted(), &market);
        prop_assert_eq!(plain.metrics.dps_ttm, adjusted.metrics.dps_ttm);
        prop_assert_eq!(plain.metrics.yield_ttm, adjusted.metrics.yield_ttm);
        let amounts = |d: &market::metrics::DerivedRows| d.dividends.iter().map(|row| row.amount).collect::<Vec<_>>();
        prop_assert_eq!(amounts(&plain), amounts(&adjusted));
        let closes = |d: &market::metrics::DerivedRows| {
            d.bars.close.iter().map(|close| ExactDecimal::amount(Decimal::new(*close, d.bars.scale))).collect::<Vec<_>>()
        };
        prop_assert_eq!(closes(&plain), closes(&adjusted));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_order_of_observations_never_matters(history in noise(), policy in policy(), seed in any::<u64>()) {
        let market = DerivationContext { as_of: as_of(), newest: as_of(), benchmark: None, rates: &market::metrics::ExchangeRates::NONE, reporting_currency: "USD", policy: &policy, rules: &Rules::DEFAULT };
        let other = shuffled(&history, seed);
        prop_assert_eq!(derive(&history, &market), derive(&other, &market));
        prop_assert_eq!(explain(&history, &market), explain(&other, &market));
    }

    #[test]
    fn seeing_an_observation_twice_changes_nothing(history in noise(), policy in policy()) {
        let market = DerivationContext { as_of: as_of(), newest: as_of(), benchmark: None, rates: &market::metrics::ExchangeRates::NONE, reporting_currency: "USD", policy: &policy, rules: &Rules::DEFAULT };
        let mut twice = history.clone();
        twice.dividends.extend(history.dividends.iter().cloned());
        twice.splits.extend(history.splits.iter().cloned());
        twice.fundamentals.extend(history.fundamentals.iter().cloned());
        let (once, twice) = (derive(&history, &market), derive(&twice, &market));
        prop_assert_eq!((once.metrics.dps_ttm, once.dividends, once.splits, once.bars), (twice.metrics.dps_ttm, twice.dividends, twice.splits, twice.bars));
    }
}

/// Converts the bars as if they were stored and loaded again. Each year is stored with the smallest price scale that
/// represents its prices exactly. `stretch` multiplies the age of each bar, so that the bars cover more years.
fn as_stored(mut history: History, stretch: i32) -> History {
    for prices in &mut history.prices {
        let newest = day_number(as_of());
        let days = &mut Arc::make_mut(&mut prices.bars).day;
        days.iter_mut().for_each(|day| *day = newest - (newest - *day) * stretch);
        let years = prices.bars.by_year().into_iter().map(|(_, mut bars)| {
            bars.canonicalize();
            bars
        });
        let all = years.reduce(|all, year| all.append(year).expect("one scale"));
        prices.bars = all.unwrap_or_default().into();
    }
    history
}

fn years_of(bars: &Bars) -> BTreeMap<i32, Bars> {
    let years = bars.by_year().into_iter().map(|(year, mut bars)| {
        bars.canonicalize();
        (year, Bars { version: Vec::new(), versions: Vec::new(), ..bars })
    });
    years.collect()
}

/// Copy of the history in which some years have only their closes. These are the years whose bars equal those in
/// `served`, except the newest `newest_years` years.
fn with_closes_only(history: &History, served: &BTreeMap<i32, Bars>, newest_years: i32) -> History {
    let mut brief = history.clone();
    for prices in &mut brief.prices {
        blank_served_years(prices, served, newest_years);
    }
    brief
}

fn blank_served_years(prices: &mut SourceBars, served: &BTreeMap<i32, Bars>, newest_years: i32) {
    let stored = years_of(&prices.bars);
    let newest = stored.keys().max().copied().unwrap_or_default();
    let kept = stored
        .iter()
        .filter(|(year, bars)| **year <= newest - newest_years && served.get(year) == Some(bars));
    prices.closes_only = kept.map(|(year, _)| *year).collect();
    let Bars { day, open, high, low, volume, vwap, trade_count, .. } = Arc::make_mut(&mut prices.bars);
    let blanked = |values: &mut dyn Iterator<Item = &i64>| -> Vec<i64> {
        let is_brief = |day: &i32| prices.closes_only.contains(&date_of(*day).year());
        values.zip(&*day).map(|(value, day)| if is_brief(day) { MISSING } else { *value }).collect()
    };
    for column in [open, high, low, volume, vwap, trade_count] {
        let values = blanked(&mut column.iter());
        *column = values.into();
    }
}

/// Second source, as a variant of the first.
#[derive(Debug, Clone)]
struct SecondSource {
    name: &'static str,
    /// The second source lacks every bar whose index is a multiple of this number; 0 if it lacks none.
    lacks_every: usize,
    /// The second source has another volume at every multiple of this index; 0 if all bars are equal.
    differs_every: usize,
    /// True if the close of these bars differs too.
    closes_differ: bool,
    /// True if the served bars were derived without the second source.
    is_new: bool,
}

fn second_source() -> impl Strategy<Value = SecondSource> {
    let name = prop::sample::select(vec!["0", "z"]);
    let every = || prop_oneof![2 => Just(0usize), 1 => 1usize..40];
    (name, every(), every(), any::<bool>(), any::<bool>()).prop_map(
        |(name, lacks_every, differs_every, closes_differ, is_new)| SecondSource {
            name,
            lacks_every,
            differs_every,
            closes_differ,
            is_new,
        },
    )
}

impl SecondSource {
    fn add_to(&self, mut history: History) -> History {
        let Some(first) = history.prices.first() else { return history };
        let is_multiple = |index: usize, every: usize| every > 0 && index.is_multiple_of(every);
        let mut bars = first.bars.filter(|index| !is_multiple(index, self.lacks_every));
        for index in (0..bars.len()).filter(|index| is_multiple(*index, self.differs_every)) {
            // A whole unit, so that the number of decimal places stays.
            let difference = if self.closes_differ { 10i64.pow(bars.scale) } else { 0 };
            bars.close[index] = bars.close[index].saturating_add(difference);
            bars.volume[index] = 7;
        }
        history.prices.push(SourceBars {
            source: self.name.to_owned(),
            bars: bars.into(),
            closes_only: Vec::new(),
        });
        history
    }
}

/// Removes the cents from the closes. Highs and lows still have cents.
fn of_whole_closes(mut case: Case) -> Case {
    case.bars.iter_mut().for_each(|bar| bar.close -= bar.close % 100);
    case
}

fn told(derived: &DerivedRows) -> String {
    format!("{:?}", DerivedRows { bars: Arc::default(), ..derived.clone() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn closes_alone_give_the_same_where_they_suffice(
        history in prop_oneof![2 => case(), 2 => case().prop_map(of_whole_closes)].prop_map(|case| case.history()),
        noisy in prop::option::weighted(0.2, noise()),
        second in prop::option::weighted(0.5, second_source()),
        before in noise(),
        stretch in 1i32..8,
        moved in -400i64..500,
        ahead in prop_oneof![3 => Just(0u64), 1 => 0u64..900],
        newest_years in prop_oneof![3 => Just(2), 1 => 0i32..3],
    ) {
        let history = noisy.unwrap_or(history);
        let today = as_of() - Days::new(ahead);
        let history = second.iter().fold(history, |history, second| second.add_to(history));
        let history = as_stored(history, stretch);
        let policy = SourcePolicy::default();
        let market = DerivationContext { as_of: today, newest: today, benchmark: None, rates: &market::metrics::ExchangeRates::NONE, reporting_currency: "USD", policy: &policy, rules: &Rules::DEFAULT };
        // `served` are the bars that were served on another date, when other dividends and splits were known.
        let mut known = History { dividends: before.dividends, splits: before.splits, ..history.clone() };
        if second.is_some_and(|second| second.is_new) {
            known.prices.pop();
        }
        let earlier = DerivationContext { as_of: today - TimeDelta::days(moved), ..market };
        let served = years_of(&derive(&known, &earlier).bars);
        let brief = with_closes_only(&history, &served, newest_years);
        if Derivation::new(&brief, &market).closes_suffice() {
            let (whole, derived) = (derive(&history, &market), derive(&brief, &market));
            prop_assert_eq!(told(&derived), told(&whole));
            let now = years_of(&whole.bars);
            for year in brief.prices.iter().flat_map(|prices| &prices.closes_only) {
                prop_assert_eq!(now.get(year), served.get(year));
            }
        } else {
            prop_assert!(brief.prices.iter().any(|prices| !prices.closes_only.is_empty()));
        }
    }
}

fn dividends_told(derived: &DerivedRows) -> BTreeMap<i32, String> {
    let years = derived.dividends.chunk_by(|row, next| row.ex_date.year() == next.ex_date.year());
    years.map(|rows| (rows[0].ex_date.year(), format!("{rows:?}"))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn rows_of_equal_marks_are_equal(
        history in prop_oneof![2 => case().prop_map(|case| case.history()), 1 => noise()],
        other in noise(),
        replaced in 0u8..8,
        moved in prop_oneof![2 => 0i64..5, 1 => -400i64..500],
    ) {
        let policy = SourcePolicy::default();
        let market = DerivationContext { as_of: as_of(), newest: as_of(), benchmark: None, rates: &market::metrics::ExchangeRates::NONE, reporting_currency: "USD", policy: &policy, rules: &Rules::DEFAULT };
        let later = DerivationContext { as_of: as_of() + TimeDelta::days(moved), ..market };
        let mut changed = history.clone();
        match replaced {
            0 => changed.splits.extend(other.splits),
            1 => changed.dividends.extend(other.dividends),
            2 => changed.dividends.iter_mut().for_each(|row| row.revision += 1),
            3 => changed.prices.iter_mut().for_each(|prices| Arc::make_mut(&mut prices.bars).close.iter_mut().for_each(|close| *close = close.saturating_add(1))),
            4 => drop(changed.dividends.pop()),
            _ => {}
        }
        let hashes = FixedState::with_seed(0);
        let (before, after) = (Derivation::new(&history, &market), Derivation::new(&changed, &later));
        let marks = [before.fingerprint_dividends(&hashes), after.fingerprint_dividends(&hashes)];
        let [before, after] = [before.rows(), after.rows()];
        let rows = [dividends_told(&before), dividends_told(&after)];
        for (year, mark) in &marks[0] {
            prop_assert!(rows[0].contains_key(year));
            prop_assert!(marks[1].get(year) != Some(mark) || rows[0].get(year) == rows[1].get(year), "{year}");
        }
        prop_assert_eq!(marks[1].len(), rows[1].len());
        let other_rows = Derivation::new(&changed, &later).rows_without_dividends();
        prop_assert_eq!(DerivedRows { dividends: after.dividends.clone(), ..other_rows }, after);
    }
}

#[test]
fn long_calm_histories_need_only_closes() {
    let case = Case::simple();
    let brief = |stretch: i32| {
        let history = as_stored(case.history(), stretch);
        let brief = with_closes_only(&history, &years_of(&history.prices[0].bars), 2);
        let policy = SourcePolicy::default();
        let market = DerivationContext {
            as_of: as_of(),
            newest: as_of(),
            benchmark: None,
            rates: &market::metrics::ExchangeRates::NONE,
            reporting_currency: "USD",
            policy: &policy,
            rules: &Rules::DEFAULT,
        };
        (brief.prices[0].closes_only.clone(), Derivation::new(&brief, &market).closes_suffice())
    };
    assert_eq!(brief(10), (vec![2020, 2021, 2022], true));
    // With so few bars a year, the average volume needs bars from more than the newest two years.
    assert_eq!(brief(20), ((2016..=2022).collect(), false));
}

#[test]
fn a_case_is_deterministic() {
    let case = Case::simple();
    let policy = SourcePolicy::default();
    let market = DerivationContext {
        as_of: as_of(),
        newest: as_of(),
        benchmark: None,
        rates: &market::metrics::ExchangeRates::NONE,
        reporting_currency: "USD",
        policy: &policy,
        rules: &Rules::DEFAULT,
    };
    assert_eq!(derive(&case.history(), &market), derive(&case.history(), &market));
}
