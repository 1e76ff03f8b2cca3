//! Adjustment of each feed's own rows: by which ratios and up to which day a feed adjusted its amounts, prices and
//! volumes (R10, R35).
//!
//! An adjusted feed divides every earlier amount and price by every ratio in its list of splits. Many lists also contain
//! spin-offs and other price-only actions. The raw value of a row is therefore the adjusted value times every ratio of
//! the list between the day of the row and its basis day.
//!
//! The list of a feed has:
//! - Every split and stock dividend of the feed that the feed has not withdrawn. A split that this service quarantines
//!   or replaces by a record of another source is included, because the feed adjusted its rows by it all the same.
//! - Splits of other sources at which the feed has no split of its own, because every adjusted feed adjusts for a
//!   changed share count. Price-only actions of other sources are included only if the feed lists no split at all. The
//!   file with its splits is then probably not loaded.
//!
//! Nothing here depends on the as-of date. A row has one raw value, whatever the date of the question.
//!
//! Volumes are adjusted by the same ratios, except for actions that the feed itself calls price-only. Yahoo, for
//! example, multiplies earlier volumes by 1.046 for a spin-off that it lists as the split 1046:1000.
//!
//! The basis day of a row is the recorded one. Without one, it is the newest day of the feed's data.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use rust_decimal::{Decimal, RoundingStrategy};

use super::as_of::AsOfView;
use super::same_day_payments::SameDayPayments;
use super::splits::split_review::REPEATED_WITHIN;
use super::splits::split_type::{classify, is_declared_price_only};
use super::splits::{MergedSplit, merged_split, one_per_date, table};
use super::winner::{MergeRecord, ObservationStatus, SymbolOrder, WinningVersion, pick_winners};
use crate::day::date_of;
use crate::event::{Action, Dividend, ShareBasis};
use crate::history::{History, Observation};
use crate::metrics::dividends::ex_date::Settlement;
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::prices::adjustment::{Ratio, SplitEvent, Splits};
use crate::metrics::rules::SpinOffRules;
use crate::row::Flags;

/// A shorter decimal than the product of amount and ratio is used only if at most one of this number of intervals as
/// wide as the vendor's rounding contains such a decimal by chance.
const INTERVALS: i64 = 100;
/// Minimum number of decimal places of a rounded amount. An amount with fewer places is taken as exact.
const LEAST_PLACES: u32 = 5;

/// Splits by which a feed adjusted its rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListedSplits {
    /// Ratios of amounts and prices.
    pub splits: Splits,
    /// Ratios of volumes.
    pub of_volumes: Splits,
}

/// Adjustments of all feeds of a security. Empty if no row is adjusted.
#[derive(Debug, Default)]
pub(crate) struct FeedAdjustments<'a> {
    /// List of each feed that has at least one split.
    listed: BTreeMap<&'a str, ListedSplits>,
    /// List of the feeds without a split.
    unlisted: ListedSplits,
    /// Newest day of each feed's data.
    newest_days: BTreeMap<&'a str, NaiveDate>,
}

impl<'a> FeedAdjustments<'a> {
    /// Collects the adjustments. `merged` are the splits before their review, and `stock_dividends` the stock dividends,
    /// of all sources after the choice of a source. Both include events that are not yet known on the as-of date.
    pub(crate) fn collect(
        history: &'a History,
        merged: &[MergedSplit],
        stock_dividends: &[(NaiveDate, Decimal)],
        symbols: SymbolOrder<'_>,
        rules: &SpinOffRules,
    ) -> Self {
        if !has_adjusted_rows(history) {
            return Self::default();
        }
        let settlement = Settlement::of_history(history);
        let stock = stock_dividends_by_source(history, symbols, settlement);
        let splits = splits_by_source(history, symbols, settlement);
        let mut merged = merged.to_vec();
        classify(&mut merged, history, &AsOfView::UNLIMITED, rules);
        let sources: Vec<&str> = splits.keys().chain(stock.keys()).copied().collect();
        let listed = sources.into_iter().map(|source| {
            let mut own = splits.get(source).cloned().unwrap_or_default();
            classify(&mut own, history, &AsOfView::UNLIMITED, rules);
            let own_stock = stock.get(source).map(Vec::as_slice).unwrap_or_default();
            let is_near =
                |day: NaiveDate, other: NaiveDate| (other - day).num_days().abs() <= REPEATED_WITHIN;
            let is_listed = |day: NaiveDate| {
                own.iter().any(|split| is_near(day, split.ex_date))
                    || own_stock.iter().any(|(ex_date, _)| is_near(day, *ex_date))
            };
            let others = merged.iter().filter(|split| {
                !split.cancelled && !split.r#type.is_price_only() && !is_listed(split.ex_date)
            });
            let other_stock = stock_dividends.iter().filter(|(ex_date, _)| !is_listed(*ex_date));
            let splits: Vec<MergedSplit> = own.iter().chain(others).copied().collect();
            let stock: Vec<(NaiveDate, Decimal)> = own_stock.iter().chain(other_stock).copied().collect();
            (source, ListedSplits::new(history, &splits, &stock))
        });
        Self {
            listed: listed.collect(),
            unlisted: ListedSplits::new(history, &merged, stock_dividends),
            newest_days: newest_days(history, settlement),
        }
    }

    /// Splits by which the feed `source` adjusted its rows.
    pub(crate) fn of_source(&self, source: &str) -> &ListedSplits {
        self.listed.get(source).unwrap_or(&self.unlisted)
    }

    /// Raw amount of a row with the ex-date `ex_date`: cash per share, as it was declared.
    pub(crate) fn raw_amount(&self, row: &Observation<Dividend>, ex_date: NaiveDate) -> Decimal {
        let record = &row.record;
        // The amount of a stock dividend is a number of shares per share, which no split changes.
        let is_stock = || record.r#type.class(record.frequency) == DividendClass::Stock;
        if record.amount_basis == ShareBasis::Raw || is_stock() {
            return record.amount;
        }
        let newest_day = || self.newest_days.get(row.source.as_str()).copied();
        let basis = record.basis_as_of.or_else(newest_day).unwrap_or(ex_date);
        let splits = &self.of_source(&row.source).splits;
        if ex_date <= basis {
            raw_amount(record.amount, splits.price_ratio_between(ex_date, basis).inverse())
        } else {
            // The amount is per share of an earlier day. Only a changed share count changes it.
            splits.ratio_to_basis(basis, ex_date).apply(record.amount)
        }
    }
}

impl ListedSplits {
    fn new(history: &History, splits: &[MergedSplit], stock_dividends: &[(NaiveDate, Decimal)]) -> Self {
        let live = || splits.iter().filter(|split| !split.cancelled);
        let event = |split: &MergedSplit| SplitEvent { ex_date: split.ex_date, ..split.event() };
        let of_volumes = live()
            .filter(|split| !is_declared_price_only(history.splits[split.index].record.r#type.as_deref()));
        Self {
            splits: table(live().map(event), stock_dividends),
            of_volumes: table(of_volumes.map(event), stock_dividends),
        }
    }
}

/// True if a feed adjusted at least one row, or gives adjusted closes beside raw closes, and the security has a split.
fn has_adjusted_rows(history: &History) -> bool {
    let is_stock =
        |row: &Observation<Dividend>| row.record.r#type.class(row.record.frequency) == DividendClass::Stock;
    let has_split = || !history.splits.is_empty() || history.dividends.iter().any(is_stock);
    let has_amounts =
        || history.dividends.iter().any(|row| row.record.amount_basis == ShareBasis::SplitAdjusted);
    let has_bars = || {
        let mut versions = history.prices.iter().flat_map(|prices| &prices.bars.versions);
        versions.any(|version| version.basis_day.is_some())
    };
    let has_evidence = || {
        history
            .evidence
            .iter()
            .any(|row| row.record.basis == Some(ShareBasis::Raw) && row.record.factor.is_some())
    };
    (has_amounts() || has_bars() || has_evidence()) && has_split()
}

/// Splits of each source, one per ex-date. Splits that the source itself withdrew are left out.
fn splits_by_source<'a>(
    history: &'a History,
    symbols: SymbolOrder<'_>,
    settlement: Settlement,
) -> BTreeMap<&'a str, Vec<MergedSplit>> {
    let observations = &history.splits;
    let by_source = |own: &[WinningVersion]| {
        let mut statuses = vec![ObservationStatus::Used; observations.len()];
        let live = one_per_date(observations, own, &mut statuses, &mut Flags::default());
        live.into_iter().map(|winner| merged_split(observations, winner)).collect()
    };
    winners_by_source(observations, symbols, settlement)
        .into_iter()
        .map(|(source, own)| (source, by_source(&own)))
        .collect()
}

/// Ex-date and amount of the stock dividends of each source.
fn stock_dividends_by_source<'a>(
    history: &'a History,
    symbols: SymbolOrder<'_>,
    settlement: Settlement,
) -> BTreeMap<&'a str, Vec<(NaiveDate, Decimal)>> {
    let observations = &history.dividends;
    let of_record = |record: &Dividend| {
        let is_stock = record.r#type.class(record.frequency) == DividendClass::Stock;
        record.date(settlement).filter(|_| is_stock).map(|date| (date, record.amount))
    };
    if observations.iter().all(|row| of_record(&row.record).is_none()) {
        return BTreeMap::new();
    }
    let stock = |own: Vec<WinningVersion>| -> Vec<(NaiveDate, Decimal)> {
        own.iter().filter_map(|winner| of_record(&observations[winner.index].record)).collect()
    };
    let by_source = winners_by_source(observations, symbols, settlement).into_iter();
    by_source.map(|(source, own)| (source, stock(own))).filter(|(_, stock)| !stock.is_empty()).collect()
}

/// Valid versions of the records of each source, without the choice of a source.
fn winners_by_source<'a, T: MergeRecord>(
    observations: &'a [Observation<T>],
    symbols: SymbolOrder<'_>,
    settlement: Settlement,
) -> BTreeMap<&'a str, Vec<WinningVersion>> {
    let mut statuses = vec![ObservationStatus::Used; observations.len()];
    let same_day_payments = SameDayPayments::default();
    let winners =
        pick_winners(observations, symbols, settlement, &same_day_payments, &mut statuses, &mut Vec::new());
    let mut by_source: BTreeMap<&str, Vec<WinningVersion>> = BTreeMap::new();
    for winner in winners.into_iter().filter(|winner| !winner.cancelled) {
        by_source.entry(&observations[winner.index].source).or_default().push(winner);
    }
    by_source
}

/// Newest day of each source's data: its newest bar, or its newest event if it has no bars. An event later than the
/// newest bar counts if it had passed when the source was read.
fn newest_days(history: &History, settlement: Settlement) -> BTreeMap<&str, NaiveDate> {
    let dividends = history.dividends.iter().filter(|row| row.action == Action::Put);
    let dividends = dividends
        .filter_map(|row| Some((row.source.as_str(), row.observed_at, row.record.date(settlement)?)));
    let splits = history.splits.iter().filter(|row| row.action == Action::Put);
    let splits = splits.map(|row| (row.source.as_str(), row.observed_at, row.record.ex_date));
    let events: Vec<_> = dividends.chain(splits).collect();
    let priced = history
        .prices
        .iter()
        .filter_map(|prices| Some((prices.source.as_str(), date_of(prices.bars.last_live_day()?))));
    let passed = events.iter().filter(|(_, observed_at, date)| *date <= observed_at.date_naive());
    let mut newest = newest_by_source(passed.map(|(source, _, date)| (*source, *date)).chain(priced));
    for (source, date) in newest_by_source(events.iter().map(|(source, _, date)| (*source, *date))) {
        newest.entry(source).or_insert(date);
    }
    newest
}

/// Raw amount of an adjusted amount. `ratio` is the number of raw units for one adjusted unit.
///
/// A vendor rounds adjusted amounts to a number of decimal places, so the product is only near the declared amount. The
/// result is the decimal with the fewest places that the vendor would have rounded to the given amount. If such a short
/// decimal can be a coincidence, the result is the product. For example, 1.254181 x 1.196 is 1.5, not 1.500000476.
fn raw_amount(adjusted: Decimal, ratio: Ratio) -> Decimal {
    let product = ratio.apply(adjusted);
    let places = adjusted.normalize().scale();
    if ratio.is_one() || !(LEAST_PLACES..Decimal::MAX_SCALE).contains(&places) {
        return product;
    }
    let half_unit = ratio.apply(Decimal::new(5, places + 1));
    let mut intervals = half_unit.saturating_mul(Decimal::from(2 * INTERVALS));
    for places in 0..=places {
        if intervals > Decimal::ONE {
            break;
        }
        let short = product.round_dp_with_strategy(places, RoundingStrategy::MidpointAwayFromZero);
        if (short - product).abs() <= half_unit {
            return short;
        }
        intervals = intervals.saturating_mul(Decimal::TEN);
    }
    product
}

/// Greatest date of each source. `dated` has pairs of a source and a date.
fn newest_by_source<'a>(dated: impl Iterator<Item = (&'a str, NaiveDate)>) -> BTreeMap<&'a str, NaiveDate> {
    let mut newest = BTreeMap::new();
    for (source, date) in dated {
        let known = newest.entry(source).or_insert(date);
        *known = date.max(*known);
    }
    newest
}

#[cfg(test)]
mod tests;
