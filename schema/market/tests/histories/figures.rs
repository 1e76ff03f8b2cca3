//! What is derived and explained of a history on 28 June 2024, and how tests write it.

use chrono::NaiveDate;
use market::event::Kind;
use market::history::{History, SourcePolicy};
use market::measure::{Derived, Explanation, Market, Rules, derive, explain};
use market::row::Flag;
use market::row::Metrics;
use market::value::Exact;

/// The day that figures are of.
pub(crate) const TODAY: NaiveDate = NaiveDate::from_ymd_opt(2024, 6, 28).expect("a day");

/// What is told on the day, without a policy or a benchmark.
pub(crate) fn in_market<T>(tell: impl FnOnce(&Market<'_>) -> T) -> T {
    let policy = SourcePolicy::default();
    tell(&Market { as_of: TODAY, newest: TODAY, benchmark: None, policy: &policy, rules: &Rules::DEFAULT })
}

pub(crate) fn derived(history: &History) -> Derived {
    in_market(|market| derive(history, market))
}

pub(crate) fn explained(history: &History) -> Explanation {
    in_market(|market| explain(history, market))
}

pub(crate) fn has(derived: &Derived, flag: Flag) -> bool {
    derived.metrics.flags.0.iter().any(|word| word == flag.as_str())
}

/// A figure, `-` where there is none.
pub(crate) fn text(value: Option<Exact>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

/// Number of dividend rows in quarantine.
pub(crate) fn held_dividends(metrics: &Metrics) -> usize {
    metrics.quarantined.0.iter().filter(|row| row.kind == Kind::Dividend.as_str()).count()
}
