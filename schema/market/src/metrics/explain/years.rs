//! Dividend years in an explanation: the total of each year, its change, and if the metric counts the year.

use std::ops::RangeInclusive;

use chrono::{Datelike, NaiveDate};
use serde::Serialize;
use utoipa::ToSchema;

use crate::decimal::ExactDecimal;
use crate::metrics::arithmetic;
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::dividends::streak::{StreakInput, StreakYear, classify_year};
use crate::text_enum;

text_enum! {
    /// Comparison of a dividend year with the year before.
    pub enum YearStatus {
        /// The total is above the total of the year before by more than the tolerance.
        Increased = "increased",
        /// The total is equal to the total of the year before.
        Flat = "flat",
        /// The total is below the total of the year before, or one of both years has no payment.
        Lower = "lower",
        /// The year has a spin-off and no increase.
        SpinOff = "spin_off",
        /// An amount of this year or of the year before is unknown.
        Unknown = "unknown",
        /// No complete year is known before this year.
        First = "first",
        /// The year is not over, and its total is not yet an increase.
        Running = "running",
    }
}

/// Dividend year in an explanation.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ExplainedYear {
    /// Dividend year: the calendar year, adjusted so that it contains the usual number of payments.
    pub year: i32,
    /// Regular dividends per share, adjusted for splits; null if an amount is unknown.
    pub total: Option<ExactDecimal>,
    /// Change from the total of the year before, percent. Null for the first listed year and for a running year.
    pub change_percent: Option<ExactDecimal>,
    /// Comparison with the year before.
    pub status: YearStatus,
    /// True if the metric counts the year.
    pub counted: bool,
}

/// Years in `range` that have a total.
pub(crate) fn years(
    computed: &ComputedMetrics<'_>,
    range: RangeInclusive<i32>,
    is_counted: impl Fn(i32, YearStatus) -> bool,
) -> Vec<ExplainedYear> {
    let totals = &computed.growth.totals;
    let amount = |year: i32| totals.total(year).filter(|total| !total.is_unknown).map(|total| total.amount);
    let known = totals.years.iter().filter(|total| range.contains(&total.year));
    let explained = known.map(|total| {
        let (year, status) = (total.year, status_of(computed, total.year));
        let before = amount(year - 1).filter(|before| year > *range.start() && !before.is_zero());
        let change = amount(year).zip(before).filter(|_| status != YearStatus::Running);
        let change = change.and_then(|(new, old)| arithmetic::percent_of(new - old, old));
        ExplainedYear {
            year,
            total: amount(year).map(arithmetic::amount),
            change_percent: change.map(arithmetic::percent),
            status,
            counted: is_counted(year, status),
        }
    });
    explained.collect()
}

fn status_of(computed: &ComputedMetrics<'_>, year: i32) -> YearStatus {
    let (growth, running) = (&computed.growth, computed.inputs.as_of.year());
    let input = StreakInput {
        running,
        seed: None,
        listed: None,
        spin_offs: &growth.spin_offs,
        rates_after: &growth.rates_after,
    };
    match classify_year(year, &growth.totals, &input, &computed.inputs.rules.streak) {
        StreakYear::Unknown => YearStatus::Unknown,
        StreakYear::Increased => YearStatus::Increased,
        _ if year == running => YearStatus::Running,
        _ if growth.totals.first_year() == Some(year) || !growth.totals.is_base(year - 1) => {
            YearStatus::First
        }
        StreakYear::Excused => YearStatus::SpinOff,
        StreakYear::Flat => YearStatus::Flat,
        StreakYear::Broken => YearStatus::Lower,
    }
}

/// Years of the increase streak, from the year before its first increase on, and the number of its years without a
/// total. An operator may have entered such years.
pub(crate) fn streak_years(computed: &ComputedMetrics<'_>) -> (Vec<ExplainedYear>, usize) {
    let (streak, running) = (&computed.growth.streak, computed.inputs.as_of.year());
    let first = streak.started.unwrap_or(running - 1) - 1;
    let security = computed.inputs.security();
    let entered = security.and_then(|security| security.streak_seed_through).filter(|_| streak.seeded);
    let listed = years(computed, first..=running, |year, status| {
        let is_counted = status == YearStatus::Increased || entered.is_some_and(|through| year <= through);
        is_counted && streak.started.is_some_and(|started| year >= started)
    });
    let counted = listed.iter().filter(|year| year.counted).count();
    let older = usize::try_from(streak.years).unwrap_or_default().saturating_sub(counted);
    (listed, older)
}

/// Removes the years that begin before `first`, and returns the number of counted years among them. The first remaining
/// year has no change, because the change would reveal the total of a removed year.
pub(crate) fn remove_years_before(years: &mut Vec<ExplainedYear>, first: NaiveDate) -> usize {
    let is_older =
        |year: &ExplainedYear| NaiveDate::from_yo_opt(year.year, 1).is_none_or(|begin| begin < first);
    let older = years.iter().take_while(|year| is_older(year)).count();
    let counted = years.drain(..older).filter(|year| year.counted).count();
    if let Some(oldest) = years.first_mut().filter(|_| older > 0) {
        oldest.change_percent = None;
    }
    counted
}
