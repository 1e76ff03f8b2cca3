//! Combined rows and dips, found by comparison with the rows around them (R34.3, R34.4, R8). A combined row has a
//! regular and a special part. A dip is a row below both neighbours.
//!
//! Only rows of steady payers are compared. A payer is steady at a row if amounts seldom fall around this row. The
//! eight nearest rows decide, four on each side of the row, or of the run of combined rows that begins at it. A step is
//! the change of the amount from one of these rows to the next. There must be at least three steps, and at most a fifth
//! of them may be falls.
//!
//! Payers of variable amounts, of converted foreign amounts, or of interim and final dividends are not steady. Their
//! amounts often rise and fall, so a high or low amount has no special meaning. The whole declared amount is regular.
//!
//! There is one exception: a row with a doubtful amount (R28: far above the earlier amounts). It is combined even if
//! the payer is not steady.

use std::ops::{Range, RangeInclusive};

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::reading::Reading;
use crate::metrics::arithmetic::exact;
use crate::metrics::rules::ScheduleRules;
use crate::row::AmountReading;

/// Number of rows on each side of a row. The amounts of these rows decide whether the payer is steady at the row.
const NEAREST: usize = 4;
/// Minimum number of steps (amount changes from row to row) that show a steady payer.
const FEWEST_STEPS: u64 = 3;
/// Maximum number of consecutive combined rows.
const LONGEST_RUN: usize = 3;
/// A step is a fall if the rate is below this share of the previous rate. A smaller difference comes from rounding
/// after a split adjustment.
const ROUNDING: Decimal = exact("0.995");
/// Smallest and largest ratio of the annual rate after a combined row to the rate before it.
const LEAST_RETURN: Decimal = exact("0.8");
const MOST_RETURN: Decimal = exact("1.7");
/// Minimum share of steps without a fall that show a steady payer, percent.
const STEADY_SHARE: u64 = 80;
/// Days between special amounts that recur every year.
const YEARLY_DAYS: RangeInclusive<i64> = 335..=395;

/// Finds combined rows and dips, and changes their interpretations in `readings`. `extras` contains the ex-dates of the
/// rows that were already found to be special, and `doubted` those of all rows with a doubtful amount.
pub(crate) fn read_parts(
    readings: &mut [&mut Reading],
    extras: &[NaiveDate],
    doubted: &[NaiveDate],
    rules: &ScheduleRules,
) {
    let mut combined: Vec<NaiveDate> = extras.to_vec();
    for index in 1..readings.len() {
        let Some(per_year) = readings[index].per_year else { continue };
        let is_doubted = doubted.contains(&readings[index].ex_date);
        let rates = AnnualRates { readings, per_year };
        let reading = if is_doubted {
            Some(rates.combined_reading(index, per_year))
        } else {
            // The test for a steady payer is costly and rarely needed, because most rows are regular.
            rates
                .read(index, &combined, rules)
                .filter(|(_, _, end)| rates.is_steady(index..*end))
                .map(|(kind, amount, _)| (kind, amount))
        };
        if let Some((kind, amount)) = reading {
            let reading = &mut *readings[index];
            reading.kind = kind;
            reading.sustained = amount;
            if kind == AmountReading::Combined {
                reading.regular = amount;
                combined.push(reading.ex_date);
            }
        }
    }
}

/// Amounts of the rows around one row, as annual rates.
struct AnnualRates<'r, 'a> {
    readings: &'r [&'a mut Reading],
    per_year: i32,
}

impl AnnualRates<'_, '_> {
    /// Annual rate of the declared amount; `None` if the row has no number of payments a year.
    fn declared_rate(&self, index: usize) -> Option<Decimal> {
        let reading = self.readings.get(index)?;
        Some(reading.amount.saturating_mul(Decimal::from(reading.per_year?)))
    }

    /// True if the row and the row before it have the same annual rate.
    fn has_previous_rate(&self, index: usize) -> bool {
        let (own, previous) = (&self.readings[index], &self.readings[index - 1]);
        own.amount == previous.sustained && own.per_year == previous.per_year
    }

    /// Annual rate of [`Reading::sustained`], the amount for growth and streak.
    fn sustained_rate(&self, index: usize) -> Option<Decimal> {
        let reading = self.readings.get(index)?;
        Some(reading.sustained.saturating_mul(Decimal::from(reading.per_year?)))
    }

    /// Annual rate of the row before `index`. At a change of the frequency, the rate is computed with the number of
    /// payments on the side that is nearer to `next`, the rate after `index`.
    fn previous_rate_near(&self, index: usize, next: Decimal) -> Option<Decimal> {
        let rate = self.sustained_rate(index - 1)?;
        let as_now = self.readings[index - 1].sustained.saturating_mul(Decimal::from(self.per_year));
        Some(if (as_now - next).abs() < (rate - next).abs() { as_now } else { rate })
    }

    /// Interprets the row at `index` as combined or as a dip; `None` for any other row. Also returns the amount for
    /// growth and streak, and the index after the run of combined rows that begins at the row.
    fn read(
        &self,
        index: usize,
        combined: &[NaiveDate],
        rules: &ScheduleRules,
    ) -> Option<(AmountReading, Decimal, usize)> {
        // Most rows have the same annual rate as the row before. Such a row is neither combined nor a dip.
        if self.has_previous_rate(index) {
            return None;
        }
        let ScheduleRules { combined_factor, dip_share, .. } = *rules;
        // Rows are read from oldest to newest, so the previous row already has its final amount.
        let (rate, previous) = (self.declared_rate(index)?, self.sustained_rate(index - 1)?);
        let times = |rate: Decimal, factor: Decimal| rate.saturating_mul(factor);
        let Some(following) = self.declared_rate(index + 1) else {
            let had_extra = has_yearly(self.readings[index].ex_date, combined);
            let is_combined =
                had_extra && index + 1 == self.readings.len() && rate >= times(previous, combined_factor);
            return is_combined.then(|| {
                let (kind, amount) = self.combined_reading(index, self.per_year);
                (kind, amount, index + 1)
            });
        };
        let previous = self.previous_rate_near(index, following).unwrap_or(previous);
        // A run of combined rows ends with the first row that returns to about the previous rate.
        let returns =
            |next: Decimal| times(previous, LEAST_RETURN) <= next && next <= times(previous, MOST_RETURN);
        let after = (index + 1..=index + LONGEST_RUN).find_map(|next| {
            let rate = self.declared_rate(next)?;
            returns(rate).then_some((next, rate))
        });
        if let Some((end, next)) = after {
            let is_high = |row: usize| {
                self.declared_rate(row).is_some_and(|rate| rate >= times(previous.max(next), combined_factor))
            };
            if (index..end).all(is_high) {
                let regular = self.payment_at_rate(self.usual_rate(previous, next));
                return Some((AmountReading::Combined, regular.min(self.readings[index].amount), end));
            }
        }
        let next = following;
        // A row of an annual payer is never a dip, because no other payment of the same year confirms the usual rate.
        let is_dip = self.per_year > 1
            && rate < times(previous.min(next), dip_share)
            && next >= times(previous, dip_share);
        is_dip.then(|| (AmountReading::Dip, self.payment_at_rate(previous.min(next)), index + 1))
    }

    /// Interprets the row at `index` as combined. The regular part is the larger of the neighbouring amounts, but at
    /// most the amount of the row.
    fn combined_reading(&self, index: usize, per_year: i32) -> (AmountReading, Decimal) {
        let own = self.readings[index].amount;
        let previous = self.sustained_rate(index - 1).unwrap_or(own);
        let next =
            self.declared_rate(index + 1).filter(|next| *next < own.saturating_mul(Decimal::from(per_year)));
        let usual = next.map_or(previous, |next| self.usual_rate(previous, next));
        (AmountReading::Combined, self.payment_at_rate(usual).min(own))
    }

    /// Annual rate of the regular part of a combined row, between the rates of its neighbours. It is the larger of them.
    /// For an annual payer, it is their mean: the larger rate would make the whole next year equal, and a raise in each
    /// of the two years would look like one raise.
    fn usual_rate(&self, previous: Decimal, next: Decimal) -> Decimal {
        if self.per_year > 1 || next <= previous {
            return previous.max(next);
        }
        previous.saturating_add(next) / Decimal::TWO
    }

    /// Amount of one payment for an annual rate.
    fn payment_at_rate(&self, rate: Decimal) -> Decimal {
        rate.checked_div(Decimal::from(self.per_year)).unwrap_or(rate)
    }

    /// True if the amounts of the rows around `run` seldom fall from one row to the next.
    fn is_steady(&self, run: Range<usize>) -> bool {
        let others = (run.start.saturating_sub(NEAREST)..run.start).chain(run.end..run.end + NEAREST);
        let rates: Vec<Decimal> = others.filter_map(|other| self.sustained_rate(other)).collect();
        let steps = rates.len().saturating_sub(1) as u64;
        let even = rates.windows(2).filter(|pair| pair[1] >= pair[0].saturating_mul(ROUNDING)).count() as u64;
        steps >= FEWEST_STEPS && even * 100 >= STEADY_SHARE * steps
    }
}

/// True if at least one of `days` is about a year before the ex-date.
pub(crate) fn has_yearly(ex_date: NaiveDate, days: &[NaiveDate]) -> bool {
    days.iter().any(|day| YEARLY_DAYS.contains(&(ex_date - *day).num_days()))
}
