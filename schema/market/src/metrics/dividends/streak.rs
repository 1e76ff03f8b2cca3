//! Increase streak and payment streak of a payer, in years (R14).
//!
//! The increase streak is the number of consecutive years with a total more than 0.05 % above the year before. It ends
//! with the last complete year (Y0). The tolerance absorbs split rounding. An equal total ends the streak. A partial
//! first year cannot be a base, as for growth (R13). The running year is added as soon as its declared total exceeds
//! the total of Y0. Specials are ignored.
//!
//! A cut declared this year does not change the number before the end of the year, but the streak is at risk. The
//! forward dividend is then below `D[Y0]` by more than the tolerance. A spin-off year without an increase is skipped:
//! it neither extends nor ends the streak. It is flagged for review. Flat years are skipped in the same way, at most
//! `streak.tolerated_flat_years` in a row (default 0).
//!
//! A year with payments of unknown amount cannot be compared. The streak ends there, and its number is a lower bound
//! (R34). A streak that reaches the first total may be longer too (`lower_bound`), unless the company was listed in
//! that year or later. An operator's seed is the streak at the end of `through_year`: `years` increases. If every later
//! year is an increase, the seed's years are added. Source: the calendar years of published lists of dividend
//! champions. The tolerance is this service's own.

use rust_decimal::Decimal;

use super::growth::AnnualTotals;
use crate::metrics::arithmetic::{keep_positive, length_to_i32, percent_to_fraction};
use crate::metrics::rules::StreakRules;

/// Increases before the data begin, given by an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreakSeed {
    /// Number of years of increases in the seed.
    pub years: i32,
    /// Last year of the seed.
    pub through_year: i32,
}

/// Increase streak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Streak {
    /// Consecutive years of increases.
    pub years: i32,
    /// True if the real streak may be longer, because earlier data or the amounts of payments are missing.
    pub lower_bound: bool,
    /// First year with an increase, including the years of an operator's seed; `None` without an increase.
    pub started: Option<i32>,
    /// True if the streak includes years of an operator's seed.
    pub seeded: bool,
}

/// True if `new` exceeds `old` by more than the tolerance.
pub fn is_increase(new: Decimal, old: Decimal, rules: &StreakRules) -> bool {
    old > Decimal::ZERO && new > old.saturating_mul(Decimal::ONE + percent_to_fraction(rules.tolerance))
}

/// True if `new` is below `old` by more than the tolerance.
pub fn is_cut(new: Decimal, old: Decimal, rules: &StreakRules) -> bool {
    new < old.saturating_mul(Decimal::ONE - percent_to_fraction(rules.tolerance))
}

/// Inputs of the increase streak other than annual totals.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreakInput<'a> {
    /// Year of the as-of date.
    pub running: i32,
    /// Operator's seed.
    pub seed: Option<StreakSeed>,
    /// Year of the listing, if known.
    pub listed: Option<i32>,
    /// Years with a spin-off.
    pub spin_offs: &'a [i32],
}

/// Computes the increase streak.
pub fn increase_streak(totals: &AnnualTotals, input: &StreakInput<'_>, rules: &StreakRules) -> Streak {
    let StreakInput { running, seed, listed, spin_offs } = *input;
    let compared = |year: i32, differs: fn(Decimal, Decimal, &StreakRules) -> bool| {
        totals.is_base(year - 1) && differs(totals.amount(year), totals.amount(year - 1), rules)
    };
    let paid = |year: i32| totals.amount(year) > Decimal::ZERO;
    let last_complete = running - 1;
    let counts_early = !totals.is_unknown(last_complete) && compared(running, is_increase);
    let last = if counts_early { running } else { last_complete };
    let walked = StreakWalk::back_from(last, rules.tolerated_flat_years, |year| {
        if totals.is_unknown(year) || totals.is_unknown(year - 1) {
            StreakYear::Unknown
        } else if compared(year, is_increase) {
            StreakYear::Increased
        } else if spin_offs.contains(&year) && paid(year) {
            StreakYear::Excused
        } else if paid(year) && paid(year - 1) && compared(year, is_kept) {
            StreakYear::Flat
        } else {
            StreakYear::Broken
        }
    });
    let seeded = seed.and_then(|seed| walked.seeded(seed, last, last_complete));
    if let Some(streak) = seeded.filter(|streak| streak.years >= walked.counted) {
        return streak;
    }
    // Oldest year that can be the base of a comparison.
    let first_base = totals.first_year().map(|first| if totals.is_base(first) { first } else { first + 1 });
    let reaches_first = first_base == Some(walked.base);
    let listed_then = listed.zip(totals.first_year()).is_some_and(|(listed, first)| listed >= first);
    Streak {
        years: walked.counted,
        lower_bound: walked.reaches_unknown || (reaches_first && !listed_then),
        started: (walked.counted > 0).then_some(walked.started),
        seeded: false,
    }
}

fn is_kept(new: Decimal, old: Decimal, rules: &StreakRules) -> bool {
    !is_cut(new, old, rules)
}

/// Kind of a year in a streak.
enum StreakYear {
    Increased,
    /// Spin-off year without an increase, which neither extends nor ends the streak.
    Excused,
    Flat,
    /// Payments of unknown amount are missing in this year or in the year before.
    Unknown,
    Broken,
}

/// Result of counting a streak back from its last year.
#[derive(Debug, Default)]
struct StreakWalk {
    /// Year of the oldest increase; 0 without an increase.
    started: i32,
    counted: i32,
    /// Oldest year with which another year was compared.
    base: i32,
    /// Tolerated years with an unchanged total. They do not extend the streak.
    flat: Vec<i32>,
    /// True if the streak ends at a year that cannot be compared.
    reaches_unknown: bool,
}

impl StreakWalk {
    fn back_from(last: i32, tolerated_flat_years: i64, is: impl Fn(i32) -> StreakYear) -> Self {
        let (mut year, mut flat_in_a_row) = (last, 0);
        let mut walked = Self { base: last, ..Self::default() };
        loop {
            match is(year) {
                StreakYear::Increased => {
                    (walked.started, walked.base) = (year, year - 1);
                    walked.counted += 1;
                    flat_in_a_row = 0;
                }
                StreakYear::Excused => {}
                StreakYear::Flat if flat_in_a_row < tolerated_flat_years => {
                    walked.base = year - 1;
                    walked.flat.push(year);
                    flat_in_a_row += 1;
                }
                StreakYear::Unknown => {
                    walked.reaches_unknown = true;
                    return walked;
                }
                StreakYear::Flat | StreakYear::Broken => return walked,
            }
            year -= 1;
        }
    }

    /// Streak with the years of the seed added. A seed through the last complete year always applies. `None` if the
    /// streak does not reach back to the seed, or if the seed ends after `last`.
    fn seeded(&self, seed: StreakSeed, last: i32, last_complete: i32) -> Option<Streak> {
        let unbroken = self.base <= seed.through_year;
        let vouched = seed.through_year >= last_complete;
        if seed.through_year > last || !(unbroken || vouched) {
            return None;
        }
        let flat = length_to_i32(self.flat.iter().filter(|year| **year > seed.through_year).count());
        let years = seed.years + (last - seed.through_year) - flat;
        let started = (years > 0).then(|| last + 1 - years - flat);
        Some(Streak { years, lower_bound: false, started, seeded: true })
    }
}

/// True if the forward dividend is below the total of the last complete year by more than the tolerance.
pub fn is_at_risk(
    forward: Option<Decimal>,
    totals: &AnnualTotals,
    last_complete: i32,
    rules: &StreakRules,
) -> bool {
    let total = keep_positive(Some(totals.amount(last_complete)));
    forward.zip(total).is_some_and(|(forward, total)| is_cut(forward, total, rules))
}

/// Consecutive years with a regular payment, counted back from the running year or from the year before.
///
/// `unproven` are years with a quarantined amount. The payer paid in these years, but the amount is unknown.
pub fn payment_years(totals: &AnnualTotals, unproven: &[i32], running: i32) -> i32 {
    let paid = |year: i32| totals.amount(year) > Decimal::ZERO || unproven.contains(&year);
    let last = if paid(running) { running } else { running - 1 };
    (0..).take_while(|back| paid(last - back)).last().map_or(0, |back| back + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::dividends::schedule::{Schedule, ScheduleRow};
    use crate::metrics::dividends::yields::DividendRate;
    use crate::metrics::rules::Rules;
    use chrono::NaiveDate;

    const RULES: StreakRules = Rules::DEFAULT.streak;

    fn totals_of(rates: &[DividendRate]) -> AnnualTotals {
        let rows: Vec<ScheduleRow> = rates.iter().map(|rate| ScheduleRow::from(*rate)).collect();
        AnnualTotals::new(&Schedule::read(&rows, &Rules::DEFAULT), "2025-02-01".parse().unwrap())
    }

    /// Totals of years ending with 2024; the running year is 2025.
    fn totals(amounts: &[Decimal]) -> AnnualTotals {
        let first = 2025 - i32::try_from(amounts.len()).unwrap();
        let day = |year| NaiveDate::from_ymd_opt(year, 5, 15).unwrap();
        let rates: Vec<DividendRate> = (first..)
            .zip(amounts)
            .filter(|(_, a)| !a.is_zero())
            .map(|(year, amount)| DividendRate { ex_date: day(year), amount: *amount })
            .collect();
        totals_of(&rates)
    }

    #[test]
    fn increases() {
        let check = |amounts: &[Decimal], years, lower_bound| {
            let found = increase_streak(
                &totals(amounts),
                &StreakInput { running: 2025, ..StreakInput::default() },
                &RULES,
            );
            assert_eq!((found.years, found.lower_bound), (years, lower_bound), "{amounts:?}");
        };
        check(&[], 0, false);
        check(&[dec!(1)], 0, true);
        check(&[dec!(1), dec!(2), dec!(3)], 2, true);
        check(&[dec!(3), dec!(2), dec!(3)], 1, false);
        check(&[dec!(1), dec!(2), dec!(2)], 0, false);
        check(&[dec!(1), dec!(1.0005)], 0, false);
        check(&[dec!(1), dec!(1.00051)], 1, true);
        check(&[dec!(1), dec!(0), dec!(1), dec!(2)], 1, false);
        let listed = StreakInput { running: 2025, listed: Some(2023), ..StreakInput::default() };
        assert!(!increase_streak(&totals(&[dec!(1), dec!(2)]), &listed, &RULES).lower_bound);
    }

    #[test]
    fn tolerated_flat_years_are_passed_over() {
        let check = |amounts: &[Decimal], tolerated_flat_years, years, started, lower_bound| {
            let rules = StreakRules { tolerated_flat_years, ..RULES };
            let input = StreakInput { running: 2025, ..StreakInput::default() };
            let found = increase_streak(&totals(amounts), &input, &rules);
            let expected = (years, started, lower_bound);
            assert_eq!((found.years, found.started, found.lower_bound), expected, "{amounts:?}");
        };
        let paused = [dec!(1), dec!(2), dec!(2), dec!(3), dec!(3), dec!(3), dec!(4)];
        check(&paused, 0, 1, Some(2024), false);
        check(&paused, 1, 1, Some(2024), false);
        check(&paused, 2, 3, Some(2019), true);
        // The newest year may be flat. A cut is not flat, and neither is a year after a year without payments.
        check(&paused[..6], 2, 2, Some(2020), true);
        check(&[dec!(3), dec!(2), dec!(3)], 5, 1, Some(2024), false);
        check(&[dec!(1), dec!(0), dec!(2), dec!(2), dec!(3)], 5, 1, Some(2024), false);
        check(&[dec!(2), dec!(2), dec!(3)], 1, 1, Some(2024), true);
        let seed = Some(StreakSeed { years: 40, through_year: 2018 });
        let input = StreakInput { running: 2025, seed, ..StreakInput::default() };
        let found =
            increase_streak(&totals(&paused), &input, &StreakRules { tolerated_flat_years: 2, ..RULES });
        assert_eq!((found.years, found.started, found.seeded), (43, Some(1979), true));
        // A flat year within the seed is one of its years. A flat year after the seed adds none.
        let raised = [dec!(1), dec!(1), dec!(2), dec!(3)];
        let rules = StreakRules { tolerated_flat_years: 1, ..RULES };
        for (through_year, expected) in [(2021, (12, Some(2012))), (2022, (12, Some(2013)))] {
            let seed = Some(StreakSeed { years: 10, through_year });
            let input = StreakInput { running: 2025, seed, ..StreakInput::default() };
            let found = increase_streak(&totals(&raised), &input, &rules);
            assert_eq!((found.years, found.started), expected, "through {through_year}");
        }
    }

    #[test]
    fn a_running_year_counts_early_but_never_against() {
        let input = StreakInput { running: 2024, ..StreakInput::default() };
        let found = |amounts: &[Decimal]| increase_streak(&totals(amounts), &input, &RULES).years;
        assert_eq!(found(&[dec!(1), dec!(1.1), dec!(1.12)]), 2);
        assert_eq!(found(&[dec!(1), dec!(1.1), dec!(0.6)]), 1);
    }

    #[test]
    fn a_spin_off_year_does_not_end_a_streak() {
        let check = |amounts: &[Decimal], spin_offs: &[i32], years, started| {
            let input = StreakInput { running: 2025, spin_offs, ..StreakInput::default() };
            let found = increase_streak(&totals(amounts), &input, &RULES);
            assert_eq!((found.years, found.started), (years, started), "{amounts:?} {spin_offs:?}");
        };
        let halved = [dec!(1), dec!(1.1), dec!(1.2), dec!(0.6), dec!(0.7)];
        check(&halved, &[], 1, Some(2024));
        check(&halved, &[2023], 3, Some(2021));
        check(&halved, &[2022], 1, Some(2024));
        check(&halved[..4], &[2024], 2, Some(2022));
        check(&[dec!(1), dec!(1.1), dec!(1.2)], &[2024], 2, Some(2023));
        check(&[dec!(1), dec!(0)], &[2024], 0, None);
    }

    #[test]
    fn seeds() {
        let rising = totals(&[dec!(1), dec!(2), dec!(3)]);
        let check = |years, through_year, expected: (i32, bool)| {
            let seed = Some(StreakSeed { years, through_year });
            let found = increase_streak(
                &rising,
                &StreakInput { running: 2025, seed, ..StreakInput::default() },
                &RULES,
            );
            assert_eq!((found.years, found.lower_bound), expected, "{years} through {through_year}");
            assert_eq!(found.seeded, !expected.1, "{years} through {through_year}");
        };
        check(43, 2022, (45, false));
        check(43, 2024, (43, false));
        check(43, 2020, (2, true));
        check(43, 2030, (2, true));
        check(1, 2024, (2, true));
    }

    #[test]
    fn paid_years_and_risk() {
        let paid = totals(&[dec!(1), dec!(0), dec!(1), dec!(1)]);
        assert_eq!((payment_years(&paid, &[], 2025), payment_years(&paid, &[], 2024)), (2, 2));
        assert_eq!((payment_years(&paid, &[2025], 2025), payment_years(&paid, &[2022], 2024)), (3, 4));
        assert_eq!(payment_years(&totals(&[]), &[], 2025), 0);
        assert!(is_at_risk(Some(dec!(0.9)), &paid, 2024, &RULES));
        assert!(!is_at_risk(Some(dec!(0.9996)), &paid, 2024, &RULES));
        assert!(!is_at_risk(None, &paid, 2024, &RULES));
    }

    #[test]
    fn a_short_first_year_is_no_base() {
        let paid = |days: &[&str]| -> AnnualTotals {
            let rates: Vec<DividendRate> = days
                .iter()
                .zip([dec!(1), dec!(1), dec!(1), dec!(1), dec!(1.1)])
                .map(|(day, amount)| DividendRate { ex_date: day.parse().unwrap(), amount })
                .collect();
            totals_of(&rates)
        };
        let check = |days: &[&str], listed, years, lower_bound| {
            let input = StreakInput { running: 2025, listed, ..StreakInput::default() };
            let found = increase_streak(&paid(days), &input, &RULES);
            assert_eq!((found.years, found.lower_bound), (years, lower_bound), "{days:?}");
        };
        let begun_in_autumn = ["2023-11-10", "2024-05-10", "2024-11-08"];
        check(&begun_in_autumn, None, 0, true);
        check(&begun_in_autumn, Some(2023), 0, false);
        check(&begun_in_autumn, Some(2022), 0, true);
        // The third year is compared with the second, which is complete.
        let grown = ["2022-11-10", "2023-05-10", "2023-11-08", "2024-05-10", "2024-11-08"];
        check(&grown, None, 1, true);
        check(&grown, Some(2022), 1, false);
        check(&["2023-05-10", "2023-11-10", "2024-05-10", "2024-11-08"], None, 0, false);
    }

    #[test]
    fn bounds_of_increases_and_cuts() {
        assert_eq!([dec!(1.0005), dec!(1.00051)].map(|new| is_increase(new, dec!(1), &RULES)), [false, true]);
        assert_eq!([dec!(0.9995), dec!(0.99949)].map(|new| is_cut(new, dec!(1), &RULES)), [false, true]);
        assert!(!is_increase(dec!(1), dec!(0), &RULES) && !is_cut(dec!(0), dec!(0), &RULES));
        let paid = totals(&[dec!(1), dec!(0)]);
        assert!(
            !is_at_risk(Some(dec!(0)), &paid, 2024, &RULES) && is_at_risk(Some(dec!(0)), &paid, 2023, &RULES)
        );
    }

    #[test]
    fn a_seed_joins_a_streak_that_reaches_it() {
        // Raised in 2023 and 2024; frozen in 2022.
        let raised = totals(&[dec!(1), dec!(1), dec!(2), dec!(3)]);
        let check =
            |totals: &AnnualTotals, running, years, through_year, expected: (i32, bool, Option<i32>)| {
                let seed = Some(StreakSeed { years, through_year });
                let found =
                    increase_streak(totals, &StreakInput { running, seed, ..StreakInput::default() }, &RULES);
                assert_eq!(
                    (found.years, found.seeded, found.started),
                    expected,
                    "{years} through {through_year}"
                );
            };
        check(&raised, 2025, 10, 2022, (12, true, Some(2013)));
        check(&raised, 2025, 10, 2021, (2, false, Some(2023)));
        check(&raised, 2025, 10, 2023, (11, true, Some(2014)));
        check(&raised, 2025, 1, 2022, (3, true, Some(2022)));
        check(&raised, 2025, 0, 2022, (2, true, Some(2023)));
        // A seed is valid up to the newest complete year, even against the data, but not for later years.
        let frozen = totals(&[dec!(1), dec!(1)]);
        check(&frozen, 2025, 10, 2024, (10, true, Some(2015)));
        check(&frozen, 2025, 10, 2023, (0, false, None));
        check(&frozen, 2025, 10, 2025, (0, false, None));
        check(&frozen, 2025, 0, 2024, (0, true, None));
    }

    #[test]
    fn a_streak_over_spin_offs_begins_with_an_increase() {
        let input = StreakInput { running: 2025, spin_offs: &[2023], ..StreakInput::default() };
        let found = increase_streak(&totals(&[dec!(2), dec!(1), dec!(2)]), &input, &RULES);
        assert_eq!((found.years, found.started), (1, Some(2024)));
        // A spin-off year without a payment ends the streak.
        let found = increase_streak(&totals(&[dec!(1), dec!(0), dec!(2)]), &input, &RULES);
        assert_eq!((found.years, found.started), (0, None));
    }

    #[test]
    fn years_with_payments_are_counted_back_from_now() {
        let paid = totals(&[dec!(1), dec!(1)]);
        assert_eq!([2023, 2024, 2025, 2026].map(|running| payment_years(&paid, &[], running)), [1, 2, 2, 0]);
    }
}
