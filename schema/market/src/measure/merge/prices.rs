//! The raw bars that count, from every source's bars (R10, R28, R30, R32).
//!
//! Per day the preferred source that has a usable bar wins. Bars on a later share basis are brought back to raw by the
//! splits between their day and the basis day (0: the newest day of that source's data), at most 10 places. A bar 100
//! times (or a hundredth of) both its neighbours within 5 % is a unit error (`price_unit_error`) and held back. Bars
//! after the as-of date do not exist yet.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use rust_decimal::Decimal;

use super::columns::{has_fault, is_calm};
use super::decided::{Decided, confirmed};
use super::row_rule::{PriceValues, RowFault, price_fault};
use super::unadjust::raw_bars;
use super::unit_error::{has_leap, is_unit_error};
use crate::bars::{Bar, BarVersion, Bars, MISSING, date_of, day_number};
use crate::event::{Kind, MINOR_UNIT_PLACES, Verdict};
use crate::history::{History, SourceBars, SourcePolicy};
use crate::measure::adjust::Splits;
use crate::measure::policy::{Candidate, MANUAL, preference, range_of, range_starts};
use crate::measure::range::VOLUME_SESSIONS;
use crate::measure::yields::months_before;
use crate::row::HoldReason;

/// A bar that is held back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldBar {
    pub day: i32,
    pub source: String,
    pub line: u64,
    /// As its source says it; of a wrong unit, raw.
    pub close: Decimal,
    pub reason: HoldReason,
    pub message: String,
}

/// The outcome of merging prices.
#[derive(Debug, Default)]
pub(crate) struct MergedPrices {
    /// Raw, sorted, canonical; versions are dropped, since the choice has been made.
    pub bars: Bars,
    pub held: Vec<HeldBar>,
    /// Whether no close moves by three eighths against its neighbour: nothing looks like a wrong unit or a split.
    pub is_calm: bool,
    /// Whether they are the bars of the only source as it says them.
    pub is_plain: bool,
    /// When the newest of them was observed.
    pub observed_at: Option<DateTime<Utc>>,
    /// Sources' bars by their place in the history, of which each bar was taken; empty where there is only the first.
    origin: Vec<usize>,
}

impl MergedPrices {
    /// Which of the history's sources a bar was taken from.
    pub(crate) fn source_of(&self, index: usize) -> usize {
        self.origin.get(index).copied().unwrap_or_default()
    }
}

/// Merges the prices of a security up to `as_of`. `all_splits` are the live ones, whenever announced.
pub(crate) fn merge_prices(
    history: &History,
    policy: &SourcePolicy,
    as_of: NaiveDate,
    all_splits: &Splits,
    newest_days: &dyn Fn(&str) -> Option<NaiveDate>,
    decided: &Decided<'_>,
) -> MergedPrices {
    let last_day = day_number(as_of);
    let minor_places = minor_places(history);
    if let [only] = history.prices.as_slice()
        && !decided.has_prices()
        && let Some((mut bars, is_calm)) = untouched(&only.bars, last_day)
    {
        bars.scale += minor_places;
        let observed_at = observed_by(&only.bars, last_day);
        return MergedPrices {
            bars,
            is_calm,
            is_plain: true,
            held: Vec::new(),
            observed_at,
            origin: Vec::new(),
        };
    }
    let mut held = Vec::new();
    let sources: Vec<Source<'_>> = history
        .prices
        .iter()
        .map(|prices| Source {
            candidate: Candidate {
                source: &prices.source,
                observed_at: observed_at(&prices.bars).unwrap_or_default(),
            },
            bars: raw_bars(
                usable(prices, last_day, minor_places, decided, &mut held),
                all_splits,
                newest_day(prices, newest_days),
            ),
        })
        .collect();
    let (bars, origin) = pick_by_day(&sources, policy);
    let (bars, origin) = without_unit_errors(bars, origin, &sources, decided, &mut held);
    held.sort_by(|a, b| (a.day, &a.source, a.line).cmp(&(b.day, &b.source, b.line)));
    let used = history.prices.iter().zip(&sources).filter(|(_, source)| !source.bars.is_empty());
    let observed_at = used.filter_map(|(prices, _)| observed_by(&prices.bars, last_day)).max();
    MergedPrices { is_calm: is_calm(&bars.close), is_plain: false, bars, held, observed_at, origin }
}

/// Whether what was merged needs no more than the closes of the years of which only those were read: bars of one source
/// that are taken as they are, and every bar that a measure wants more of read whole.
pub(crate) fn closes_suffice(history: &History, merged: &MergedPrices, as_of: NaiveDate) -> bool {
    let Some(newest) = history.prices.iter().flat_map(|prices| &prices.closes_only).max() else {
        return true;
    };
    let [SourceBars { bars, .. }] = history.prices.as_slice() else { return false };
    // A bar that somebody decided about may be any.
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

/// Bars of a security quoted in a minor unit (R4) are larger by this many decimal places than they say.
fn minor_places(history: &History) -> u32 {
    let unit = history.security.as_ref().and_then(|security| security.record.quote_unit.as_ref());
    unit.map_or(0, |_| MINOR_UNIT_PLACES)
}

struct Source<'a> {
    candidate: Candidate<'a>,
    bars: Bars,
}

fn observed_at(bars: &Bars) -> Option<DateTime<Utc>> {
    bars.versions.iter().map(BarVersion::observed).max()
}

/// When the newest of the bars up to a day was observed.
fn observed_by(bars: &Bars, last_day: i32) -> Option<DateTime<Utc>> {
    match bars.day.partition_point(|day| *day <= last_day) {
        0 => None,
        all if all == bars.len() => observed_at(bars),
        some => (0..some).map(|index| bars.version_of(index).observed()).max(),
    }
}

/// The common case, decided on integers: one source of raw, live, faultless bars is taken as it is. Also says whether
/// it is calm.
fn untouched(bars: &Bars, last_day: i32) -> Option<(Bars, bool)> {
    let calm = calm_if_plain(bars)?;
    let end = bars.day.partition_point(|day| *day <= last_day);
    // The newest bar kept lost its later neighbour: nothing changes, since unit errors need both.
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

/// Whether raw, live, faultless bars without a unit error are calm.
fn calm_if_plain(bars: &Bars) -> Option<bool> {
    let plain = bars.versions.iter().all(|version| !version.retracted && version.basis_day.is_none());
    let calm = is_calm(&bars.close);
    let has_unit_error = || (0..bars.len()).any(|index| is_unit_error(&bars.close, index));
    (plain && !has_fault(bars) && (calm || !has_leap(&bars.close) || !has_unit_error())).then_some(calm)
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

/// A source's live bars up to the last day; faulty ones are held.
fn usable(
    prices: &SourceBars,
    last_day: i32,
    minor_places: u32,
    decided: &Decided<'_>,
    held: &mut Vec<HeldBar>,
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
        let fault = (is_faulty || is_decided).then(|| PriceValues::of(&bar, kept.scale)).and_then(|values| {
            let confirmed = confirmed_bar(decided, &prices.source, bar.day, values.close);
            let fault = confirmed.or_else(|| if is_faulty { price_fault(&values) } else { None });
            fault.map(|(reason, message)| (values.close, reason, message))
        });
        match fault {
            Some((close, reason, message)) => {
                held.push(HeldBar {
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

/// Why a bar stays held, if a person said so.
fn confirmed_bar(decided: &Decided<'_>, source: &str, day: i32, close: Decimal) -> Option<RowFault> {
    decided.of_bar(source, date_of(day), close).and_then(confirmed)
}

fn newest_day(prices: &SourceBars, newest_days: &dyn Fn(&str) -> Option<NaiveDate>) -> NaiveDate {
    let own = prices.bars.last_live_day().map(date_of);
    own.or_else(|| newest_days(&prices.source)).unwrap_or(NaiveDate::MIN)
}

/// Merges sorted sources day by day; returns the bars and the source of each.
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

/// The finest scale at which every source's prices fit 64 bits.
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

/// Bars at a scale; digits a coarser scale cannot hold are rounded half away from zero.
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
        bars = positive(&bars);
    } else if bars.rescale(scale).is_err() {
        // The common scale was chosen so that every source fits.
        bars = Bars::default();
    }
    bars
}

/// Bars whose close was not rounded to nothing.
fn positive(bars: &Bars) -> Bars {
    let mut kept = bars.slice(0..0);
    (0..bars.len())
        .filter(|index| bars.close[*index] > 0)
        .for_each(|index| kept.push(bars.bar(index), bars.version[index]));
    kept
}

fn without_unit_errors(
    mut bars: Bars,
    mut origin: Vec<usize>,
    sources: &[Source<'_>],
    decided: &Decided<'_>,
    held: &mut Vec<HeldBar>,
) -> (Bars, Vec<usize>) {
    let is_released = |index: usize| {
        let (bar, source) = (bars.bar(index), sources[origin[index]].candidate.source);
        let decision = decided.of_bar(source, date_of(bar.day), PriceValues::of(&bar, bars.scale).close);
        decision.is_some_and(|decision| decision.verdict == Verdict::Release)
    };
    let wrong: BTreeSet<usize> =
        (0..bars.len()).filter(|index| is_unit_error(&bars.close, *index) && !is_released(*index)).collect();
    if !wrong.is_empty() {
        let mut kept = bars.slice(0..0);
        let mut from = Vec::with_capacity(origin.len());
        for (index, source) in origin.into_iter().enumerate() {
            let bar = bars.bar(index);
            if wrong.contains(&index) {
                held.push(unit_error(&bar, bars.scale, &sources[source], decided));
            } else {
                kept.push(bar, 0);
                from.push(source);
            }
        }
        (bars, origin) = (kept, from);
    }
    bars.canonicalize();
    (bars, origin)
}

fn unit_error(bar: &Bar, scale: u32, source: &Source<'_>, decided: &Decided<'_>) -> HeldBar {
    let close = PriceValues::of(bar, scale).close;
    let line = source.bars.day.binary_search(&bar.day).map_or(0, |index| source.bars.version_of(index).line);
    let name = source.candidate.source;
    let message = format!("the close {close} is 100 times away from the sessions before and after it");
    // The source may have said it on another share basis, on which nobody decided about it.
    let confirmed = confirmed_bar(decided, name, bar.day, close);
    let (reason, message) = confirmed.unwrap_or((HoldReason::PriceUnitError, message));
    HeldBar { day: bar.day, source: name.to_owned(), line, close, reason, message }
}

#[cfg(test)]
mod tests;
