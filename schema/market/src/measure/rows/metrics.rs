//! The metrics row.

use chrono::Datelike;

use super::next::next;
use super::rounded::{amount, percent};
use crate::measure::arithmetic::{self, count, quotient};
use crate::measure::lists::{is_king, tier};
use crate::measure::measured::Measured;
use crate::row::{AnnualTotal, Flag, Json, Metrics, Quarantined};

/// The metrics of a measured security.
pub(crate) fn metrics(measured: &Measured<'_>, quarantined: &[Quarantined]) -> Metrics {
    let [growth_1y, growth_3y, growth_5y, growth_10y] = measured.progress.growth.map(percent);
    let cover =
        measured.figures.eps_ttm.zip(measured.income.dps_ttm).filter(|_| measured.payouts.ratio.is_ok());
    let gone_ex = measured.basis.rates.partition_point(|rate| rate.ex_date <= measured.basis.as_of);
    Metrics {
        symbol: measured.basis.history.symbol.to_string(),
        currency: measured.basis.dividend_currency.clone(),
        price_currency: measured.basis.currency.clone(),
        as_of: measured.basis.as_of,
        price: amount(measured.basis.close()),
        price_date: measured.basis.price.map(|price| price.date),
        dividend_status: measured.income.status,
        dps_ttm: amount(measured.income.dps_ttm),
        dps_ttm_total: amount(measured.income.dps_ttm_total),
        dps_forward: amount(measured.income.forward.amount),
        forward_basis: measured.income.forward.basis,
        dividend_yield: percent(measured.income.dividend_yield),
        yield_basis: measured.income.yield_basis,
        yield_ttm: percent(measured.income.yield_ttm),
        yield_ttm_total: percent(measured.income.yield_ttm_total),
        yield_forward: percent(measured.income.yield_forward),
        yield_5y_avg: percent(measured.income.yield_range.map(|range| range.average)),
        yield_5y_high: percent(measured.income.yield_range.map(|range| range.highest)),
        yield_5y_low: percent(measured.income.yield_range.map(|range| range.lowest)),
        ttm_payment_count: measured.income.ttm_payment_count,
        ttm_complete: !measured.flags.has(Flag::TtmIncomplete),
        frequency: measured.basis.rhythm.frequency,
        payments_per_year: measured.basis.payments_per_year(),
        payout_ratio: percent(measured.payouts.ratio.ok()),
        fcf_payout_ratio: percent(measured.payouts.fcf),
        dividend_cover: percent(cover.and_then(|(earned, paid)| quotient(earned, paid))),
        growth_1y,
        growth_3y,
        growth_5y,
        growth_10y,
        increase_streak_years: measured.progress.streak.years,
        streak_lower_bound: measured.progress.streak.lower_bound,
        streak_at_risk: measured.progress.at_risk,
        payment_streak_years: measured.progress.payment_years,
        streak_started: measured.progress.streak.started,
        latest_increase_date: measured.progress.changes.latest_increase.map(|(date, _)| date),
        latest_increase_percent: percent(measured.progress.changes.latest_increase.map(|(_, size)| size)),
        last_cut_date: measured.progress.changes.last_cut,
        cuts_10y: measured.progress.changes.cuts_10y,
        first_payment_date: measured.basis.rates.first().map(|rate| rate.ex_date),
        payment_count: count(gone_ex),
        is_dividend_aristocrat: measured.verdicts.is_aristocrat,
        is_dividend_king: is_king(measured.progress.streak.years, &measured.basis.rules.lists),
        tier: tier(measured.progress.streak.years, &measured.basis.rules.lists),
        next: Json(next(measured)),
        chowder_number: percent(measured.verdicts.chowder.map(|chowder| chowder.number)),
        chowder_pass: measured.verdicts.chowder.map(|chowder| chowder.passes),
        safety: measured.verdicts.safety,
        yield_trap_risk: measured.verdicts.trap,
        total_return_1y: percent(measured.returns.total_return_1y),
        total_return_5y: percent(measured.returns.total_return_5y),
        volatility_1y: percent(measured.returns.volatility),
        beta_5y: percent(measured.returns.beta),
        annual_totals: Json(annual_totals(measured)),
        flags: Json(measured.flags.words()),
        quarantined: Json(quarantined.to_vec()),
        method_version: measured.basis.rules.method_version(),
    }
}

fn annual_totals(measured: &Measured<'_>) -> Vec<AnnualTotal> {
    let running = measured.basis.as_of.year();
    let total = |year: &crate::measure::growth::YearTotal| AnnualTotal {
        year: year.year,
        amount: arithmetic::amount(year.amount),
        complete: year.year < running,
    };
    measured.progress.totals.years.iter().map(total).collect()
}
