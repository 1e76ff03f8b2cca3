//! The measures against a slow reference in exact rationals written apart from them, on random histories; and what holds
//! for any facts: the order of observations never matters, and nothing makes deriving fail.

mod reference_model;

use proptest::prelude::*;
use reference_model::exact::{self, Rational, nearest};
use reference_model::market::{Case, as_of, case};
use reference_model::noise::{noise, policy, shuffled};
use rust_decimal::Decimal;
use schema::bars::date_of;
use schema::history::SourcePolicy;
use schema::measure::adjust::{step_of, steps};
use schema::measure::{Market, derive, explain, total_return_between};
use schema::value::Exact;

fn decimal(value: Option<Exact>) -> Option<Decimal> {
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
        let derived = derive(&case.history(), &Market { as_of: as_of(), newest: as_of(), benchmark: None, policy: &policy });
        let metrics = &derived.metrics;
        prop_assert_eq!(decimal(metrics.dps_ttm), rounded(Some(exact::trailing(&case, false)), 6));
        prop_assert_eq!(decimal(metrics.dps_ttm_total), rounded(Some(exact::trailing(&case, true)), 6));
        prop_assert_eq!(decimal(metrics.yield_ttm), rounded(exact::trailing_yield(&case), 4));
        prop_assert_eq!(decimal(metrics.price), rounded(exact::price(&case), 6));
        for total in metrics.annual_totals.0.iter().filter(|_| !metrics.flags.0.contains(&"boundary_shift".to_owned())) {
            prop_assert_eq!(total.amount.0, nearest(&exact::annual_total(&case, total.year), 6), "{}", total.year);
        }
        if !metrics.flags.0.contains(&"boundary_shift".to_owned()) {
            let found = [(1, metrics.growth_1y), (3, metrics.growth_3y), (5, metrics.growth_5y)];
            for (span, growth) in found {
                if let Some(growth) = growth {
                    prop_assert!(exact::is_growth(&case, span, growth.0), "{span} years: {growth}");
                }
            }
            prop_assert_eq!(metrics.increase_streak_years, exact::streak(&case));
        }
    }

    #[test]
    fn adjusted_prices_and_returns_agree(case in case()) {
        let policy = SourcePolicy::default();
        let market = Market { as_of: as_of(), newest: as_of(), benchmark: None, policy: &policy };
        let derived = derive(&case.history(), &market);
        let steps = steps(&derived.factors);
        for (index, day) in derived.bars.day.iter().enumerate() {
            let close = Decimal::new(derived.bars.close[index], derived.bars.scale);
            let step = step_of(&steps, date_of(*day));
            let split = step.map_or(close, |step| step.split_adjusted(close));
            let adjusted = step.map_or(close, |step| step.fully_adjusted(close));
            prop_assert_eq!(Exact::amount(split).0, nearest(&exact::split_adjusted(&case, date_of(*day)), 6));
            prop_assert_eq!(Exact::amount(adjusted).0, nearest(&exact::adjusted(&case, date_of(*day)), 6));
        }
        let (first, last) = (case.bars[0].day, case.bars[case.bars.len() - 1].day);
        let total = total_return_between(&case.history(), &market, first, last).map(|total| Exact::percent(total).0);
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
        let market = Market { as_of: as_of(), newest: as_of(), benchmark: None, policy: &policy };
        let plain = derive(&case.history(), &market);
        let adjusted = derive(&case.history_adjusted(), &market);
        prop_assert_eq!(plain.metrics.dps_ttm, adjusted.metrics.dps_ttm);
        prop_assert_eq!(plain.metrics.yield_ttm, adjusted.metrics.yield_ttm);
        let amounts = |d: &schema::measure::Derived| d.dividends.iter().map(|row| row.amount).collect::<Vec<_>>();
        prop_assert_eq!(amounts(&plain), amounts(&adjusted));
        let closes = |d: &schema::measure::Derived| {
            d.bars.close.iter().map(|close| Exact::amount(Decimal::new(*close, d.bars.scale))).collect::<Vec<_>>()
        };
        prop_assert_eq!(closes(&plain), closes(&adjusted));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_order_of_observations_never_matters(history in noise(), policy in policy(), seed in any::<u64>()) {
        let market = Market { as_of: as_of(), newest: as_of(), benchmark: None, policy: &policy };
        let other = shuffled(&history, seed);
        prop_assert_eq!(derive(&history, &market), derive(&other, &market));
        prop_assert_eq!(explain(&history, &market), explain(&other, &market));
    }

    #[test]
    fn seeing_an_observation_twice_changes_nothing(history in noise(), policy in policy()) {
        let market = Market { as_of: as_of(), newest: as_of(), benchmark: None, policy: &policy };
        let mut twice = history.clone();
        twice.dividends.extend(history.dividends.iter().cloned());
        twice.splits.extend(history.splits.iter().cloned());
        twice.fundamentals.extend(history.fundamentals.iter().cloned());
        let (once, twice) = (derive(&history, &market), derive(&twice, &market));
        prop_assert_eq!((once.metrics.dps_ttm, once.dividends, once.splits, once.bars), (twice.metrics.dps_ttm, twice.dividends, twice.splits, twice.bars));
    }
}

#[test]
fn a_case_is_deterministic() {
    let case = Case::simple();
    let policy = SourcePolicy::default();
    let market = Market { as_of: as_of(), newest: as_of(), benchmark: None, policy: &policy };
    assert_eq!(derive(&case.history(), &market), derive(&case.history(), &market));
}
