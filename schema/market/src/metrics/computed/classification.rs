//! Classification of a security by its metrics: list membership, Chowder number, safety label and yield-trap warning.
//!
//! Return metrics: price change, total return, volatility, beta.

use rust_decimal::Decimal;

use super::company::PayoutMetrics;
use super::growth::GrowthMetrics;
use super::income::IncomeMetrics;
use super::inputs::MetricInputs;
use crate::metrics::arithmetic::change_percent;
use crate::metrics::context::DerivationContext;
use crate::metrics::dividends::grower_lists::{
    ChowderNumber, GrowerListInput, chowder_number, is_aristocrat,
};
use crate::metrics::dividends::safety::{SafetyInput, safety_label, yield_trap_risk};
use crate::metrics::prices::adjustment::AdjustmentFactor;
use crate::metrics::prices::risk::{beta, month_ends, volatility};
use crate::metrics::prices::total_return::{CloseSeries, start_bar, total_return};
use crate::row::{DividendState, Safety};

/// Membership in lists of dividend growers, Chowder number, safety label and yield-trap warning.
#[derive(Debug)]
pub(crate) struct Classification {
    pub is_aristocrat: bool,
    pub chowder: Option<ChowderNumber>,
    pub safety: Option<Safety>,
    pub trap: Option<bool>,
}

pub(crate) fn classify(
    inputs: &MetricInputs<'_>,
    income: &IncomeMetrics,
    growth: &GrowthMetrics,
    payouts: &PayoutMetrics,
    returns: &ReturnMetrics,
) -> Classification {
    let facts = SafetyInput {
        is_fund: inputs.is_fund(),
        is_real_estate: inputs.is_real_estate(),
        status: income.status,
        at_risk: growth.at_risk,
        payout_ratio: payouts.ratio.ok(),
        fcf_payout_ratio: payouts.fcf,
        dps_forward: income.forward.amount,
        dps_ttm: income.dps_ttm,
        price_change_1y: returns.price_change_1y,
    };
    let sector = inputs.security().and_then(|security| security.sector.as_deref());
    let yield_forward = income.yield_forward.filter(|_| income.status == DividendState::Active);
    Classification {
        is_aristocrat: is_aristocrat(&list_facts(inputs, income, growth), &inputs.rules.lists),
        chowder: chowder_number(yield_forward, growth.growth[2], sector),
        safety: safety_label(&facts, &inputs.rules.safety),
        trap: yield_trap_risk(&facts, &inputs.rules.safety),
    }
}

fn list_facts(inputs: &MetricInputs<'_>, income: &IncomeMetrics, growth: &GrowthMetrics) -> GrowerListInput {
    let reported = inputs.merged.fundamentals.as_ref().map(|merged| &merged.figures);
    let in_index = |index: &String| index.eq_ignore_ascii_case("sp500");
    let figure = |field: fn(&crate::event::Fundamentals) -> Option<Decimal>| reported.and_then(field);
    GrowerListInput {
        streak_years: growth.streak.years,
        streak_at_risk: growth.at_risk,
        status: income.status,
        is_listed: inputs.is_listed,
        in_sp500: inputs.security().is_some_and(|security| security.indexes.iter().any(in_index)),
        float_market_cap: figure(|reported| reported.float_market_cap),
        average_daily_value: figure(|reported| reported.avg_daily_value),
    }
}

/// Price change, total returns and volatility in percent; beta as a ratio.
#[derive(Debug)]
pub(crate) struct ReturnMetrics {
    pub price_change_1y: Option<Decimal>,
    pub total_return_1y: Option<Decimal>,
    pub total_return_5y: Option<Decimal>,
    pub volatility: Option<Decimal>,
    pub beta: Option<Decimal>,
}

pub(crate) fn returns(
    inputs: &MetricInputs<'_>,
    income: &IncomeMetrics,
    context: &DerivationContext<'_>,
) -> ReturnMetrics {
    let (series, as_of) = (inputs.series(), inputs.as_of);
    let factors: Vec<AdjustmentFactor> = inputs.ex_days.iter().map(AdjustmentFactor::from).collect();
    let closes =
        CloseSeries { days: &series.bars.day, close: &|index| series.close(index), factors: &factors };
    // With unknown dividends, the total return is unknown too.
    let is_known = income.status != DividendState::Unknown;
    let since = |start: Option<usize>| {
        if is_known { total_return(&closes, start?, inputs.price?.index) } else { None }
    };
    let year_ago = start_bar(&series, as_of, 12);
    let old_close = year_ago.map(|index| series.close_on_basis(index, as_of));
    ReturnMetrics {
        price_change_1y: inputs.close().zip(old_close).and_then(|(new, old)| change_percent(new, old)),
        total_return_1y: since(year_ago),
        total_return_5y: since(start_bar(&series, as_of, 60)),
        volatility: volatility(&series, &factors),
        beta: context.benchmark.and_then(|benchmark| beta(&month_ends(&series, &factors, as_of), benchmark)),
    }
}
