//! Merge of prices: from the bars of all sources to one raw series (R10, R28, R30, R32).
//!
//! On each day, the most preferred source with a usable bar is used. Bars on a later share basis are converted to raw
//! bars by the splits between their day and the basis day. The results have at most 10 decimal places. Basis day 0 is
//! the newest day of the source's data. Bars after the as-of date are ignored. Bars that contradict their neighbours
//! are quarantined (R36) as `isolated_price` or `price_unit_error`, the newest bar as `unconfirmed_price`.

mod column_scan;
mod levels;
mod unadjust;

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use rust_decimal::Decimal;

use super::decisions::{DecisionIndex, confirmed_fault};
use super::validation::{PriceValues, RowFault, price_fault};
use crate::bars::{Bar, BarVersion, Bars, MISSING};
use crate::day::{date_of, day_number};
use crate::event::{DecisionVerdict, Kind, MINOR_UNIT_PLACES};
use crate::history::{History, SourceBars, SourcePolicy};
use crate::metrics::calendar::months_before;
use crate::metrics::prices::range::VOLUME_SESSIONS;
use crate::metrics::source_preference::{MANUAL, SourceCandidate, preference, range_of, range_starts};
use crate::row::QuarantineReason;
use column_scan::{has_fault, is_calm};
pub(crate) use levels::LevelCheck;
use levels::{Closes, LevelFault};
use unadjust::raw_bars;

/// Quarantined bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuarantinedBar {
    pub day: i32,
    pub source: String,
    pub line: u64,
    /// Close as given by the source. For a bar in a wrong unit, it is the raw close.
    pub close: Decimal,
    pub reason: QuarantineReason,
    pub message: String,
}

/// Result of merging prices.
#[derive(Debug, Default)]
pub(crate) struct MergedPrices {
    /// Raw bars in the canonical form, without versions.
    pub bars: Bars,
    pub quarantined: Vec<QuarantinedBar>,
    /// True if no close moves by three eighths from one bar to the next. Then neither a wrong unit nor a split is
    /// visible.
    pub is_calm: bool,
    /// True if there is only one source, and its bars are unchanged.
    pub is_plain: bool,
    /// Observation time of the newest bar.
    pub observed_at: Option<DateTime<Utc>>,
    /// Index of the source of each bar. Empty if all bars come from the first source.
    origin: Vec<usize>,
}

impl MergedPrices {
    /// Index of the source of a bar.
    pub(crate) fn source_of(&self, index: usize) -> usize {
        self.origin.get(index).copied().unwrap_or_default()
    }
}

/// Merges the prices of a security up to `as_of`. `levels` contains all splits that are not withdrawn, including those
/// announced later.
pub(crate) fn merge_prices(
    history: &History,
    policy: &SourcePolicy,
    as_of: NaiveDate,
    levels: &LevelCheck<'_>,
    newest_days: &dyn Fn(&str) -> Option<NaiveDate>,
    decided: &DecisionIndex<'_>,
) -> MergedPrices {
    let last_day = day_number(as_of);
    let minor_places = minor_places(history);
    if let [only] = history.prices.as_slice()
        && !decided.has_prices()
        && let Some((mut bars, is_calm)) = copy_if_plain(&only.bars, last_day, minor_places, levels)
    {
        bars.scale += minor_places;
        let observed_at = observed_by(&only.bars, last_day);
        return MergedPrices {
            bars,
            is_calm,
            is_plain: true,
            quarantined: Vec::new(),
            observed_at,
            origin: Vec::new(),
        };
    }
    let mut quarantined = Vec::new();
    let sources: Vec<Source<'_>> = history
        .prices
        .iter()
        .map(|prices| Source {
            candidate: SourceCandidate {
                source: &prices.source,
                observed_at: observed_at(&prices.bars).unwrap_or_default(),
            },
            bars: raw_bars(
                usable_bars(prices, last_day, minor_places, decided, &mut quarantined),
                levels.splits,
                newest_day(prices, newest_days),
            ),
        })
        .collect();
    let (bars, origin) = pick_by_day(&sources, policy);
    let (bars, origin) = without_level_faults(bars, origin, &sources, levels, decided, &mut quarantined);
    quarantined.sort_by(|a, b| (a.day, &a.source, a.line).cmp(&(b.day, &b.source, b.line)));
    let used = history.prices.iter().zip(&sources).filter(|(_, source)| !source.bars.is_empty());
    let observed_at = used.filter_map(|(prices, _)| observed_by(&prices.bars, last_day)).max();
    MergedPrices { is_calm: is_calm(&bars.close), is_plain: false, bars, quarantined, observed_at, origin }
}

/// True if the closes-only years have all columns that the merge needs. All bars must come from one source unchanged. A
/// bar whose other columns a metric reads must have all columns.
pub(crate) fn closes_suffice(history: &History, merged: &MergedPrices, as_of: NaiveDate) -> bool {
    let Some(newest) = history.prices.iter().flat_map(|prices| &prices.closes_only).max() else {
        return true;
    };
    let [SourceBars { bars, .. }] = history.prices.as_slice() else { return false };
    // A decision about a price may concern any bar.
    if history.decisions.iter().any(|decision| decision.record.row.kind == Kind::Price) {
        return false;
    }
    let Some(last) = NaiveDate::from_ymd_opt(*newest, 12, 31).map(day_number) else { return false };
    let whole = bars.day.iter().rev().take_while(|day| **day > last).count();
    whole >= VOLUME_SESSIONS
        && months_before(as_of, 12).year() > *newest
        && minor_places(history) == 0
        && merged.is_plain
}

/// Number of additional decimal places of bars that are quoted in a minor unit (R4).
fn minor_places(history: &History) -> u32 {
    let unit = history.security.as_ref().and_then(|security| security.record.quote_unit.as_ref());
    unit.map_or(0, |_| MINOR_UNIT_PLACES)
}

struct Source<'a> {
    candidate: SourceCandidate<'a>,
    bars: Bars,
}

fn observed_at(bars: &Bars) -> Option<DateTime<Utc>> {
    bars.versions.iter().map(BarVersion::observation_time).max()
}

/// Observation time of the newest bar up to a day.
fn observed_by(bars: &Bars, last_day: i32) -> Option<DateTime<Utc>> {
    match bars.day.partition_point(|day| *day <= last_day) {
        0 => None,
        all if all == bars.len() => observed_at(bars),
        some => (0..some).map(|index| bars.version_of(index).observation_time()).max(),
    }
}

/// Fast path on integers: the bars of a single source are used unchanged if they are raw, without retractions and
/// without faults. The flag is true if the bars are calm.
fn copy_if_plain(
    bars: &Bars,
    last_day: i32,
    minor_places: u32,
    levels: &LevelCheck<'_>,
) -> Option<(Bars, bool)> {
    let plain = bars.versions.iter().all(|version| !version.retracted && version.basis_day.is_none());
    if !plain || has_fault(bars) {
        return None;
    }
    let calm = is_calm(&bars.close);
    let end = bars.day.partition_point(|day| *day <= last_day);
    let closes =
        Closes { closes: &bars.close[..end], days: &bars.day[..end], scale: bars.scale + minor_places };
    if !calm && !levels.find_faults(closes).is_empty() {
        return None;
    }
    let mut kept = Bars {
        scale: bars.scale,
        day: bars.day[..end].to_vec(),
        open: bars.open.slice(0..end),
        high: bars.high.slice(0..end),
        low: bars.low.slice(0..end),
        close: bars.close[..end].to_vec(),
        volume: bars.volume.slice(0..end),
        vwap: bars.vwap.get(..end).unwrap_or_default().to_vec(),
        trade_count: bars.trade_count.get(..end).unwrap_or_default().to_vec(),
        version: vec![0; end],
        versions: vec![BarVersion::UNKNOWN],
    };
    kept.canonicalize();
    Some((kept, calm))
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

/// Bars of a source up to the last day that are neither retracted nor faulty. Faulty bars are quarantined.
fn usable_bars(
    prices: &SourceBars,
    last_day: i32,
    minor_places: u32,
    decided: &DecisionIndex<'_>,
    quarantined: &mut Vec<QuarantinedBar>,
) -> Bars {
    let (bars, is_decided) = (&prices.bars, decided.has_prices());
    let mut kept =
        Bars { scale: bars.scale + minor_places, versions: bars.versions.clone(), ..Bars::default() };
    for index in (0..bars.len()).filter(|index| bars.day[*index] <= last_day) {
        let version = bars.version_of(index);
        if version.retracted {
            continue;
        }
        let bar = bars.bar(index);
        let is_faulty = is_faulty(bars, index);
        let fault =
            (is_faulty || is_decided).then(|| PriceValues::from_bar(&bar, kept.scale)).and_then(|values| {
                let confirmed = confirmed_bar(decided, &prices.source, bar.day, values.close);
                let fault = confirmed.or_else(|| if is_faulty { price_fault(&values) } else { None });
                fault.map(|(reason, message)| (values.close, reason, message))
            });
        match fault {
            Some((close, reason, message)) => {
                quarantined.push(QuarantinedBar {
                    day: bar.day,
                    source: prices.source.clone(),
                    line: version.line,
                    close,
                    reason,
                    message,
                });
            }
            None => kept.push(bar, bars.version[index]),
        }
    }
    kept
}

/// Fault of a bar that a decision confirmed to be wrong.
fn confirmed_bar(decided: &DecisionIndex<'_>, source: &str, day: i32, close: Decimal) -> Option<RowFault> {
    decided.find_for_bar(source, date_of(day), close).and_then(confirmed_fault)
}

fn newest_day(prices: &SourceBars, newest_days: &dyn Fn(&str) -> Option<NaiveDate>) -> NaiveDate {
    let own = prices.bars.last_live_day().map(date_of);
    own.or_else(|| newest_days(&prices.source)).unwrap_or(NaiveDate::MIN)
}

/// Merges sorted sources day by day. Returns the bars, and the index of the source of each bar.
fn pick_by_day(sources: &[Source<'_>], policy: &SourcePolicy) -> (Bars, Vec<usize>) {
    let scale = common_scale(sources);
    let scaled: Vec<Bars> = sources.iter().map(|source| at_scale(&source.bars, scale)).collect();
    let starts = range_starts(policy, Kind::Price);
    let orders: Vec<Vec<usize>> = starts.iter().map(|start| order_of(sources, policy, *start)).collect();
    let mut bars = Bars { scale, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    let (mut origin, mut next) = (Vec::new(), vec![0usize; sources.len()]);
    loop {
        let upcoming = (0..sources.len()).filter_map(|source| scaled[source].day.get(next[source]).copied());
        let Some(day) = upcoming.min() else { break };
        let order = &orders[range_of(&starts, date_of(day))];
        let has = |source: &usize| scaled[*source].day.get(next[*source]) == Some(&day);
        if let Some(chosen) = order.iter().copied().find(|source| has(source)) {
            bars.push(scaled[chosen].bar(next[chosen]), 0);
            origin.push(chosen);
        }
        for source in 0..sources.len() {
            if scaled[source].day.get(next[source]) == Some(&day) {
                next[source] += 1;
            }
        }
    }
    (bars, origin)
}

fn order_of(sources: &[Source<'_>], policy: &SourcePolicy, day: NaiveDate) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by_key(|index| {
        let candidate = sources[*index].candidate;
        (candidate.source != MANUAL, preference(policy, Kind::Price, candidate, day))
    });
    order
}

/// Largest scale at which every price of every source fits 64 bits.
fn common_scale(sources: &[Source<'_>]) -> u32 {
    let wanted = sources.iter().map(|source| source.bars.scale).max().unwrap_or_default();
    let fits = |scale: u32| {
        sources.iter().all(|source| {
            let bars = &source.bars;
            let largest = bars.prices().into_iter().flatten().max().copied().unwrap_or_default();
            let factor = 10i64.checked_pow(scale.saturating_sub(bars.scale));
            factor.and_then(|factor| largest.max(0).checked_mul(factor)).is_some()
        })
    };
    (0..=wanted).rev().find(|scale| fits(*scale)).unwrap_or_default()
}

/// Converts bars to a scale. Excess digits are rounded half away from zero.
fn at_scale(bars: &Bars, scale: u32) -> Bars {
    let mut bars = bars.clone();
    if bars.scale > scale {
        let divisor = 10i64.checked_pow(bars.scale - scale).unwrap_or(i64::MAX);
        for column in bars.prices_mut() {
            for value in column.iter_mut().filter(|value| **value != MISSING) {
                *value = *value / divisor + (*value % divisor) / (divisor - divisor / 2);
            }
        }
        bars.scale = scale;
        bars = without_zero_closes(&bars);
    } else if bars.rescale(scale).is_err() {
        // Cannot fail: every source fits the common scale.
        bars = Bars::default();
    }
    bars
}

/// Leaves out bars with a close that rounding made 0.
fn without_zero_closes(bars: &Bars) -> Bars {
    let mut kept = bars.slice(0..0);
    (0..bars.len())
        .filter(|index| bars.close[*index] > 0)
        .for_each(|index| kept.push(bars.bar(index), bars.version[index]));
    kept
}

fn without_level_faults(
    mut bars: Bars,
    mut origin: Vec<usize>,
    sources: &[Source<'_>],
    levels: &LevelCheck<'_>,
    decided: &DecisionIndex<'_>,
    quarantined: &mut Vec<QuarantinedBar>,
) -> (Bars, Vec<usize>) {
    let source_of = |index: usize| sources[origin[index]].candidate.source;
    let mut faults: BTreeMap<usize, LevelFault> =
        levels.find_faults(Closes { closes: &bars.close, days: &bars.day, scale: bars.scale });
    faults.retain(|index, _| !is_released(decided, source_of(*index), &bars, *index));
    if !faults.is_empty() {
        let mut kept = bars.slice(0..0);
        let mut from = Vec::with_capacity(origin.len());
        for (index, source) in origin.into_iter().enumerate() {
            let bar = bars.bar(index);
            match faults.get(&index) {
                Some(fault) => {
                    quarantined.push(level_fault(&bar, bars.scale, *fault, &sources[source], decided));
                }
                None => {
                    kept.push(bar, 0);
                    from.push(source);
                }
            }
        }
        (bars, origin) = (kept, from);
    }
    bars.canonicalize();
    (bars, origin)
}

/// True if a decision releases a bar.
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
    quarantined_bar(bar.day, source.candidate.source, line, close, (reason, message), decided)
}

fn quarantined_bar(
    day: i32,
    source: &str,
    line: u64,
    close: Decimal,
    fault: RowFault,
    decided: &DecisionIndex<'_>,
) -> QuarantinedBar {
    // Other sources may use another share basis, for which no decision exists.
    let (reason, message) = confirmed_bar(decided, source, day, close).unwrap_or(fault);
    QuarantinedBar { day, source: source.to_owned(), line, close, reason, message }
}

/// Quarantines a newest bar with a leap from the bar before, unless another source or a decision confirms the bar.
/// Returns true if any other leap remains (R36). `levels` has the effective splits, after their review.
///
/// A newest bar is accepted once the next session is long past, because the security may have ended trading.
pub(crate) fn review_levels(
    prices: &mut MergedPrices,
    history: &History,
    as_of: NaiveDate,
    levels: &LevelCheck<'_>,
    decided: &DecisionIndex<'_>,
) -> bool {
    if prices.is_calm {
        return false;
    }
    let bars = &prices.bars;
    let closes = Closes { closes: &bars.close, days: &bars.day, scale: bars.scale };
    let leaps = levels.find_leaps(closes);
    let Some((newest, earlier)) = leaps.split_last() else { return false };
    let (index, day) = (*newest, bars.day[*newest]);
    let source = &history.prices[prices.source_of(index)];
    let is_newest = index + 1 == bars.len();
    let is_recent = i64::from(day_number(as_of) - day) <= levels.rules.adjacent_days;
    // The bar before is a spike that a decision released.
    let has_returned = || earlier.last() == Some(&(index - 1)) && levels.agree(closes, index - 2, index);
    if !is_newest
        || !is_recent
        || has_returned()
        || is_confirmed(prices, index, history, levels)
        || is_released(decided, &source.source, bars, index)
    {
        return true;
    }
    let (close, before) =
        (Decimal::new(bars.close[index], bars.scale), Decimal::new(bars.close[index - 1], bars.scale));
    let line = source.bars.day.binary_search(&day).map_or(0, |bar| source.bars.version_of(bar).line);
    let message = format!(
        "the newest close {close} is far from the close {before} before it; the next session or another source \
         confirms or refutes it"
    );
    let fault = (QuarantineReason::UnconfirmedPrice, message);
    let held = quarantined_bar(day, &source.source, line, close, fault, decided);
    prices.quarantined.push(held);
    prices.quarantined.sort_by(|a, b| (a.day, &a.source, a.line).cmp(&(b.day, &b.source, b.line)));
    prices.bars = bars.slice(0..index);
    prices.bars.canonicalize();
    prices.origin.truncate(index);
    prices.is_plain = false;
    !earlier.is_empty()
}

/// True if another source has about the same close on the day of a bar.
fn is_confirmed(prices: &MergedPrices, index: usize, history: &History, levels: &LevelCheck<'_>) -> bool {
    let close = Decimal::new(prices.bars.close[index], prices.bars.scale);
    let others = history.prices.iter().enumerate().filter(|(place, _)| *place != prices.source_of(index));
    let mut of_day = others.filter_map(|(_, other)| {
        let bar = other.bars.day.binary_search(&prices.bars.day[index]).ok()?;
        let is_live = !other.bars.version_of(bar).retracted && other.bars.close[bar] > 0;
        is_live.then(|| Decimal::new(other.bars.close[bar], other.bars.scale + minor_places(history)))
    });
    of_day.any(|other| levels.is_near(close, other))
}

#[cfg(test)]
mod tests;
