//! Growth metrics: annual totals, growth rates, streaks and rate changes.

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use super::income::IncomeMetrics;
use super::inputs::MetricInputs;
use crate::metrics::dividends::growth::AnnualTotals;
use crate::metrics::dividends::rate_changes::{RateChanges, rate_changes};
use crate::metrics::dividends::schedule::Reading;
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::dividends::streak::{
    Streak, StreakInput, StreakSeed, increase_streak, is_at_risk, payment_years,
};
use crate::metrics::dividends::yields::RegularDividend;
use crate::row::{AmountReading, Flag, Flags};

/// Longest period of a growth rate, years.
const LONGEST_SPAN: i32 = 10;

#[derive(Debug)]
pub(crate) struct GrowthMetrics {
    pub totals: AnnualTotals,
    /// Dividend growth over 1, 3, 5 and 10 years, percent a year; `None` if it cannot be computed.
    pub growth: [Option<Decimal>; 4],
    pub streak: Streak,
    /// Years with a spin-off, each with the yearly rate after it, with which the next year is compared (R14).
    pub rates_after: Vec<(i32, Decimal)>,
    /// Years with a spin-off.
    pub spin_offs: Vec<i32>,
    pub at_risk: bool,
    pub payment_years: i32,
    pub changes: RateChanges,
}

/// Computes the growth metrics, and sets flags for unusual dividend years and streaks.
pub(crate) fn growth(inputs: &MetricInputs<'_>, income: &IncomeMetrics, flags: &mut Flags) -> GrowthMetrics {
    let (running, per_year) = (inputs.as_of.year(), inputs.payments_per_year());
    let totals = AnnualTotals::new(&inputs.schedule, inputs.as_of);
    let security = inputs.security();
    let seed = security.and_then(|security| security.streak_seed_years.zip(security.streak_seed_through));
    let seed = seed.map(|(years, through_year)| StreakSeed { years, through_year });
    let listed = security.and_then(|security| security.ipo_date).map(|date| date.year());
    let spin_off_days = spin_off_days(inputs);
    let spin_offs: Vec<i32> = spin_off_days.iter().map(NaiveDate::year).collect();
    let rates_after: Vec<(i32, Decimal)> =
        spin_off_days.iter().filter_map(|day| Some((day.year(), rate_after(inputs, *day)?))).collect();
    let facts = StreakInput { running, seed, listed, spin_offs: &spin_offs, rates_after: &rates_after };
    let streak = increase_streak(&totals, &facts, &inputs.rules.streak);
    let spans_spin_off = |started| spin_offs.iter().any(|year| *year >= started);
    flags.set_if(Flag::SpinOffReview, streak.started.is_some_and(spans_spin_off));
    flags.set_if(Flag::StreakSeeded, streak.seeded);
    flags.set_if(Flag::BoundaryShift, !totals.shifted.is_empty());
    let first_used = streak.started.map_or(running, |started| started - 1).min(running - 1 - LONGEST_SPAN);
    flags.set_if(Flag::PaymentGap, totals.gaps.iter().any(|year| *year >= first_used));
    flags.set_if(Flag::AnnualTotalScaled, totals.scaled.iter().any(|year| *year >= first_used));
    let sustained: Vec<RegularDividend> = inputs.schedule.sustained_amounts().collect();
    GrowthMetrics {
        growth: [1, 3, 5, LONGEST_SPAN].map(|span| totals.growth(running - 1, span).ok()),
        streak,
        rates_after,
        spin_offs,
        at_risk: is_at_risk(income.forward.amount, &totals, running - 1, &inputs.rules.streak),
        payment_years: payment_years(&totals, &unproven_years(inputs), running),
        changes: rate_changes(&sustained, per_year, inputs.as_of, &inputs.rules.streak),
        totals,
    }
}

/// Years with a regular payment whose amount is quarantined. The security paid in such a year, but the amount is
/// unknown.
fn unproven_years(inputs: &MetricInputs<'_>) -> Vec<i32> {
    let gone_ex = inputs.ex_dates.iter().filter(|date| **date <= inputs.as_of);
    let unproven =
        gone_ex.filter(|date| inputs.rates.binary_search_by_key(*date, |rate| rate.ex_date).is_err());
    unproven.map(NaiveDate::year).collect()
}

/// Days of spin-offs. A streak that spans such a day needs a review.
fn spin_off_days(inputs: &MetricInputs<'_>) -> Vec<NaiveDate> {
    let spin_offs = inputs
        .payments()
        .iter()
        .filter(|payment| payment.class == DividendClass::SpinOff && payment.ex_date <= inputs.as_of);
    let ratios = inputs.merged.split_table.events().iter();
    let passed = ratios.filter(|event| event.is_price_only && event.ex_date <= inputs.as_of);
    spin_offs.map(|payment| payment.ex_date).chain(passed.map(|event| event.ex_date)).collect()
}

/// Yearly rate of the last regular payment in the year of a spin-off, on or after its day.
fn rate_after(inputs: &MetricInputs<'_>, spin_off: NaiveDate) -> Option<Decimal> {
    let mut readings = inputs.schedule.readings.iter().rev();
    let is_after = |reading: &&Reading| {
        reading.kind != AmountReading::Special
            && reading.year == spin_off.year()
            && (spin_off..=inputs.as_of).contains(&reading.ex_date)
    };
    let last = readings.find(is_after)?;
    Some(last.sustained.saturating_mul(last.per_year?.into()))
}
