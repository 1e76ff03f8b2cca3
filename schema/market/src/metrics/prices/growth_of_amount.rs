//! Growth of an amount that is invested in a security, with regular contributions (R12).
//!
//! The amount buys shares at the close of the first session, and a contribution at the first close of each later period.
//! A split changes the number of shares. A dividend buys shares at the close of its ex-date, or stays as cash. With
//! reinvestment and without contributions, the value grows by the total return.
//!
//! Numbers of shares are rounded to 10 decimal places at each purchase.

use std::ops::Range;

use rust_decimal::prelude::MathematicalOps;
use rust_decimal::{Decimal, RoundingStrategy};

use super::total_return::CloseSeries;
use crate::day::date_of;
use crate::metrics::arithmetic::{HUNDRED, quotient};

const SHARE_PLACES: u32 = 10;
const DAYS_PER_YEAR: Decimal = Decimal::from_parts(36_525, 0, 0, false, 2);

/// Amounts of an investment, and the use of its dividends.
#[derive(Debug, Clone, Copy)]
pub struct Investment {
    /// Amount at the first session.
    pub amount: Decimal,
    /// Amount at the beginning of each later period.
    pub contribution: Decimal,
    /// True if dividends buy shares, false if they stay as cash.
    pub reinvest: bool,
}

/// Investment at the first session or at the end of a period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GrowthPoint {
    /// Index of the session.
    pub session: usize,
    /// Raw close of the session.
    pub price: Decimal,
    /// Number of shares.
    pub shares: Decimal,
    /// Sum of the amount and the contributions.
    pub invested: Decimal,
    /// Sum of the dividends received.
    pub dividends: Decimal,
    /// Value of the shares, plus the dividends that were not reinvested.
    pub value: Decimal,
}

/// Investment at the first session and at the end of each period. `None` if a distribution is in another currency without
/// a rate, or if a result overflows.
pub fn growth_of_amount(
    closes: &CloseSeries<'_>,
    periods: &[Range<usize>],
    investment: Investment,
) -> Option<Vec<GrowthPoint>> {
    let Some(first) = periods.first().map(|period| period.start) else { return Some(Vec::new()) };
    let start = date_of(*closes.days.get(first)?);
    let next_event = closes.factors.partition_point(|day| day.ex_date <= start);
    let mut holding = Holding::new(closes, investment.reinvest, next_event);
    holding.buy(investment.amount, first)?;
    let mut points = vec![holding.point(first)?];
    for (number, period) in periods.iter().enumerate() {
        holding.pass_until(period.start)?;
        if number > 0 {
            holding.buy(investment.contribution, period.start)?;
        }
        let last = period.end.checked_sub(1)?;
        holding.pass_until(last)?;
        if last > first {
            points.push(holding.point(last)?);
        }
    }
    Some(points)
}

/// Mean return per year of an amount that grew to `value` in `days` days, percent. `None` within the first year.
pub fn annualized_return(amount: Decimal, value: Decimal, days: i64) -> Option<Decimal> {
    let days = Some(Decimal::from(days)).filter(|days| *days >= DAYS_PER_YEAR)?;
    let growth = quotient(value, amount).filter(|growth| *growth > Decimal::ZERO)?;
    let yearly = growth.checked_powd(quotient(DAYS_PER_YEAR, days)?)?;
    yearly.checked_sub(Decimal::ONE)?.checked_mul(HUNDRED)
}

struct Holding<'a> {
    closes: &'a CloseSeries<'a>,
    reinvest: bool,
    /// Index of the first adjustment factor that is not applied yet.
    next_event: usize,
    shares: Decimal,
    invested: Decimal,
    dividends: Decimal,
    cash: Decimal,
}

impl<'a> Holding<'a> {
    fn new(closes: &'a CloseSeries<'a>, reinvest: bool, next_event: usize) -> Self {
        let [shares, invested, dividends, cash] = [Decimal::ZERO; 4];
        Self { closes, reinvest, next_event, shares, invested, dividends, cash }
    }

    fn buy(&mut self, amount: Decimal, session: usize) -> Option<()> {
        self.invested = self.invested.checked_add(amount)?;
        self.add_shares(amount, session)
    }

    fn add_shares(&mut self, amount: Decimal, session: usize) -> Option<()> {
        let bought = quotient(amount, (self.closes.close)(session))?;
        let shares = self.shares.checked_add(bought)?;
        self.shares = shares.round_dp_with_strategy(SHARE_PLACES, RoundingStrategy::MidpointAwayFromZero);
        Some(())
    }

    /// Applies the splits and dividends up to a session.
    fn pass_until(&mut self, session: usize) -> Option<()> {
        let (closes, last) = (self.closes, date_of(*self.closes.days.get(session)?));
        let end = closes.factors.partition_point(|event| event.ex_date <= last);
        let passed = closes.factors.get(self.next_event..end)?;
        self.next_event = end;
        // The close of a session has the share basis after all events of the session.
        for of_session in passed.chunk_by(|a, b| closes.session(a) == closes.session(b)) {
            let mut paid = Decimal::ZERO;
            for event in of_session {
                self.shares = event.price_ratio().inverse().apply(self.shares);
                paid = paid.checked_add(self.shares.checked_mul(event.value?)?)?;
            }
            self.dividends = self.dividends.checked_add(paid)?;
            match self.reinvest {
                true => self.add_shares(paid, closes.session(of_session.first()?))?,
                false => self.cash = self.cash.checked_add(paid)?,
            }
        }
        Some(())
    }

    fn point(&self, session: usize) -> Option<GrowthPoint> {
        let Self { shares, invested, dividends, cash, .. } = *self;
        let price = (self.closes.close)(session);
        let value = shares.checked_mul(price)?.checked_add(cash)?;
        Some(GrowthPoint { session, price, shares, invested, dividends, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::day::day_number;
    use crate::decimal::round;
    use crate::metrics::prices::adjustment::{AdjustmentFactor, Ratio};
    use crate::metrics::prices::total_return::total_return;

    fn day(text: &str) -> chrono::NaiveDate {
        text.parse().unwrap()
    }

    fn event(date: &str, to: i64, value: Option<Decimal>) -> AdjustmentFactor {
        AdjustmentFactor {
            ex_date: day(date),
            split: Ratio { from: Decimal::ONE, to: to.into() },
            dividend_factor: Decimal::ONE,
            dividend: Decimal::ZERO,
            value,
            price_only: Ratio::ONE,
        }
    }

    fn with_closes<T>(
        closes: &[(&str, i64)],
        factors: &[AdjustmentFactor],
        run: impl Fn(&CloseSeries<'_>) -> T,
    ) -> T {
        let days: Vec<i32> = closes.iter().map(|(date, _)| day_number(day(date))).collect();
        let close = |index: usize| Decimal::from(closes[index].1);
        run(&CloseSeries { days: &days, close: &close, factors })
    }

    const CLOSES: [(&str, i64); 5] =
        [("2024-01-02", 100), ("2024-01-31", 98), ("2024-02-01", 50), ("2024-02-15", 40), ("2024-03-01", 60)];
    const PERIODS: [Range<usize>; 3] = [0..2, 2..4, 4..5];

    fn grow(investment: Investment, factors: &[AdjustmentFactor]) -> Option<Vec<[Decimal; 4]>> {
        let points = with_closes(&CLOSES, factors, |closes| growth_of_amount(closes, &PERIODS, investment));
        let row = |point: &GrowthPoint| [point.shares, point.invested, point.dividends, point.value];
        points.map(|points| points.iter().map(row).collect())
    }

    #[test]
    fn dividends_buy_shares_or_stay_as_cash_and_splits_change_shares() {
        // 2:1 on 1 February, and 2 a share on 15 February.
        let factors = [event("2024-02-01", 2, Some(dec!(0))), event("2024-02-15", 1, Some(dec!(2)))];
        let investment = Investment { amount: dec!(1000), contribution: dec!(0), reinvest: true };
        let cash = Investment { reinvest: false, ..investment };
        assert_eq!(
            grow(investment, &factors).unwrap(),
            [
                [dec!(10), dec!(1000), dec!(0), dec!(1000)],
                [dec!(10), dec!(1000), dec!(0), dec!(980)],
                // 20 shares receive 40, which buys one share at 40.
                [dec!(21), dec!(1000), dec!(40), dec!(840)],
                [dec!(21), dec!(1000), dec!(40), dec!(1260)],
            ]
        );
        assert_eq!(
            grow(cash, &factors).unwrap(),
            [
                [dec!(10), dec!(1000), dec!(0), dec!(1000)],
                [dec!(10), dec!(1000), dec!(0), dec!(980)],
                [dec!(20), dec!(1000), dec!(40), dec!(840)],
                [dec!(20), dec!(1000), dec!(40), dec!(1240)],
            ]
        );
        let total = with_closes(&CLOSES, &factors, |closes| total_return(closes, 0, 4)).unwrap();
        assert_eq!(round(total, 6), dec!(26));
    }

    #[test]
    fn a_contribution_buys_at_the_first_close_of_a_period_after_its_dividend() {
        let factors = [event("2024-02-01", 1, Some(dec!(5)))];
        let investment = Investment { amount: dec!(1000), contribution: dec!(100), reinvest: true };
        // 10 shares receive 50 and buy 1 share at 50; the contribution buys 2 at 50, and then 100 / 60.
        assert_eq!(
            grow(investment, &factors).unwrap(),
            [
                [dec!(10), dec!(1000), dec!(0), dec!(1000)],
                [dec!(10), dec!(1000), dec!(0), dec!(980)],
                [dec!(13), dec!(1100), dec!(50), dec!(520)],
                [dec!(14.6666666667), dec!(1200), dec!(50), dec!(880.000000002)],
            ]
        );
        assert_eq!(grow(investment, &[event("2024-02-01", 1, None)]), None);
    }

    #[test]
    fn returns_are_annualized_from_the_second_year_on() {
        let check = |value, days, expected: Option<Decimal>| {
            let found = annualized_return(dec!(100), value, days).map(|found| round(found, 4));
            assert_eq!(found, expected, "{value} in {days} days");
        };
        check(dec!(121), 731, Some(dec!(9.9928)));
        check(dec!(121), 364, None);
        check(dec!(0), 731, None);
    }
}
