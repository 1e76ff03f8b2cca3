//! The form that columns had before blocks: every value a varint (postcard). Logs keep it, so it is read for ever.

use super::column::MISSING;
use super::columns::Bars;
use super::error::BarsError;

/// Unpacks every column but the versions.
pub(super) fn unpack([days, close, range, volume, extra]: [&[u8]; 5]) -> Result<Bars, BarsError> {
    let (scale, day) = scale_and_days(days)?;
    let close = closes(close)?;
    let [open, high, low]: [Vec<u64>; 3] = postcard::from_bytes(range)?;
    let (vwap, trade_count): (Vec<u64>, Vec<u64>) =
        if extra.is_empty() { Default::default() } else { postcard::from_bytes(extra)? };
    Ok(Bars {
        scale,
        open: restored(&open, &close).into(),
        high: restored(&high, &close).into(),
        low: restored(&low, &close).into(),
        volume: counts(&postcard::from_bytes::<Vec<u64>>(volume)?).into(),
        vwap: restored(&vwap, &close),
        trade_count: counts(&trade_count),
        day,
        close,
        ..Bars::default()
    })
}

/// The scale of the prices and the days.
pub(super) fn scale_and_days(bytes: &[u8]) -> Result<(u32, Vec<i32>), BarsError> {
    let (scale, mut days): (u32, Vec<i32>) = postcard::from_bytes(bytes)?;
    let mut day = 0i32;
    for step in &mut days {
        day = day.wrapping_add(*step);
        *step = day;
    }
    Ok((scale, days))
}

/// The closes; their steps wrap, so that the absent close of a retracted bar is a value like any other.
pub(super) fn closes(bytes: &[u8]) -> Result<Vec<i64>, BarsError> {
    let mut closes: Vec<i64> = postcard::from_bytes(bytes)?;
    let mut close = 0i64;
    for step in &mut closes {
        close = close.wrapping_add(*step);
        *step = close;
    }
    Ok(closes)
}

/// Codes of differences to the closes.
fn restored(codes: &[u64], closes: &[i64]) -> Vec<i64> {
    let value = |(code, close): (&u64, &i64)| difference(*code).map_or(MISSING, |by| by.wrapping_add(*close));
    codes.iter().zip(closes).map(value).collect()
}

fn counts(codes: &[u64]) -> Vec<i64> {
    codes.iter().map(|code| difference(*code).unwrap_or(MISSING)).collect()
}

/// 0 is an absent value, the others have the sign in the lowest bit, plus one.
fn difference(code: u64) -> Option<i64> {
    code.checked_sub(1).map(super::blocks::unzigzag)
}
