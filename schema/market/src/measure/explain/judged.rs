//! What is concluded, explained: payouts, lists, safety, returns and risk.

use super::entry::ExplainedMetric;
use super::entry::Rounding::{Exact, Percent};
use super::entry::{entry, number, window};
use super::observations::{of_bar, of_dividends, of_fundamentals, of_price, of_security};
use crate::measure::class::Class;
use crate::measure::measured::Measured;
use crate::measure::payout::PayoutBasis;
use crate::measure::risk::DAILY_RETURNS;
use crate::measure::total_return::start_bar;

pub(super) fn explained(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    [payouts(measured), verdicts(measured), returns(measured)].concat()
}

fn payouts(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let (after, through) = window(measured);
    let payouts = &measured.payouts;
    let earned = match payouts.basis {
        PayoutBasis::Eps => measured.figures.eps_ttm,
        PayoutBasis::Ffo => measured.figures.ffo_per_share,
    };
    let (basis, paid) = (payouts.basis.as_str(), number(measured.income.dps_ttm));
    let ratio = match payouts.ratio {
        Ok(_) => format!("{paid} / {basis} {} x 100", number(earned)),
        Err(gap) => format!("null: {}", gap.as_str()),
    };
    let cover = format!("earnings per share {} / {paid}", number(measured.figures.eps_ttm));
    let cash_flow = number(measured.figures.free_cash_flow);
    let reported = measured.basis.merged.fundamentals.as_ref().map(|merged| &merged.figures);
    let total = number(reported.and_then(|figures| figures.dividends_paid_ttm));
    let fcf = format!("dividends paid {total} / free cash flow {cash_flow} x 100");
    let figures = of_fundamentals(measured);
    let both = [of_dividends(measured, after, through, Class::is_regular), figures.clone()].concat();
    vec![
        entry("payout_ratio", "R17", Percent, ratio, both.clone()),
        entry("dividend_cover", "R17", Percent, cover, both),
        entry("fcf_payout_ratio", "R17", Percent, fcf, figures),
    ]
}

fn verdicts(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let income = &measured.income;
    let chowder = format!(
        "forward yield {} + growth of five years {}",
        number(income.yield_forward),
        number(measured.progress.growth[2])
    );
    let passes = format!("{chowder}: at least 12 with a yield from 3 %, 15 below it, 8 for utilities");
    let safety = format!(
        "status {}, at risk {}, payout {}, free-cash-flow payout {}",
        income.status,
        measured.progress.at_risk,
        number(measured.payouts.ratio.ok()),
        number(measured.payouts.fcf)
    );
    let rules = &measured.basis.rules.safety;
    let trap = format!(
        "{safety}, forward {} against trailing {}, price change of 12 months {} %: a trap with a payout above {} %, a \
         forward more than {} % below, or a price fall of more than {} %",
        number(income.forward.amount),
        number(income.dps_ttm),
        number(measured.returns.price_change_1y),
        rules.payout_limit,
        rules.trap_dividend_fall,
        rules.trap_price_fall
    );
    let borderline = match measured.basis.is_real_estate() {
        true => rules.borderline_real_estate,
        false => rules.borderline_payout,
    };
    let label = format!(
        "{safety}: unsafe above a payout of {} %, borderline from {borderline} %",
        rules.payout_limit
    );
    let (figures, price) = (of_fundamentals(measured), of_price(measured));
    vec![
        entry("chowder_number", "R16", Percent, chowder, price.clone()),
        entry("chowder_pass", "R16", Exact, passes, of_security(measured)),
        entry("safety", "R18", Exact, label, figures.clone()),
        entry("yield_trap_risk", "R18", Exact, trap, [figures, price].concat()),
    ]
}

fn returns(measured: &Measured<'_>) -> Vec<ExplainedMetric> {
    let (series, through) = (measured.basis.series(), measured.basis.as_of);
    let returned = |metric: &str, months: u32| {
        let start = start_bar(&series, through, months);
        let formula = format!(
            "product of (P + D) x s / P before, from the last close {months} months ago to the latest, less 1, x 100"
        );
        let paid =
            start.map(|index| of_dividends(measured, series.date(index), through, Class::in_price_factor));
        let bars = start.map(|index| of_bar(measured, index));
        let observations = [bars.unwrap_or_default(), paid.unwrap_or_default(), of_price(measured)].concat();
        entry(metric, "R12", Percent, formula, observations)
    };
    let newest = series.bars.len();
    let first = newest.saturating_sub(DAILY_RETURNS + 1);
    let oldest = (newest > 0).then(|| of_bar(measured, first));
    let range = [oldest.unwrap_or_default(), of_price(measured)].concat();
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
                measured.basis.rules.risk.beta_least_pairs
            ),
            of_price(measured),
        ),
    ]
}
