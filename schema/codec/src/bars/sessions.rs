//! Binary encoding of the days of price bars. Each day after the first is stored as its distance from the expected day,
//! the first weekday after the previous bar.

use serde::{Deserialize, Serialize};

use super::blocks::{self, BLOCK};
use crate::PackedBarsError;

/// Version of the format: the first byte of the column `days`. A new version needs a new codec name in the log.
/// Otherwise, older programs treat its batches as damaged.
pub(super) const FORMAT_VERSION: u8 = 1;

/// Header of the column `days`.
#[derive(Serialize, Deserialize)]
struct DaysHeader {
    version: u8,
    scale: u32,
    bars: u32,
    first_day: i32,
}

/// Encodes the days of bars. The header also stores `scale`, the number of decimal places of the prices.
pub(super) fn pack_days(scale: u32, days: &[i32]) -> Result<Vec<u8>, PackedBarsError> {
    let bars = u32::try_from(days.len()).map_err(|_| PackedBarsError::TOO_MANY)?;
    let first_day = days.first().copied().unwrap_or(0);
    let mut bytes = postcard::to_stdvec(&DaysHeader { version: FORMAT_VERSION, scale, bars, first_day })?;
    let distances: Vec<i64> = days.windows(2).map(|days| i64::from(days[1]) - expected(days[0])).collect();
    blocks::write(&distances, &mut bytes);
    Ok(bytes)
}

/// Day number of the next expected session: the first weekday after `day`.
fn expected(day: i32) -> i64 {
    i64::from(day) + NEXT_WEEKDAY[weekday(day)]
}

/// Number of days to the next weekday (Monday to Friday), for each day of the week. Index 0 is Sunday.
const NEXT_WEEKDAY: [i64; 7] = [1, 1, 1, 1, 1, 3, 2];

/// Number of days from a session to each of the next 32 weekdays. The first array index is the day of the week of this
/// session, 0 for Monday.
const EXPECTED_DISTANCES: [[i32; BLOCK]; WEEKDAYS] = [
    expected_distances(0),
    expected_distances(1),
    expected_distances(2),
    expected_distances(3),
    expected_distances(4),
];
const WEEKDAYS: usize = 5;

/// Upper bound of the numbers in [`EXPECTED_DISTANCES`].
const FARTHEST: i32 = 7 * BLOCK.div_ceil(WEEKDAYS) as i32;

/// Number of days from a session to each of the next 32 weekdays. `start` is the day of the week of this session, 0 for
/// Monday.
const fn expected_distances(start: usize) -> [i32; BLOCK] {
    let (mut days, mut place, mut day, mut weekday) = ([0; BLOCK], 0, 0, start);
    while place < BLOCK {
        day += if weekday == WEEKDAYS - 1 { 3 } else { 1 };
        weekday = (weekday + 1) % WEEKDAYS;
        days[place] = day;
        place += 1;
    }
    days
}

/// Day of the week of a day number, 0 for Sunday. Day number 1 is a Monday.
fn weekday(day: i32) -> usize {
    day.rem_euclid(7).unsigned_abs() as usize
}

/// Decodes the days of encoded bars.
pub fn unpack_days(days: &[u8]) -> Result<Vec<i32>, PackedBarsError> {
    scale_and_days(days, 0).map(|(_, days)| days)
}

/// Decodes the number of decimal places of the prices (`scale`), and the days. The vector of days gets capacity for
/// `room` more days.
pub(super) fn scale_and_days(bytes: &[u8], room: usize) -> Result<(u32, Vec<i32>), PackedBarsError> {
    match bytes.first() {
        Some(&FORMAT_VERSION) => {}
        Some(version) => return Err(PackedBarsError::UnknownVersion(*version)),
        None => return Err(PackedBarsError::LENGTHS),
    }
    let (head, mut rest): (DaysHeader, &[u8]) = postcard::take_from_bytes(bytes)?;
    let bars = usize::try_from(head.bars).map_err(|_| PackedBarsError::TOO_MANY)?;
    let count = bars.saturating_sub(1);
    if !blocks::can_contain_blocks(rest.len(), count) {
        return Err(PackedBarsError::LENGTHS);
    }
    let mut sessions = Sessions::from(head.first_day, bars, room);
    blocks::for_each_block(&mut rest, count, |distances| sessions.append_distances(distances))?;
    blocks::expect_end(rest)?;
    Ok((head.scale, sessions.days))
}

/// Decoder of days. Each encoded number is the distance, in days, from the expected session (the next weekday) to the
/// actual session.
struct Sessions {
    days: Vec<i32>,
    last: i32,
    /// Day of the week of the last decoded day, 0 for Sunday.
    weekday: usize,
}

impl Sessions {
    /// Creates a decoder for `count` days, starting with the day `first`. The vector gets capacity for `room` more
    /// days.
    fn from(first: i32, count: usize, room: usize) -> Self {
        let mut days = Vec::with_capacity(count.saturating_add(room));
        days.extend((count > 0).then_some(first));
        Self { days, last: first, weekday: weekday(first) }
    }

    /// Decodes a block of distances and appends the resulting days.
    fn append_distances(&mut self, mut distances: &[i64]) -> Result<(), PackedBarsError> {
        loop {
            // Nearly all distances are 0, so runs of expected sessions are appended together.
            let expected = distances.iter().position(|distance| *distance != 0).unwrap_or(distances.len());
            self.append_expected(expected)?;
            let Some((distance, later)) = distances.get(expected..).and_then(<[i64]>::split_first) else {
                return Ok(());
            };
            self.append_session(*distance)?;
            distances = later;
        }
    }

    fn append_expected(&mut self, count: usize) -> Result<(), PackedBarsError> {
        match self.weekday.checked_sub(1).and_then(|weekday| EXPECTED_DISTANCES.get(weekday)?.get(..count)) {
            Some(distances) if self.last <= i32::MAX - FARTHEST => {
                let last = self.last;
                self.days.extend(distances.iter().map(|distance| last + distance));
                self.last = self.days.last().copied().unwrap_or(last);
                self.weekday = (self.weekday - 1 + count) % WEEKDAYS + 1;
                Ok(())
            }
            _ => (0..count).try_for_each(|_| self.append_session(0)),
        }
    }

    /// Appends a session. `distance` is the number of days from the expected session to this session.
    fn append_session(&mut self, distance: i64) -> Result<(), PackedBarsError> {
        let day = expected(self.last).wrapping_add(distance);
        self.last = i32::try_from(day).map_err(|_| PackedBarsError::Damaged("a day is out of range"))?;
        self.weekday = weekday(self.last);
        self.days.push(self.last);
        Ok(())
    }
}
