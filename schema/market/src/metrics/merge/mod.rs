//! Merge of the observations of all sources to one set of valid events (R28–R30, R32).
//!
//! The merge has these tasks: it selects the valid version of each record, chooses the source, merges duplicates,
//! converts amounts and prices to raw (unadjusted) values, and quarantines faulty rows.
//!
//! Invariant: the result depends only on the set of observations, never on their order.

mod as_of;
mod decisions;
mod dividends;
mod fundamentals;
mod implied_factors;
mod outlier;
mod payment;
mod prices;
mod quarantine;
mod repeats;
mod same_day_payments;
mod sources;
mod split_review;
mod split_type;
mod splits;
#[cfg(test)]
mod tests;
mod translation;
mod validation;
mod winner;

use std::collections::BTreeMap;

use chrono::NaiveDate;

pub(crate) use as_of::AsOfView;
use decisions::DecisionIndex;
pub(crate) use decisions::{dividend_row, newest_decisions, split_row};
use dividends::{MergedDividends, amount_of, merge_dividends, paid_between, stock_dividends};
pub(crate) use fundamentals::{MergedFundamentals, merge_fundamentals};
pub(crate) use implied_factors::{ImpliedFactor, ImpliedFactors, agrees};
pub(crate) use payment::Payment;
use payment::{PriceContext, ValidationContext};
pub(crate) use prices::MergedPrices;
pub(crate) use prices::closes_suffice;
use prices::{ExcludedBars, LevelCheck, merge_prices, review_levels};
use same_day_payments::SameDayPayments;
use sources::{HiddenRecords, SourceChoice, hide_quarantined, preferred_winners};
use split_review::{SplitEvidence, review_splits};
use split_type::classify;
pub(crate) use split_type::has_moved_with;
pub(crate) use splits::{MergedSplit, is_known, share_type};
use splits::{MergedSplits, merge_splits, table_of_all, table_of_known};
pub use validation::{
    PriceValues, RowFault, dividend_fault, dividend_key_fault, latest_session_date, price_fault, split_fault,
};
pub use winner::{ObservationStatus, QuarantinedRow, dividend_preference, split_preference};

use super::prices::adjustment::Splits;
use super::prices::series::PriceSeries;
use crate::event::{Action, Dividend, FormerSymbol};
use crate::history::{History, Observation};
use crate::metrics::context::DerivationContext;
use crate::row::{Flag, Flags};
use crate::symbol::Symbol;

/// Merged facts of a security that are visible on the as-of date.
#[derive(Debug)]
pub(crate) struct Merged<'a> {
    pub splits: MergedSplits,
    /// Splits, price-only actions (such as spin-offs) and stock dividends that are visible on the as-of date. Withdrawn
    /// ones are left out.
    pub split_table: Splits,
    pub prices: MergedPrices,
    pub dividends: MergedDividends<'a>,
    pub fundamentals: Option<MergedFundamentals>,
    pub implied_factors: ImpliedFactors<'a>,
    pub flags: Flags,
}

/// Merges all facts of a security as of the market date. A quarantined row covers no row of another source (R32), so the
/// merge is repeated without the quarantined rows that do.
pub(crate) fn merge<'a>(history: &'a History, context: &DerivationContext<'_>) -> Merged<'a> {
    let mut hidden = HiddenRecords::default();
    loop {
        let merged = merge_visible(history, context, &hidden);
        let (splits, dividends) = (&merged.splits, &merged.dividends);
        // Amounts are judged with the splits, so splits are hidden first.
        let is_repeated =
            hide_quarantined(&mut hidden.splits, &splits.statuses, &splits.ranked, &splits.quarantined)
                || hide_quarantined(
                    &mut hidden.dividends,
                    &dividends.statuses,
                    &dividends.ranked,
                    &dividends.quarantined,
                );
        if !is_repeated {
            return merged;
        }
    }
}

/// Merges all facts of a security, without the hidden records.
fn merge_visible<'a>(
    history: &'a History,
    context: &DerivationContext<'_>,
    hidden: &HiddenRecords,
) -> Merged<'a> {
    let (policy, known) = (context.policy, AsOfView::new(context));
    let as_of = known.as_of;
    let mut flags = Flags::default();
    let symbols = |symbol: &Symbol| symbol_position(history, symbol);
    let decided = DecisionIndex::new(&history.decisions);
    let same_day_payments = SameDayPayments::collect(&history.dividends);
    let choice = SourceChoice {
        policy,
        rules: context.rules,
        symbols: &symbols,
        same_day_payments: &same_day_payments,
        hidden: &hidden.dividends,
    };
    let of_splits =
        SourceChoice { same_day_payments: &SameDayPayments::default(), hidden: &hidden.splits, ..choice };
    let mut splits = merge_splits(history, &of_splits, &mut flags);
    classify(&mut splits.splits, history, &known, &context.rules.spin_off);
    let winners = preferred_winners(&history.dividends, &choice);
    let all_stock_dividends = stock_dividends(history, &winners, None);
    let declared = stock_dividends(history, &winners, Some(&known));
    let tables = |splits: &MergedSplits| {
        let all = table_of_all(&splits.splits, &all_stock_dividends);
        (all, table_of_known(&history.splits, &splits.splits, &declared, &known))
    };
    let event_days = newest_event_days(history);
    let newest_event = |source: &str| event_days.get(source).copied();
    let newest_day = |source: &str| {
        let bars = history.prices.iter().find(|prices| prices.source == source);
        let priced = bars.and_then(|prices| prices.bars.last_live_day()).map(crate::day::date_of);
        priced.or_else(|| newest_event(source)).unwrap_or(as_of)
    };
    let paid_on = |splits: &Splits, after: NaiveDate, through: NaiveDate| {
        let amount = |row: &Observation<Dividend>, date| {
            (row.record.currency == currency(history)).then(|| amount_of(row, date, splits, &newest_day))
        };
        paid_between(history, &winners, &amount, after, through)
    };
    let merge_prices = |splits: &Splits, excluded: &ExcludedBars| {
        let paid = |after, through| paid_on(splits, after, through);
        let levels = LevelCheck { rules: &context.rules.level, splits, paid: &paid };
        merge_prices(history, policy, as_of, &levels, &newest_event, &decided, excluded)
    };
    let (mut all_splits, mut split_table) = tables(&splits);
    let mut prices = merge_prices(&all_splits, &ExcludedBars::new());
    let is_changed = {
        let paid = |after, through| paid_on(&all_splits, after, through);
        let (winners, decided, rules) = (&winners, &decided, context.rules);
        let evidence = SplitEvidence { history, winners, decided, paid: &paid, known, rules };
        review_splits(&mut splits, &PriceSeries::new(&prices.bars, &split_table), &evidence, &mut flags)
    };
    if is_changed {
        (all_splits, split_table) = tables(&splits);
        prices = merge_prices(&all_splits, &ExcludedBars::new());
    }
    decided.apply_confirmations(&mut splits.quarantined, &history.splits, split_row);
    let paid = |after, through| paid_on(&split_table, after, through);
    let levels = LevelCheck { rules: &context.rules.level, splits: &split_table, paid: &paid };
    let merge_without = |excluded: &ExcludedBars| merge_prices(&all_splits, excluded);
    let has_break = review_levels(&mut prices, history, as_of, &levels, &decided, &merge_without);
    flags.set_if(Flag::PriceLevelBreak, has_break);
    let series = PriceSeries::new(&prices.bars, &split_table);
    let implied_factors = ImpliedFactors::collect(&history.evidence, &split_table, as_of);
    let validation = ValidationContext {
        all_splits: &all_splits,
        splits: &split_table,
        known,
        decided: &decided,
        newest_day: &newest_day,
        neighbours: PriceContext { series, currency: currency(history) },
        implied_factors: &implied_factors,
        rules: context.rules,
    };
    let mut dividends = merge_dividends(history, winners, &same_day_payments, &validation, &mut flags);
    decided.apply_confirmations(&mut dividends.quarantined, &history.dividends, dividend_row);
    let fundamentals = merge_fundamentals(&history.fundamentals, policy, as_of);
    Merged { splits, split_table, prices, dividends, fundamentals, implied_factors, flags }
}

/// Currency of the prices. US dollars if no feed has reported the details of the security yet.
pub(crate) fn currency(history: &History) -> &str {
    history.security.as_ref().map_or("USD", |security| &security.record.currency)
}

/// Position of a symbol in the list of the security's symbols, which starts with the earliest symbol. `None` for a
/// symbol of another security.
fn symbol_position(history: &History, symbol: &Symbol) -> Option<usize> {
    let mut former: Vec<&FormerSymbol> = history.former_symbols.iter().collect();
    // A former symbol without a last day was valid until the current symbol replaced it.
    former.sort_by_key(|former| (former.to.unwrap_or(NaiveDate::MAX), former.from));
    let mut quarantined = former.iter().map(|former| &former.symbol).chain([&history.symbol]);
    quarantined.position(|quarantined| symbol.spellings().any(|spelling| spelling == *quarantined))
}

/// Newest ex-date of each source. If a source has no prices, this date is used as the newest day of its data.
fn newest_event_days(history: &History) -> BTreeMap<&str, NaiveDate> {
    let dividends = history.dividends.iter().filter(|o| o.action == Action::Put);
    let dividends = dividends.filter_map(|o| Some((o.source.as_str(), o.record.ex_date?)));
    let splits = history.splits.iter().filter(|o| o.action == Action::Put);
    let mut newest = BTreeMap::new();
    for (source, date) in dividends.chain(splits.map(|o| (o.source.as_str(), o.record.ex_date))) {
        let known = newest.entry(source).or_insert(date);
        *known = date.max(*known);
    }
    newest
}
