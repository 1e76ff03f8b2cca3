//! Bars of one security in columns, and their adjusted values, computed with decimals.
//!
//! Grouping of sessions into days, weeks, months, quarters or years.

use std::ops::Range;

use chrono::Datelike;
use rust_decimal::Decimal;

use super::cumulative::{CumulativeFactors, PriceBasis};
use crate::bars::{Bars, BarsError, MISSING};
use crate::day::date_of;
use crate::decimal::round;
use crate::metrics::prices::adjustment::AdjustmentFactor;
use crate::text_enum;

/// Raw bars, ascending by day. Each price is stored as an integer: price x 10^scale, with the scale of its bar. An
/// absent value is [`MISSING`].
#[derive(Debug, Default)]
pub struct RawBars {
    /// Day number of each session, ascending.
    pub day: Vec<i32>,
    /// Number of decimal places of each bar's prices.
    pub scale: Vec<u8>,
    /// Opening prices x 10^scale.
    pub open: Vec<i64>,
    /// Highest prices x 10^scale.
    pub high: Vec<i64>,
    /// Lowest prices x 10^scale.
    pub low: Vec<i64>,
    /// Closing prices x 10^scale.
    pub close: Vec<i64>,
    /// Shares traded in each session.
    pub volume: Vec<i64>,
    /// Volume-weighted average prices x 10^scale.
    pub vwap: Vec<i64>,
    /// Number of trades of each bar.
    pub trade_count: Vec<i64>,
}

impl RawBars {
    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.day.len()
    }

    /// True if the number of sessions is 0.
    pub fn is_empty(&self) -> bool {
        self.day.is_empty()
    }

    /// Appends the bars of a later year. Their scale may differ from the scale of earlier years.
    pub fn append(&mut self, mut bars: Bars) -> Result<(), BarsError> {
        let scale = u8::try_from(bars.scale).map_err(|_| BarsError::ScaleOverflow)?;
        self.scale.resize(self.len() + bars.len(), scale);
        self.day.append(&mut bars.day);
        self.open.extend(bars.open.iter());
        self.high.extend(bars.high.iter());
        self.low.extend(bars.low.iter());
        self.close.append(&mut bars.close);
        self.volume.extend(bars.volume.iter());
        self.vwap.extend(bars.vwap.iter());
        self.trade_count.extend(bars.trade_count.iter());
        Ok(())
    }
}

/// Bars of a security with the factors that adjust them.
#[derive(Debug)]
pub struct AdjustedBars<'a> {
    /// Raw bars, ascending by day.
    pub bars: &'a RawBars,
    /// Cumulative factors, oldest days first.
    pub cumulative: &'a CumulativeFactors,
    /// Adjustment factors, each for one ex-date.
    pub factors: &'a [AdjustmentFactor],
    /// Price basis of the results.
    pub basis: PriceBasis,
}

impl AdjustedBars<'_> {
    /// Converts a raw price of a session to a price basis, rounded to 18 decimal places. `value` is the price x
    /// 10^scale, with the scale of the session's bar. `None` if `value` is [`MISSING`].
    pub fn exact(&self, session: usize, value: i64, basis: PriceBasis) -> Option<Decimal> {
        let raw = (value != MISSING).then(|| Decimal::new(value, u32::from(self.bars.scale[session])))?;
        Some(self.cumulative.at(self.cumulative.position(self.bars.day[session])).exact(raw, basis))
    }

    /// Sum of the known volumes of a period, in shares on the requested basis. `None` if no volume is known or the sum
    /// exceeds 64 bits.
    pub fn volume(&self, period: &SessionRange) -> Option<i64> {
        sum(period
            .clone()
            .filter(|session| self.bars.volume[*session] != MISSING)
            .map(|session| self.adjusted_volume(session)))
    }

    /// Number of trades in a period. Sessions with an unknown number are left out. `None` if the number is unknown for
    /// all sessions, or if the sum exceeds 64 bits.
    pub fn trade_count(&self, period: &SessionRange) -> Option<i64> {
        sum(period
            .clone()
            .map(|session| self.bars.trade_count[session])
            .filter(|count| *count != MISSING)
            .map(Some))
    }

    /// Shares traded in a session, on the requested basis; `None` if unknown.
    pub fn adjusted_volume(&self, session: usize) -> Option<i64> {
        let volume = self.bars.volume[session];
        let step = self.cumulative.at(self.cumulative.position(self.bars.day[session]));
        if volume == MISSING || !self.basis.split {
            return (volume != MISSING).then_some(volume);
        }
        step.adjusted_volume(volume)
    }

    /// Volume-weighted average price of a period, on the requested basis. `None` if a price or volume that it needs is
    /// unknown, or if all volumes of several sessions are 0.
    pub fn vwap(&self, period: &SessionRange) -> Option<Decimal> {
        if period.len() == 1 {
            return self.exact(period.start, self.bars.vwap[period.start], self.basis);
        }
        let (mut value, mut shares) = (Decimal::ZERO, Decimal::ZERO);
        for session in period.clone() {
            let volume = Decimal::from(self.adjusted_volume(session)?);
            let price = self.exact(session, self.bars.vwap[session], self.basis)?;
            value = value.checked_add(price.checked_mul(volume)?)?;
            shares = shares.checked_add(volume)?;
        }
        value.checked_div(shares).map(|mean| round(mean, 18))
    }

    /// Sum of the cash per share, and split ratio (new shares per old share), of all ex-dates in a period. Without a
    /// cash dividend or a split, the value is `None`.
    pub fn events(&self, period: &SessionRange) -> (Option<Decimal>, Option<Decimal>) {
        // An ex-date on a day without a session belongs to the next session.
        let after = period.start.checked_sub(1).map_or(self.bars.day[0] - 1, |before| self.bars.day[before]);
        let last = self.bars.day[period.end - 1];
        let during = |factor: &&AdjustmentFactor| {
            let day = crate::day::day_number(factor.ex_date);
            after < day && day <= last
        };
        // Amounts have at most ten integer digits, so the sum over a period cannot overflow.
        let (mut cash, mut ratio) = (Decimal::ZERO, Decimal::ONE);
        for factor in self.factors.iter().filter(during) {
            cash += factor.dividend;
            ratio = factor.split.inverse().apply(ratio);
        }
        ((!cash.is_zero()).then_some(cash), (ratio != Decimal::ONE).then(|| round(round(ratio, 18), 12)))
    }

    /// Change of the close since the last session before the period. Returns the unrounded difference and the change in
    /// percent. `None` without an earlier session.
    pub fn change(&self, period: &SessionRange) -> Option<(Decimal, Option<Decimal>)> {
        let (last, before) = (period.end - 1, period.start.checked_sub(1)?);
        let close = self.exact(last, self.bars.close[last], self.basis)?;
        let previous = self.exact(before, self.bars.close[before], self.basis)?;
        let change = close.checked_sub(previous)?;
        let percent = change.checked_div(previous).and_then(|ratio| ratio.checked_mul(Decimal::ONE_HUNDRED));
        Some((change, percent.map(|percent| round(percent, 18))))
    }
}

/// Sum of the values. `None` if any value is `None`, if the list is empty, or if the sum overflows.
fn sum(mut values: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    let first = values.next()??;
    values.try_fold(first, |sum, value| sum.checked_add(value?))
}

text_enum! {
    /// Length of the period that one price point covers.
    pub enum Interval { Daily = "daily", Weekly = "weekly", Monthly = "monthly", Quarterly = "quarterly", Yearly = "yearly" }
}

/// Sessions that one price point covers, as a range of session indexes. The index of a session is its position among
/// the raw bars.
pub type SessionRange = Range<usize>;

impl Interval {
    /// Number of the period that contains a day. Days of the same period have the same number. A week begins on Monday.
    fn number(self, day: i32) -> i32 {
        let date = date_of(day);
        let month = date.year() * 12 + date.month0().cast_signed();
        match self {
            Self::Daily => day,
            // Day number 1 is 0001-01-01, a Monday.
            Self::Weekly => (day - 1).div_euclid(7),
            Self::Monthly => month,
            Self::Quarterly => month.div_euclid(3),
            Self::Yearly => date.year(),
        }
    }

    /// Groups sessions into periods, oldest first. `days` contains the day number of every session, and `sessions` is
    /// the range of session indexes to group.
    pub fn periods(self, days: &[i32], sessions: Range<usize>) -> Vec<SessionRange> {
        if self == Self::Daily {
            return sessions.map(|session| session..session + 1).collect();
        }
        let mut periods: Vec<SessionRange> = Vec::new();
        let mut current = None;
        for session in sessions {
            let number = Some(self.number(days[session]));
            match periods.last_mut() {
                Some(period) if current == number => period.end = session + 1,
                _ => periods.push(session..session + 1),
            }
            current = number;
        }
        periods
    }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::*;
    use crate::day::day_number;

    fn check(interval: Interval, days: &[&str], expected: &[SessionRange]) {
        let days: Vec<i32> =
            days.iter().map(|day| day_number(day.parse::<NaiveDate>().expect("a date"))).collect();
        assert_eq!(interval.periods(&days, 0..days.len()), expected, "{interval}");
    }

    #[test]
    fn periods_end_with_the_calendar() {
        let days = ["2023-12-29", "2024-01-02", "2024-01-05", "2024-01-08", "2024-03-28", "2024-04-01"];
        check(Interval::Daily, &days[..2], &[0..1, 1..2]);
        check(Interval::Weekly, &days, &[0..1, 1..3, 3..4, 4..5, 5..6]);
        check(Interval::Monthly, &days, &[0..1, 1..4, 4..5, 5..6]);
        check(Interval::Quarterly, &days, &[0..1, 1..5, 5..6]);
        check(Interval::Yearly, &days, &[0..1, 1..6]);
        check(Interval::Yearly, &[], &[]);
    }

    #[test]
    fn months_and_quarters_of_two_years_are_two() {
        check(Interval::Monthly, &["2024-01-05", "2025-01-06"], &[0..1, 1..2]);
        check(Interval::Quarterly, &["2023-02-01", "2024-02-01"], &[0..1, 1..2]);
        check(
            Interval::Quarterly,
            &["2024-01-02", "2024-03-28", "2024-04-01", "2024-06-28", "2024-07-01"],
            &[0..2, 2..4, 4..5],
        );
    }

    #[test]
    fn weeks_begin_on_monday() {
        check(Interval::Weekly, &["2024-01-07", "2024-01-08"], &[0..1, 1..2]);
        check(Interval::Weekly, &["2024-01-05", "2024-01-07"], std::slice::from_ref(&(0..2)));
        check(Interval::Weekly, &["2024-01-08", "2024-01-14", "2024-01-15"], &[0..2, 2..3]);
        let days = [1, 2, 3];
        assert_eq!(Interval::Daily.periods(&days, 1..3), [1..2, 2..3]);
    }
}
