//! Completeness of a security's dividends (R38, R40). The dividends are complete if both of these conditions are met:
//! - A source that covers the security carries dividends.
//! - No payment is missing.
//!
//! A source covers a security if it has prices, dividends or the reference record of the security. The source carries
//! dividends in each of these cases:
//! - The source's price file of the security has a dividend column.
//! - The source has dividends or the reference record of the security. It also has a dividend of any security, in any
//!   year.
//! - The source has prices of the security. It also has a dividend of any security in the years of these prices. The
//!   year before the first price and the year after the last price are included.
//!
//! In all three cases, years after the year of the as-of date are ignored.
//!
//! A feed's adjusted closes can show a missing payment. Their ratio to the raw closes changes at each ex-date. The
//! change implies a dividend factor. A payment is missing if an implied factor has no payment near its ex-date
//! ([`STEP_DAYS`]). Only implied factors below 1 by more than 0.05 % are used. Smaller changes come from
//! rounding.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Datelike, NaiveDate, TimeDelta};
use rust_decimal::Decimal;

use crate::day::date_of;
use crate::event::{Action, DividendEvidence};
use crate::history::{History, Observation};
use crate::metrics::arithmetic::{clamp_to_limit, exact, percent_to_fraction};
use crate::metrics::computed::ex_dates::ExDateEvents;
use crate::metrics::merge::{ImpliedFactor, Merged, agrees};

/// Number of years before the first and after the last price in which a source with prices is expected to report
/// dividends.
const FEED_YEARS: i32 = 1;
/// A smaller change in the ratio of adjusted close to raw close may come from rounding, percent.
const LEAST_STEP: Decimal = exact("0.05");
/// Maximum number of days between a payment and the change in adjusted closes that the payment explains.
const STEP_DAYS: TimeDelta = TimeDelta::days(7);

/// Comparison of the two dividend factors of each ex-date (R40). One factor is implied by a feed's adjusted closes, and
/// the other factor is computed from the payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FactorAgreement {
    /// Number of compared ex-dates: those with an implied or computed factor below 1 by more than 0.05 %.
    pub ex_dates: u64,
    /// Number of compared ex-dates on which the two factors agree.
    pub agreeing: u64,
}

#[derive(Debug)]
pub(crate) struct DividendCompleteness<'a> {
    /// True if a source of the security has a dividend column or, in the years concerned, a dividend of any security.
    pub carries_dividends: bool,
    /// Dividend factors that a feed's adjusted closes imply, without a payment near the ex-date. Each one shows a
    /// missing payment.
    pub missing: Vec<ImpliedFactor<'a>>,
}

impl<'a> DividendCompleteness<'a> {
    pub(crate) fn assess(history: &History, merged: &Merged<'a>, as_of: NaiveDate) -> Self {
        Self { carries_dividends: carries_dividends(history, as_of), missing: missing(merged) }
    }

    /// Agreement of implied and computed factors, by source. `days` contains the computed factor of each ex-date.
    pub(crate) fn agreement_by_source<'m>(
        merged: &'m Merged<'a>,
        days: &[ExDateEvents],
    ) -> BTreeMap<&'m str, FactorAgreement> {
        let least = Decimal::ONE - percent_to_fraction(LEAST_STEP);
        let mut by_source: BTreeMap<&str, FactorAgreement> = BTreeMap::new();
        for implied in &merged.implied_factors.0 {
            let passed = days.iter().filter(|day| implied.contains(day.ex_date));
            let ours =
                passed.fold(Decimal::ONE, |factor, day| clamp_to_limit(factor.checked_mul(day.factor())));
            if ours >= least && implied.factor >= least {
                continue;
            }
            let counted = by_source.entry(&implied.observation.source).or_default();
            counted.ex_dates += 1;
            counted.agreeing += u64::from(agrees(implied.factor, ours));
        }
        by_source
    }

    /// True if the dividends are complete.
    pub(crate) fn is_covered(&self) -> bool {
        self.carries_dividends && self.missing.is_empty()
    }
}

fn carries_dividends(history: &History, as_of: NaiveDate) -> bool {
    let running = as_of.year();
    let brings = |source: &str, first: i32, last: i32| {
        let period = first.saturating_sub(FEED_YEARS)..=last.saturating_add(FEED_YEARS).min(running);
        history.dividend_feeds.years(source).any(|year| period.contains(&year))
    };
    // A source that has only prices must have a dividend within [`FEED_YEARS`] of these prices.
    let priced = || {
        history.prices.iter().any(|prices| {
            let days = &prices.bars.day;
            let first = days.first().map(|day| date_of(*day).year()).filter(|first| *first <= running);
            let last = days.last().map(|day| date_of(*day).year());
            first.zip(last).is_some_and(|(first, last)| brings(&prices.source, first, last.min(running)))
        })
    };
    let referenced =
        || history.security.as_ref().is_some_and(|security| brings(&security.source, i32::MIN, running));
    let paid = || {
        let sources: BTreeSet<&str> = history.dividends.iter().map(|row| row.source.as_str()).collect();
        sources.into_iter().any(|source| brings(source, i32::MIN, running))
    };
    has_dividend_column(&history.evidence, as_of) || priced() || referenced() || paid()
}

/// True if a price file has a dividend column that begins on or before `as_of`.
fn has_dividend_column(evidence: &[Observation<DividendEvidence>], as_of: NaiveDate) -> bool {
    evidence.iter().any(|row| {
        let is_version =
            |other: &&Observation<DividendEvidence>| other.source == row.source && other.record == row.record;
        row.record.dividends_from.is_some_and(|from| from <= as_of)
            && row.action == Action::Put
            && evidence.iter().filter(is_version).all(|other| other.version(0) <= row.version(0))
    })
}

fn missing<'a>(merged: &Merged<'a>) -> Vec<ImpliedFactor<'a>> {
    let least = Decimal::ONE - percent_to_fraction(LEAST_STEP);
    let dividends = &merged.dividends;
    let mut paid: Vec<NaiveDate> =
        dividends.payments.iter().chain(&dividends.unproven).map(|payment| payment.ex_date).collect();
    paid.sort_unstable();
    let is_missing = |implied: &ImpliedFactor<'_>| {
        let from = paid.partition_point(|ex_date| *ex_date <= implied.previous - STEP_DAYS);
        implied.factor < least && paid.get(from).is_none_or(|ex_date| *ex_date > implied.ex_date + STEP_DAYS)
    };
    merged.implied_factors.0.iter().copied().filter(is_missing).collect()
}
