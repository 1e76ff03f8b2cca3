//! Company figures, adjusted for splits up to the as-of date, and payout ratios. A ratio never mixes two currencies: the
//! price is converted to the currency of the reports at its date, and dividends at the rates of their payments (R43).

use rust_decimal::Decimal;

use super::income::IncomeMetrics;
use super::inputs::MetricInputs;
use crate::metrics::dividends::safety::{
    NoPayoutReason, PayoutBasis, PayoutInput, fcf_payout, free_cash_flow, payout_ratio,
};
use crate::metrics::merge::MergedFundamentals;
use crate::metrics::valuation::{market_cap, per_share, price_to, shares};

/// Company figures, adjusted for splits up to the as-of date, in the currency of the reports. `market_cap` is in the
/// currency of the prices: it is computed from the latest close, or reported in this currency.
#[derive(Debug, Default)]
pub(crate) struct CompanyFigures {
    pub shares_outstanding: Option<Decimal>,
    pub float_shares: Option<Decimal>,
    pub market_cap: Option<Decimal>,
    pub eps_ttm: Option<Decimal>,
    pub ffo_per_share: Option<Decimal>,
    pub book_value_per_share: Option<Decimal>,
    pub free_cash_flow: Option<Decimal>,
    pub pe_ratio: Option<Decimal>,
    /// Rate from the currency of the prices to that of the reports, on the day of the latest close (R43). 1 if they are
    /// equal, and `None` if no rate is known.
    pub report_rate: Option<Decimal>,
}

/// Payout ratios of a security, percent.
#[derive(Debug)]
pub(crate) struct PayoutMetrics {
    pub ratio: Result<Decimal, NoPayoutReason>,
    pub basis: PayoutBasis,
    pub fcf: Option<Decimal>,
}

/// Adjusts the reported company figures for splits up to the as-of date. Computes market cap and P/E from the latest
/// close.
pub(crate) fn figures(inputs: &MetricInputs<'_>) -> CompanyFigures {
    let Some(merged) = &inputs.merged.fundamentals else { return CompanyFigures::default() };
    let MergedFundamentals { figures, book_value_as_of, ffo_as_of, float_as_of, .. } = merged;
    let (splits, as_of) = (&inputs.merged.split_table, inputs.as_of);
    let eps_ttm = per_share(figures.eps_ttm, figures.eps_as_of.unwrap_or(figures.as_of), splits, as_of);
    let shares_as_of = figures.shares_as_of.unwrap_or(figures.as_of);
    let shares_outstanding = shares(figures.shares_outstanding, shares_as_of, splits, as_of);
    let reported = figures.reported_currency.as_deref().unwrap_or(&inputs.currency);
    let is_foreign = *reported != inputs.currency;
    let rate = |from: &str, to: &str| match is_foreign {
        true => inputs.rate_of_price(from, to).map(|rate| rate.value),
        false => Some(Decimal::ONE),
    };
    let report_rate = rate(&inputs.currency, reported);
    let reported_cap = || figures.market_cap?.checked_mul(rate(reported, &inputs.currency)?);
    let cash_flow = free_cash_flow(figures.operating_cash_flow_ttm, figures.capital_expenditure_ttm);
    CompanyFigures {
        shares_outstanding,
        float_shares: shares(figures.float_shares, *float_as_of, splits, as_of),
        market_cap: market_cap(inputs.close(), shares_outstanding).or_else(reported_cap),
        eps_ttm,
        ffo_per_share: per_share(figures.ffo_per_share_ttm, *ffo_as_of, splits, as_of),
        book_value_per_share: per_share(figures.book_value_per_share, *book_value_as_of, splits, as_of),
        free_cash_flow: cash_flow.or(figures.free_cash_flow_ttm),
        pe_ratio: price_to(in_reports(inputs.close(), report_rate), eps_ttm),
        report_rate,
    }
}

/// Converts a figure in the currency of the prices to the currency of the reports.
pub(crate) fn in_reports(figure: Option<Decimal>, report_rate: Option<Decimal>) -> Option<Decimal> {
    figure?.checked_mul(report_rate?)
}

pub(crate) fn payouts(
    inputs: &MetricInputs<'_>,
    income: &IncomeMetrics,
    figures: &CompanyFigures,
) -> PayoutMetrics {
    let reported = inputs.merged.fundamentals.as_ref().map(|merged| &merged.figures);
    let currency =
        reported.and_then(|reported| reported.reported_currency.as_deref()).unwrap_or(&inputs.currency);
    let is_foreign = income.mixed || (!inputs.rates.is_empty() && inputs.dividend_currency != currency);
    let converted = if is_foreign { inputs.trailing_dividends_in(currency) } else { None };
    let (ratio, measured_against) = payout_ratio(&PayoutInput {
        is_fund: inputs.is_fund(),
        is_real_estate: inputs.is_real_estate(),
        dps_ttm: converted.or(income.dps_ttm),
        eps_ttm: figures.eps_ttm,
        ffo_per_share: figures.ffo_per_share,
        currency_mismatch: is_foreign && converted.is_none(),
    });
    let paid = reported.and_then(|reported| reported.dividends_paid_ttm).filter(|_| !inputs.is_fund());
    PayoutMetrics { ratio, basis: measured_against, fcf: fcf_payout(paid, figures.free_cash_flow) }
}
