//! Quarantine of bars by their price level (R36).
//!
//! A leap is a move of the close by more than a factor (`level.factor`) from the previous close. The leaps show which
//! bars have a wrong price level. Such a bar is quarantined. The bar of the same day from the next preferred source
//! replaces it, unless that bar has a wrong price level too.
//!
//! If the close of the newest bar leaps, the bar is quarantined. It is used again when the next session, another source
//! or a decision confirms its close.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::column_scan::find_large_moves;
use super::day_merge::{Source, minor_places, pick_by_day};
use super::levels::{Closes, LevelCheck, LevelFault};
use super::merged_prices::{ExcludedBars, MergedPrices, QuarantinedBar};
use super::unadjust::raw_close;
use crate::bars::{Bar, Bars};
use crate::day::{date_of, day_number};
use crate::event::DecisionVerdict;
use crate::history::{History, SourceBars, SourcePolicy};
use crate::metrics::merge::decisions::{DecisionIndex, confirmed_fault};
use crate::metrics::merge::feed_adjustments::FeedAdjustments;
use crate::metrics::merge::validation::{PriceValues, RowFault};
use crate::metrics::prices::series::ADJACENT_DAYS;
use crate::row::QuarantineReason;

/// Merges the sources day by day, and quarantines bars with a wrong price level. Returns the remaining bars, and for
/// each bar the index of its source.
pub(super) fn pick_sound_bars(
    sources: &mut [Source<'_>],
    policy: &SourcePolicy,
    levels: &LevelCheck<'_>,
    decided: &DecisionIndex<'_>,
    quarantined: &mut Vec<QuarantinedBar>,
) -> (Bars, Vec<usize>) {
    // Days on which the first pass of the loop quarantined a bar. Later passes check only these days.
    let mut faulty_days: Option<BTreeSet<i32>> = None;
    loop {
        let (mut bars, origin) = pick_by_day(sources, policy);
        let closes = Closes {
            closes: &bars.close,
            days: &bars.day,
            scale: bars.scale,
            large_moves: &find_large_moves(&bars.close),
        };
        let mut faults: BTreeMap<usize, LevelFault> = levels.find_faults(closes);
        faults.retain(|index, _| {
            faulty_days.as_ref().is_none_or(|days| days.contains(&bars.day[*index]))
                && !is_released(decided, sources[origin[*index]].source, &bars, *index)
        });
        if faults.is_empty() {
            bars.canonicalize();
            return (bars, origin);
        }
        let mut excluded = ExcludedBars::new();
        for (index, fault) in faults {
            let (bar, place) = (bars.bar(index), origin[index]);
            quarantined.push(level_fault(&bar, bars.scale, fault, &sources[place], decided));
            excluded.insert((place, bar.day));
        }
        for (place, source) in sources.iter_mut().enumerate() {
            source.bars = source.bars.filter_days(|day| !excluded.contains(&(place, day)));
        }
        faulty_days.get_or_insert_with(|| excluded.iter().map(|(_, day)| *day).collect());
    }
}

/// Quarantines the newest bar if its close is an unconfirmed leap. Returns true if a leap remains in the prices.
///
/// `merge_without` merges the prices again, without the excluded bars. `levels` must contain the splits after their
/// review.
pub(crate) fn review_levels(
    prices: &mut MergedPrices,
    history: &History,
    as_of: NaiveDate,
    levels: &LevelCheck<'_>,
    feeds: &FeedAdjustments<'_>,
    decided: &DecisionIndex<'_>,
    merge_without: &dyn Fn(&ExcludedBars) -> MergedPrices,
) -> bool {
    let mut excluded = ExcludedBars::new();
    let mut unconfirmed_bars: Vec<QuarantinedBar> = Vec::new();
    let has_break = loop {
        let (unconfirmed, has_other_leap) = review_newest(prices, history, as_of, levels, feeds, decided);
        let Some(bar) = unconfirmed else { break has_other_leap };
        // Only bars of the newest day are quarantined here, at most one per source. If the newest remaining bar is of
        // an earlier day and also leaps, it stays, and the prices contain a lasting break.
        if unconfirmed_bars.first().is_some_and(|first| first.day != bar.day) {
            break true;
        }
        let newest = prices.bars.len() - 1;
        excluded.insert((prices.source_of(newest), bar.day));
        unconfirmed_bars.push(bar);
        if history.prices.len() == 1 {
            let mut earlier = prices.bars.slice_values(0..newest);
            earlier.canonicalize();
            prices.bars = Arc::new(earlier);
            prices.large_moves.retain(|index| *index < newest);
            prices.origin.truncate(newest);
            prices.is_plain = false;
            break has_other_leap;
        }
        *prices = merge_without(&excluded);
    };
    let has_break = has_break || levels.has_distant_break(closes_of(prices));
    prices.quarantined.extend(unconfirmed_bars);
    prices.quarantined.sort_by(|a, b| (a.day, &a.source, a.line).cmp(&(b.day, &b.source, b.line)));
    has_break
}

fn closes_of(prices: &MergedPrices) -> Closes<'_> {
    let MergedPrices { bars, large_moves, .. } = prices;
    Closes { closes: &bars.close, days: &bars.day, scale: bars.scale, large_moves }
}

/// Returns the newest bar for quarantine if its close is an unconfirmed leap. The second value is true if a leap
/// remains in the prices.
fn review_newest(
    prices: &MergedPrices,
    history: &History,
    as_of: NaiveDate,
    levels: &LevelCheck<'_>,
    feeds: &FeedAdjustments<'_>,
    decided: &DecisionIndex<'_>,
) -> (Option<QuarantinedBar>, bool) {
    let (bars, closes) = (&prices.bars, closes_of(prices));
    let leaps = levels.find_leaps(closes);
    let Some((newest, earlier)) = leaps.split_last() else { return (None, false) };
    let (index, day) = (*newest, bars.day[*newest]);
    let source = &history.prices[prices.source_of(index)];
    let is_newest = index + 1 == bars.len();
    // After a longer time, trading may have ended. No next session could then confirm the bar.
    let is_recent = day_number(as_of) - day <= ADJACENT_DAYS;
    // True if the previous bar leaps too, and the newest close agrees with the close before the previous bar. The
    // previous bar is then a spike, and the newest bar is back at the level before it. The spike is still in use
    // because a decision released it.
    let has_returned = || earlier.last() == Some(&(index - 1)) && levels.agree(closes, index - 2, index);
    if !is_newest
        || !is_recent
        || has_returned()
        || is_confirmed(prices, index, history, levels, feeds)
        || is_released(decided, &source.source, bars, index)
    {
        return (None, true);
    }
    let (close, before) =
        (Decimal::new(bars.close[index], bars.scale), Decimal::new(bars.close[index - 1], bars.scale));
    let line = source.bars.day.binary_search(&day).map_or(0, |bar| source.bars.version_of(bar).line);
    let message = format!(
        "the newest close {close} is far from the close {before} before it; the next session or another source \
         confirms or refutes it"
    );
    let fault = (QuarantineReason::UnconfirmedPrice, message);
    (Some(quarantined_bar(day, &source.source, line, close, fault, decided)), !earlier.is_empty())
}

/// True if another source has about the same raw close on the day of the bar at `index`.
fn is_confirmed(
    prices: &MergedPrices,
    index: usize,
    history: &History,
    levels: &LevelCheck<'_>,
    feeds: &FeedAdjustments<'_>,
) -> bool {
    let close = Decimal::new(prices.bars.close[index], prices.bars.scale);
    let others = history.prices.iter().enumerate().filter(|(place, _)| *place != prices.source_of(index));
    let mut of_day = others.filter_map(|(_, SourceBars { source, bars, .. })| {
        let bar = bars.day.binary_search(&prices.bars.day[index]).ok()?;
        let newest = date_of(bars.last_live_day()?);
        let is_live = !bars.version_of(bar).retracted && bars.close[bar] > 0;
        let unit = Decimal::new(1, minor_places(history, source));
        is_live.then(|| raw_close(bars, bar, feeds.of_source(source), newest) * unit)
    });
    of_day.any(|other| levels.is_near(close, other))
}

fn is_released(decided: &DecisionIndex<'_>, source: &str, bars: &Bars, index: usize) -> bool {
    let bar = bars.bar(index);
    let decision =
        decided.find_for_bar(source, date_of(bar.day), PriceValues::from_bar(&bar, bars.scale).close);
    decision.is_some_and(|decision| decision.verdict == DecisionVerdict::Release)
}

fn level_fault(
    bar: &Bar,
    scale: u32,
    fault: LevelFault,
    source: &Source<'_>,
    decided: &DecisionIndex<'_>,
) -> QuarantinedBar {
    let close = PriceValues::from_bar(bar, scale).close;
    let line = source.bars.day.binary_search(&bar.day).map_or(0, |index| source.bars.version_of(index).line);
    let (reason, message) = match fault {
        LevelFault::Isolated => (
            QuarantineReason::IsolatedPrice,
            format!("the close {close} is far from the sessions before and after it, which agree"),
        ),
        LevelFault::WrongUnit(times) => (
            QuarantineReason::PriceUnitError,
            format!("the close {close} is {times} times away from the sessions around it"),
        ),
    };
    quarantined_bar(bar.day, source.source, line, close, (reason, message), decided)
}

fn quarantined_bar(
    day: i32,
    source: &str,
    line: u64,
    close: Decimal,
    fault: RowFault,
    decided: &DecisionIndex<'_>,
) -> QuarantinedBar {
    // A decision that confirms the bar as wrong replaces the detected fault.
    let (reason, message) = confirmed_bar(decided, source, day, close).unwrap_or(fault);
    QuarantinedBar { day, source: source.to_owned(), line, close, reason, message }
}

/// Fault of a bar that a decision confirmed as wrong; `None` without such a decision.
pub(super) fn confirmed_bar(
    decided: &DecisionIndex<'_>,
    source: &str,
    day: i32,
    close: Decimal,
) -> Option<RowFault> {
    decided.find_for_bar(source, date_of(day), close).and_then(confirmed_fault)
}
