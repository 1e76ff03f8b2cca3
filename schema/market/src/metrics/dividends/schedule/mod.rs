//! Payment schedule of a payer (R34). It divides time into slots, and interprets each dividend row. A slot is the date
//! range of one regular payment.
//!
//! Vendors' rows have errors: unmarked special payments, repeated payments, missing payments and single wrong amounts.
//! The rows themselves are not changed. The interpretation of a row is its [`Reading`]: regular part, sustained amount
//! and dividend year. Dividend growth and increase streaks are computed from the sustained amounts.
//!
//! The module `frequency` finds the number n of payments a year around each row. A payment period is then 365.25/n
//! days. Amounts are compared as annual rates (n times the amount). A change of n therefore does not look like a change
//! of the dividend.
//!
//! For every payer, a distribution of capital is special (`extras`). It is a doubtful amount of at least a quarter of
//! the price.
//!
//! Irregular payers, and payers with 13 or more payments a year, have no n and no slots. All other declared amounts of
//! these payers are regular. Their dividend years are calendar years. For payers with slots, these rules apply:
//! 1. Extra row: if two rows fill one slot, one of them is special (`extras`).
//! 2. Combined row: a row far above both neighbours contains a regular and a special payment. The larger neighbour's
//!    amount is the regular part; of an annual payer, the mean of both. The rest is special (`parts`).
//! 3. Dip: a row is below both neighbours. The smaller neighbour's amount is the sustained amount (`parts`).
//! 4. Dividend year: n consecutive slots (`slots`).
//! 5. One missing slot: dividend growth and streaks assume a payment of the smaller neighbour's amount.
//! 6. Two or more missing slots: the totals of their dividend years are unknown. A gap of more than 550 days is a pause
//!    (R5).
//! 7. Pause: two or more slots are missing, and the amount then falls by more than 2 %. No slot counts as missing.
//!
//! Missing slots are detected only with four or more payments a year.
//!
//! Source: this service chose the thresholds by comparison with public dividend histories. Some are parameters
//! `schedule.…`.

mod extras;
mod frequency;
mod parts;
mod reading;
mod repeats;
mod slots;

use chrono::{Datelike, NaiveDate};

use super::yields::RegularDividend;
use crate::metrics::rules::ScheduleRules;
use crate::row::AmountReading;

pub(crate) use frequency::local_frequencies;
use frequency::{segment_frequencies, segments};
pub use reading::{AmountDoubt, MissingSlot, Reading, ScheduleRow};
pub(crate) use repeats::{RepeatedPayment, find_repeats};

/// Payment schedule of a payer in one currency.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schedule {
    /// One [`Reading`] per row, in order of ex-date.
    pub readings: Vec<Reading>,
    /// Missing slots, sorted by date.
    pub missing: Vec<MissingSlot>,
    /// Dividend years in which the frequency changed.
    pub changed: Vec<i32>,
}

impl Schedule {
    /// Builds the schedule from rows that are sorted by ex-date, one row per ex-date.
    pub fn read(rows: &[ScheduleRow], rules: &ScheduleRules) -> Self {
        let mut schedule = Self::default();
        for segment in segments(rows) {
            schedule.read_segment(segment, rules);
        }
        schedule
    }

    /// Interprets the rows of one segment, and appends their readings.
    fn read_segment(&mut self, rows: &[ScheduleRow], rules: &ScheduleRules) {
        let start = self.readings.len();
        let face = |(row, per_year): (&ScheduleRow, Option<i32>)| Reading {
            ex_date: row.ex_date,
            payment_date: row.payment_date,
            amount: row.amount,
            regular: row.amount,
            sustained: row.amount,
            kind: AmountReading::Regular,
            per_year,
            year: row.ex_date.year(),
            calendar_year: row.ex_date.year(),
        };
        self.readings.extend(rows.iter().zip(segment_frequencies(rows, rules)).map(face));
        let readings = &mut self.readings[start..];
        let doubted: Vec<NaiveDate> =
            rows.iter().filter(|row| row.doubt.is_some()).map(|row| row.ex_date).collect();
        let earlier = extras::mark_extras(readings, rows, &doubted, rules);
        let mut regular: Vec<&mut Reading> =
            readings.iter_mut().filter(|reading| reading.kind == AmountReading::Regular).collect();
        parts::read_parts(&mut regular, &earlier, &doubted, rules);
        slots::assign_years(&mut regular, &mut self.missing, &mut self.changed, rules);
    }

    /// Regular part of each row. Rows whose whole amount is special are left out.
    pub fn regular_amounts(&self) -> impl Iterator<Item = RegularDividend> {
        let regular = self.regular();
        regular.map(|reading| RegularDividend { ex_date: reading.ex_date, amount: reading.regular })
    }

    /// Sustained amount of each row, from which dividend growth and increase streaks are computed. Rows whose whole
    /// amount is special are left out.
    pub fn sustained_amounts(&self) -> impl Iterator<Item = RegularDividend> {
        let regular = self.regular();
        regular.map(|reading| RegularDividend { ex_date: reading.ex_date, amount: reading.sustained })
    }

    /// Interpretation ([`Reading`]) of each row. Rows whose whole amount is special are left out.
    pub fn regular(&self) -> impl Iterator<Item = &Reading> {
        self.readings.iter().filter(|reading| reading.kind != AmountReading::Special)
    }
}

#[cfg(test)]
mod tests;
