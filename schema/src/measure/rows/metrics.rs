//! The metrics row.

use chrono::Datelike;

use super::{amount, next, percent};
use crate::measure::METHOD_VERSION;
use crate::measure::arithmetic::{self, quotient};
use crate::measure::lists::{is_king, tier};
use crate::measure::measured::Measured;
use crate::row::{AnnualTotal, Json, Metrics, Quarantined};

/// The metrics of a measured security.
pub(crate) fn metrics(measured: &Measured<'_>, quarantined: &[Quarantined]) -> Metrics {
    let [growth_1y, growth_3y, growth_5y, growth_10y] = measured.growth.map(percent);
    let cover = measured.company.eps_ttm.zip(measured.dps_ttm).filter(|_| measured.payout.is_ok());
    let gone_ex = measured.rates.partition_point(|rate| rate.ex_date <= measured.as_of);
    Metrics {
        symbol: measured.history.symbol.to_string(),
        currency: measured.dividend_currency.clone(),
        as_of: measured.as_of,
        price: amount(measured.price.map(|price| price.close)),
        price_date: measured.price.map(|price| price.date),
        dividend_status: measured.status,
        dps_ttm: amount(measured.dps_ttm),
        dps_ttm_total: amount(measured.dps_ttm_total),
        dps_forward: amount(measured.forward.amount),
        forward_basis: measured.forward.basis,
        dividend_yield: percent(measured.dividend_yield),
        yield_basis: measured.yield_basis,
        yield_ttm: percent(measured.yield_ttm),
        yield_ttm_total: percent(measured.yield_ttm_total),
        yield_forward: percent(measured.yield_forward),
        yield_5y_avg: percent(measured.yield_range.map(|range| range.average)),
        yield_5y_high: percent(measured.yield_range.map(|range| range.highest)),
        yield_5y_low: percent(measured.yield_range.map(|range| range.lowest)),
        ttm_payment_count: measured.ttm_payment_count,
        frequency: measured.rhythm.frequency,
        payments_per_year: measured.rhythm.payments_per_year(),
        payout_ratio: percent(measured.payout.ok()),
        fcf_payout_ratio: percent(measured.fcf_payout),
        dividend_cover: percent(cover.and_then(|(earned, paid)| quotient(earned, paid))),
        growth_1y,
        growth_3y,
        growth_5y,
        growth_10y,
        increase_streak_years: measured.streak.years,
        streak_lower_bound: measured.streak.lower_bound,
        streak_at_risk: measured.at_risk,
        payment_streak_years: measured.payment_years,
        streak_started: measured.streak.started,
        latest_increase_date: measured.changes.latest_increase.map(|(date, _)| date),
        latest_increase_percent: percent(measured.changes.latest_increase.map(|(_, size)| size)),
        last_cut_date: measured.changes.last_cut,
        cuts_10y: measured.changes.cuts_10y,
        first_payment_date: measured.rates.first().map(|rate| rate.ex_date),
        payment_count: i32::try_from(gone_ex).unwrap_or(i32::MAX),
        is_dividend_aristocrat: measured.is_aristocrat,
        is_dividend_king: is_king(measured.streak.years),
        tier: tier(measured.streak.years),
        next: Json(next(measured)),
        chowder_number: percent(measured.chowder.map(|chowder| chowder.number)),
        chowder_pass: measured.chowder.map(|chowder| chowder.passes),
        safety: measured.safety,
        yield_trap_risk: measured.trap,
        total_return_1y: percent(measured.total_return_1y),
        total_return_5y: percent(measured.total_return_5y),
        volatility_1y: percent(measured.volatility),
        beta_5y: percent(measured.beta),
        annual_totals: Json(annual_totals(measured)),
        flags: Json(measured.flags.iter().cloned().collect()),
        quarantined: Json(quarantined.to_vec()),
        method_version: METHOD_VERSION.to_owned(),
    }
}

fn annual_totals(measured: &Measured<'_>) -> Vec<AnnualTotal> {
    let running = measured.as_of.year();
    let total = |year: &crate::measure::growth::YearTotal| AnnualTotal {
        year: year.year,
        amount: arithmetic::amount(year.amount),
        complete: year.year < running,
    };
    measured.totals.years.iter().map(total).collect()
}
