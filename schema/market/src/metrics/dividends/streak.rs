//! Increase streak and payment streak of a payer, in years (R14).
//!
//! The increase streak is the number of consecutive years with an increase. An increase is a total more than 0.05 %
//! above the total of the year before. The tolerance of 0.05 % absorbs split rounding. Specials are ignored.
//!
//! The years are counted back from the last complete year (Y0). The running year is added as soon as its declared total
//! is an increase over Y0. A cut declared this year reduces the streak only after the end of the year. The streak is at
//! risk if the forward dividend is more than 0.05 % below Y0's total.
//!
//! These years have special rules:
//! - Partial first year: the first year with data has fewer payments than the second. The second year is not compared
//!   with the first. Growth has the same rule (R13).
//! - Spin-off year: a year with payments and a spin-off, but without an increase. It neither extends nor ends the
//!   streak. Any year with a spin-off in the streak sets the flag `spin_off_review`. The next year is compared with the
//!   yearly rate after the spin-off, if this is below the total of the spin-off year.
//! - Flat year: a year with a total equal to the year before. By default, it ends the streak. The parameter
//!   `streak.tolerated_flat_years` (default 0) tolerates this number of flat years in a row. Tolerated years neither
//!   extend nor end the streak.
//! - Unknown year: a year with payments of unknown amount. It cannot be compared, so the streak begins after it. The
//!   number of years is then a lower bound (`lower_bound`, R34).
//!
//! The number is also a lower bound if the streak reaches back to the first known total. There is one exception. The
//! number is exact if the company was listed in the year of that total or later.
//!
//! An operator can extend a streak with a seed. The seed is the number of years of increases up to a year
//! `through_year`. The seed's years are added if no year after `through_year` ends the streak. The seed is ignored in
//! two cases:
//! - `through_year` is after the last counted year.
//! - The data alone prove a longer streak.
//!
//! Source: the calendar years of published lists of dividend champions. The tolerance is this service's own.

use rust_decimal::Decimal;

use super::growth::AnnualTotals;
use crate::metrics::arithmetic::{keep_positive, length_to_i32, percent_to_fraction};
use crate::metrics::rules::StreakRules;

/// Seed of a streak: years of increases before the data begin, entered by an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreakSeed {
    /// Number of years of increases up to `through_year`.
    pub years: i32,
    /// Last year of the seed.
    pub through_year: i32,
}

/// Increase streak of a payer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Streak {
    /// Number of consecutive years of increases.
    pub years: i32,
    /// True if the real streak may be longer, because earlier years or amounts are unknown.
    pub lower_bound: bool,
    /// Year of the first increase, which an operator may have entered ([`StreakSeed`]); `None` without an increase.
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

/// Inputs of the increase streak. The annual totals are passed separately.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreakInput<'a> {
    /// Year of the as-of date.
    pub running: i32,
    /// Years of increases that an operator entered; `None` without an entry.
    pub seed: Option<StreakSeed>,
    /// Year of the company's listing; `None` if unknown.
    pub listed: Option<i32>,
    /// Years with a spin-off.
    pub spin_offs: &'a [i32],
    /// Year of a spin-off, and yearly rate of the last payment of this year after the spin-off.
    pub rates_after: &'a [(i32, Decimal)],
}

/// Computes the increase streak.
pub fn increase_streak(totals: &AnnualTotals, input: &StreakInput<'_>, rules: &StreakRules) -> Streak {
    let StreakInput { running, seed, listed, .. } = *input;
    let last_complete = running - 1;
    // The running year counts as soon as its declared total is an increase.
    let counts_early = !totals.is_unknown(last_complete) && is_increased_year(running, totals, input, rules);
    let last = if counts_early { running } else { last_complete };
    let walked = StreakWalk::back_from(last, rules.tolerated_flat_years, |year| {
        classify_year(year, totals, input, rules)
    });
    let seeded = seed.and_then(|seed| walked.seeded(seed, last, last_complete));
    if let Some(streak) = seeded.filter(|streak| streak.years >= walked.counted) {
        return streak;
    }
    // First year from which an increase can be computed.
    let first_base = totals.first_year().map(|first| if totals.is_base(first) { first } else { first + 1 });
    // Only spin-off years can be between the year at which counting back stopped and the base.
    let reaches_first = first_base.is_some_and(|first| (walked.stopped_at..=walked.base).contains(&first));
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreakYear {
    Increased,
    /// Year with a spin-off and no increase, which neither extends nor ends the streak.
    Excused,
    Flat,
    /// Year that cannot be compared, because it or the year before has unknown amounts.
    Unknown,
    Broken,
}

/// Compares a year with the year before.
pub(crate) fn classify_year(
    year: i32,
    totals: &AnnualTotals,
    input: &StreakInput<'_>,
    rules: &StreakRules,
) -> StreakYear {
    let paid = |year: i32| totals.amount(year) > Decimal::ZERO;
    if totals.is_unknown(year) || totals.is_unknown(year - 1) {
        StreakYear::Unknown
    } else if is_increased_year(year, totals, input, rules) {
        StreakYear::Increased
    } else if input.spin_offs.contains(&year) && paid(year) {
        StreakYear::Excused
    } else if paid(year)
        && paid(year - 1)
        && differs(year, totals, input, |new, old| is_kept(new, old, rules))
    {
        StreakYear::Flat
    } else {
        StreakYear::Broken
    }
}

fn is_increased_year(year: i32, totals: &AnnualTotals, input: &StreakInput<'_>, rules: &StreakRules) -> bool {
    differs(year, totals, input, |new, old| is_increase(new, old, rules))
}

/// Compares the total of a year with the total of the year before, or with the yearly rate after a spin-off of that
/// year. False if the year before cannot be a base.
fn differs(
    year: i32,
    totals: &AnnualTotals,
    input: &StreakInput<'_>,
    compare: impl Fn(Decimal, Decimal) -> bool,
) -> bool {
    let rates = input.rates_after.iter().filter(|(of, _)| *of == year - 1).map(|(_, rate)| *rate);
    let base = rates.chain([totals.amount(year - 1)]).min().unwrap_or_default();
    totals.is_base(year - 1) && compare(totals.amount(year), base)
}

/// Result of counting a streak back from its last year.
#[derive(Debug, Default)]
struct StreakWalk {
    /// Year of the first increase of the streak; 0 without an increase.
    started: i32,
    counted: i32,
    /// Year with which the earliest year of the streak is compared; the last year if the streak is empty.
    base: i32,
    /// Years that neither extend nor end the streak: spin-off years and tolerated flat years.
    neutral: Vec<i32>,
    /// Year that is not part of the streak, at which counting back stopped.
    stopped_at: i32,
    /// True if counting back stopped at a year that cannot be compared with the year before ([`StreakYear::Unknown`]).
    reaches_unknown: bool,
}

impl StreakWalk {
    fn back_from(last: i32, tolerated_flat_years: i64, is: impl Fn(i32) -> StreakYear) -> Self {
        let (mut year, mut flat_in_a_row) = (last, 0);
        let mut walked = Self { base: last, ..Self::default() };
        loop {
            walked.stopped_at = year;
            match is(year) {
                StreakYear::Increased => {
                    (walked.started, walked.base) = (year, year - 1);
                    walked.counted += 1;
                    flat_in_a_row = 0;
                }
                StreakYear::Excused => walked.neutral.push(year),
                StreakYear::Flat if flat_in_a_row < tolerated_flat_years => {
                    walked.base = year - 1;
                    walked.neutral.push(year);
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

    /// Extends the streak, which was counted back from `last`, by the increases that an operator entered (`seed`).
    /// `None` if streak and seed do not connect.
    fn seeded(&self, seed: StreakSeed, last: i32, last_complete: i32) -> Option<Streak> {
        let unbroken = self.stopped_at <= seed.through_year;
        let vouched = seed.through_year >= last_complete;
        if seed.through_year > last || !(unbroken || vouched) {
            return None;
        }
        let neutral = self.neutral.iter().filter(|year| **year > seed.through_year).count();
        let neutral = length_to_i32(neutral);
        let years = seed.years + (last - seed.through_year) - neutral;
        let started = (years > 0).then(|| last + 1 - years - neutral);
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

/// Number of consecutive years with a regular payment, counted back from the running year or the year before. In
/// `unproven` years, the payer paid an unknown amount.
pub fn payment_years(totals: &AnnualTotals, unproven: &[i32], running: i32) -> i32 {
    let paid = |year: i32| totals.amount(year) > Decimal::ZERO || unproven.contains(&year);
    let last = if paid(running) { running } else { running - 1 };
    (0..).take_while(|back| paid(last - back)).last().map_or(0, |back| back + 1)
}

#[cfg(test)]
mod tests;
