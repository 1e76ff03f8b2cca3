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
mod tests {
    use super::*;
    use crate::decimal::round;
    use crate::metrics::dividends::schedule::ScheduleRow;
    use crate::metrics::dividends::yields::RegularDividend;
    use crate::metrics::rules::Rules;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn totals_of(rates: &[RegularDividend], as_of: &str) -> AnnualTotals {
        let rows: Vec<ScheduleRow> = rates.iter().map(|rate| ScheduleRow::from(*rate)).collect();
        AnnualTotals::new(&Schedule::read(&rows, &Rules::DEFAULT), date(as_of))
    }

    fn yearly(first: i32, amounts: &[Decimal]) -> Vec<RegularDividend> {
        let day = |year| NaiveDate::from_ymd_opt(year, 5, 15).unwrap();
        (first..)
            .zip(amounts)
            .filter(|(_, a)| !a.is_zero())
            .map(|(year, amount)| RegularDividend { ex_date: day(year), amount: *amount })
            .collect()
    }

    #[test]
    fn compound_growth() {
        let check = |amounts: &[Decimal], span, expected: Option<Decimal>| {
            let totals = totals_of(&yearly(2014, amounts), "2025-02-01");
            assert_eq!(
                totals.growth(2024, span).ok().map(|g| round(g, 4)),
                expected,
                "{amounts:?} over {span}"
            );
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
        let rates: Vec<RegularDividend> = rows
            .iter()
            .map(|(day, amount)| RegularDividend { ex_date: date(day), amount: *amount })
            .collect();
        let growth = totals_of(&rates, "2025-01-31").growth(2024, 1);
        assert_eq!(growth, Err(NoGrowthReason::PartialBase(2023)));
    }

    #[test]
    fn slipped_ex_dates_move_back_over_new_year() {
        let days = [
            "2022-01-05",
            "2022-04-05",
            "2022-07-05",
            "2022-10-05",
            "2023-01-05",
            "2023-04-05",
            "2023-07-05",
            "2023-10-05",
            "2023-12-29",
            "2024-04-05",
            "2024-07-05",
            "2024-10-05",
        ];
        let rates: Vec<RegularDividend> =
            days.iter().map(|day| RegularDividend { ex_date: date(day), amount: dec!(1) }).collect();
        let totals = totals_of(&rates, "2025-01-31");
        assert_eq!(totals.shifted, [2024]);
        assert!((2022..=2024).all(|year| totals.amount(year) == dec!(4)));
        let running = totals_of(&rates, "2024-12-31");
        assert_eq!(running.shifted, [2024]);
    }

    fn years(days: &[(&str, Decimal)]) -> AnnualTotals {
        let rates: Vec<RegularDividend> = days
            .iter()
            .map(|(day, amount)| RegularDividend { ex_date: date(day), amount: *amount })
            .collect();
        totals_of(&rates, "2025-01-31")
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
        // In each of these cases, one ex-date is in the calendar year before or after its dividend year.
        check(["2023-01-05", "2023-07-05", "2023-12-29", "2024-07-05"], Some(2024), even, even_sums);
        check(["2023-07-05", "2024-01-02", "2024-07-05", "2024-12-27"], Some(2023), even, even_sums);
        check(["2023-01-05", "2023-07-05", "2023-11-29", "2024-07-05"], Some(2024), even, even_sums);
        check(["2023-07-05", "2024-02-02", "2024-07-05", "2024-12-27"], Some(2023), even, even_sums);
        // Four payments with ex-dates in 2023 all count in 2023.
        check(["2023-01-05", "2023-07-05", "2023-10-05", "2023-12-29"], None, [4, 0], [dec!(15), dec!(0)]);
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
        assert_eq!((totals.amount(2024), totals.amount(2025)), (dec!(2), dec!(1)));
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
        assert_eq!([2022, 2023, 2024].map(|year| totals.is_complete(year, 2024)), [false, true, false]);
        let whole = years(&[
            ("2023-03-05", dec!(1)),
            ("2023-09-05", dec!(1)),
            ("2024-03-05", dec!(1)),
            ("2024-09-05", dec!(1.5)),
        ]);
        assert!(whole.is_base(2023));
        assert!(whole.is_complete(2023, 2025) && whole.is_complete(2024, 2025));
        let expected = (Ok(dec!(25)), Err(NoGrowthReason::NoBase(2021)));
        assert_eq!((whole.growth(2024, 1), whole.growth(2024, 3)), expected);
    }

    #[test]
    fn a_first_year_is_complete_if_its_payments_cover_it() {
        let first_year = |days: &[&str], as_of: &str| {
            let rates: Vec<RegularDividend> =
                days.iter().map(|day| RegularDividend { ex_date: date(day), amount: dec!(1) }).collect();
            let totals = totals_of(&rates, as_of);
            totals.is_complete(totals.first_year().unwrap(), date(as_of).year())
        };
        let quarters = ["2023-02-10", "2023-05-10", "2023-08-10", "2023-11-10", "2024-02-10", "2024-05-10"];
        assert!(first_year(&quarters, "2024-06-30"));
        assert!(!first_year(&quarters[1..], "2024-06-30"), "the first quarter is missing");
        assert!(!first_year(&quarters[..3], "2023-12-31"), "the running year");
        // Weekly payments have no slots. Only a later complete year shows that the first year is complete.
        let weekly: Vec<String> =
            (0..104).map(|week| (date("2022-01-07") + chrono::Days::new(7 * week)).to_string()).collect();
        let weekly: Vec<&str> = weekly.iter().map(String::as_str).collect();
        assert!(!first_year(&weekly, "2023-12-31"));
        assert!(first_year(&weekly, "2024-01-31"));
        assert!(!first_year(&weekly[20..], "2024-01-31"), "the first weeks are missing");
    }
}
