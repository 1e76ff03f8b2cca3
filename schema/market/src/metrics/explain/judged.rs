//! Explanations of payouts, list membership, safety, returns and risk.

use super::entry::ExplainedMetric;
use super::entry::Rounding::{Percent, Unrounded};
use super::entry::{entry, number, window};
use super::observations::{of_bar, of_dividends, of_fundamentals, of_price, of_security};
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::dividends::class::DividendClass;
use crate::metrics::dividends::payout::PayoutBasis;
use crate::metrics::prices::risk::DAILY_RETURNS;
use crate::metrics::prices::total_return::start_bar;

pub(crate) fn explain_payout_and_risk(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    [payouts(computed), verdicts(computed), returns(computed)].concat()
}

fn payouts(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let (after, through) = window(computed);
    let payouts = &computed.payouts;
    let earned = match payouts.basis {
        PayoutBasis::Eps => computed.figures.eps_ttm,
        PayoutBasis::Ffo => computed.figures.ffo_per_share,
    };
    let (basis, paid) = (payouts.basis.as_str(), number(computed.income.dps_ttm));
    let ratio = match payouts.ratio {
        Ok(_) => format!("{paid} / {basis} {} x 100", number(earned)),
        Err(gap) => format!("null: {}", gap.as_str()),
    };
    let cover = format!("earnings per share {} / {paid}", number(computed.figures.eps_ttm));
    let cash_flow = number(computed.figures.free_cash_flow);
    let reported = computed.inputs.merged.fundamentals.as_ref().map(|merged| &merged.figures);
    let total = number(reported.and_then(|figures| figures.dividends_paid_ttm));
    let fcf = format!("dividends paid {total} / free cash flow {cash_flow} x 100");
    let figures = of_fundamentals(computed);
    let both = [of_dividends(computed, after, through, DividendClass::is_regular), figures.clone()].concat();
    vec![
        entry("payout_ratio", "R17", Percent, ratio, both.clone()),
        entry("dividend_cover", "R17", Percent, cover, both),
        entry("fcf_payout_ratio", "R17", Percent, fcf, figures),
    ]
}

fn verdicts(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let income = &computed.income;
    let chowder = format!(
        "forward yield {} + growth of five years {}",
        number(income.yield_forward),
        number(computed.growth.growth[2])
    );
    let passes = format!("{chowder}: at least 12 with a yield from 3 %, 15 below it, 8 for utilities");
    let safety = format!(
        "status {}, at risk {}, payout {}, free-cash-flow payout {}",
        income.status,
        computed.growth.at_risk,
        number(computed.payouts.ratio.ok()),
        number(computed.payouts.fcf)
    );
    let rules = &computed.inputs.rules.safety;
    let trap = format!(
        "{safety}, forward {} against trailing {}, price change of 12 months {} %: a trap with a payout above {} %, a \
         forward more than {} % below, or a price fall of more than {} %",
        number(income.forward.amount),
        number(income.dps_ttm),
        number(computed.returns.price_change_1y),
        rules.payout_limit,
        rules.trap_dividend_fall,
        rules.trap_price_fall
    );
    let borderline = match computed.inputs.is_real_estate() {
        true => rules.borderline_real_estate,
        false => rules.borderline_payout,
    };
    let label = format!(
        "{safety}: unsafe above a payout of {} %, borderline from {borderline} %",
        rules.payout_limit
    );
    let (figures, price) = (of_fundamentals(computed), of_price(computed));
    vec![
        entry("chowder_number", "R16", Percent, chowder, price.clone()),
        entry("chowder_pass", "R16", Unrounded, passes, of_security(computed)),
        entry("safety", "R18", Unrounded, label, figures.clone()),
        entry("yield_trap_risk", "R18", Unrounded, trap, [figures, price].concat()),
    ]
}

fn returns(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let (series, through) = (computed.inputs.series(), computed.inputs.as_of);
    let returned = |metric: &str, months: u32| {
        let start = start_bar(&series, through, months);
        let formula = format!(
            "product of (P + D) x s / P before, from the last close {months} months ago to the latest, less 1, x 100"
        );
        let paid = start
            .map(|index| of_dividends(computed, series.date(index), through, DividendClass::in_price_factor));
        let bars = start.map(|index| of_bar(computed, index));
        let observations = [bars.unwrap_or_default(), paid.unwrap_or_default(), of_price(computed)].concat();
        entry(metric, "R12", Percent, formula, observations)
    };
    let newest = series.bars.len();
    let first = newest.saturating_sub(DAILY_RETURNS + 1);
    let oldest = (newest > 0).then(|| of_bar(computed, first));
    let range = [oldest.unwrap_or_default(), of_price(computed)].concat();
    vec![
        returned("total_return_1y", 12),
        returned("total_return_5y", 60),
        entry(
            "volatility_1y",
            "R23",
            Percent,
            "sample standard deviation of the newest 252 daily returns of the adjusted close x sqrt(252) x 100; null under 60",
            range,
        ),
        entry(
            "beta_5y",
            "R23",
            Percent,
            format!(
                "covariance over variance of month-end returns against the benchmark over 60 months; null under {} pairs",
                computed.inputs.rules.risk.beta_least_pairs
            ),
            of_price(computed),
        ),
    ]
}
