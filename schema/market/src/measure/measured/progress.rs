//! How the dividend developed: totals, growth, streaks, changes.

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use super::basis::Basis;
use super::income::Income;
use crate::measure::changes::{RateChanges, rate_changes};
use crate::measure::class::Class;
use crate::measure::growth::AnnualTotals;
use crate::measure::streak::{Streak, StreakFacts, StreakSeed, is_at_risk, payment_years, streak};
use crate::row::{Flag, Flags};

/// Development over the years.
#[derive(Debug)]
pub(crate) struct Progress {
    pub totals: AnnualTotals,
    /// Growth over 1, 3, 5 and 10 years, percent a year.
    pub growth: [Option<Decimal>; 4],
    pub streak: Streak,
    pub at_risk: bool,
    pub payment_years: i32,
    pub changes: RateChanges,
}

/// Measures the development; flags moved payments and spin-offs.
pub(crate) fn progress(basis: &Basis<'_>, income: &Income, flags: &mut Flags) -> Progress {
    let (running, per_year) = (basis.as_of.year(), basis.payments_per_year());
    let totals = AnnualTotals::new(&basis.rates, per_year, basis.as_of);
    if !totals.shifted.is_empty() {
        flags.set(Flag::BoundaryShift);
    }
    let security = basis.security();
    let seed = security.and_then(|security| security.streak_seed_years.zip(security.streak_seed_through));
    let seed = seed.map(|(years, through_year)| StreakSeed { years, through_year });
    let listed = security.and_then(|security| security.ipo_date).map(|date| date.year());
    let spin_offs = spin_off_years(basis);
    let facts = StreakFacts { running, seed, listed, spin_offs: &spin_offs };
    let streak = streak(&totals, &facts, &basis.rules.streak);
    if streak.started.is_some_and(|started| spin_offs.iter().any(|year| *year >= started)) {
        flags.set(Flag::SpinOffReview);
    }
    if streak.seeded {
        flags.set(Flag::StreakSeeded);
    }
    Progress {
        growth: [1, 3, 5, 10].map(|span| totals.growth(running - 1, span)),
        streak,
        at_risk: is_at_risk(income.forward.amount, &totals, running - 1, &basis.rules.streak),
        payment_years: payment_years(&totals, &unproven_years(basis), running),
        changes: rate_changes(&basis.rates, per_year, basis.as_of, basis.rules),
        totals,
    }
}

/// Years with a regular amount held as an outlier: something was paid in them.
fn unproven_years(basis: &Basis<'_>) -> Vec<i32> {
    let gone_ex = basis.ex_dates.iter().filter(|date| **date <= basis.as_of);
    let unproven =
        gone_ex.filter(|date| basis.rates.binary_search_by_key(*date, |rate| rate.ex_date).is_err());
    unproven.map(NaiveDate::year).collect()
}

/// Years with a spin-off: parent and child would have to be judged together.
fn spin_off_years(basis: &Basis<'_>) -> Vec<i32> {
    let spin_offs = basis
        .payments()
        .iter()
        .filter(|payment| payment.class == Class::SpinOff && payment.ex_date <= basis.as_of);
    spin_offs.map(|payment| payment.ex_date.year()).collect()
}
