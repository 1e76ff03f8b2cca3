//! Price bars of one symbol in memory, with one column per field. Bars can be appended, and the number of decimal
//! places can be increased.
//!
//! Division of bars by calendar year. Bars are stored in units of one year.

use std::hash::{Hash, Hasher};
use std::ops::Range;

use chrono::Datelike;
use rust_decimal::Decimal;

use super::column::{BarColumn, MISSING};
use super::version::{BarVersion, BarsError};
use crate::day::{date_of, days_of_year};

/// One bar of a [`Bars`]. Prices are integers: price x 10^scale, with the scale of the [`Bars`]. An absent value is
/// [`MISSING`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// Date of the session, as a day number ([`crate::day`]).
    pub day: i32,
    /// Opening price x 10^scale.
    pub open: i64,
    /// Highest price x 10^scale.
    pub high: i64,
    /// Lowest price x 10^scale.
    pub low: i64,
    /// Closing price x 10^scale.
    pub close: i64,
    /// Shares traded.
    pub volume: i64,
    /// Volume-weighted average price x 10^scale.
    pub vwap: i64,
    /// Number of trades.
    pub trade_count: i64,
}

impl Bar {
    /// The bar with prices x 10^`places`.
    pub(super) fn scaled_up(mut self, places: u32) -> Result<Self, BarsError> {
        let Self { open, high, low, close, vwap, .. } = &mut self;
        for price in [open, high, low, close, vwap] {
            scale_up(std::slice::from_mut(price), places)?;
        }
        Ok(self)
    }
}

/// Price bars of one symbol as columns of equal length. Prices are integers: price x 10^`scale`. An absent value is
/// [`MISSING`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bars {
    /// Number of decimal places of all prices.
    pub scale: u32,
    /// Date of each session, as a day number ([`crate::day`]).
    pub day: Vec<i32>,
    /// Opening prices x 10^`scale`.
    pub open: BarColumn,
    /// Highest prices x 10^`scale`.
    pub high: BarColumn,
    /// Lowest prices x 10^`scale`.
    pub low: BarColumn,
    /// Closing prices x 10^`scale`.
    pub close: Vec<i64>,
    /// Shares traded in each session.
    pub volume: BarColumn,
    /// Volume-weighted average prices x 10^`scale`.
    pub vwap: BarColumn,
    /// Number of trades of each bar.
    pub trade_count: BarColumn,
    /// Version of each bar, as an index into `versions`.
    pub version: Vec<u16>,
    /// Distinct versions of the bars: revision, observation time and provenance.
    pub versions: Vec<BarVersion>,
}

impl Bars {
    /// Number of bars.
    pub fn len(&self) -> usize {
        self.day.len()
    }

    /// True if the number of bars is 0.
    pub fn is_empty(&self) -> bool {
        self.day.is_empty()
    }

    /// True if each column has one value per bar.
    pub fn has_equal_lengths(&self) -> bool {
        self.columns().iter().all(|column| column.len() == self.len())
            && [self.close.len(), self.version.len()] == [self.len(); 2]
    }

    /// The columns that may have absent values.
    pub(super) fn columns(&self) -> [&BarColumn; 6] {
        [&self.open, &self.high, &self.low, &self.volume, &self.vwap, &self.trade_count]
    }

    fn columns_mut(&mut self) -> [&mut BarColumn; 6] {
        let Self { open, high, low, volume, vwap, trade_count, .. } = self;
        [open, high, low, volume, vwap, trade_count]
    }

    /// Bar at the index `index`.
    pub fn bar(&self, index: usize) -> Bar {
        Bar {
            day: self.day[index],
            open: self.open[index],
            high: self.high[index],
            low: self.low[index],
            close: self.close[index],
            volume: self.volume[index],
            vwap: self.vwap[index],
            trade_count: self.trade_count[index],
        }
    }

    /// Version of the bar at `index`.
    pub fn version_of(&self, index: usize) -> &BarVersion {
        &self.versions[usize::from(self.version[index])]
    }

    /// Converts an integer price of these bars to a decimal; `None` for [`MISSING`].
    pub fn decimal(&self, value: i64) -> Option<Decimal> {
        (value != MISSING).then(|| Decimal::new(value, self.scale))
    }

    /// Appends a bar. Its prices must have the scale of these bars. `version` is the index of the bar's version in
    /// `versions`.
    pub fn push(&mut self, bar: Bar, version: u16) {
        self.day.push(bar.day);
        self.open.push(bar.open);
        self.high.push(bar.high);
        self.low.push(bar.low);
        self.close.push(bar.close);
        self.volume.push(bar.volume);
        self.vwap.push(bar.vwap);
        self.trade_count.push(bar.trade_count);
        self.version.push(version);
    }

    /// Converts all prices to `scale` decimal places. A scale below the current scale is ignored.
    pub fn rescale(&mut self, scale: u32) -> Result<(), BarsError> {
        if scale <= self.scale {
            return Ok(());
        }
        let places = scale - self.scale;
        self.prices_mut().into_iter().try_for_each(|column| scale_up(column, places))?;
        self.scale = scale;
        Ok(())
    }

    /// Copy of the bars in a range of indexes. The copy has the full list of versions, including unused ones.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let mut bars = Self { scale: self.scale, versions: self.versions.clone(), ..Self::default() };
        bars.extend(self, range);
        bars
    }

    /// Copy of the bars in a range of indexes, with [`BarVersion::UNKNOWN`] as their version.
    pub fn slice_values(&self, range: Range<usize>) -> Self {
        let (version, versions) = (vec![0; range.len()], vec![BarVersion::UNKNOWN]);
        let mut bars = Self { scale: self.scale, version, versions, ..Self::default() };
        bars.extend_columns(self, range);
        bars
    }

    /// Copy of the bars at all indexes for which `keep` is true. `keep` is called once per index, in order. The copy has
    /// the full list of versions, including unused ones.
    pub fn filter(&self, mut keep: impl FnMut(usize) -> bool) -> Self {
        let mut kept = Self { scale: self.scale, versions: self.versions.clone(), ..Self::default() };
        // Adjacent bars are copied together. `start` is the first bar that is not copied yet.
        let mut start = 0;
        for index in 0..self.len() {
            if !keep(index) {
                kept.extend(self, start..index);
                start = index + 1;
            }
        }
        kept.extend(self, start..self.len());
        kept
    }

    /// Copy of the bars on all days for which `keep` is true. The copy has the full list of versions, including unused
    /// ones.
    pub fn filter_days(&self, keep: impl Fn(i32) -> bool) -> Self {
        self.filter(|index| keep(self.day[index]))
    }

    /// Bars of this set that were replaced in a merge. `union` is the result of the merge. A bar was replaced if the
    /// bar of the same day in `union` has another version.
    pub(super) fn superseded_by(&self, union: &Self) -> Self {
        self.filter_days(|day| {
            let place = |bars: &Self| bars.day.binary_search(&day).ok();
            match (place(self), place(union)) {
                (Some(own), Some(other)) => self.version_of(own) != union.version_of(other),
                _ => false,
            }
        })
    }

    /// Appends the bars in a range of indexes of another set. Both sets must have the same scale and the same list of
    /// versions.
    pub(super) fn extend(&mut self, other: &Self, range: Range<usize>) {
        self.version.extend_from_slice(&other.version[range.clone()]);
        self.extend_columns(other, range);
    }

    /// Appends the bars in a range of indexes of another set, without their versions. Both sets must have the same
    /// scale. The caller must append the versions.
    pub(crate) fn extend_columns(&mut self, other: &Self, range: Range<usize>) {
        for (column, more) in self.columns_mut().into_iter().zip(other.columns()) {
            column.extend(more, range.clone());
        }
        self.close.extend_from_slice(&other.close[range.clone()]);
        self.day.extend_from_slice(&other.day[range]);
    }

    /// Reserves capacity for more bars.
    pub fn reserve(&mut self, bars: usize) {
        self.day.reserve(bars);
        self.version.reserve(bars);
        self.close.reserve(bars);
        for column in [&mut self.open, &mut self.high, &mut self.low, &mut self.volume] {
            column.reserve(bars);
        }
    }

    /// The five price columns: open, high, low, close and VWAP. Each slice begins at the first present value of its
    /// column.
    pub(crate) fn prices(&self) -> [&[i64]; 5] {
        [
            self.open.values_from_first_present(),
            self.high.values_from_first_present(),
            self.low.values_from_first_present(),
            &self.close,
            self.vwap.values_from_first_present(),
        ]
    }

    /// The five price columns as mutable slices: open, high, low, close and VWAP. Each slice begins at the first
    /// present value of its column.
    pub(crate) fn prices_mut(&mut self) -> [&mut [i64]; 5] {
        [
            self.open.values_from_first_present_mut(),
            self.high.values_from_first_present_mut(),
            self.low.values_from_first_present_mut(),
            &mut self.close,
            self.vwap.values_from_first_present_mut(),
        ]
    }

    /// Day number of the newest bar that the vendor did not retract; `None` without such a bar. The bars must be sorted
    /// by day.
    pub fn last_live_day(&self) -> Option<i32> {
        let mut newest_first = (0..self.len()).rev();
        newest_first.find(|index| !self.version_of(*index).retracted).map(|index| self.day[index])
    }

    /// Groups the bars by calendar year. The years are in order of first appearance.
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

    /// Hashes the values of the bars in a range of indexes. Versions are not hashed.
    pub fn hash_range(&self, range: Range<usize>, state: &mut impl Hasher) {
        (self.scale, &self.day[range.clone()], &self.close[range.clone()]).hash(state);
        for column in self.columns() {
            column.present_values_in(range.clone()).hash(state);
        }
    }

    /// Divides the bars into ranges of consecutive bars with the same calendar year. If the bars are sorted, each year
    /// has one range.
    pub fn years(&self) -> Vec<(i32, Range<usize>)> {
        let (mut years, mut start, is_sorted) = (Vec::new(), 0, self.day.is_sorted());
        while let Some(day) = self.day.get(start) {
            let date = date_of(*day);
            let days = days_of_year(date);
            let rest = &self.day[start..];
            let same = match is_sorted {
                true => rest.partition_point(|day| days.contains(day)),
                false => rest.iter().take_while(|day| days.contains(day)).count(),
            };
            // A day number outside the calendar has no year. Each such day is a separate range.
            let end = start + same.max(1);
            years.push((date.year(), start..end));
            start = end;
        }
        years
    }
}

/// Multiplies the prices of a column by 10^`places`.
fn scale_up(column: &mut [i64], places: u32) -> Result<(), BarsError> {
    if places == 0 {
        return Ok(());
    }
    let factor = 10i64.checked_pow(places).ok_or(BarsError::ScaleOverflow)?;
    for value in column.iter_mut().filter(|value| **value != MISSING) {
        *value = value.checked_mul(factor).ok_or(BarsError::ScaleOverflow)?;
    }
    Ok(())
}
