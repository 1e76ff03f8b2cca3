//! A security's raw bars with its splits: prices of days on any share basis, found by bisection.

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use super::adjust::Splits;
use crate::bars::{Bars, date_of, day_number};

/// Bars sorted by day with the splits between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Series<'a> {
    pub bars: &'a Bars,
    pub splits: &'a Splits,
}

impl<'a> Series<'a> {
    pub(crate) fn new(bars: &'a Bars, splits: &'a Splits) -> Self {
        Self { bars, splits }
    }

    /// Position of the newest bar on or before a day.
    pub(crate) fn at_or_before(&self, day: NaiveDate) -> Option<usize> {
        self.bars.day.partition_point(|bar| *bar <= day_number(day)).checked_sub(1)
    }

    /// Position of the newest bar before a day.
    pub(crate) fn before(&self, day: NaiveDate) -> Option<usize> {
        self.bars.day.partition_point(|bar| *bar < day_number(day)).checked_sub(1)
    }

    /// Position of the first bar on or after a day.
    pub(crate) fn at_or_after(&self, day: NaiveDate) -> Option<usize> {
        let index = self.bars.day.partition_point(|bar| *bar < day_number(day));
        (index < self.bars.len()).then_some(index)
    }

    /// Session of a bar.
    pub(crate) fn date(&self, index: usize) -> NaiveDate {
        date_of(self.bars.day[index])
    }

    /// Raw close of a bar.
    pub(crate) fn close(&self, index: usize) -> Decimal {
        Decimal::new(self.bars.close[index], self.bars.scale)
    }

    /// Close of a bar on the share basis of a day.
    pub(crate) fn close_on_basis(&self, index: usize, basis: NaiveDate) -> Decimal {
        self.splits.carry(self.date(index), basis).apply(self.close(index))
    }

    /// The last raw close before a day, on that day's share basis.
    pub(crate) fn close_before(&self, day: NaiveDate) -> Option<Decimal> {
        self.before(day).map(|index| self.close_on_basis(index, day))
    }

    /// Position of the newest bar of each of the `months` calendar months up to `last` (year x 12 + month - 1), oldest
    /// first, with the month; months without a bar are left out.
    pub(crate) fn month_ends(&self, last: i32, months: i32) -> Vec<(i32, usize)> {
        let mut ends = Vec::with_capacity(usize::try_from(months).unwrap_or_default());
        for month in last - months + 1..=last {
            let next = first_of_month(month + 1).and_then(|first| self.before(first));
            let start = first_of_month(month);
            if let Some((index, start)) = next.zip(start)
                && self.date(index) >= start
            {
                ends.push((month, index));
            }
        }
        ends
    }
}

/// A calendar month as one number: year x 12 + month - 1.
pub(crate) fn month_number(date: NaiveDate) -> i32 {
    date.year() * 12 + i32::try_from(date.month0()).unwrap_or_default()
}

fn first_of_month(month: i32) -> Option<NaiveDate> {
    let number = u32::try_from(month.rem_euclid(12)).ok()? + 1;
    NaiveDate::from_ymd_opt(month.div_euclid(12), number, 1)
}
