//! Functions that derive and explain the figures of a history as of 28 June 2024.

use chrono::NaiveDate;
use market::dated_text::LimitToHistory;
use market::decimal::ExactDecimal;
use market::event::Kind;
use market::history::{History, SourcePolicy};
use market::metrics::{DerivationContext, DerivedRows, Explanation, Rules, derive, explain};
use market::row::Flag;
use market::row::Metrics;

pub(crate) const TODAY: NaiveDate = NaiveDate::from_ymd_opt(2024, 6, 28).expect("a day");

/// Calls `tell` with the derivation context of [`TODAY`]. The context has the default source policy and no benchmark.
pub(crate) fn in_market<T>(tell: impl FnOnce(&DerivationContext<'_>) -> T) -> T {
    let policy = SourcePolicy::default();
    tell(&DerivationContext {
        as_of: TODAY,
        newest: TODAY,
        benchmark: None,
        rates: &market::metrics::ExchangeRates::NONE,
        reporting_currency: "USD",
        policy: &policy,
        rules: &Rules::DEFAULT,
    })
}

pub(crate) fn derived(history: &History) -> DerivedRows {
    in_market(|market| derive(history, market))
}

pub(crate) fn explained(history: &History) -> Explanation {
    in_market(|market| explain(history, market))
}

/// Explanation for a plan whose history begins on `first`.
pub(crate) fn limited(history: &History, first: NaiveDate) -> Explanation {
    let metrics = derived(history).metrics.limit_to_days_from(first);
    explained(history).limit_to_days_from(first, &metrics)
}

pub(crate) fn has(derived: &DerivedRows, flag: Flag) -> bool {
    derived.metrics.flags.0.iter().any(|word| word == flag.as_str())
}

pub(crate) fn text(value: Option<ExactDecimal>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

pub(crate) fn held_dividends(metrics: &Metrics) -> usize {
    metrics.quarantined.0.iter().filter(|row| row.kind == Kind::Dividend.as_str()).count()
}
