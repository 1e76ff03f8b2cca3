//! Price bars as columns: the one shape they have in frames, in Postgres and in memory.
//!
//! A column is scaled integers, delta-coded and written as varints (postcard), about 11 bytes a bar. Values are
//! exact: `value / 10^scale`. Every bar names its version, so that merging two sets of bars is a pure choice
//! bar by bar, in any order (the greater version wins).

use std::ops::{Range, RangeInclusive};

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

mod packed;
mod version;

pub use packed::{Packed, digest, unpack_days};
pub use version::{BarVersion, Dictionary};

/// Marks an absent value in a column.
pub const MISSING: i64 = i64::MIN;

/// Days from 0001-01-01, the integer form of a session date.
pub fn day_number(date: NaiveDate) -> i32 {
    date.num_days_from_ce()
}

/// The date of a day number; days outside the calendar collapse to its ends.
pub fn date_of(day: i32) -> NaiveDate {
    NaiveDate::from_num_days_from_ce_opt(day).unwrap_or(if day < 0 { NaiveDate::MIN } else { NaiveDate::MAX })
}

/// The day numbers of a year.
fn days_of(year: i32) -> RangeInclusive<i32> {
    let day = |month, day| NaiveDate::from_ymd_opt(year, month, day).map(day_number);
    day(1, 1).unwrap_or(i32::MIN)..=day(12, 31).unwrap_or(i32::MAX)
}

/// One bar of a [`Bars`], values scaled by its `scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    pub day: i32,
    pub open: i64,
    pub high: i64,
    pub low: i64,
    pub close: i64,
    pub volume: i64,
    pub vwap: i64,
    pub trade_count: i64,
}

/// Bars of one symbol as columns of equal length; prices are `value / 10^scale`, [`MISSING`] where absent.
///
/// `vwap` and `trade_count` are empty when no bar has them. `version` indexes `versions`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bars {
    pub scale: u32,
    pub day: Vec<i32>,
    pub open: Vec<i64>,
    pub high: Vec<i64>,
    pub low: Vec<i64>,
    pub close: Vec<i64>,
    pub volume: Vec<i64>,
    pub vwap: Vec<i64>,
    pub trade_count: Vec<i64>,
    pub version: Vec<u16>,
    pub versions: Vec<BarVersion>,
}

/// Why columns could not be read or joined.
#[derive(Debug, thiserror::Error)]
pub enum BarsError {
    #[error("columns are damaged: {0}")]
    Damaged(&'static str),
    #[error("columns are damaged: {0}")]
    Codec(#[from] postcard::Error),
    #[error("a price does not fit the scale of its neighbours")]
    ScaleOverflow,
}

impl Bars {
    /// Number of bars.
    pub fn len(&self) -> usize {
        self.day.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.day.is_empty()
    }

    /// The bar at `index`.
    pub fn bar(&self, index: usize) -> Bar {
        let optional = |column: &[i64]| column.get(index).copied().unwrap_or(MISSING);
        Bar {
            day: self.day[index],
            open: self.open[index],
            high: self.high[index],
            low: self.low[index],
            close: self.close[index],
            volume: self.volume[index],
            vwap: optional(&self.vwap),
            trade_count: optional(&self.trade_count),
        }
    }

    /// The version of the bar at `index`.
    pub fn version_of(&self, index: usize) -> &BarVersion {
        &self.versions[usize::from(self.version[index])]
    }

    /// A scaled value as a decimal; `None` where absent.
    pub fn decimal(&self, value: i64) -> Option<Decimal> {
        (value != MISSING).then(|| Decimal::new(value, self.scale))
    }

    /// Appends a bar whose values are on this scale.
    pub fn push(&mut self, bar: Bar, version: u16) {
        let before = self.day.len();
        self.day.push(bar.day);
        self.open.push(bar.open);
        self.high.push(bar.high);
        self.low.push(bar.low);
        self.close.push(bar.close);
        self.volume.push(bar.volume);
        push_optional(&mut self.vwap, before, bar.vwap);
        push_optional(&mut self.trade_count, before, bar.trade_count);
        self.version.push(version);
    }

    /// Brings every price to a larger scale.
    pub fn rescale(&mut self, scale: u32) -> Result<(), BarsError> {
        if scale <= self.scale {
            return Ok(());
        }
        let factor = 10i64.checked_pow(scale - self.scale).ok_or(BarsError::ScaleOverflow)?;
        for column in [&mut self.open, &mut self.high, &mut self.low, &mut self.close, &mut self.vwap] {
            for value in column.iter_mut().filter(|value| **value != MISSING) {
                *value = value.checked_mul(factor).ok_or(BarsError::ScaleOverflow)?;
            }
        }
        self.scale = scale;
        Ok(())
    }

    /// Merges two sets of observations: per day the greater version wins; the result is sorted by day.
    ///
    /// Commutative, associative and idempotent, so any order and cut of the same events gives the same bars.
    pub fn merge(self, other: Self) -> Result<Self, BarsError> {
        Self::merge_all(vec![self, other])
    }

    /// Merges any number of sets at once.
    pub fn merge_all(mut parts: Vec<Self>) -> Result<Self, BarsError> {
        let scale = parts.iter().map(|part| part.scale).max().unwrap_or_default();
        parts.iter_mut().try_for_each(|part| part.rescale(scale))?;
        let mut picks: Vec<(i32, usize, usize)> = Vec::with_capacity(parts.iter().map(Self::len).sum());
        for (number, part) in parts.iter().enumerate() {
            picks.extend(part.day.iter().enumerate().map(|(index, day)| (*day, number, index)));
        }
        picks.sort_by_key(|(day, _, _)| *day);
        let mut merged = Self { scale, ..Self::default() };
        let mut dictionary = Dictionary::default();
        for same_day in picks.chunk_by(|a, b| a.0 == b.0) {
            // Of equal versions (one frame naming a day twice) the later position wins: max_by takes the last.
            let version = |pick: &(i32, usize, usize)| parts[pick.1].version_of(pick.2);
            if let Some(best) = same_day.iter().max_by_key(|pick| version(pick).rank()) {
                let index = dictionary.index(&mut merged.versions, version(best))?;
                merged.push(parts[best.1].bar(best.2), index);
            }
        }
        merged.canonicalize();
        Ok(merged)
    }

    /// The bars of each calendar year, in order of first appearance.
    pub fn by_year(&self) -> Vec<(i32, Self)> {
        let mut years: Vec<(i32, Self)> = Vec::new();
        for (year, range) in self.years() {
            match years.iter().position(|(known, _)| *known == year) {
                Some(position) => years[position].1.extend(self, range),
                None => years.push((year, self.slice(range))),
            }
        }
        years
    }

    /// Runs of bars of one calendar year: one of each year where bars are sorted.
    pub fn years(&self) -> Vec<(i32, Range<usize>)> {
        let (mut years, mut start) = (Vec::new(), 0);
        while let Some(day) = self.day.get(start) {
            let year = date_of(*day).year();
            let days = days_of(year);
            let same = self.day[start..].iter().take_while(|day| days.contains(day)).count();
            // A day beyond the calendar is of no year's days, but moves on all the same.
            let end = start + same.max(1);
            years.push((year, start..end));
            start = end;
        }
        years
    }

    /// The bars at some indexes, with every version.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let mut bars = Self { scale: self.scale, versions: self.versions.clone(), ..Self::default() };
        bars.extend(self, range);
        bars
    }

    /// Appends bars of another on the same scale and with the same versions.
    fn extend(&mut self, other: &Self, range: Range<usize>) {
        self.version.extend_from_slice(&other.version[range.clone()]);
        self.extend_columns(other, range);
    }

    /// Appends everything but the versions of bars of another on the same scale.
    fn extend_columns(&mut self, other: &Self, range: Range<usize>) {
        let before = self.len();
        for (column, more) in [(&mut self.vwap, &other.vwap), (&mut self.trade_count, &other.trade_count)] {
            append_optional(column, before, more.get(range.clone()).unwrap_or_default(), range.len());
        }
        for (column, more) in [
            (&mut self.open, &other.open),
            (&mut self.high, &other.high),
            (&mut self.low, &other.low),
            (&mut self.close, &other.close),
            (&mut self.volume, &other.volume),
        ] {
            column.extend_from_slice(&more[range.clone()]);
        }
        self.day.extend_from_slice(&other.day[range]);
    }

    /// The newest day with a bar that was not retracted.
    pub fn last_live_day(&self) -> Option<i32> {
        (0..self.len()).filter(|index| !self.version_of(*index).retracted).map(|index| self.day[index]).max()
    }

    /// Appends later bars: the other's days all follow this one's, else the two are merged.
    pub fn append(mut self, mut other: Self) -> Result<Self, BarsError> {
        if self.is_empty() || other.is_empty() {
            return Ok(if self.is_empty() { other } else { self });
        }
        if self.day.last() >= other.day.first() {
            return self.merge(other);
        }
        let scale = self.scale.max(other.scale);
        self.rescale(scale)?;
        other.rescale(scale)?;
        let mut dictionary = Dictionary::default();
        for index in &other.version {
            let version = dictionary.index(&mut self.versions, &other.versions[usize::from(*index)])?;
            self.version.push(version);
        }
        self.extend_columns(&other, 0..other.len());
        Ok(self)
    }

    /// Smallest scale and version dictionary in order of first use: equal bars have equal bytes.
    pub fn canonicalize(&mut self) {
        let prices = || [&self.open, &self.high, &self.low, &self.close, &self.vwap].into_iter().flatten();
        let mut divisor = 1i64;
        let mut scale = self.scale;
        while scale > 0 && prices().all(|value| *value == MISSING || value % (divisor * 10) == 0) {
            divisor *= 10;
            scale -= 1;
        }
        if divisor > 1 {
            for column in [&mut self.open, &mut self.high, &mut self.low, &mut self.close, &mut self.vwap] {
                column.iter_mut().filter(|value| **value != MISSING).for_each(|value| *value /= divisor);
            }
            self.scale = scale;
        }
        for column in [&mut self.vwap, &mut self.trade_count] {
            if column.iter().all(|value| *value == MISSING) {
                column.clear();
            }
        }
    }
}

fn push_optional(column: &mut Vec<i64>, before: usize, value: i64) {
    if column.is_empty() && value != MISSING {
        column.resize(before, MISSING);
    }
    if !column.is_empty() || value != MISSING {
        column.push(value);
    }
}

fn append_optional(column: &mut Vec<i64>, before: usize, more: &[i64], added: usize) {
    if column.is_empty() && more.is_empty() {
        return;
    }
    column.resize(before, MISSING);
    column.extend_from_slice(more);
    column.resize(before + added, MISSING);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bars() -> impl Strategy<Value = Bars> {
        let price = prop_oneof![4 => 1i64..1_000_000_000, 1 => Just(MISSING)];
        let bar = (
            1i32..40,
            price.clone(),
            price.clone(),
            price.clone(),
            1i64..1_000_000_000,
            price.clone(),
            price,
            0i64..3,
            0u64..3,
        );
        (0u32..6, prop::collection::vec(bar, 0..30)).prop_map(|(scale, rows)| {
            let mut bars = Bars { scale, ..Bars::default() };
            let mut dictionary = Dictionary::default();
            for (day, open, high, low, close, volume, vwap, revision, line) in rows {
                let version = BarVersion { revision, line, ..BarVersion::UNKNOWN };
                let version = dictionary.index(&mut bars.versions, &version).unwrap();
                bars.push(
                    Bar { day: 730_000 + day, open, high, low, close, volume, vwap, trade_count: MISSING },
                    version,
                );
            }
            bars
        })
    }

    fn sorted(bars: Bars) -> Bars {
        bars.merge(Bars::default()).unwrap()
    }

    proptest! {
        #[test]
        fn packing_loses_nothing(bars in bars()) {
            prop_assert_eq!(bars.pack().unwrap().unpack().unwrap(), bars);
        }

        #[test]
        fn closes_are_read_alone(bars in bars()) {
            let (packed, absent) = (bars.pack().unwrap(), vec![MISSING; bars.len()]);
            let closes = packed.unpack_closes().unwrap();
            prop_assert_eq!((&closes.day, &closes.close, &closes.version), (&bars.day, &bars.close, &bars.version));
            prop_assert_eq!((closes.scale, &closes.versions), (bars.scale, &bars.versions));
            prop_assert!([&closes.open, &closes.high, &closes.low, &closes.volume].iter().all(|c| **c == absent));
        }

        #[test]
        fn years_part_bars_and_lose_none(bars in bars(), stretch in 1i32..400) {
            let mut bars = bars;
            bars.day.iter_mut().for_each(|day| *day = 730_000 + (*day - 730_000) * stretch);
            let years = bars.by_year();
            for (number, (year, part)) in years.iter().enumerate() {
                prop_assert!(part.day.iter().all(|day| date_of(*day).year() == *year));
                prop_assert!(years[..number].iter().all(|(other, _)| other != year));
                let own: Vec<usize> = (0..bars.len()).filter(|i| date_of(bars.day[*i]).year() == *year).collect();
                let all = |bars: &Bars, indexes: &[usize]| -> Vec<(Bar, BarVersion)> {
                    indexes.iter().map(|i| (bars.bar(*i), bars.version_of(*i).clone())).collect()
                };
                prop_assert_eq!(all(part, &(0..part.len()).collect::<Vec<_>>()), all(&bars, &own));
            }
            prop_assert_eq!(years.iter().map(|(_, part)| part.len()).sum::<usize>(), bars.len());
        }

        #[test]
        fn later_bars_are_appended_as_they_would_be_merged(bars in bars(), part in 0usize..30) {
            let whole = sorted(bars);
            let (first, last) = (whole.slice(0..part.min(whole.len())), whole.slice(part.min(whole.len())..whole.len()));
            let mut appended = first.clone().append(last.clone()).unwrap();
            appended.canonicalize();
            let merged = first.merge(last).unwrap();
            let told = |bars: &Bars| -> Vec<(Bar, BarVersion)> {
                (0..bars.len()).map(|index| (bars.bar(index), bars.version_of(index).clone())).collect()
            };
            prop_assert_eq!((appended.scale, told(&appended)), (merged.scale, told(&merged)));
        }

        #[test]
        fn merging_is_idempotent(bars in bars()) {
            let once = sorted(bars);
            prop_assert_eq!(once.clone().merge(once.clone()).unwrap(), once);
        }

        #[test]
        fn merging_is_associative(a in bars(), b in bars(), c in bars()) {
            let left = a.clone().merge(b.clone()).unwrap().merge(c.clone()).unwrap();
            let right = a.merge(b.merge(c).unwrap()).unwrap();
            prop_assert_eq!(left, right);
        }

        #[test]
        fn the_greater_version_wins_in_any_order(a in bars(), b in bars()) {
            let (a, mut b) = (sorted(a), sorted(b));
            b.versions.iter_mut().for_each(|version| version.revision += 10);
            let (forth, back) = (a.clone().merge(b.clone()).unwrap(), b.clone().merge(a).unwrap());
            prop_assert_eq!(&forth, &back);
            for (index, day) in forth.day.iter().enumerate() {
                prop_assert!(!b.day.contains(day) || forth.version_of(index).revision >= 10);
            }
        }

        #[test]
        fn damaged_bytes_are_an_error_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let packed = Packed { days: bytes.clone(), close: bytes.clone(), range: bytes.clone(), volume: bytes.clone(), extra: bytes.clone(), versions: bytes };
            let _ = packed.unpack();
        }
    }
}
