//! Merge of the bars of all sources day by day. All merged bars have the same number of decimal places.
//!
//! The bar of a day is that of the smallest rank in the source policy. Of the bars of one rank, and of sources without a
//! rank, it is the newest: the one that its source observed last (R32).

use std::borrow::Cow;
use std::cmp::Reverse;

use crate::bars::{BarVersion, Bars, MISSING};
use crate::day::day_number;
use crate::event::{Kind, MINOR_UNIT_PLACES};
use crate::history::{History, SourcePolicy};
use crate::metrics::currency::is_minor;
use crate::metrics::source_preference::{MANUAL, Standing, range_starts};

/// Source with its usable bars, converted to raw (unadjusted) prices.
pub(super) struct Source<'a> {
    pub source: &'a str,
    pub bars: Bars,
}

/// Number of decimal places to add to the prices of a source in a minor unit such as pence (R4). 0 for other prices.
pub(super) fn minor_places(history: &History, source: &str) -> u32 {
    if is_minor(history, source) { MINOR_UNIT_PLACES } else { 0 }
}

/// Bar of a source.
#[derive(Clone, Copy)]
struct Pick {
    day: i32,
    /// Number of sources that are preferred to the source on this day. It is equal for sources of one standing.
    preferred: usize,
    observed_at: i64,
    source: usize,
    /// Index of the bar in its source.
    index: usize,
}

/// Merges the bars of all sources day by day. Returns the merged bars, and for each bar the index of its source.
pub(super) fn pick_by_day(sources: &[Source<'_>], policy: &SourcePolicy) -> (Bars, Vec<usize>) {
    let scale = common_scale(sources);
    let scaled: Vec<Cow<'_, Bars>> = sources.iter().map(|source| at_scale(&source.bars, scale)).collect();
    let picks = preferred_bars(sources, &scaled, policy);
    let mut bars = Bars { scale, versions: vec![BarVersion::UNKNOWN], ..Bars::default() };
    bars.reserve(picks.len());
    // Adjacent bars of one source are copied together.
    for run in picks.chunk_by(|pick, next| pick.source == next.source && pick.index + 1 == next.index) {
        bars.extend_columns(&scaled[run[0].source], run[0].index..run[0].index + run.len());
    }
    bars.version = vec![0; bars.len()];
    (bars, picks.iter().map(|pick| pick.source).collect())
}

/// Most preferred bar of each day.
fn preferred_bars(sources: &[Source<'_>], scaled: &[Cow<'_, Bars>], policy: &SourcePolicy) -> Vec<Pick> {
    let starts = range_starts(policy, Kind::Price);
    let mut by_name: Vec<usize> = (0..sources.len()).collect();
    by_name.sort_by_key(|index| sources[*index].source);
    let mut picks: Vec<Pick> = Vec::with_capacity(scaled.iter().map(|bars| bars.len()).sum());
    for (place, start) in starts.iter().enumerate() {
        let end = starts.get(place + 1).map_or(i32::MAX, |end| day_number(*end));
        let standing = |index: usize| {
            let source = sources[index].source;
            (source != MANUAL, Standing::new(policy, Kind::Price, source, *start))
        };
        for source in by_name.iter().copied() {
            let is_preferred = |other: &usize| standing(*other) < standing(source);
            let preferred = (0..sources.len()).filter(is_preferred).count();
            let bars = &scaled[source];
            let first = bars.day.partition_point(|day| *day < day_number(*start));
            let of_range = bars.day.iter().enumerate().skip(first).take_while(|(_, day)| **day < end);
            picks.extend(of_range.map(|(index, day)| {
                let observed_at = bars.version_of(index).observed_at;
                Pick { day: *day, preferred, observed_at, source, index }
            }));
        }
    }
    // A stable sort keeps equally old bars of a day in the order of the sources' names.
    picks.sort_by_key(|pick| (pick.day, pick.preferred, Reverse(pick.observed_at)));
    picks.dedup_by_key(|pick| pick.day);
    picks
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
