//! From observations to clean events (R28–R30, R32): per-key winners, sources, duplicates, un-adjusting, quarantine.
//!
//! Invariant: the result depends on the set of observations alone, never on their order.

mod beside;
mod columns;
mod decided;
mod dividends;
mod fundamentals;
mod known;
mod outlier;
mod payment;
mod prices;
mod quarantine;
mod row_rule;
mod sources;
mod splits;
#[cfg(test)]
mod tests;
mod unadjust;
mod unit_error;
mod version;

use std::collections::BTreeMap;

use chrono::NaiveDate;

use beside::Beside;
use decided::Decided;
pub(crate) use decided::{dividend_row, newest as newest_decisions, split_row};
use dividends::{MergedDividends, dividend_winners, merge_dividends, stock_dividends};
pub(crate) use fundamentals::{MergedFundamentals, merge_fundamentals};
pub(crate) use known::Known;
pub(crate) use payment::Payment;
use payment::{Basics, Neighbours};
pub(crate) use prices::MergedPrices;
pub(crate) use prices::closes_suffice;
use prices::merge_prices;
pub use row_rule::{
    PriceValues, RowFault, dividend_fault, dividend_key_fault, latest_session_date, price_fault, split_fault,
};
pub(crate) use splits::{CleanSplit, is_known};
use splits::{MergedSplits, merge_splits, table_of_all, table_of_known};
pub use version::{Fate, Held, dividend_preference, split_preference};

use super::adjust::Splits;
use super::calendar::add_sessions;
use super::series::Series;
use crate::event::{Action, FormerSymbol};
use crate::history::History;
use crate::measure::market::Market;
use crate::row::Flags;
use crate::symbol::Symbol;

/// Sessions within which a close tells what an ex-date did to the price.
const PRICED_WITHIN: i32 = 5;

/// The clean events of a security, as known on a date.
#[derive(Debug)]
pub(crate) struct Merged<'a> {
    pub splits: MergedSplits,
    /// Live splits known on the as-of date, stock dividends included.
    pub split_table: Splits,
    pub prices: MergedPrices,
    pub dividends: MergedDividends<'a>,
    pub fundamentals: Option<MergedFundamentals>,
    pub flags: Flags,
}

/// Merges everything known about a security on the market's date.
pub(crate) fn merge<'a>(history: &'a History, market: &Market<'_>) -> Merged<'a> {
    let (policy, known) = (market.policy, Known::on(market));
    let as_of = known.as_of();
    let mut flags = Flags::default();
    let symbols = |symbol: &Symbol| held_place(history, symbol);
    let decided = Decided::of(&history.decisions);
    let mut splits = merge_splits(history, policy, &symbols, &mut flags);
    decided.mark(&mut splits.held, &history.splits, split_row);
    let beside = Beside::of(&history.dividends);
    let winners = dividend_winners(history, policy, &symbols, &beside);
    let all_splits = table_of_all(&splits.splits, &stock_dividends(history, &winners, None));
    let declared = stock_dividends(history, &winners, Some(&known));
    let split_table = table_of_known(&history.splits, &splits.splits, &declared, &known);
    let event_days = newest_event_days(history);
    let newest_event = |source: &str| event_days.get(source).copied();
    let prices = merge_prices(history, policy, as_of, &all_splits, &newest_event, &decided);
    let series = Series::new(&prices.bars, &split_table);
    let newest_day = |source: &str| {
        let bars = history.prices.iter().find(|prices| prices.source == source);
        let priced = bars.and_then(|prices| prices.bars.last_live_day()).map(crate::bars::date_of);
        priced.or_else(|| event_days.get(source).copied()).unwrap_or(as_of)
    };
    let close_before = |day: NaiveDate| series.close_before(day);
    let close_after = |day: NaiveDate| {
        let first = series.at_or_after(day)?;
        (series.date(first) <= add_sessions(day, PRICED_WITHIN)).then(|| series.close_on_basis(first, day))
    };
    let basics = Basics {
        all_splits: &all_splits,
        splits: &split_table,
        known,
        decided: &decided,
        newest_day: &newest_day,
        neighbours: Neighbours {
            close_before: &close_before,
            close_after: &close_after,
            currency: currency(history),
        },
        rules: market.rules,
    };
    let mut dividends = merge_dividends(history, winners, &beside, &basics, &mut flags);
    decided.mark(&mut dividends.held, &history.dividends, dividend_row);
    let fundamentals = merge_fundamentals(&history.fundamentals, policy, as_of);
    Merged { splits, split_table, prices, dividends, fundamentals, flags }
}

/// Currency of the security's prices: its reference record's, US dollars for a provisional security.
pub(crate) fn currency(history: &History) -> &str {
    history.security.as_ref().map_or("USD", |security| &security.record.currency)
}

/// Where a symbol stands among those that the security held; `None` where its rows are another's.
fn held_place(history: &History, symbol: &Symbol) -> Option<usize> {
    let mut former: Vec<&FormerSymbol> = history.former_symbols.iter().collect();
    // A former symbol without a last day was held up to the current one.
    former.sort_by_key(|former| (former.to.unwrap_or(NaiveDate::MAX), former.from));
    let mut held = former.iter().map(|former| &former.symbol).chain([&history.symbol]);
    held.position(|held| symbol.spellings().any(|spelling| spelling == *held))
}

/// The newest ex-date of each source: the newest day of its data when it has no prices.
fn newest_event_days(history: &History) -> BTreeMap<&str, NaiveDate> {
    let dividends = history
        .dividends
        .iter()
        .filter(|o| o.action == Action::Put)
        .map(|o| (o.source.as_str(), o.record.ex_date));
    let splits = history
        .splits
        .iter()
        .filter(|o| o.action == Action::Put)
        .map(|o| (o.source.as_str(), Some(o.record.ex_date)));
    let mut newest = BTreeMap::new();
    for (source, day) in dividends.chain(splits).filter_map(|(source, day)| day.map(|day| (source, day))) {
        let known = newest.entry(source).or_insert(day);
        *known = day.max(*known);
    }
    newest
}
