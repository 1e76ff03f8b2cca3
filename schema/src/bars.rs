//! Price bars as columns: the one shape they have in frames, in Postgres and in memory.
//!
//! A column is scaled integers, delta-coded and written as varints (postcard), about 11 bytes a bar. Values are
//! exact: `value / 10^scale`. Every bar names its version, so that merging two sets of bars is a pure choice
//! bar by bar, in any order (the greater version wins).

use std::cmp::Ordering;

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::event::Action;

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

/// What a bar's values are worth against another observation of the same session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BarVersion {
    pub revision: i64,
    /// Microseconds since 1970, UTC.
    pub observed_at: i64,
    pub retracted: bool,
    /// For split-adjusted prices: the day whose share basis they are on (0: the newest day of the data).
    pub basis_day: Option<i32>,
    /// First line of the frame, so that later rows of one file win.
    pub line: u64,
    /// Id of the frame the bar came in.
    pub frame: [u8; 16],
}

impl BarVersion {
    /// The version of bars whose provenance was left behind (read tables).
    pub const UNKNOWN: Self =
        Self { revision: 0, observed_at: 0, retracted: false, basis_day: None, line: 0, frame: [0; 16] };

    /// The order of R29: revision, then observation time, then retraction, then place in the file.
    pub fn rank(&self, other: &Self) -> Ordering {
        (self.revision, self.observed_at, self.retracted, self.line, self.frame).cmp(&(
            other.revision,
            other.observed_at,
            other.retracted,
            other.line,
            other.frame,
        ))
    }

    /// When the bar was observed.
    pub fn observed(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.observed_at).unwrap_or_default()
    }
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
            if let Some(best) = same_day.iter().max_by(|a, b| version(a).rank(version(b))) {
                let index = dictionary.index(&mut merged.versions, version(best))?;
                merged.push(parts[best.1].bar(best.2), index);
            }
        }
        merged.canonicalize();
        Ok(merged)
    }

    /// The bars of each calendar year, in order of first appearance.
    pub fn by_year(&self) -> Vec<(i32, Self)> {
        let year = |index: usize| date_of(self.day[index]).year();
        let mut years: Vec<(i32, Self)> = Vec::new();
        for index in 0..self.len() {
            let wanted = year(index);
            let position = match years.iter().rposition(|(known, _)| *known == wanted) {
                Some(position) => position,
                None => {
                    years.push((
                        wanted,
                        Self { scale: self.scale, versions: self.versions.clone(), ..Self::default() },
                    ));
                    years.len() - 1
                }
            };
            years[position].1.push(self.bar(index), self.version[index]);
        }
        years
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
        let (before, added) = (self.len(), other.len());
        let mut dictionary = Dictionary::default();
        for index in &other.version {
            let version = dictionary.index(&mut self.versions, &other.versions[usize::from(*index)])?;
            self.version.push(version);
        }
        append_optional(&mut self.vwap, before, &other.vwap, added);
        append_optional(&mut self.trade_count, before, &other.trade_count, added);
        self.day.append(&mut other.day);
        for (column, more) in [
            (&mut self.open, &mut other.open),
            (&mut self.high, &mut other.high),
            (&mut self.low, &mut other.low),
            (&mut self.close, &mut other.close),
            (&mut self.volume, &mut other.volume),
        ] {
            column.append(more);
        }
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

/// Finds a version's index, adding it when it is new.
#[derive(Default)]
pub struct Dictionary {
    last: u16,
}

impl Dictionary {
    /// The index of `version` in `versions`.
    pub fn index(&mut self, versions: &mut Vec<BarVersion>, version: &BarVersion) -> Result<u16, BarsError> {
        if versions.get(usize::from(self.last)) != Some(version) {
            let found = versions.iter().position(|known| known == version);
            let index = found.unwrap_or_else(|| {
                versions.push(version.clone());
                versions.len() - 1
            });
            self.last = u16::try_from(index).map_err(|_| BarsError::Damaged("more than 65,536 versions"))?;
        }
        Ok(self.last)
    }
}

/// The bytes of a [`Bars`], one blob per column, so that readers fetch only the columns they need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed {
    /// Scale and days.
    pub days: Vec<u8>,
    pub close: Vec<u8>,
    /// Open, high and low as differences to the close.
    pub range: Vec<u8>,
    pub volume: Vec<u8>,
    /// vwap and trade count; empty when no bar has them.
    pub extra: Vec<u8>,
    /// Version dictionary and runs of indexes; empty in read tables, where the choice has been made.
    pub versions: Vec<u8>,
}

impl Bars {
    /// Packs the columns.
    pub fn pack(&self) -> Result<Packed, BarsError> {
        let days: Vec<i32> = deltas(&self.day);
        let extra = if self.vwap.is_empty() && self.trade_count.is_empty() {
            Vec::new()
        } else {
            postcard::to_stdvec(&(against(&self.vwap, &self.close), optional(&self.trade_count)))?
        };
        let runs: Vec<(u16, u32)> = self
            .version
            .chunk_by(|a, b| a == b)
            .map(|run| (run[0], u32::try_from(run.len()).unwrap_or(u32::MAX)))
            .collect();
        Ok(Packed {
            days: postcard::to_stdvec(&(self.scale, days))?,
            close: postcard::to_stdvec(&close_deltas(&self.close))?,
            range: postcard::to_stdvec(
                &[&self.open, &self.high, &self.low].map(|column| against(column, &self.close)),
            )?,
            volume: postcard::to_stdvec(&optional(&self.volume))?,
            extra,
            versions: postcard::to_stdvec(&(&self.versions, runs))?,
        })
    }
}

impl Packed {
    /// Unpacks every column.
    pub fn unpack(&self) -> Result<Bars, BarsError> {
        let (scale, days): (u32, Vec<i32>) = postcard::from_bytes(&self.days)?;
        let day = sums(&days);
        let close = close_sums(&postcard::from_bytes::<Vec<i64>>(&self.close)?);
        let [open, high, low]: [Vec<u64>; 3] = postcard::from_bytes(&self.range)?;
        let (vwap, trade_count): (Vec<u64>, Vec<u64>) =
            if self.extra.is_empty() { Default::default() } else { postcard::from_bytes(&self.extra)? };
        let (versions, runs): (Vec<BarVersion>, Vec<(u16, u32)>) = match self.versions.as_slice() {
            [] => (vec![BarVersion::UNKNOWN], vec![(0, u32::try_from(day.len()).unwrap_or(u32::MAX))]),
            bytes => postcard::from_bytes(bytes)?,
        };
        let bars = Bars {
            scale,
            open: restore(&open, &close),
            high: restore(&high, &close),
            low: restore(&low, &close),
            volume: required(&postcard::from_bytes::<Vec<u64>>(&self.volume)?),
            vwap: restore(&vwap, &close),
            trade_count: required(&trade_count),
            version: runs
                .iter()
                .flat_map(|(index, length)| std::iter::repeat_n(*index, (*length as usize).min(day.len())))
                .collect(),
            day,
            close,
            versions,
        };
        bars.check()
    }
}

impl Bars {
    fn check(self) -> Result<Self, BarsError> {
        let full = [&self.open, &self.high, &self.low, &self.close, &self.volume];
        let optional = [&self.vwap, &self.trade_count];
        let lengths = full.iter().all(|c| c.len() == self.len())
            && optional.iter().all(|c| c.is_empty() || c.len() == self.len())
            && self.version.len() == self.len();
        let known = self.version.iter().all(|index| usize::from(*index) < self.versions.len());
        match (lengths, known, self.scale <= 18) {
            (true, true, true) => Ok(self),
            (false, _, _) => Err(BarsError::Damaged("columns differ in length")),
            (_, false, _) => Err(BarsError::Damaged("a bar names an unknown version")),
            (_, _, false) => Err(BarsError::Damaged("scale is beyond 18")),
        }
    }
}

fn deltas(values: &[i32]) -> Vec<i32> {
    let mut previous = 0;
    values.iter().map(|value| value.wrapping_sub(std::mem::replace(&mut previous, *value))).collect()
}

fn sums(deltas: &[i32]) -> Vec<i32> {
    deltas
        .iter()
        .scan(0i32, |sum, delta| {
            *sum = sum.wrapping_add(*delta);
            Some(*sum)
        })
        .collect()
}

/// A retracted bar has no close; its delta repeats the previous one and the version says it is void.
fn close_deltas(values: &[i64]) -> Vec<i64> {
    let mut previous = 0i64;
    values.iter().map(|value| value.wrapping_sub(std::mem::replace(&mut previous, *value))).collect()
}

fn close_sums(deltas: &[i64]) -> Vec<i64> {
    deltas
        .iter()
        .scan(0i64, |sum, delta| {
            *sum = sum.wrapping_add(*delta);
            Some(*sum)
        })
        .collect()
}

/// Differences to `base` with 0 for absent: zigzag plus one.
fn against(column: &[i64], base: &[i64]) -> Vec<u64> {
    column
        .iter()
        .zip(base)
        .map(
            |(value, base)| {
                if *value == MISSING { 0 } else { zigzag(value.wrapping_sub(*base)).wrapping_add(1) }
            },
        )
        .collect()
}

fn restore(coded: &[u64], base: &[i64]) -> Vec<i64> {
    coded
        .iter()
        .zip(base)
        .map(|(code, base)| if *code == 0 { MISSING } else { unzigzag(code - 1).wrapping_add(*base) })
        .collect()
}

fn optional(column: &[i64]) -> Vec<u64> {
    column.iter().map(|value| if *value == MISSING { 0 } else { zigzag(*value).wrapping_add(1) }).collect()
}

fn required(coded: &[u64]) -> Vec<i64> {
    coded.iter().map(|code| if *code == 0 { MISSING } else { unzigzag(code - 1) }).collect()
}

#[expect(clippy::cast_sign_loss, reason = "zigzag is the bit pattern, not the number")]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[expect(clippy::cast_possible_wrap, reason = "zigzag is the bit pattern, not the number")]
fn unzigzag(code: u64) -> i64 {
    ((code >> 1) as i64) ^ -((code & 1) as i64)
}

/// Version of bars put by `observed_at`, for feeds without revisions.
impl BarVersion {
    /// A version from the parts of a feed row.
    pub fn new(revision: i64, action: Action, observed_at: DateTime<Utc>, basis_day: Option<i32>) -> Self {
        let retracted = action == Action::Retract;
        Self {
            revision,
            observed_at: observed_at.timestamp_micros(),
            retracted,
            basis_day,
            line: 0,
            frame: [0; 16],
        }
    }
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
