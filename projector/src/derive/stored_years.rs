//! Years of prices that are published exactly as they are stored in the facts. They need not be encoded again.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::NaiveDate;
use market::history::History;
use market::identity::Identity;
use market::metrics::DerivedRows;
use store::history::FactsBySymbol;
use store::symbol_facts::WholeYear;

/// Finds the years whose stored bars are all published, and published without change. Only securities with one source
/// and one symbol have such years.
pub(crate) fn published_as_stored<'a>(
    identity: &Identity,
    history: &History,
    derived: &DerivedRows,
    facts: &'a FactsBySymbol,
) -> BTreeMap<i32, WholeYear<'a>> {
    let ([tenure], [prices]) = (identity.spans.as_slice(), history.prices.as_slice()) else {
        return BTreeMap::new();
    };
    // Derived rows share the bars of a source only if the merge changes none of them.
    let facts = facts.get(tenure.symbol.as_str()).filter(|_| Arc::ptr_eq(&prices.bars, &derived.bars));
    let Some(facts) = facts else { return BTreeMap::new() };
    let had_symbol_all_year = |year: i32| {
        let [first, last] = [(1, 1), (12, 31)].map(|(month, day)| NaiveDate::from_ymd_opt(year, month, day));
        first.is_some_and(|first| tenure.from <= first) && last.is_some_and(|last| last <= tenure.to)
    };
    let of_source = facts.years().filter(|(source, _)| *source == prices.source);
    of_source
        .filter_map(|(_, years)| Some((years.range().start, years.whole_year()?)))
        .filter(|(year, _)| had_symbol_all_year(*year))
        .collect()
}
