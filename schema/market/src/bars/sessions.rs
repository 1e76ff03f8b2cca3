//! The days of bars as bytes: steps from the weekday that is expected next, in [blocks](super::blocks), after what holds for
//! all columns.

use serde::{Deserialize, Serialize};

use super::blocks::{self, BLOCK};
use super::error::BarsError;

/// Version of the packed form: the first byte of the days. A new form comes with a new codec of the log, so that readers of
/// this one stop there.
pub(super) const FORM: u8 = 1;

/// What the days begin with.
#[derive(Serialize, Deserialize)]
struct Head {
    form: u8,
    scale: u32,
    bars: u32,
    first_day: i32,
}

/// Packs the days of prices of this scale.
pub(super) fn pack_days(scale: u32, days: &[i32]) -> Result<Vec<u8>, BarsError> {
    let bars = u32::try_from(days.len()).map_err(|_| BarsError::TOO_MANY)?;
    let first_day = days.first().copied().unwrap_or(0);
    let mut bytes = postcard::to_stdvec(&Head { form: FORM, scale, bars, first_day })?;
    let steps: Vec<i64> = days.windows(2).map(|days| i64::from(days[1]) - expected(days[0])).collect();
    blocks::write(&steps, &mut bytes);
    Ok(bytes)
}

/// The session that is expected after another: the next weekday.
fn expected(day: i32) -> i64 {
    i64::from(day) + NEXT_WEEKDAY[weekday(day)]
}

/// By the day of the week, days until the next weekday; 0 is Sunday.
const NEXT_WEEKDAY: [i64; 7] = [1, 1, 1, 1, 1, 3, 2];

/// By the weekday that they follow, from Monday on, days until each of the expected sessions of a block.
const AHEAD: [[i32; BLOCK]; WEEKDAYS] = [ahead(0), ahead(1), ahead(2), ahead(3), ahead(4)];
const WEEKDAYS: usize = 5;

/// The most days of these.
const FARTHEST: i32 = 7 * BLOCK.div_ceil(WEEKDAYS) as i32;

/// Days until each of the sessions that are expected after such a weekday.
const fn ahead(on: usize) -> [i32; BLOCK] {
    let (mut days, mut place, mut day, mut weekday) = ([0; BLOCK], 0, 0, on);
    while place < BLOCK {
        day += if weekday == WEEKDAYS - 1 { 3 } else { 1 };
        weekday = (weekday + 1) % WEEKDAYS;
        days[place] = day;
        place += 1;
    }
    days
}

/// The day of the week. Day 1 was a Monday.
fn weekday(day: i32) -> usize {
    day.rem_euclid(7).unsigned_abs() as usize
}

/// The days of packed bars, from their first column alone.
pub fn unpack_days(days: &[u8]) -> Result<Vec<i32>, BarsError> {
    scale_and_days(days, 0).map(|(_, days)| days)
}

/// The scale of the prices, and the days with room for so many more.
pub(super) fn scale_and_days(bytes: &[u8], room: usize) -> Result<(u32, Vec<i32>), BarsError> {
    match bytes.first() {
        Some(&FORM) => {}
        Some(form) => return Err(BarsError::UnknownForm(*form)),
        None => return Err(BarsError::LENGTHS),
    }
    let (head, mut rest): (Head, &[u8]) = postcard::take_from_bytes(bytes)?;
    let bars = usize::try_from(head.bars).map_err(|_| BarsError::TOO_MANY)?;
    let steps = bars.saturating_sub(1);
    if !blocks::may_hold(rest.len(), steps) {
        return Err(BarsError::LENGTHS);
    }
    let mut sessions = Sessions::from(head.first_day, bars, room);
    blocks::each(&mut rest, steps, |steps| sessions.follow(steps))?;
    blocks::whole(rest)?;
    Ok((head.scale, sessions.days))
}

/// The days that steps lead to from a first one.
struct Sessions {
    days: Vec<i32>,
    last: i32,
    /// The weekday of the last one.
    on: usize,
}

impl Sessions {
    /// The first of so many days, of which it is none where there are none, with room for more than these.
    fn from(first: i32, count: usize, room: usize) -> Self {
        let mut days = Vec::with_capacity(count.saturating_add(room));
        days.extend((count > 0).then_some(first));
        Self { days, last: first, on: weekday(first) }
    }

    /// Takes the steps of a block.
    fn follow(&mut self, mut steps: &[i64]) -> Result<(), BarsError> {
        loop {
            // Nearly every session is the expected one.
            let expected = steps.iter().position(|step| *step != 0).unwrap_or(steps.len());
            self.expect(expected)?;
            let Some((step, later)) = steps.get(expected..).and_then(<[i64]>::split_first) else {
                return Ok(());
            };
            self.step(*step)?;
            steps = later;
        }
    }

    /// So many sessions of a block that are the expected ones.
    fn expect(&mut self, count: usize) -> Result<(), BarsError> {
        match self.on.checked_sub(1).and_then(|on| AHEAD.get(on)?.get(..count)) {
            Some(ahead) if self.last <= i32::MAX - FARTHEST => {
                let last = self.last;
                self.days.extend(ahead.iter().map(|after| last + after));
                self.last = self.days.last().copied().unwrap_or(last);
                self.on = (self.on - 1 + count) % WEEKDAYS + 1;
                Ok(())
            }
            _ => (0..count).try_for_each(|_| self.step(0)),
        }
    }

    /// A session so many days from the expected one.
    fn step(&mut self, by: i64) -> Result<(), BarsError> {
        let day = expected(self.last).wrapping_add(by);
        self.last = i32::try_from(day).map_err(|_| BarsError::Damaged("a day is none"))?;
        self.on = weekday(self.last);
        self.days.push(self.last);
        Ok(())
    }
}
