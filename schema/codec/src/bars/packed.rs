//! Encoded bars: one byte string per column. Days and prices are stored as differences from predicted values. Most
//! columns are encoded in [blocks](super::blocks).

use std::array::from_fn;

use market::bars::{BarColumn, BarVersion, Bars, BarsError, MISSING};
use serde::{Deserialize, Serialize};

use super::blocks;
use super::sessions::{pack_days, scale_and_days};
use crate::{PackedBarsError, digest};

/// Encoded [`Bars`], with one byte string per column. A reader can fetch only the columns that it needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedBars {
    /// Format version, number of decimal places of the prices (scale), and days.
    pub days: Vec<u8>,
    /// Closes, as differences from the previous close.
    pub close: Vec<u8>,
    /// Three columns of differences: `open - previous close`, `high - max(open, close)` and `min(open, close) - low`.
    pub range: Vec<u8>,
    /// Shares traded.
    pub volume: Vec<u8>,
    /// Volume-weighted average prices (as differences from the close) and trade counts. Empty if no bar has either of
    /// them.
    pub extra: Vec<u8>,
    /// Versions of the bars: revision, observation time and provenance. Each distinct version is stored once. For each
    /// bar, the index of its version is stored, run-length encoded. Empty in read tables, which need no versions.
    pub versions: Vec<u8>,
}

impl PackedBars {
    /// Encodes all columns of bars.
    pub fn pack(bars: &Bars) -> Result<Self, PackedBarsError> {
        let (mut volume, mut range) = (Vec::new(), Vec::new());
        let start = first_close(&bars.close);
        let differences = Differences::of(bars, start)?;
        [&differences.open, &differences.high, &differences.low]
            .iter()
            .for_each(|column| blocks::write(column, &mut range));
        blocks::write(&bars.volume.iter().copied().collect::<Vec<i64>>(), &mut volume);
        Ok(Self {
            days: pack_days(bars.scale, &bars.day)?,
            close: pack_differences(start, &differences.close)?,
            range,
            volume,
            extra: pack_extra(&differences.vwap, &stored_values(&bars.trade_count)),
            versions: pack_versions(&bars.version, &bars.versions)?,
        })
    }
}

fn pack_extra(vwap: &[i64], trade_count: &[i64]) -> Vec<u8> {
    let columns = [vwap, trade_count];
    let mut bytes = Vec::new();
    if columns.iter().any(|column| !column.is_empty()) {
        bytes.extend(columns.map(|column| u8::from(!column.is_empty())));
        columns.iter().for_each(|column| blocks::write(column, &mut bytes));
    }
    bytes
}

/// Values to store for a column. If all values are absent, nothing is stored. Otherwise, all values are stored, absent
/// values included.
fn stored_values(column: &BarColumn) -> Vec<i64> {
    let is_stored = !column.values_from_first_present().is_empty();
    if is_stored { column.iter().copied().collect() } else { Vec::new() }
}

/// Encodes only days, closes and versions. [`PackedBars::pack`] encodes these columns in the same way.
pub fn pack_closes(bars: &Bars) -> Result<[Vec<u8>; 3], PackedBarsError> {
    let start = first_close(&bars.close);
    let mut before = start;
    let differences = bars.close.iter().map(|close| {
        let by = difference(*close, before);
        before = price_or(*close, before);
        by
    });
    let differences = differences.collect::<Result<Vec<i64>, PackedBarsError>>()?;
    Ok([
        pack_days(bars.scale, &bars.day)?,
        pack_differences(start, &differences)?,
        pack_versions(&bars.version, &bars.versions)?,
    ])
}

/// First close that is not absent; 0 if all closes are absent. This value is the prediction for the close and the open
/// of the first bar.
fn first_close(closes: &[i64]) -> i64 {
    closes.iter().copied().find(|close| *close != MISSING).unwrap_or(0)
}

fn pack_differences(start: i64, differences: &[i64]) -> Result<Vec<u8>, PackedBarsError> {
    let mut bytes = postcard::to_stdvec(&start)?;
    blocks::write(differences, &mut bytes);
    Ok(bytes)
}

fn pack_versions(version: &[u16], versions: &[BarVersion]) -> Result<Vec<u8>, PackedBarsError> {
    let run = |run: &[u16]| Ok((run[0], u32::try_from(run.len()).map_err(|_| PackedBarsError::TOO_MANY)?));
    let runs: Vec<(u16, u32)> =
        version.chunk_by(|a, b| a == b).map(run).collect::<Result<_, PackedBarsError>>()?;
    Ok(postcard::to_stdvec(&(versions, runs))?)
}

/// Differences between prices and their predicted values.
struct Differences {
    close: Vec<i64>,
    open: Vec<i64>,
    high: Vec<i64>,
    low: Vec<i64>,
    vwap: Vec<i64>,
}

impl Differences {
    fn of(bars: &Bars, start: i64) -> Result<Self, PackedBarsError> {
        let [close, open, high, low] = from_fn(|_| Vec::with_capacity(bars.len()));
        let mut packed = Self { close, open, high, low, vwap: Vec::new() };
        let (mut before, vwaps) = (start, stored_values(&bars.vwap));
        for index in 0..bars.len() {
            let (open, close) = (bars.open[index], bars.close[index]);
            let last = price_or(close, before);
            let body = [price_or(open, last), last];
            packed.close.push(difference(close, before)?);
            packed.open.push(difference(open, before)?);
            packed.high.push(difference(bars.high[index], body[0].max(body[1]))?);
            packed.low.push(difference(bars.low[index], body[0].min(body[1]))?);
            if let Some(vwap) = vwaps.get(index) {
                packed.vwap.push(difference(*vwap, last)?);
            }
            before = last;
        }
        // A low is at or below its predicted value. Store the distance as a positive number.
        packed.low.iter_mut().for_each(|low| *low = low.wrapping_neg());
        Ok(packed)
    }

    /// Replaces the differences by prices, bar by bar. `start` is the prediction for the first close and open.
    fn restore(&mut self, start: i64) {
        let mut before = start;
        let vwaps = self.vwap.iter_mut().map(Some).chain(std::iter::repeat_with(|| None));
        let columns =
            self.close.iter_mut().zip(&mut self.open).zip(&mut self.high).zip(&mut self.low).zip(vwaps);
        for ((((close, open), high), low), vwap) in columns {
            add(close, before);
            add(open, before);
            let last = price_or(*close, before);
            let body = [price_or(*open, last), last];
            *low = low.wrapping_neg();
            add(high, body[0].max(body[1]));
            add(low, body[0].min(body[1]));
            if let Some(vwap) = vwap {
                add(vwap, last);
            }
            before = last;
        }
    }
}

/// Returns the price, or `otherwise` if the price is absent.
fn price_or(price: i64, otherwise: i64) -> i64 {
    if price == MISSING { otherwise } else { price }
}

/// Difference between a price and its prediction, modulo 2^64; [`MISSING`] if the price is absent.
fn difference(price: i64, expected: i64) -> Result<i64, PackedBarsError> {
    match (price, price.wrapping_sub(expected)) {
        (MISSING, _) => Ok(MISSING),
        (_, MISSING) => Err(BarsError::ScaleOverflow.into()),
        (_, by) => Ok(by),
    }
}

fn add(difference: &mut i64, expected: i64) {
    if *difference != MISSING {
        *difference = difference.wrapping_add(expected);
    }
}

/// Decodes the closes of `bars` bars. Reserves capacity for `room` more closes.
fn closes(bytes: &[u8], bars: usize, room: usize) -> Result<Vec<i64>, PackedBarsError> {
    let (mut before, mut rest): (i64, &[u8]) = postcard::take_from_bytes(bytes)?;
    // `bars` is a plausible count, because that number of days was already decoded.
    let mut closes = Vec::with_capacity(bars.saturating_add(room));
    blocks::for_each_block(&mut rest, bars, |differences| {
        if differences.contains(&MISSING) {
            closes.extend(differences.iter().map(|by| {
                let mut close = *by;
                add(&mut close, before);
                before = price_or(close, before);
                close
            }));
        } else {
            closes.extend(differences.iter().map(|by| {
                before = before.wrapping_add(*by);
                before
            }));
        }
        Ok(())
    })?;
    blocks::expect_end(rest)?;
    Ok(closes)
}

impl PackedBars {
    /// 64-bit digest of all columns except the versions. Facts have versions and read tables do not, but equal bars in
    /// both have equal digests.
    pub fn digest(&self) -> i64 {
        digest([&self.days, &self.close, &self.range, &self.volume, &self.extra].map(Vec::as_slice))
    }

    /// Encodes all columns as one byte string.
    ///
    /// # Errors
    /// The columns are too long for the encoding.
    pub fn to_bytes(&self) -> Result<Vec<u8>, PackedBarsError> {
        Ok(postcard::to_stdvec(self)?)
    }

    /// Decodes the byte string that [`PackedBars::to_bytes`] returned.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PackedBarsError> {
        Ok(postcard::from_bytes(bytes)?)
    }

    /// Releases reserved memory that the columns do not use.
    pub fn shrink_to_fit(&mut self) {
        let Self { days, close, range, volume, extra, versions } = self;
        [days, close, range, volume, extra, versions].into_iter().for_each(Vec::shrink_to_fit);
    }

    /// Decodes all columns.
    pub fn unpack(&self) -> Result<Bars, PackedBarsError> {
        let (scale, day) = scale_and_days(&self.days, 0)?;
        let bars = day.len();
        let (start, mut rest) = postcard::take_from_bytes(&self.close)?;
        let close = blocks::read(&mut rest, bars)?;
        let (mut range, mut volume) = (self.range.as_slice(), self.volume.as_slice());
        let [open, high, low] = [(); 3].map(|()| blocks::read(&mut range, bars));
        let (stored, mut extra) = self.extra.split_at_checked(2).unwrap_or_default();
        let [vwap, trade_count] = [0, 1].map(|column| match stored.get(column) {
            Some(1) => blocks::read(&mut extra, bars),
            _ => Ok(Vec::new()),
        });
        let mut prices = Differences { close, open: open?, high: high?, low: low?, vwap: vwap? };
        prices.restore(start);
        let Differences { close, open, high, low, vwap } = prices;
        let volumes = blocks::read(&mut volume, bars)?;
        [rest, range, volume, extra].into_iter().try_for_each(blocks::expect_end)?;
        let [open, high, low, volume] = [open, high, low, volumes].map(BarColumn::from);
        let optional = |values: Vec<i64>| match values.is_empty() {
            true => BarColumn::absent(bars),
            false => values.into(),
        };
        let (vwap, trade_count) = (optional(vwap), optional(trade_count?));
        let (version, versions) = unpack_versions(&self.versions, bars, 0)?;
        checked(Bars { scale, day, open, high, low, close, volume, vwap, trade_count, version, versions })
    }
}

/// Decodes the version index of each bar, and the list of distinct versions. Empty `bytes` mean `BarVersion::UNKNOWN`
/// for all bars.
fn unpack_versions(
    bytes: &[u8],
    bars: usize,
    room: usize,
) -> Result<(Vec<u16>, Vec<BarVersion>), PackedBarsError> {
    let (versions, runs): (Vec<BarVersion>, Vec<(u16, u32)>) = match bytes {
        [] => (
            vec![BarVersion::UNKNOWN],
            vec![(0, u32::try_from(bars).map_err(|_| PackedBarsError::TOO_MANY)?)],
        ),
        bytes => postcard::from_bytes(bytes)?,
    };
    let mut version = Vec::with_capacity(bars.saturating_add(room));
    for (index, length) in runs {
        if usize::from(index) >= versions.len() {
            return Err(PackedBarsError::Damaged("a bar names an unknown version"));
        }
        version.resize(version.len() + (length as usize).min(bars), index);
    }
    Ok((version, versions))
}

/// Ids of the record batches that delivered the bars. `versions` is the encoded column [`PackedBars::versions`].
///
/// # Errors
/// The column is damaged.
pub fn batches(versions: &[u8]) -> Result<Vec<[u8; 16]>, PackedBarsError> {
    let (versions, _): (Vec<BarVersion>, &[u8]) = match versions {
        [] => return Ok(Vec::new()),
        bytes => postcard::take_from_bytes(bytes)?,
    };
    Ok(versions.into_iter().map(|version| version.frame).collect())
}

/// Decodes days, closes and versions. All other values are absent. Reserves capacity for `room` more bars.
///
/// # Errors
/// A column is damaged.
pub fn unpack_closes(
    days: &[u8],
    close: &[u8],
    versions: &[u8],
    room: usize,
) -> Result<Bars, PackedBarsError> {
    let (scale, day) = scale_and_days(days, room)?;
    let close = closes(close, day.len(), room)?;
    let (version, versions) = unpack_versions(versions, day.len(), room)?;
    let [open, high, low, volume, vwap, trade_count] = from_fn(|_| BarColumn::absent(day.len()));
    checked(Bars { scale, day, open, high, low, close, volume, vwap, trade_count, version, versions })
}

/// Fails if the columns have different lengths, or if the scale is too large.
fn checked(bars: Bars) -> Result<Bars, PackedBarsError> {
    match (bars.has_equal_lengths(), bars.scale <= 18) {
        (true, true) => Ok(bars),
        (false, _) => Err(PackedBarsError::LENGTHS),
        (_, false) => Err(PackedBarsError::Damaged("scale is beyond 18")),
    }
}
