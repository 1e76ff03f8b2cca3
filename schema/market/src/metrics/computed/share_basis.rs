//! Detection of dividend amounts that are adjusted for a split twice (R37).
//!
//! A feed with raw amounts should give each amount as declared, per share of that time. For payments before a split,
//! some feeds instead give the amount per share after the split. This service then adjusts such amounts for the split a
//! second time. The sign of this error is a jump at the split: the adjusted amount changes by the split ratio, within
//! `share_basis.tolerance`, and the yield of one payment changes by about the same ratio.
//!
//! A split with this sign sets the flag `amount_basis_suspect`. Growth and rate changes across the split are null. The
//! increase streak cannot start before the second year after the split. The amounts themselves are not changed.
//!
//! Growth, rate changes and streak are also limited to the time since the last change of the dividend currency (R43).
//!
//! Splits below 2 for 1 are ignored: companies often keep the amount per share at a 5 for 4 split.

use std::ops::RangeInclusive;

use chrono::{Datelike, NaiveDate};
use rust_decimal::Decimal;

use super::growth::GrowthMetrics;
use super::inputs::MetricInputs;
use crate::event::ShareBasis;
use crate::metrics::arithmetic::{quotient, within_factor};
use crate::metrics::dividends::frequency::is_restart;
use crate::metrics::dividends::streak::Streak;
use crate::metrics::dividends::yields::RegularDividend;
use crate::metrics::merge::has_moved_with;
use crate::metrics::prices::adjustment::SplitEvent;
use crate::row::{Flag, Flags};

const LEAST_RATIO: Decimal = Decimal::TWO;

/// Split with suspect dividend amounts before it. The feed marks these amounts as raw (as declared), but they are
/// probably already adjusted for the split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SuspectSplit {
    ex_date: NaiveDate,
    /// First regular ex-date on or after the split.
    next_payment: NaiveDate,
}

/// Removes growth, rate changes and streak years that span a change of the dividend currency (R43).
fn limit_to_currency(inputs: &MetricInputs<'_>, growth: &mut GrowthMetrics) {
    let Some(since) = inputs.currency_since.filter(|since| *since <= inputs.as_of) else { return };
    remove_growth(inputs, growth, |years| *years.start() < since.year(), |date| date == since);
    let (streak, first) = (&mut growth.streak, since.year() + 1);
    if !streak.seeded {
        shorten_streak(streak, first);
        streak.lower_bound |= streak.started.is_some_and(|started| started <= first + 1);
    }
}

/// Removes the growth over years for which `is_across` is true, and the rate changes on days for which `is_step` is true.
fn remove_growth(
    inputs: &MetricInputs<'_>,
    growth: &mut GrowthMetrics,
    is_across: impl Fn(RangeInclusive<i32>) -> bool,
    is_step: impl Fn(NaiveDate) -> bool,
) {
    let last = inputs.as_of.year() - 1;
    for (span, value) in [1, 3, 5, 10].into_iter().zip(&mut growth.growth) {
        *value = value.filter(|_| !is_across(last - span..=last));
    }
    let changes = &mut growth.changes;
    changes.latest_increase = changes.latest_increase.filter(|(date, _)| !is_step(*date));
    changes.last_cut = changes.last_cut.filter(|date| !is_step(*date));
}

/// Removes the years of a streak before `first`. Returns false if the streak has no such years.
fn shorten_streak(streak: &mut Streak, first: i32) -> bool {
    let Some(started) = streak.started.filter(|started| *started < first) else { return false };
    streak.years = (streak.years - (first - started)).max(0);
    streak.started = (streak.years > 0).then_some(first);
    true
}

/// Sets the flag for suspect splits. Removes growth, rate changes and streak years that span such a split.
pub(crate) fn limit_growth(inputs: &MetricInputs<'_>, growth: &mut GrowthMetrics, flags: &mut Flags) {
    limit_to_currency(inputs, growth);
    let splits = inputs.merged.split_table.events().iter();
    let passed = splits.filter(|event| !event.is_price_only && event.ex_date <= inputs.as_of);
    let suspects: Vec<SuspectSplit> = passed.filter_map(|event| suspect(inputs, event)).collect();
    let Some(newest) = suspects.last() else { return };
    flags.set(Flag::AmountBasisSuspect);
    let is_across =
        |years: RangeInclusive<i32>| suspects.iter().any(|split| years.contains(&split.ex_date.year()));
    let is_step = |date| suspects.iter().any(|suspect| suspect.next_payment == date);
    remove_growth(inputs, growth, is_across, is_step);
    limit_streak(inputs, growth, newest.ex_date.year());
}

/// Removes the streak's years up to and including the year after the split. If the streak includes increases that an
/// operator entered for years after the split, it stays unchanged.
fn limit_streak(inputs: &MetricInputs<'_>, growth: &mut GrowthMetrics, split_year: i32) {
    let streak = &mut growth.streak;
    let seed = inputs.security().and_then(|security| security.streak_seed_through);
    let is_vouched = streak.seeded && seed.is_some_and(|through| through > split_year);
    if !is_vouched && shorten_streak(streak, split_year + 2) {
        (streak.lower_bound, streak.seeded) = (true, false);
    }
}

fn suspect(inputs: &MetricInputs<'_>, event: &SplitEvent) -> Option<SuspectSplit> {
    let (large, small) = (event.ratio.from.max(event.ratio.to), event.ratio.from.min(event.ratio.to));
    if large < small.saturating_mul(LEAST_RATIO) {
        return None;
    }
    let position = inputs.rates.partition_point(|rate| rate.ex_date < event.ex_date);
    let (before, after) = (inputs.rates.get(position.checked_sub(1)?)?, inputs.rates.get(position)?);
    if is_restart(before.ex_date, after.ex_date)
        || after.ex_date > inputs.as_of
        || !is_declared(inputs, before)
    {
        return None;
    }
    let ratio = inputs.merged.split_table.ratio_to_basis(before.ex_date, after.ex_date).inverse().factor();
    let step = quotient(after.amount, before.amount)?;
    let tolerance = Decimal::ONE + inputs.rules.share_basis.tolerance / Decimal::ONE_HUNDRED;
    let yields = quotient(yield_at(inputs, after)?, yield_at(inputs, before)?)?;
    let is_suspect = within_factor(step, ratio, tolerance) && has_moved_with(yields, ratio);
    is_suspect.then_some(SuspectSplit { ex_date: event.ex_date, next_payment: after.ex_date })
}

/// True if all payments with the ex-date of `rate` have the share basis `raw` (as declared).
fn is_declared(inputs: &MetricInputs<'_>, rate: &RegularDividend) -> bool {
    let mut rows = inputs.payments().iter().filter(|payment| payment.ex_date == rate.ex_date);
    rows.all(|payment| payment.observation.record.amount_basis == ShareBasis::Raw)
}

/// Yield of one payment: its amount divided by the last close before its ex-date. Amount and close are adjusted for
/// splits up to the as-of date.
fn yield_at(inputs: &MetricInputs<'_>, rate: &RegularDividend) -> Option<Decimal> {
    let series = inputs.series();
    let close = series.close_on_share_basis(series.before(rate.ex_date)?, inputs.as_of);
    quotient(rate.amount, close)
}
