//! Annual dividend totals and compound dividend growth (R13).
//!
//! `D[y]` is the sum of split-adjusted regular dividends by ex-date year. Y0 is the last complete calendar
//! year; the running year is never an end point. Growth over n years is `(D[Y0] / D[Y0-n])^(1/n) - 1`. It is
//! null when the base is missing or 0, or when any year of the span is 0. It is also null when the base is a
//! partial first year, with fewer payments than the next.
//!
//! An ex-date that moves over New Year would look like a raise and a cut. If a year has n + 1 payments, the
//! last in December, and the next year n - 1, that payment moves to the next year. If a year has n - 1 and
//! the next n + 1, the first in January, it moves back. Both set `boundary_shift`.
//! Source: calendar-year practice of published dividend champions lists.

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use super::yields::DividendRate;
use crate::metrics::arithmetic::{HUNDRED, quotient, root, settle};

/// Dividend total of one calendar year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YearTotal {
    /// Calendar year of the ex-dates.
    pub year: i32,
    /// Sum per share on the as-of date's share basis.
    pub amount: Decimal,
    /// Number of ex-dates in the year.
    pub payments: i32,
}

/// Dividend totals of all calendar years from the first regular ex-date to the running year.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnnualTotals {
    /// One entry per year, ascending, without gaps.
    pub years: Vec<YearTotal>,
    /// Years that received a payment moved over New Year.
    pub shifted: Vec<i32>,
}

impl AnnualTotals {
    /// Sums rates (in order) by year up to the year of `as_of`, and moves payments that slipped over New
    /// Year.
    pub fn new(rates: &[DividendRate], payments_per_year: Option<i32>, as_of: NaiveDate) -> Self {
        let running = as_of.year();
        let Some(first) = rates.first().map(|rate| rate.ex_date.year()).filter(|first| *first <= running)
        else {
            return Self::default();
        };
        let mut years: Vec<YearTotal> =
            (first..=running).map(|year| YearTotal { year, amount: Decimal::ZERO, payments: 0 }).collect();
        let position = |date: NaiveDate| usize::try_from(date.year() - first).unwrap_or_default();
        for rate in rates.iter().filter(|rate| rate.ex_date.year() <= running) {
            let total = &mut years[position(rate.ex_date)];
            total.amount += rate.amount;
            total.payments += 1;
        }
        let mut totals = Self { years, shifted: Vec::new() };
        if let Some(payments) = payments_per_year {
            totals.mend_boundaries(rates, payments, running);
        }
        totals.years.iter_mut().for_each(|total| total.amount = settle(total.amount));
        totals
    }

    fn mend_boundaries(&mut self, rates: &[DividendRate], expected: i32, running: i32) {
        for index in 0..self.years.len().saturating_sub(1) {
            let (this, next) = (self.years[index], self.years[index + 1]);
            if next.year >= running {
                break;
            }
            if this.payments == expected + 1 && next.payments == expected - 1 {
                let slipped = last_of(rates, this.year).filter(|rate| rate.ex_date.month() == 12);
                self.move_payment(slipped, index, index + 1);
            } else if this.payments == expected - 1 && next.payments == expected + 1 {
                let slipped = first_of(rates, next.year).filter(|rate| rate.ex_date.month() == 1);
                self.move_payment(slipped, index + 1, index);
            }
        }
    }

    fn move_payment(&mut self, slipped: Option<DividendRate>, from: usize, to: usize) {
        let Some(rate) = slipped else { return };
        self.years[from].amount -= rate.amount;
        self.years[from].payments -= 1;
        self.years[to].amount += rate.amount;
        self.years[to].payments += 1;
        self.shifted.push(self.years[to].year);
    }

    /// First paying year.
    pub fn first_year(&self) -> Option<i32> {
        self.years.first().map(|total| total.year)
    }

    /// Total of a year; `None` before the first paying year and after the running year.
    pub fn total(&self, year: i32) -> Option<YearTotal> {
        let index = usize::try_from(year.checked_sub(self.first_year()?)?).ok()?;
        self.years.get(index).copied()
    }

    /// `D[year]`; 0 for years without payments.
    pub fn amount(&self, year: i32) -> Decimal {
        self.total(year).map_or(Decimal::ZERO, |total| total.amount)
    }

    /// True if the year can be a base of comparison: false for a partial first year.
    pub fn is_base(&self, year: i32) -> bool {
        let begun = |next: YearTotal| self.total(year).is_some_and(|first| first.payments >= next.payments);
        self.first_year() != Some(year) || self.total(year + 1).is_none_or(begun)
    }

    /// Compound growth over the `span` years up to `last`, percent a year.
    pub fn growth(&self, last: i32, span: i32) -> Option<Decimal> {
        let base = self.total(last - span)?;
        if (last - span..=last).any(|year| self.amount(year) <= Decimal::ZERO) {
            return None;
        }
        if !self.is_base(base.year) {
            return None;
        }
        let ratio = quotient(self.amount(last), base.amount)?;
        let yearly = root(ratio, u32::try_from(span).ok()?)?;
        (yearly - Decimal::ONE).checked_mul(HUNDRED)
    }
}

fn last_of(rates: &[DividendRate], year: i32) -> Option<DividendRate> {
    rates[..rates.partition_point(|rate| rate.ex_date.year() <= year)].last().copied()
}

fn first_of(rates: &[DividendRate], year: i32) -> Option<DividendRate> {
    rates.get(rates.partition_point(|rate| rate.ex_date.year() < year)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::round;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn yearly(first: i32, amounts: &[Decimal]) -> Vec<DividendRate> {
        let day = |year| NaiveDate::from_ymd_opt(year, 5, 15).unwrap();
        (first..)
            .zip(amounts)
            .filter(|(_, a)| !a.is_zero())
            .map(|(year, amount)| DividendRate { ex_date: day(year), amount: *amount })
            .collect()
    }

    #[test]
    fn compound_growth() {
        let check = |amounts: &[Decimal], span, expected: Option<Decimal>| {
            let totals = AnnualTotals::new(&yearly(2014, amounts), Some(1), date("2025-02-01"));
            assert_eq!(totals.growth(2024, span).map(|g| round(g, 4)), expected, "{amounts:?} over {span}");
        };
        let ten = [
            dec!(1),
            dec!(1),
            dec!(1),
            dec!(1),
            dec!(1),
            dec!(1),
            dec!(1.1),
            dec!(1.2),
            dec!(1.32),
            dec!(1.44),
            dec!(1.61051),
        ];
        check(&ten, 1, Some(dec!(11.841)));
        check(&ten, 5, Some(dec!(10)));
        check(&ten, 10, Some(dec!(4.8809)));
        check(&ten[1..], 1, None);
        let holed = [
            dec!(1),
            dec!(1),
            dec!(1),
            dec!(1),
            dec!(1),
            dec!(1),
            dec!(1),
            dec!(0),
            dec!(1),
            dec!(1),
            dec!(2),
        ];
        check(&holed, 1, Some(dec!(100)));
        check(&holed, 5, None);
    }

    #[test]
    fn a_part_year_is_no_base() {
        let rows = [
            ("2023-08-10", dec!(1)),
            ("2023-11-10", dec!(1)),
            ("2024-02-10", dec!(1)),
            ("2024-05-10", dec!(1)),
            ("2024-08-10", dec!(1)),
            ("2024-11-10", dec!(1)),
        ];
        let rates: Vec<DividendRate> =
            rows.iter().map(|(day, amount)| DividendRate { ex_date: date(day), amount: *amount }).collect();
        assert_eq!(AnnualTotals::new(&rates, Some(4), date("2025-01-31")).growth(2024, 1), None);
    }

    #[test]
    fn slipped_ex_dates_move_back_over_new_year() {
        let days = [
            "2022-01-05",
            "2022-04-05",
            "2022-07-05",
            "2022-10-05",
            "2023-04-05",
            "2023-07-05",
            "2023-10-05",
            "2024-01-02",
            "2024-01-05",
            "2024-04-05",
            "2024-07-05",
            "2024-10-05",
        ];
        let rates: Vec<DividendRate> =
            days.iter().map(|day| DividendRate { ex_date: date(day), amount: dec!(1) }).collect();
        let totals = AnnualTotals::new(&rates, Some(4), date("2025-01-31"));
        assert_eq!(totals.shifted, [2023]);
        assert!((2022..=2024).all(|year| totals.amount(year) == dec!(4)));
        let running = AnnualTotals::new(&rates, Some(4), date("2024-12-31"));
        assert!(running.shifted.is_empty());
    }

    /// Totals of a payer of two a year; the running year is 2025.
    fn years(days: &[(&str, Decimal)]) -> AnnualTotals {
        let rates: Vec<DividendRate> =
            days.iter().map(|(day, amount)| DividendRate { ex_date: date(day), amount: *amount }).collect();
        AnnualTotals::new(&rates, Some(2), date("2025-01-31"))
    }

    #[test]
    fn an_ex_date_that_slips_over_new_year_is_counted_in_its_own() {
        let check = |days: [&str; 4], moved: Option<i32>, counts: [i32; 2], amounts: [Decimal; 2]| {
            let amounts_paid = [dec!(1), dec!(2), dec!(4), dec!(8)];
            let rows: Vec<(&str, Decimal)> = days.into_iter().zip(amounts_paid).collect();
            let totals = years(&rows);
            assert_eq!(totals.shifted, moved.into_iter().collect::<Vec<_>>(), "{days:?}");
            assert_eq!([2023, 2024].map(|year| totals.amount(year)), amounts, "{days:?}");
            assert_eq!([2023, 2024].map(|year| totals.total(year).unwrap().payments), counts, "{days:?}");
        };
        let (even, even_sums) = ([2, 2], [dec!(3), dec!(12)]);
        check(["2023-01-05", "2023-07-05", "2024-01-04", "2024-07-05"], None, even, even_sums);
        // Ahead of New Year, and behind it.
        check(["2023-01-05", "2023-07-05", "2023-12-29", "2024-07-05"], Some(2024), even, even_sums);
        check(["2023-07-05", "2024-01-02", "2024-07-05", "2024-12-27"], Some(2023), even, even_sums);
        // No month next to New Year.
        check(["2023-01-05", "2023-07-05", "2023-11-29", "2024-07-05"], None, [3, 1], [dec!(7), dec!(8)]);
        check(["2023-07-05", "2024-02-02", "2024-07-05", "2024-12-27"], None, [1, 3], [dec!(1), dec!(14)]);
        // Two too many, or a payment that is simply missing.
        check(["2023-01-05", "2023-07-05", "2023-10-05", "2023-12-29"], None, [4, 0], [dec!(15), dec!(0)]);
    }

    #[test]
    fn a_payment_too_many_or_too_few_moves_nothing_alone() {
        let check = |days: &[&str], counts: [i32; 2]| {
            let rows: Vec<(&str, Decimal)> = days.iter().map(|day| (*day, dec!(1))).collect();
            let totals = years(&rows);
            assert_eq!([2023, 2024].map(|year| totals.total(year).unwrap().payments), counts, "{days:?}");
            assert!(totals.shifted.is_empty(), "{days:?}");
        };
        // Ahead of New Year: an extra payment, and a year that lacks one.
        check(&["2023-01-05", "2023-07-05", "2023-12-29", "2024-01-05", "2024-07-05"], [3, 2]);
        check(&["2023-07-05", "2023-12-29", "2024-07-05"], [2, 1]);
        // Behind it.
        check(&["2023-01-05", "2023-07-05", "2024-01-05", "2024-07-05", "2024-12-27"], [2, 3]);
        check(&["2023-07-05", "2024-01-05", "2024-07-05"], [1, 2]);
    }

    #[test]
    fn the_running_year_lends_and_takes_nothing() {
        let totals = years(&[
            ("2024-03-05", dec!(1)),
            ("2024-09-05", dec!(1)),
            ("2024-12-30", dec!(1)),
            ("2025-01-09", dec!(1)),
        ]);
        assert!(totals.shifted.is_empty());
        assert_eq!((totals.amount(2024), totals.amount(2025)), (dec!(3), dec!(1)));
    }

    #[test]
    fn years_without_a_payment_are_zero_and_those_outside_unknown() {
        let totals = years(&[("2021-03-05", dec!(1)), ("2023-03-05", dec!(1)), ("2026-03-05", dec!(9))]);
        assert_eq!((totals.first_year(), totals.years.len()), (Some(2021), 5));
        assert_eq!(
            [2020, 2021, 2022, 2023, 2026].map(|year| totals.amount(year)),
            [dec!(0), dec!(1), dec!(0), dec!(1), dec!(0)]
        );
        assert!(totals.total(2020).is_none() && totals.total(2026).is_none() && totals.total(2022).is_some());
        assert_eq!(years(&[("2026-03-05", dec!(9))]), AnnualTotals::default());
    }

    #[test]
    fn only_a_short_first_year_is_no_base() {
        let totals = years(&[
            ("2022-09-05", dec!(1)),
            ("2023-03-05", dec!(1)),
            ("2023-09-05", dec!(1)),
            ("2024-03-05", dec!(1)),
        ]);
        assert_eq!([2022, 2023, 2024].map(|year| totals.is_base(year)), [false, true, true]);
        let whole = years(&[
            ("2023-03-05", dec!(1)),
            ("2023-09-05", dec!(1)),
            ("2024-03-05", dec!(1)),
            ("2024-09-05", dec!(1.5)),
        ]);
        assert!(whole.is_base(2023));
        assert_eq!((whole.growth(2024, 1), whole.growth(2024, 3)), (Some(dec!(25)), None));
    }
}
