//! Metrics row of a security.

use chrono::Datelike;

use super::next::{amount, next_dividend, percent};
use crate::metrics::arithmetic;
use crate::metrics::arithmetic::{length_to_i32, quotient};
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::dividends::grower_lists::{grower_tier, is_king};
use crate::metrics::dividends::growth::DividendYearTotal;
use crate::row::{AnnualTotal, DividendState, Flag, JsonColumn, Metrics, Quarantined};

/// Metrics row, with all computed metrics rounded.
pub(crate) fn metrics(computed: &ComputedMetrics<'_>, quarantined: &[Quarantined]) -> Metrics {
    let [growth_1y, growth_3y, growth_5y, growth_10y] = computed.growth.growth.map(percent);
    let cover =
        computed.figures.eps_ttm.zip(computed.income.dps_ttm).filter(|_| computed.payouts.ratio.is_ok());
    let gone_ex = computed.inputs.rates.partition_point(|rate| rate.ex_date <= computed.inputs.as_of);
    Metrics {
        symbol: computed.inputs.history.symbol.to_string(),
        currency: computed.inputs.dividend_currency.clone(),
        price_currency: computed.inputs.currency.clone(),
        as_of: computed.inputs.as_of,
        price: amount(computed.inputs.close()),
        price_date: computed.inputs.price.map(|price| price.date),
        dividend_status: computed.income.status,
        dps_ttm: amount(computed.income.dps_ttm),
        dps_ttm_total: amount(computed.income.dps_ttm_total),
        dps_forward: amount(computed.income.forward.amount),
        forward_basis: computed.income.forward.basis,
        dividend_yield: percent(computed.income.dividend_yield),
        yield_basis: computed.income.yield_basis,
        yield_ttm: percent(computed.income.yield_ttm),
        yield_ttm_total: percent(computed.income.yield_ttm_total),
        yield_forward: percent(computed.income.yield_forward),
        yield_5y_avg: percent(computed.income.yield_range.map(|range| range.average)),
        yield_5y_high: percent(computed.income.yield_range.map(|range| range.highest)),
        yield_5y_low: percent(computed.income.yield_range.map(|range| range.lowest)),
        ttm_payment_count: computed.income.ttm_payment_count,
        ttm_complete: !computed.flags.has(Flag::TtmIncomplete),
        frequency: computed.frequency(),
        payments_per_year: computed.inputs.payments_per_year(),
        payout_ratio: percent(computed.payouts.ratio.ok()),
        fcf_payout_ratio: percent(computed.payouts.fcf),
        dividend_cover: percent(cover.and_then(|(earned, paid)| quotient(earned, paid))),
        growth_1y,
        growth_3y,
        growth_5y,
        growth_10y,
        increase_streak_years: computed.growth.streak.years,
        streak_lower_bound: computed.growth.streak.lower_bound
            || computed.income.status == DividendState::Unknown,
        streak_at_risk: computed.growth.at_risk,
        payment_streak_years: computed.growth.payment_years,
        streak_started: computed.growth.streak.started,
        latest_increase_date: computed.growth.changes.latest_increase.map(|(date, _)| date),
        latest_increase_percent: percent(computed.growth.changes.latest_increase.map(|(_, size)| size)),
        last_cut_date: computed.growth.changes.last_cut,
        cuts_10y: computed.growth.changes.cuts_10y,
        first_payment_date: computed.inputs.rates.first().map(|rate| rate.ex_date),
        payment_count: length_to_i32(gone_ex),
        is_dividend_aristocrat: computed.classification.is_aristocrat,
        is_dividend_king: is_king(computed.growth.streak.years, &computed.inputs.rules.lists),
        tier: grower_tier(computed.growth.streak.years),
        next: JsonColumn(next_dividend(computed)),
        chowder_number: percent(computed.classification.chowder.map(|chowder| chowder.number)),
        chowder_pass: computed.classification.chowder.map(|chowder| chowder.passes),
        safety: computed.classification.safety,
        yield_trap_risk: computed.classification.trap,
        total_return_1y: percent(computed.returns.total_return_1y),
        total_return_5y: percent(computed.returns.total_return_5y),
        volatility_1y: percent(computed.returns.volatility),
        beta_5y: percent(computed.returns.beta),
        annual_totals: JsonColumn(annual_totals(computed)),
        flags: JsonColumn(computed.flags.codes()),
        quarantined: JsonColumn(quarantined.to_vec()),
        method_version: computed.inputs.rules.method_version(),
    }
}

fn annual_totals(computed: &ComputedMetrics<'_>) -> Vec<AnnualTotal> {
    let (totals, running) = (&computed.growth.totals, computed.inputs.as_of.year());
    let total = |year: &DividendYearTotal| AnnualTotal {
        year: year.year,
        amount: arithmetic::amount(year.amount),
        complete: totals.is_complete(year.year, running),
    };
    totals.years.iter().map(total).collect()
}
