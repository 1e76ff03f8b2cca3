//! Merge of the observations of all sources to one set of valid events (R28–R30, R32).
//!
//! The merge has these tasks: it selects the valid version of each record, chooses the source, merges duplicates,
//! converts amounts and prices to raw (unadjusted) values, and quarantines faulty rows.
//!
//! Invariant: the result depends only on the set of observations, never on their order.

mod as_of;
mod contained_payments;
mod decisions;
mod dividends;
mod feed_adjustments;
mod fundamentals;
mod implied_factors;
mod outlier;
mod payment;
mod prices;
mod quarantine;
mod repeats;
mod same_day_payments;
mod sources;
mod splits;
#[cfg(test)]
mod tests;
mod translation;
mod validation;
mod winner;

use chrono::NaiveDate;

pub(crate) use as_of::AsOfView;
use decisions::DecisionIndex;
pub(crate) use decisions::{dividend_row, newest_decisions, split_row};
use dividends::{MergedDividends, merge_dividends, paid_between, stock_dividends};
use feed_adjustments::FeedAdjustments;
pub(crate) use fundamentals::{MergedFundamentals, merge_fundamentals};
pub(crate) use implied_factors::{ImpliedFactor, ImpliedFactors, agrees};
pub(crate) use payment::Payment;
use payment::{PriceContext, ValidationContext};
pub(crate) use prices::MergedPrices;
pub(crate) use prices::closes_suffice;
use prices::{ExcludedBars, LevelCheck, merge_prices, review_levels};
use same_day_payments::SameDayPayments;
use sources::{HiddenRecords, SourceChoice, hide_quarantined, preferred_winners};
use splits::split_review::{SplitEvidence, review_splits};
use splits::split_type::classify;
pub(crate) use splits::split_type::has_moved_with;
pub(crate) use splits::{MergedSplit, is_known, share_type};
use splits::{MergedSplits, merge_splits, table_of_known};
pub use validation::{
    PriceValues, RowFault, dividend_fault, dividend_key_fault, latest_session_date, price_fault, split_fault,
};
pub use winner::{ObservationStatus, QuarantinedRow};

use super::prices::adjustment::Splits;
use super::prices::series::PriceSeries;
use crate::day::day_number;
use crate::event::{Action, Dividend, DividendEvidence, FormerSymbol};
use crate::history::{History, Observation};
use crate::metrics::context::DerivationContext;
use crate::metrics::currency::price_currency;
use crate::metrics::dividends::ex_date::Settlement;
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
    let (policy, known, currency) = (context.policy, AsOfView::new(context), price_currency(history));
    let as_of = known.as_of;
    let mut flags = Flags::default();
    let symbols = |symbol: &Symbol| symbol_position(history, symbol);
    let decided = DecisionIndex::new(&history.decisions);
    let same_day_payments = SameDayPayments::collect(&history.dividends);
    let settlement = Settlement::of_history(history);
    let choice = SourceChoice {
        policy,
        settlement,
        rules: &context.rules.schedule,
        symbols: &symbols,
        same_day_payments: &same_day_payments,
        hidden: &hidden.dividends,
    };
    let of_splits =
        SourceChoice { same_day_payments: &SameDayPayments::default(), hidden: &hidden.splits, ..choice };
    let mut splits = merge_splits(history, &of_splits, &mut flags);
    let winners = preferred_winners(&history.dividends, &choice);
    let rules = &context.rules.spin_off;
    let all_stock_dividends = stock_dividends(history, &winners, settlement, None);
    let feeds = FeedAdjustments::collect(history, &splits.splits, &all_stock_dividends, &symbols, rules);
    classify(&mut splits.splits, history, &known, rules);
    let declared = stock_dividends(history, &winners, settlement, Some(&known));
    let table = |splits: &MergedSplits| table_of_known(&history.splits, &splits.splits, &declared, &known);
    let paid = |after, through| {
        let amount = |row: &Observation<Dividend>, date| {
            (row.record.currency == currency).then(|| feeds.raw_amount(row, date))
        };
        paid_between(history, &winners, settlement, &amount, after, through)
    };
    let merge_prices = |splits: &Splits, excluded: &ExcludedBars| {
        let levels = LevelCheck { rules: &context.rules.level, splits, paid: &paid };
        merge_prices(history, policy, as_of, &levels, &feeds, &decided, excluded)
    };
    let mut split_table = table(&splits);
    let mut prices = merge_prices(&split_table, &ExcludedBars::new());
    let is_changed = {
        let (winners, decided) = (&winners, &decided);
        let evidence = SplitEvidence { history, winners, decided, paid: &paid, known };
        review_splits(&mut splits, &PriceSeries::new(&prices.bars, &split_table), &evidence, &mut flags)
    };
    if is_changed {
        split_table = table(&splits);
        prices = merge_prices(&split_table, &ExcludedBars::new());
    }
    decided.apply_confirmations(&mut splits.quarantined, &history.splits, split_row);
    let levels = LevelCheck { rules: &context.rules.level, splits: &split_table, paid: &paid };
    let merge_without = |excluded: &ExcludedBars| merge_prices(&split_table, excluded);
    let has_break = review_levels(&mut prices, history, as_of, &levels, &feeds, &decided, &merge_without);
    flags.set_if(Flag::PriceLevelBreak, has_break);
    flags.set_if(Flag::ConflictingDuplicate, conflicting_closes(history, as_of).next().is_some());
    let series = PriceSeries::new(&prices.bars, &split_table);
    let implied_factors = ImpliedFactors::collect(&history.evidence, &feeds, as_of);
    let validation = ValidationContext {
        splits: &split_table,
        feeds: &feeds,
        known,
        settlement,
        decided: &decided,
        neighbours: PriceContext { series, currency },
        implied_factors: &implied_factors,
        rules: context.rules,
    };
    let mut dividends = merge_dividends(history, winners, &same_day_payments, &validation, &mut flags);
    decided.apply_confirmations(&mut dividends.quarantined, &history.dividends, dividend_row);
    let fundamentals = merge_fundamentals(&history.fundamentals, policy, as_of);
    Merged { splits, split_table, prices, dividends, fundamentals, implied_factors, flags }
}

/// Conflicting closes up to `as_of` (R29): a file has two closes of one day that differ, and the first one is the bar of the
/// day. A later bar of the source for the day resolves the conflict.
pub(crate) fn conflicting_closes(
    history: &History,
    as_of: NaiveDate,
) -> impl Iterator<Item = (NaiveDate, &Observation<DividendEvidence>)> {
    let dated = history.evidence.iter().filter_map(|row| Some((row.record.conflict_date?, row)));
    let put = dated.filter(move |(date, row)| *date <= as_of && row.action == Action::Put);
    put.filter(|(date, row)| {
        let prices = history.prices.iter().find(|prices| row.source == prices.source);
        let bar = prices.and_then(|prices| {
            let index = prices.bars.day.binary_search(&day_number(*date)).ok()?;
            Some(prices.bars.version_of(index))
        });
        bar.is_some_and(|bar| bar.observation_time() <= row.observed_at)
    })
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
