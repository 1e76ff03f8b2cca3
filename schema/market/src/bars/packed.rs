//! The bytes of bars: a column each, delta-coded and written as varints (postcard).

use serde::{Deserialize, Serialize};

use super::columns::{Bars, MISSING};
use super::error::BarsError;
use super::version::BarVersion;

/// The bytes of a [`Bars`], one blob per column, so that readers fetch only the columns they need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed {
    /// Scale and days.
    pub days: Vec<u8>,
    /// Closes, as differences.
    pub close: Vec<u8>,
    /// Open, high and low as differences to the close.
    pub range: Vec<u8>,
    /// Shares traded.
    pub volume: Vec<u8>,
    /// vwap and trade count; empty when no bar has them.
    pub extra: Vec<u8>,
    /// Version dictionary and runs of indexes; empty in read tables, where the choice has been made.
    pub versions: Vec<u8>,
}

const TOO_MANY: BarsError = BarsError::Damaged("more than 2^32 bars");

impl Bars {
    /// Packs the columns.
    pub fn pack(&self) -> Result<Packed, BarsError> {
        let days: Vec<i32> = deltas(&self.day);
        let extra = if self.vwap.is_empty() && self.trade_count.is_empty() {
            Vec::new()
        } else {
            postcard::to_stdvec(&(against(&self.vwap, &self.close), optional(&self.trade_count)))?
        };
        let run = |run: &[u16]| Ok((run[0], u32::try_from(run.len()).map_err(|_| TOO_MANY)?));
        let runs: Vec<(u16, u32)> =
            self.version.chunk_by(|a, b| a == b).map(run).collect::<Result<_, BarsError>>()?;
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

/// The days of packed bars, from their first column alone.
pub fn unpack_days(days: &[u8]) -> Result<Vec<i32>, BarsError> {
    scale_and_days(days).map(|(_, days)| days)
}

fn scale_and_days(bytes: &[u8]) -> Result<(u32, Vec<i32>), BarsError> {
    let (scale, days): (u32, Vec<i32>) = postcard::from_bytes(bytes)?;
    Ok((scale, sums(days)))
}

impl Packed {
    /// 64 bits that tell these columns from others; versions aside, so that it is the same in facts and read tables.
    pub fn digest(&self) -> i64 {
        digest([&self.days, &self.close, &self.range, &self.volume, &self.extra].map(Vec::as_slice))
    }

    /// Unpacks every column.
    pub fn unpack(&self) -> Result<Bars, BarsError> {
        let (scale, day) = scale_and_days(&self.days)?;
        let close = close_sums(postcard::from_bytes(&self.close)?);
        let [open, high, low]: [Vec<u64>; 3] = postcard::from_bytes(&self.range)?;
        let (vwap, trade_count): (Vec<u64>, Vec<u64>) =
            if self.extra.is_empty() { Default::default() } else { postcard::from_bytes(&self.extra)? };
        let (version, versions) = unpack_versions(&self.versions, day.len())?;
        let bars = Bars {
            scale,
            open: restore(&open, &close),
            high: restore(&high, &close),
            low: restore(&low, &close),
            volume: required(&postcard::from_bytes::<Vec<u64>>(&self.volume)?),
            vwap: restore(&vwap, &close),
            trade_count: required(&trade_count),
            version,
            day,
            close,
            versions,
        };
        bars.check()
    }
}

/// The version of each of so many bars, and the versions.
fn unpack_versions(bytes: &[u8], bars: usize) -> Result<(Vec<u16>, Vec<BarVersion>), BarsError> {
    let (versions, runs): (Vec<BarVersion>, Vec<(u16, u32)>) = match bytes {
        [] => (vec![BarVersion::UNKNOWN], vec![(0, u32::try_from(bars).map_err(|_| TOO_MANY)?)]),
        bytes => postcard::from_bytes(bytes)?,
    };
    let runs =
        runs.iter().flat_map(|(index, length)| std::iter::repeat_n(*index, (*length as usize).min(bars)));
    Ok((runs.collect(), versions))
}

/// 64 bits that tell bytes from others.
pub fn digest<const N: usize>(parts: [&[u8]; N]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    i64::from_le_bytes(bytes)
}

impl Bars {
    /// Unpacks days, closes and versions, each from its packed column; every other value is absent.
    pub fn unpack_closes(days: &[u8], close: &[u8], versions: &[u8]) -> Result<Self, BarsError> {
        let (scale, day) = scale_and_days(days)?;
        let close = close_sums(postcard::from_bytes(close)?);
        let (version, versions) = unpack_versions(versions, day.len())?;
        let absent = vec![MISSING; day.len()];
        let [open, high, low, volume] = [absent.clone(), absent.clone(), absent.clone(), absent];
        Self { scale, day, open, high, low, close, volume, version, versions, ..Self::default() }.check()
    }

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

fn sums(mut deltas: Vec<i32>) -> Vec<i32> {
    let mut sum = 0i32;
    for value in &mut deltas {
        sum = sum.wrapping_add(*value);
        *value = sum;
    }
    deltas
}

/// Differences wrap, so that [`MISSING`], the close of a retracted bar, is a value like any other.
fn close_deltas(values: &[i64]) -> Vec<i64> {
    let mut previous = 0i64;
    values.iter().map(|value| value.wrapping_sub(std::mem::replace(&mut previous, *value))).collect()
}

fn close_sums(mut deltas: Vec<i64>) -> Vec<i64> {
    let mut sum = 0i64;
    for value in &mut deltas {
        sum = sum.wrapping_add(*value);
        *value = sum;
    }
    deltas
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
