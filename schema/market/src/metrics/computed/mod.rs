//! All metrics of one security, unrounded. Rows and explanations are built from them.

pub(crate) mod classification;
pub(crate) mod company;
pub(crate) mod ex_dates;
pub(crate) mod growth;
pub(crate) mod income;
pub(crate) mod inputs;
mod price_jumps;
pub(crate) mod provenance;
pub(crate) mod share_basis;
pub(crate) mod upcoming;

use chrono::{DateTime, Utc};
use classification::{Classification, ReturnMetrics, classify, returns};
use company::{CompanyFigures, PayoutMetrics, figures, payouts};
use growth::{GrowthMetrics, growth};
use income::{IncomeMetrics, income};
use inputs::{MetricInputs, set_rates};
use share_basis::limit_growth;
use upcoming::{UpcomingPayments, upcoming};

use super::computed::ex_dates::ex_days;
use super::context::DerivationContext;
use super::currency::price_currency;
use super::merge::{Merged, merge};
use super::prices::adjustment::AdjustmentFactor;
use super::prices::risk::{MonthlyReturns, month_ends};
use super::prices::series::PriceSeries;
use crate::event::Frequency;
use crate::history::History;
use crate::row::{DividendState, Flags};

/// All metrics of one security, unrounded.
#[derive(Debug)]
pub(crate) struct ComputedMetrics<'a> {
    pub inputs: MetricInputs<'a>,
    pub income: IncomeMetrics,
    pub growth: GrowthMetrics,
    pub figures: CompanyFigures,
    pub payouts: PayoutMetrics,
    pub returns: ReturnMetrics,
    pub classification: Classification,
    pub upcoming: UpcomingPayments,
    pub flags: Flags,
    /// Latest observation time of the records from which the metrics are computed.
    pub updated_at: DateTime<Utc>,
}

impl ComputedMetrics<'_> {
    /// Payment frequency in responses: `unknown` if the dividends are unknown.
    pub(crate) fn frequency(&self) -> Frequency {
        match self.income.status {
            DividendState::Unknown => Frequency::Unknown,
            _ => self.inputs.rhythm.frequency,
        }
    }
}

pub(crate) fn compute<'a>(history: &'a History, context: &DerivationContext<'a>) -> ComputedMetrics<'a> {
    let mut flags = Flags::default();
    let inputs = MetricInputs::new(history, context, &mut flags);
    let income = income(&inputs, &mut flags);
    let mut growth = growth(&inputs, &income, &mut flags);
    limit_growth(&inputs, &mut growth, &mut flags);
    let figures = figures(&inputs);
    let payouts = payouts(&inputs, &income, &figures);
    let returns = returns(&inputs, &income, context);
    let classification = classify(&inputs, &income, &growth, &payouts, &returns);
    let upcoming = upcoming(&inputs, &income, &mut flags);
    let updated_at = updated_at(history, &inputs.merged);
    ComputedMetrics {
        inputs,
        income,
        growth,
        figures,
        payouts,
        returns,
        classification,
        upcoming,
        flags,
        updated_at,
    }
}

/// Monthly returns of a benchmark, each from one month end to the next, up to the as-of date.
pub(crate) fn benchmark_returns(history: &History, context: &DerivationContext<'_>) -> MonthlyReturns {
    let mut merged = merge(history, context);
    let series = PriceSeries::new(&merged.prices.bars, &merged.split_table);
    set_rates(&mut merged.dividends.payments, &series, context, price_currency(history));
    let days = ex_days(
        &merged.dividends.payments,
        &series,
        context.as_of,
        price_currency(history),
        &mut Flags::default(),
    );
    let factors: Vec<AdjustmentFactor> = days.iter().map(AdjustmentFactor::from).collect();
    month_ends(&series, &factors, context.as_of)
}

/// Latest observation time of the records from which the metrics are computed.
fn updated_at(history: &History, merged: &Merged<'_>) -> DateTime<Utc> {
    let payments = merged.dividends.payments.iter().chain(&merged.dividends.cancelled);
    let dividends = payments.map(|payment| payment.observation.observed_at);
    let splits = merged.splits.splits.iter().map(|split| history.splits[split.index].observed_at);
    let reports = merged.fundamentals.iter().flat_map(|fundamentals| &fundamentals.used);
    let used = reports.map(|index| history.fundamentals[*index].observed_at);
    let security = history.security.iter().map(|security| security.observed_at);
    let newest = dividends.chain(splits).chain(used).chain(security).chain(merged.prices.observed_at).max();
    newest.unwrap_or_default()
}
