//! Trailing and forward dividends per share and their yields (R7, R8, R9).
//!
//! # Trailing dividends (R7)
//!
//! The trailing dividends (TTM) are the sum of the regular amounts with `as_of - 12 months < ex-date <= as_of`. The
//! amounts are adjusted for splits up to the as-of date. Payment dates have no effect.
//!
//! Range of the trailing yield over the last five years: average, highest and lowest value at the month ends.
//!
//! # Forward dividend (R8)
//!
//! The first case that applies decides:
//! 1. Fund, delisted security or unknown dividends: no forward figure.
//! 2. Non-payer, suspended or lapsed payer: 0.
//! 3. Irregular payer: no forward figure.
//! 4. Two payments a year, alternating interim and final dividends: the sum of the last two amounts.
//! 5. Any other payer: the latest regular amount declared by `as_of`, times the number of payments a year (R31).
//!
//! Amounts alternate if the four newest changes are increases and decreases in turn, each above 10 %. With fewer than
//! five amounts, a difference of more than 10 % between the last two is enough.
//!
//! The latest amount may be a special payment that the vendor did not mark as special. This is probable if both of
//! these conditions are met:
//! - The amount is at least three times the median of the four amounts before it.
//! - The amount differs from the previous amount by more than a factor of 1.5.
//!
//! The flag `latest_amount_unusual` is then set. The forward figure uses the previous amount, until the next payment
//! confirms the latest amount. Amounts are not compared across a pause of more than 550 days.
//!
//! Source: the usual definitions of trailing twelve months and indicated annual dividend. This service chose 10 %, the
//! factors and 550 days.
//!
//! # Headline yield (R9)
//!
//! The headline yield uses the latest raw close. This close is adjusted for the splits and price-only actions (R35)
//! after its session. The first case that applies decides:
//! 1. Non-payer: 0.
//! 2. Unknown dividends, or dividends and prices in different currencies without an exchange rate (R42): null.
//! 3. Suspended or lapsed payer: 0.
//! 4. Active payer without a price: null.
//! 5. Active payer with a forward figure: forward yield.
//! 6. Active payer without a forward figure: trailing yield.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::frequency::is_restart;
use crate::metrics::arithmetic::{
    exact, mean, median, percent_of, percent_to_fraction, remove_division_error, within_factor,
};
use crate::metrics::calendar::months_before;
use crate::metrics::prices::series::{PriceSeries, month_number};
use crate::metrics::rules::ForwardRules;
use crate::row::{DividendState, ForwardBasis, YieldBasis};

/// The latest amount is not unusual if it differs from the previous amount by at most this factor.
const CONFIRMING_FACTOR: Decimal = exact("1.5");
/// Minimum difference of an interim and a final dividend, percent. Smaller differences are changes of the rate.
pub(crate) const UNEQUAL_HALVES: Decimal = Decimal::TEN;

/// Regular dividend of one ex-date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegularDividend {
    /// Ex-date.
    pub ex_date: NaiveDate,
    /// Amount per share, adjusted for splits up to the as-of date.
    pub amount: Decimal,
}

/// Regular dividends of the 12 months up to `as_of`: the day 12 months before is excluded, `as_of` is included.
pub fn trailing_rates(rates: &[RegularDividend], as_of: NaiveDate) -> &[RegularDividend] {
    let start = months_before(as_of, 12);
    let from = rates.partition_point(|rate| rate.ex_date <= start);
    let to = rates.partition_point(|rate| rate.ex_date <= as_of);
    rates.get(from..to).unwrap_or_default()
}

/// Sum of regular dividends per share.
pub fn sum(rates: &[RegularDividend]) -> Decimal {
    remove_division_error(rates.iter().map(|rate| rate.amount).sum())
}

/// True if `count` payments in the trailing year do not fit `payments_per_year`. Above 12 payments a year, a difference
/// of one is normal.
pub fn is_unusual_count(count: i32, payments_per_year: i32) -> bool {
    (count - payments_per_year).abs() > i32::from(payments_per_year > 12)
}

/// Forward (indicated annual) dividend per share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardDividend {
    /// Amount per share for one year; `None` if the payer has no forward dividend.
    pub amount: Option<Decimal>,
    /// Method of computing the amount.
    pub basis: ForwardBasis,
    /// True if the latest payment is unusually large and not confirmed. `amount` then uses the previous payment.
    pub latest_unusual: bool,
}

impl ForwardDividend {
    /// Value for a payer without a forward dividend.
    pub const NONE: Self = Self { amount: None, basis: ForwardBasis::None, latest_unusual: false };
}

/// Computes the forward dividend of the next 12 months. `rates` contains every declared regular payment, in ex-date
/// order.
pub fn forward_dividend(
    rates: &[RegularDividend],
    payments_per_year: Option<i32>,
    status: DividendState,
    as_of: NaiveDate,
    rules: &ForwardRules,
) -> ForwardDividend {
    if status == DividendState::Unknown {
        return ForwardDividend::NONE;
    }
    if status != DividendState::Active {
        return ForwardDividend { amount: Some(Decimal::ZERO), ..ForwardDividend::NONE };
    }
    // An unusually large amount is probably a special payment that the vendor did not mark.
    let latest_unusual = is_latest_unusual(rates, rules);
    let rates = if latest_unusual { &rates[..rates.len() - 1] } else { rates };
    let (Some(last), Some(payments)) = (rates.last(), payments_per_year) else {
        return ForwardDividend::NONE;
    };
    let basis = if last.ex_date >= as_of { ForwardBasis::Declared } else { ForwardBasis::LastTimesFrequency };
    let amount = match rates {
        // Interim and final dividend together are the dividend of a year.
        [.., interim, last] if payments == 2 && has_unequal_halves(rates) => interim.amount + last.amount,
        _ => last.amount.saturating_mul(Decimal::from(payments)),
    };
    ForwardDividend { amount: Some(remove_division_error(amount)), basis, latest_unusual }
}

/// True if the latest amount is far above the earlier amounts and not confirmed.
fn is_latest_unusual(rates: &[RegularDividend], rules: &ForwardRules) -> bool {
    let Some(newest @ [before @ .., previous, latest]) = rates.last_chunk::<5>() else { return false };
    let without_pause = newest.windows(2).all(|pair| !is_restart(pair[0].ex_date, pair[1].ex_date));
    let four = before.iter().chain([previous]).map(|rate| rate.amount).collect();
    let far_above = median(four)
        .is_some_and(|median| latest.amount >= remove_division_error(median * rules.unusual_factor));
    without_pause && far_above && !within_factor(latest.amount, previous.amount, CONFIRMING_FACTOR)
}

/// True if half-yearly dividends alternate between interim and final dividends.
pub(crate) fn has_unequal_halves(rates: &[RegularDividend]) -> bool {
    let differs = |pair: &[RegularDividend]| halves_differ(pair[1].amount, pair[0].amount);
    let direction = |pair: &[RegularDividend]| pair[1].amount.cmp(&pair[0].amount);
    match rates.last_chunk::<5>() {
        Some(newest) => {
            // Increases and decreases must alternate.
            newest.windows(2).all(differs)
                && newest.windows(3).all(|three| direction(&three[..2]) != direction(&three[1..]))
        }
        None => rates.last_chunk::<2>().is_some_and(|pair| differs(pair)),
    }
}

fn halves_differ(last: Decimal, previous: Decimal) -> bool {
    remove_division_error((last - previous).abs())
        > remove_division_error(previous * percent_to_fraction(UNEQUAL_HALVES))
}

/// Inputs of the headline yield.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadlineInput {
    /// Dividend status of the payer.
    pub status: DividendState,
    /// Forward yield, percent.
    pub yield_forward: Option<Decimal>,
    /// Trailing yield, percent.
    pub yield_ttm: Option<Decimal>,
    /// True if a forward dividend exists, even if its yield cannot be computed.
    pub has_forward: bool,
    /// True if dividends and prices are in different currencies.
    pub mismatch: bool,
}

/// Headline yield in percent, and its basis (forward or trailing); `None` if unknown.
pub fn headline_yield(input: &HeadlineInput) -> (Option<Decimal>, Option<YieldBasis>) {
    let basis = if input.has_forward { YieldBasis::Forward } else { YieldBasis::Ttm };
    let value = match input.status {
        DividendState::NonPayer => Some(Decimal::ZERO),
        DividendState::Unknown => None,
        _ if input.mismatch => None,
        DividendState::Suspended | DividendState::Lapsed => Some(Decimal::ZERO),
        DividendState::Active if input.has_forward => input.yield_forward,
        DividendState::Active => input.yield_ttm,
    };
    (value, value.map(|_| basis))
}

/// Average, highest and lowest trailing yield at the month ends of the last five years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YieldRange {
    /// Mean of the yields at the month ends, percent.
    pub average: Decimal,
    /// Highest value at a month end, percent.
    pub highest: Decimal,
    /// Lowest value at a month end, percent.
    pub lowest: Decimal,
    /// Number of month ends with a yield.
    pub month_ends: usize,
}

/// Maximum number of month ends in a yield range: five years.
pub(crate) const RANGE_MONTHS: u32 = 60;
const RANGE_MINIMUM: usize = 12;

/// Range of trailing yields at the last 60 month ends. A month end is used only if the first dividend is at least 12
/// months earlier. `None` if fewer than 12 month ends can be used.
pub(crate) fn yield_range(
    rates: &[RegularDividend],
    series: &PriceSeries<'_>,
    last_month: i32,
    as_of: NaiveDate,
) -> Option<YieldRange> {
    let first = rates.first()?.ex_date;
    let mut sums = Vec::with_capacity(rates.len() + 1);
    sums.push(Decimal::ZERO);
    for rate in rates {
        sums.push(sums[sums.len() - 1].checked_add(rate.amount)?);
    }
    let mut yields = Vec::with_capacity(60);
    for (_, index) in series.month_ends(last_month, RANGE_MONTHS.cast_signed()) {
        let day = series.date(index);
        let start = months_before(day, 12);
        if month_number(first) > month_number(start) {
            continue;
        }
        let from = rates.partition_point(|rate| rate.ex_date <= start);
        let to = rates.partition_point(|rate| rate.ex_date <= day);
        yields.extend(percent_of(sums[to] - sums[from], series.close_on_share_basis(index, as_of)));
    }
    if yields.len() < RANGE_MINIMUM {
        return None;
    }
    let (highest, lowest) = (yields.iter().max().copied()?, yields.iter().min().copied()?);
    Some(YieldRange { average: mean(&yields)?, highest, lowest, month_ends: yields.len() })
}

#[cfg(test)]
mod range_tests;

#[cfg(test)]
mod tests;
