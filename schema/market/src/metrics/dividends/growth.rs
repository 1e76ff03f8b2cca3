//! Annual dividend totals and compound dividend growth (R13).
//!
//! `D[y]` is the sum of the split-adjusted regular dividends of a dividend year. For a payer with n payments a year, a
//! dividend year consists of n consecutive slots of the payment schedule (R34), one slot per payment. Irregular payers
//! and payers with 13 or more payments a year have no slots; their dividend year is the calendar year. A payment below
//! both neighbouring payments is a dip. In the sum, the smaller of the two neighbouring amounts replaces a dip, and
//! also a single missing payment.
//!
//! Y0 is the last complete year; the running year is never an end point. Growth over k years is
//! `(D[Y0] / D[Y0-k])^(1/k) - 1`. Growth is null if the base `D[Y0-k]` is missing, or if any year of the span is 0 or
//! unknown. It is also null if the base is a partial first year, with fewer payments than the next year. If the
//! frequency changes within a year, the payments of the year may not cover exactly 12 months. Their sum is then
//! converted to 12 months. Source: published lists of dividend champions, which add up dividends by calendar year.

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use super::schedule::{Reading, Schedule};
use crate::metrics::arithmetic::{HUNDRED, quotient, remove_division_error, root};

/// Months of a year. Each of n payments a year covers 12 / n months.
const YEAR: i32 = 12;

/// Dividend total of one dividend year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DividendYearTotal {
    /// Dividend year: the calendar year, adjusted so that it contains the usual number of payments (R34).
    pub year: i32,
    /// Sum of the dividends per share, adjusted for splits up to the as-of date.
    pub amount: Decimal,
    /// Number of ex-dates in the year.
    pub payments: i32,
    /// True if payments of the year are missing and their amounts are unknown.
    pub is_unknown: bool,
    /// Number of months that the payments of the year cover, including assumed payments. `None` for irregular payers,
    /// and for 13 or more payments a year.
    coverage: Option<i32>,
}

/// Reason for a missing growth rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoGrowthReason {
    /// The first known regular dividend is later than the base year.
    NoBase(i32),
    /// The year has no payment. It is one of the years from the base year to the last year, both included.
    NoPayment(i32),
    /// The year has missing payments whose amounts are unknown. It is one of the years from the base year to the last
    /// year, both included.
    MissingPayments(i32),
    /// The base year is the first year of payments and has fewer payments than the next year.
    PartialBase(i32),
    /// The rate exceeds the range of decimals.
    OutOfRange,
}

/// Dividend totals of all years from the first regular ex-date to the running year.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnnualTotals {
    /// One total per year, ascending, without gaps.
    pub years: Vec<DividendYearTotal>,
    /// Years with a payment that belongs to the previous or next calendar year ([`Reading::calendar_year`]).
    pub shifted: Vec<i32>,
    /// Dividend years with a missing payment in the schedule.
    pub gaps: Vec<i32>,
    /// Dividend years whose sum is converted to twelve months.
    pub scaled: Vec<i32>,
}

impl AnnualTotals {
    /// Sums the payments of a schedule by dividend year, up to the calendar year of `as_of`.
    pub fn new(schedule: &Schedule, as_of: NaiveDate) -> Self {
        let running = as_of.year();
        let in_range = |year: i32| year <= running;
        let readings = || schedule.regular().filter(|reading| in_range(reading.year));
        let Some(first) = readings().map(|reading| reading.year).min() else { return Self::default() };
        let empty = |year| DividendYearTotal {
            year,
            amount: Decimal::ZERO,
            payments: 0,
            is_unknown: false,
            coverage: Some(0),
        };
        let mut totals = Self { years: (first..=running).map(empty).collect(), ..Self::default() };
        for reading in readings() {
            totals.add(first, reading);
        }
        for slot in schedule.missing.iter().filter(|slot| first <= slot.year && in_range(slot.year)) {
            totals.gaps.push(slot.year);
            let Some(total) = totals.year_mut(first, slot.year) else { continue };
            match slot.assumed {
                Some(amount) => {
                    total.amount += amount;
                    total.coverage = total.coverage.map(|coverage| coverage + YEAR / slot.per_year);
                }
                None => total.is_unknown = true,
            }
        }
        for year in &schedule.changed {
            let Some(total) = totals.year_mut(first, *year) else { continue };
            if let Some(coverage @ 1..) = total.coverage.filter(|coverage| *coverage != YEAR)
                && *year < running
                && let Some(rate) = quotient(total.amount * Decimal::from(YEAR), Decimal::from(coverage))
            {
                (total.amount, total.coverage) = (rate, Some(YEAR));
                totals.scaled.push(*year);
            }
        }
        totals.gaps.dedup();
        totals.shifted.dedup();
        totals.years.iter_mut().for_each(|total| total.amount = remove_division_error(total.amount));
        totals
    }

    fn add(&mut self, first: i32, reading: &Reading) {
        if reading.year != reading.calendar_year {
            self.shifted.push(reading.year);
        }
        let Some(total) = self.year_mut(first, reading.year) else { return };
        total.amount += reading.sustained;
        total.payments += 1;
        total.coverage =
            total.coverage.zip(reading.per_year).map(|(known, per_year)| known + YEAR / per_year);
    }

    fn year_mut(&mut self, first: i32, year: i32) -> Option<&mut DividendYearTotal> {
        self.years.get_mut(usize::try_from(year.checked_sub(first)?).ok()?)
    }

    /// First dividend year with a payment.
    pub fn first_year(&self) -> Option<i32> {
        self.years.first().map(|total| total.year)
    }

    /// Total of a dividend year; `None` before the first paying year and after the running year.
    pub fn total(&self, year: i32) -> Option<DividendYearTotal> {
        let index = usize::try_from(year.checked_sub(self.first_year()?)?).ok()?;
        self.years.get(index).copied()
    }

    /// Total per share of a dividend year; 0 for years without payments.
    pub fn amount(&self, year: i32) -> Decimal {
        self.total(year).map_or(Decimal::ZERO, |total| total.amount)
    }

    /// True if the year can be the base of a growth rate. A first year cannot if its payments cover fewer months than
    /// those of the next year.
    pub fn is_base(&self, year: i32) -> bool {
        let begun = |next: DividendYearTotal| {
            self.total(year).is_some_and(|first| match first.coverage.zip(next.coverage) {
                Some((first, next)) => first >= next.min(YEAR),
                None => first.payments >= next.payments,
            })
        };
        self.first_year() != Some(year) || self.total(year + 1).is_none_or(begun)
    }

    /// True if the year is over and all its amounts are known. The first year must also cover twelve months, or at
    /// least as many months as the second year, if the second year is over.
    pub fn is_complete(&self, year: i32, running: i32) -> bool {
        let covers_year = || {
            let coverage = self.total(year).and_then(|total| total.coverage);
            coverage.is_some_and(|months| months >= YEAR) || (year + 1 < running && self.is_base(year))
        };
        year < running && !self.is_unknown(year) && (self.first_year() != Some(year) || covers_year())
    }

    /// True if payments of the year are missing and their amounts are unknown.
    pub fn is_unknown(&self, year: i32) -> bool {
        self.total(year).is_some_and(|total| total.is_unknown)
    }

    /// Compound growth over the `span` years that end with `last`, percent a year.
    pub fn growth(&self, last: i32, span: i32) -> Result<Decimal, NoGrowthReason> {
        let base = self.total(last - span).ok_or(NoGrowthReason::NoBase(last - span))?;
        for year in base.year..=last {
            if self.amount(year) <= Decimal::ZERO {
                return Err(NoGrowthReason::NoPayment(year));
            }
            if self.is_unknown(year) {
                return Err(NoGrowthReason::MissingPayments(year));
            }
        }
        if !self.is_base(base.year) {
            return Err(NoGrowthReason::PartialBase(base.year));
        }
        let compound = || {
            let ratio = quotient(self.amount(last), base.amount)?;
            let yearly = root(ratio, u32::try_from(span).ok()?)?;
            (yearly - Decimal::ONE).checked_mul(HUNDRED)
        };
        compound().ok_or(NoGrowthReason::OutOfRange)
    }
}

#[cfg(test)]
mod tests;
