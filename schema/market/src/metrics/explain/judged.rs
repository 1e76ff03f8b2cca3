//! Explanations of payout ratios, the Chowder number, safety label, yield trap, returns, volatility and beta.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::entry::Unit::{Percent, Ratio, Unrounded};
use super::entry::{ExplainedMetric, entry, number, window};
use super::observations::{of_bar, of_dividends, of_fundamentals, of_price, of_security};
use crate::dated_text::{DatedText, Terms, Undated, dated_text, undated};
use crate::decimal::round;
use crate::event::Kind;
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::dividends::safety::{
    NoPayoutReason, PayoutBasis, TRAP_DIVIDEND_FALL, TRAP_PRICE_FALL, borderline_payout,
};
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::prices::risk::{BETA_MINIMUM, DAILY_MINIMUM, DAILY_RETURNS};
use crate::metrics::prices::total_return::start_bar;
use crate::row::DividendState;

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
    let paid = || dated_text!("dividends of 12 months {}", number(computed.income.dps_ttm));
    let no_payout = payouts.ratio.err().map(|reason| dated_text!("null: {}", payout_gap(reason)));
    let ratio = || dated_text!("{} / {} {} x 100", paid(), payouts.basis.as_str(), number(earned));
    let ratio = no_payout.clone().unwrap_or_else(ratio);
    let eps = computed.figures.eps_ttm;
    let cover = match (no_payout, eps, computed.income.dps_ttm) {
        (Some(none), _, _) => none,
        (None, Some(eps), Some(dividends)) if !dividends.is_zero() => {
            dated_text!("earnings per share {} / {}", number(Some(eps)), paid())
        }
        (None, None, _) => "null: earnings per share are unknown".into(),
        (None, Some(_), _) => "null: no dividends in 12 months".into(),
    };
    let reported = computed.inputs.merged.fundamentals.as_ref().map(|merged| &merged.figures);
    let total = reported.and_then(|figures| figures.dividends_paid_ttm);
    let fcf = match (payouts.fcf, total, computed.figures.free_cash_flow) {
        (Some(_), _, cash) => {
            dated_text!("dividends paid {} / free cash flow {} x 100", number(total), number(cash))
        }
        (None, _, None) => "null: free cash flow is unknown".into(),
        (None, None, _) => "null: the dividends paid are unknown".into(),
        (None, Some(_), Some(cash)) => {
            dated_text!("null: a free cash flow of {} gives no ratio", number(Some(cash)))
        }
    };
    let figures = of_fundamentals(computed);
    let both = [of_dividends(computed, after, through, DividendClass::is_regular), figures.clone()].concat();
    vec![
        entry("payout_ratio", "R17", Percent, ratio, both.clone()),
        entry("dividend_cover", "R17", Ratio, cover, both),
        entry("fcf_payout_ratio", "R17", Percent, fcf, figures),
    ]
}

fn verdicts(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let income = &computed.income;
    let chowder = match (income.yield_forward, computed.growth.growth[2]) {
        (forward @ Some(_), growth @ Some(_)) => {
            dated_text!("forward yield {} + growth of five years {}", percent(forward), percent(growth))
        }
        (None, _) => "null: the forward yield is unknown".into(),
        (_, None) => "null: the growth of five years is unknown".into(),
    };
    let needed = match computed.classification.chowder {
        Some(_) => "; needed: 12 if the yield is at least 3 %, 15 if it is lower, 8 for utilities",
        None => "",
    };
    let passes = dated_text!("{}{}", chowder.clone(), needed);
    let safety = || -> DatedText {
        dated_text!(
            "status {}, at risk {}, payout {}, free-cash-flow payout {}",
            income.status.as_str(),
            undated(computed.growth.at_risk),
            percent(computed.payouts.ratio.ok()),
            percent(computed.payouts.fcf)
        )
    };
    let rules = &computed.inputs.rules.safety;
    let trap = dated_text!(
        "{}, forward {} against trailing {}, price change of 12 months {}: \
         a trap if the payout is above {} %, the forward is more than {} % below the trailing, or the price fell by \
         more than {} %",
        safety(),
        number(income.forward.amount),
        number(income.dps_ttm),
        percent(computed.returns.price_change_1y),
        undated(rules.payout_limit),
        undated(TRAP_DIVIDEND_FALL),
        undated(TRAP_PRICE_FALL)
    );
    let borderline = borderline_payout(computed.inputs.is_real_estate());
    let label = dated_text!(
        "{}: unsafe above a payout of {} %, borderline from {} %",
        safety(),
        undated(rules.payout_limit),
        undated(borderline)
    );
    let (figures, price) = (of_fundamentals(computed), of_price(computed));
    vec![
        entry("chowder_number", "R16", Ratio, chowder, price.clone()),
        entry("chowder_pass", "R16", Unrounded, passes, of_security(computed)),
        entry("safety", "R18", Unrounded, label, figures.clone()),
        entry("yield_trap_risk", "R18", Unrounded, trap, [figures, price].concat()),
    ]
}

/// Formats a percentage for a formula.
fn percent(value: Option<Decimal>) -> Undated {
    value.map_or_else(
        || undated("unknown"),
        |value| undated(format_args!("{} %", number(Some(round(value, 4))))),
    )
}

/// Reason for a missing payout ratio, as a sentence.
fn payout_gap(reason: NoPayoutReason) -> &'static str {
    match reason {
        NoPayoutReason::NotApplicable => "a fund has no payout ratio",
        NoPayoutReason::NegativeEarnings => "earnings are 0 or less",
        NoPayoutReason::CurrencyMismatch => "earnings and dividends are in different currencies",
        NoPayoutReason::Missing => "earnings or dividends are unknown",
    }
}

fn returns(computed: &ComputedMetrics<'_>) -> Vec<ExplainedMetric> {
    let (series, through) = (computed.inputs.series(), computed.inputs.as_of);
    let returned = |metric: &str, months: u32, value: Option<Decimal>| {
        let start = start_bar(&series, through, months);
        let paid = start
            .map(|index| of_dividends(computed, series.date(index), through, DividendClass::in_price_factor))
            .unwrap_or_default();
        let formula = match (start, computed.inputs.price, value) {
            (Some(index), Some(price), Some(_)) => {
                let payments = paid.iter().filter(|row| row.kind == Kind::Dividend.as_str()).count();
                let close_of = |index: usize, day: NaiveDate| {
                    Terms::of_day(day, format!("close {} of {day}", number(Some(series.close(index)))))
                };
                dated_text!(
                    "{} to {}, with {} payments reinvested at the close of their ex-dates: product of (P + D) x s / P before - 1, x 100",
                    close_of(index, series.date(index)),
                    close_of(price.index, price.date),
                    undated(payments)
                )
            }
            (None, _, _) => {
                dated_text!("null: no close is known at {} months before {}", undated(months), through)
            }
            _ if computed.income.status == DividendState::Unknown => "null: the dividends are unknown".into(),
            _ => "null: a distribution is in another currency, or no close is known".into(),
        };
        let bars = start.map(|index| of_bar(computed, index));
        let observations = [bars.unwrap_or_default(), paid, of_price(computed)].concat();
        entry(metric, "R12", Percent, formula, observations)
    };
    let newest = series.bars.len();
    let first = newest.saturating_sub(DAILY_RETURNS + 1);
    let daily = newest.saturating_sub(1).min(DAILY_RETURNS);
    let volatility = match computed.returns.volatility {
        Some(_) => dated_text!(
            "sample standard deviation of the newest {} daily returns of the adjusted close x sqrt({}) x 100",
            undated(daily),
            undated(DAILY_RETURNS)
        ),
        None => dated_text!(
            "null: {} daily returns are known, at least {} are needed",
            undated(daily),
            undated(DAILY_MINIMUM)
        ),
    };
    let beta = match computed.returns.beta {
        Some(_) => "covariance / variance of month-end returns against the benchmark over 60 months".into(),
        None => dated_text!(
            "null: no benchmark, or fewer than {} pairs of month-end returns in 60 months",
            undated(BETA_MINIMUM)
        ),
    };
    let oldest = (newest > 0).then(|| of_bar(computed, first));
    let range = [oldest.unwrap_or_default(), of_price(computed)].concat();
    vec![
        returned("total_return_1y", 12, computed.returns.total_return_1y),
        returned("total_return_5y", 60, computed.returns.total_return_5y),
        entry("volatility_1y", "R23", Percent, volatility, range),
        entry("beta_5y", "R23", Ratio, beta, of_price(computed)),
    ]
}
