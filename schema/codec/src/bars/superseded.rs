//! Encoded bars that do not count: the columns of the bars, and columns of their versions.

use market::bars::{BarVersion, MISSING, SupersededBars};
use serde::{Deserialize, Serialize};

use super::blocks;
use super::packed::PackedBars;
use crate::PackedBarsError;

/// Versions of superseded bars. Most versions have few bars, so the versions are columns too.
#[derive(Serialize, Deserialize)]
struct PackedVersions<'a> {
    count: u32,
    first_observed_at: i64,
    /// Ids of the record batches, one after another.
    frames: &'a [u8],
    /// For each version: revision, retraction (0 or 1), basis day, line, and time since the previous version. Then for each
    /// bar: the difference between the index of its version and that of the previous bar, and the difference between
    /// the index of the version that it repeats and that of its version.
    columns: &'a [u8],
}

/// Encodes bars that do not count.
///
/// # Errors
/// There are too many bars, or their prices cannot be encoded.
pub fn pack_superseded(superseded: &SupersededBars) -> Result<Vec<u8>, PackedBarsError> {
    let SupersededBars { bars, originals } = superseded;
    let versions = &bars.versions;
    let mut columns = Vec::new();
    let mut write = |values: Vec<i64>| blocks::write(&values, &mut columns);
    let mut column = |value: fn(&BarVersion) -> i64| write(versions.iter().map(value).collect());
    column(|version| version.revision);
    column(|version| version.retracted.into());
    column(|version| version.basis_day.map_or(MISSING, i64::from));
    column(|version| version.line.cast_signed());
    let first_observed_at = versions.first().map_or(0, |version| version.observed_at);
    let mut before = first_observed_at;
    let passed = versions.iter().map(|version| {
        let passed = version.observed_at.wrapping_sub(before);
        before = version.observed_at;
        passed
    });
    write(passed.collect());
    let mut before = 0;
    let steps = bars.version.iter().map(|version| {
        let step = i64::from(*version) - before;
        before = i64::from(*version);
        step
    });
    write(steps.collect());
    let originals = originals.iter().zip(&bars.version).map(|(original, version)| {
        original.map_or(MISSING, |original| i64::from(original) - i64::from(*version))
    });
    write(originals.collect());
    let frames: Vec<u8> = versions.iter().flat_map(|version| version.frame).collect();
    let count = u32::try_from(versions.len()).map_err(|_| PackedBarsError::TOO_MANY)?;
    let packed = PackedBars { versions: Vec::new(), ..PackedBars::pack(bars)? };
    let versions = PackedVersions { count, first_observed_at, frames: &frames, columns: &columns };
    Ok(postcard::to_stdvec(&(packed, versions))?)
}

/// Decodes bars that [`pack_superseded`] or [`PackedBars::to_bytes`] encoded.
///
/// # Errors
/// The bytes are damaged.
pub fn unpack_superseded(bytes: &[u8]) -> Result<SupersededBars, PackedBarsError> {
    let (packed, rest): (PackedBars, &[u8]) = postcard::take_from_bytes(bytes)?;
    let mut bars = packed.unpack()?;
    if rest.is_empty() {
        return Ok(SupersededBars { originals: vec![None; bars.len()], bars });
    }
    let PackedVersions { count, first_observed_at, frames, mut columns } = postcard::from_bytes(rest)?;
    let (frames, odd) = frames.as_chunks::<16>();
    if frames.len() != count as usize || !odd.is_empty() {
        return Err(PackedBarsError::LENGTHS);
    }
    let [revision, retracted, basis_day, line, passed] =
        [(); 5].map(|()| blocks::read(&mut columns, frames.len()));
    let (revision, retracted, basis_day, line, passed) = (revision?, retracted?, basis_day?, line?, passed?);
    let [steps, originals] = [(); 2].map(|()| blocks::read(&mut columns, bars.len()));
    blocks::expect_end(columns)?;
    let mut observed_at = first_observed_at;
    bars.versions = Vec::with_capacity(frames.len());
    for (index, frame) in frames.iter().enumerate() {
        observed_at = observed_at.wrapping_add(passed[index]);
        let basis_day = (basis_day[index] != MISSING).then(|| i32::try_from(basis_day[index])).transpose();
        bars.versions.push(BarVersion {
            revision: revision[index],
            observed_at,
            retracted: retracted[index] == 1,
            basis_day: basis_day.map_err(|_| PackedBarsError::Damaged("a day is out of range"))?,
            line: line[index].cast_unsigned(),
            frame: *frame,
        });
    }
    let known = |index: i64| {
        let index = u16::try_from(index).ok().filter(|index| usize::from(*index) < frames.len());
        index.ok_or(PackedBarsError::Damaged("a bar names an unknown version"))
    };
    let mut before = 0i64;
    let versions = steps?.into_iter().map(|step| {
        before = before.wrapping_add(step);
        known(before)
    });
    bars.version = versions.collect::<Result<_, _>>()?;
    let originals = originals?.into_iter().zip(&bars.version).map(|(step, version)| match step {
        MISSING => Ok(None),
        step => known(step.wrapping_add(i64::from(*version))).map(Some),
    });
    let originals = originals.collect::<Result<_, _>>()?;
    Ok(SupersededBars { bars, originals })
}
