//! Merge of the bars of all sources day by day. All merged bars have the same number of decimal places.

use std::borrow::Cow;
use std::ops::Range;

use chrono::NaiveDate;

use crate::bars::{BarVersion, Bars, MISSING};
use crate::day::{date_of, position_on_or_after};
use crate::event::{Kind, MINOR_UNIT_PLACES};
use crate::history::{History, SourcePolicy};
use crate::metrics::source_preference::{SourceCandidate, preference, range_of, range_starts};

/// Source with its usable bars, converted to raw (unadjusted) prices.
pub(super) struct Source<'a> {
    pub candidate: SourceCandidate<'a>,
    pub bars: Bars,
}

/// Number of decimal places to add to prices in a minor unit such as pence (R4). 0 for other prices.
pub(super) fn minor_places(history: &History) -> u32 {
    let unit = history.security.as_ref().and_then(|security| security.record.quote_unit.as_ref());
    unit.map_or(0, |_| MINOR_UNIT_PLACES)
}

/// Merges the bars of all sources day by day. Returns the merged bars, and for each bar the index of its source.
pub(super) fn pick_by_day(sources: &[Source<'_>], policy: &SourcePolicy) -> (Bars, Vec<usize>) {
    let scale = common_scale(sources);
    let scaled: Vec<Cow<'_, Bars>> = sources.iter().map(|source| at_scale(&source.bars, scale)).collect();
    let starts = range_starts(policy, Kind::Price);
    let orders: Vec<Vec<usize>> = starts.iter().map(|start| order_of(sources, policy, *start)).collect();
    let mut bars = Bars { scale, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    let (mut origin, mut next) = (Vec::new(), vec![0usize; sources.len()]);
    // Adjacent bars of one source are appended together.
    let (mut run_source, mut run) = (0, 0..0);
    let mut append = |source: usize, run: Range<usize>| {
        if !run.is_empty() {
            origin.resize(origin.len() + run.len(), source);
            bars.extend_columns(&scaled[source], run);
        }
    };
    loop {
        let day_of = |source: usize| scaled[source].day.get(next[source]).copied();
        let Some(day) = (0..sources.len()).filter_map(day_of).min() else { break };
        let order = &orders[range_of(&starts, date_of(day))];
        let Some(chosen) = order.iter().copied().find(|source| day_of(*source) == Some(day)) else { break };
        let of_others = (0..sources.len()).filter(|source| *source != chosen).filter_map(day_of).min();
        let start = next[chosen];
        if run_source != chosen || run.end != start {
            append(run_source, std::mem::replace(&mut run, start..start));
            run_source = chosen;
        }
        // Up to the next bar of any other source, the chosen source is the only one.
        let rest = &scaled[chosen].day[start..];
        let alone = of_others.map_or(rest.len(), |other| position_on_or_after(rest, other));
        run.end += alone.max(1);
        next[chosen] = run.end;
        for source in 0..sources.len() {
            if scaled[source].day.get(next[source]) == Some(&day) {
                next[source] += 1;
            }
        }
    }
    append(run_source, run);
    bars.version = vec![0; bars.len()];
    (bars, origin)
}

fn order_of(sources: &[Source<'_>], policy: &SourcePolicy, day: NaiveDate) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by_key(|index| preference(policy, Kind::Price, sources[*index].candidate, day));
    order
}

/// Number of decimal places of the merged bars: the largest of any source, reduced if a price would not fit 64 bits.
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

/// Converts bars to `scale` decimal places. Excess digits are rounded half away from zero.
fn at_scale(bars: &Bars, scale: u32) -> Cow<'_, Bars> {
    if bars.scale == scale {
        return Cow::Borrowed(bars);
    }
    let mut bars = bars.clone();
    if bars.scale > scale {
        let excess = bars.scale - scale;
        for column in bars.prices_mut() {
            for value in column.iter_mut().filter(|value| **value != MISSING) {
                *value = rounded(*value, excess);
            }
        }
        bars.scale = scale;
        // Bars whose close was rounded to 0 are left out.
        bars = bars.filter(|index| bars.close[index] > 0);
    } else if bars.rescale(scale).is_err() {
        // This cannot happen: every price fits 64 bits at the common scale.
        bars = Bars::default();
    }
    Cow::Owned(bars)
}

/// Value divided by 10^`digits`, rounded half away from zero. With 19 or more digits, the result is 0.
fn rounded(value: i64, digits: u32) -> i64 {
    let Some(divisor) = 10i64.checked_pow(digits) else { return 0 };
    value / divisor + (value % divisor) / (divisor - divisor / 2)
}
