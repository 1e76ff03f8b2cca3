//! Merge of prices: from the bars of all sources to one raw series (R10, R28, R30, R32).
//!
//! For each day, the merge uses the most preferred usable bar (`day_merge`). Bars after the as-of date are ignored.
//!
//! Split-adjusted bars are converted to raw bars ([`FeedAdjustments`]). A feed adjusts a bar for all splits in its list
//! up to a certain day, the basis day of the bar. The conversion reverses the splits between the day of the bar and its
//! basis day. A basis day of 0 means the newest bar of the source. Converted prices have at most 10 decimal places.
//!
//! Bars that contradict their neighbours are quarantined (R36) as `isolated_price` or `price_unit_error`. The newest
//! bar is quarantined as `unconfirmed_price` if its close is far from the previous close and nothing confirms it.

mod column_scan;
mod day_merge;
mod level_review;
mod levels;
mod merged_prices;
mod unadjust;

use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, Datelike, NaiveDate, Utc};

use super::decisions::DecisionIndex;
use super::feed_adjustments::FeedAdjustments;
use super::validation::{PriceValues, price_fault};
use crate::bars::{BarVersion, Bars, MISSING};
use crate::day::{date_of, day_number};
use crate::event::Kind;
use crate::history::{History, SourceBars, SourcePolicy};
use crate::metrics::calendar::months_before;
use crate::metrics::prices::range::VOLUME_SESSIONS;
use column_scan::{find_large_moves, has_fault};
use day_merge::{Source, minor_places};
pub(crate) use level_review::review_levels;
use level_review::{confirmed_bar, pick_sound_bars};
use levels::Closes;
pub(crate) use levels::LevelCheck;
use merged_prices::QuarantinedBar;
pub(crate) use merged_prices::{ExcludedBars, MergedPrices};
use unadjust::raw_bars;

/// Merges the prices of a security up to `as_of`, without the `excluded` bars.
pub(crate) fn merge_prices(
    history: &History,
    policy: &SourcePolicy,
    as_of: NaiveDate,
    levels: &LevelCheck<'_>,
    feeds: &FeedAdjustments<'_>,
    decided: &DecisionIndex<'_>,
    excluded: &ExcludedBars,
) -> MergedPrices {
    let last_day = day_number(as_of);
    if let [only] = history.prices.as_slice()
        && !decided.has_prices()
        && let Some((bars, large_moves)) =
            plain_bars(&only.bars, last_day, minor_places(history, &only.source), levels)
    {
        let observed_at = observed_by(&only.bars, last_day);
        return MergedPrices {
            bars,
            large_moves,
            is_plain: true,
            quarantined: Vec::new(),
            observed_at,
            origin: Vec::new(),
        };
    }
    let mut quarantined = Vec::new();
    let mut sources: Vec<Source<'_>> = Vec::with_capacity(history.prices.len());
    for (place, prices) in history.prices.iter().enumerate() {
        let minor_places = minor_places(history, &prices.source);
        let usable = usable_bars(prices, last_day, minor_places, decided, &mut quarantined);
        let is_used = |day: i32| !excluded.contains(&(place, day));
        let usable = if excluded.is_empty() { usable } else { usable.filter_days(is_used) };
        let newest = prices.bars.last_live_day().map_or(NaiveDate::MIN, date_of);
        sources.push(Source {
            source: &prices.source,
            bars: raw_bars(usable, feeds.of_source(&prices.source), newest),
        });
    }
    let used = history.prices.iter().zip(&sources).filter(|(_, source)| !source.bars.is_empty());
    let observed_at = used.filter_map(|(prices, _)| observed_by(&prices.bars, last_day)).max();
    let (bars, origin) = pick_sound_bars(&mut sources, policy, levels, decided, &mut quarantined);
    quarantined.sort_by(|a, b| (a.day, &a.source, a.line).cmp(&(b.day, &b.source, b.line)));
    let large_moves = find_large_moves(&bars.close);
    MergedPrices { large_moves, is_plain: false, bars: Arc::new(bars), quarantined, observed_at, origin }
}

/// True if years that were loaded with closes only give the same metrics as fully loaded years.
pub(crate) fn closes_suffice(history: &History, merged: &MergedPrices, as_of: NaiveDate) -> bool {
    let Some(newest) = history.prices.iter().flat_map(|prices| &prices.closes_only).max() else {
        return true;
    };
    // A decision about a price may quarantine or release a bar, and the merge may then need all its columns. The bar
    // may be in a year with closes only.
    if history.decisions.iter().any(|decision| decision.record.row.kind == Kind::Price) {
        return false;
    }
    let Some(last) = NaiveDate::from_ymd_opt(*newest, 12, 31).map(day_number) else { return false };
    let whole = merged.bars.day.iter().rev().take_while(|day| **day > last).count();
    whole >= VOLUME_SESSIONS
        && months_before(as_of, 12).year() > *newest
        && history.prices.iter().all(|prices| minor_places(history, &prices.source) == 0)
        && (merged.is_plain || uses_closes_only_years_unchanged(history, merged))
}

/// True if the merge uses each year that was loaded with closes only without change. Other sources may have bars of the
/// year too, if the merge uses none of them.
///
/// Only years whose bars equal the served bars are loaded with closes only. Two such sources therefore have the same
/// bars, and it does not matter which of them the merge uses.
fn uses_closes_only_years_unchanged(history: &History, merged: &MergedPrices) -> bool {
    let sources = || history.prices.iter();
    let largest_scale = sources().map(|prices| prices.bars.scale).max();
    let is_unchanged = |prices: &SourceBars| {
        prices.closes_only.iter().all(|year| {
            let has_closes_only: Vec<bool> =
                sources().map(|prices| prices.closes_only.contains(year)).collect();
            bars_of_year(&merged.bars, *year).all(|index| has_closes_only[merged.source_of(index)])
                && has_same_closes(&prices.bars, &merged.bars, *year)
        })
    };
    // The result of a conversion may depend on columns that are not loaded.
    let is_converted = |prices: &SourceBars| {
        let is_rescaled = !prices.closes_only.is_empty() && Some(prices.bars.scale) != largest_scale;
        is_rescaled || !has_raw_versions(&prices.bars)
    };
    sources().all(|prices| !is_converted(prices) && is_unchanged(prices))
}

/// True if two series have the same days and closes in a calendar year.
fn has_same_closes(source: &Bars, merged: &Bars, year: i32) -> bool {
    // Merged bars have the smallest possible number of decimal places.
    let Some(factor) = source.scale.checked_sub(merged.scale).and_then(|places| 10i64.checked_pow(places))
    else {
        return false;
    };
    let (of_source, of_merged) = (bars_of_year(source, year), bars_of_year(merged, year));
    source.day[of_source.clone()] == merged.day[of_merged.clone()]
        && source.close[of_source]
            .iter()
            .zip(&merged.close[of_merged])
            .all(|(close, merged)| merged.checked_mul(factor) == Some(*close))
}

/// Index range of the bars of a calendar year.
fn bars_of_year(bars: &Bars, year: i32) -> Range<usize> {
    let first_of = |year| NaiveDate::from_ymd_opt(year, 1, 1).map_or(i32::MAX, day_number);
    let index_of = |day: i32| bars.day.partition_point(|known| *known < day);
    index_of(first_of(year))..index_of(first_of(year + 1))
}

/// True if no bar is retracted or split-adjusted.
fn has_raw_versions(bars: &Bars) -> bool {
    bars.versions.iter().all(|version| !version.retracted && version.basis_day.is_none())
}

fn observed_at(bars: &Bars) -> Option<DateTime<Utc>> {
    bars.versions.iter().map(BarVersion::observation_time).max()
}

/// Latest observation time of the bars up to `last_day`; `None` without bars.
fn observed_by(bars: &Bars, last_day: i32) -> Option<DateTime<Utc>> {
    match bars.day.partition_point(|day| *day <= last_day) {
        0 => None,
        all if all == bars.len() => observed_at(bars),
        some => (0..some).map(|index| bars.version_of(index).observation_time()).max(),
    }
}

/// Bars of a single source up to `last_day`, with the indexes of their large moves. `None` if the merge must change,
/// omit or quarantine a bar. The bars are copied only if some of them are dated after `last_day`, or their number of
/// decimal places changes.
fn plain_bars(
    bars: &Arc<Bars>,
    last_day: i32,
    minor_places: u32,
    levels: &LevelCheck<'_>,
) -> Option<(Arc<Bars>, Vec<usize>)> {
    if !has_raw_versions(bars) || has_fault(bars) {
        return None;
    }
    let end = bars.day.partition_point(|day| *day <= last_day);
    let large_moves = find_large_moves(&bars.close[..end]);
    let closes = Closes {
        closes: &bars.close[..end],
        days: &bars.day[..end],
        scale: bars.scale + minor_places,
        large_moves: &large_moves,
    };
    if !levels.find_faults(closes).is_empty() {
        return None;
    }
    if end == bars.len() && minor_places == 0 && bars.is_canonical() {
        return Some((Arc::clone(bars), large_moves));
    }
    let mut kept = bars.slice_values(0..end);
    kept.canonicalize();
    kept.scale += minor_places;
    Some((Arc::new(kept), large_moves))
}

fn is_faulty(bars: &Bars, index: usize) -> bool {
    let (high, low) = (bars.high[index], bars.low[index]);
    let negative = |value: i64| value < 0 && value != MISSING;
    bars.close[index] <= 0
        || (high != MISSING && low != MISSING && high < low)
        || negative(bars.open[index])
        || negative(high)
        || negative(low)
        || negative(bars.volume[index])
}

/// Usable bars of a source up to `last_day`. Retracted bars are left out, and faulty bars are quarantined.
fn usable_bars(
    prices: &SourceBars,
    last_day: i32,
    minor_places: u32,
    decided: &DecisionIndex<'_>,
    quarantined: &mut Vec<QuarantinedBar>,
) -> Bars {
    let (bars, is_decided, may_be_faulty) = (&prices.bars, decided.has_prices(), has_fault(&prices.bars));
    let scale = bars.scale + minor_places;
    let mut usable = bars.filter(|index| {
        let version = bars.version_of(index);
        if bars.day[index] > last_day || version.retracted {
            return false;
        }
        let is_faulty = may_be_faulty && is_faulty(bars, index);
        if !is_faulty && !is_decided {
            return true;
        }
        let (day, values) = (bars.day[index], PriceValues::from_bar(&bars.bar(index), scale));
        let confirmed = confirmed_bar(decided, &prices.source, day, values.close);
        let fault = confirmed.or_else(|| if is_faulty { price_fault(&values) } else { None });
        let Some((reason, message)) = fault else { return true };
        let (source, line, close) = (prices.source.clone(), version.line, values.close);
        quarantined.push(QuarantinedBar { day, source, line, close, reason, message });
        false
    });
    usable.scale = scale;
    usable
}

#[cfg(test)]
mod tests;
