//! Company figures on the as-of date's share basis, and the payouts they carry.

use rust_decimal::Decimal;

use super::basis::Basis;
use super::income::Income;
use crate::measure::merge::MergedFundamentals;
use crate::measure::payout::{PayoutBasis, PayoutFacts, PayoutGap, fcf_payout, free_cash_flow, payout};
use crate::measure::valuation::{market_cap, per_share, price_to, shares};

/// Company figures; money per share in the reported currency.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub shares_outstanding: Option<Decimal>,
    pub float_shares: Option<Decimal>,
    pub market_cap: Option<Decimal>,
    pub eps_ttm: Option<Decimal>,
    pub ffo_per_share: Option<Decimal>,
    pub book_value_per_share: Option<Decimal>,
    pub free_cash_flow: Option<Decimal>,
    pub pe_ratio: Option<Decimal>,
    /// Whether they are reported in another currency than the price's.
    pub foreign: bool,
}

/// What the company pays out, percent.
#[derive(Debug)]
pub(crate) struct Payouts {
    pub ratio: Result<Decimal, PayoutGap>,
    pub basis: PayoutBasis,
    pub fcf: Option<Decimal>,
}

/// Brings the reported figures to the as-of date.
pub(crate) fn figures(basis: &Basis<'_>) -> Figures {
    let Some(merged) = &basis.merged.fundamentals else { return Figures::default() };
    let MergedFundamentals { figures, book_value_as_of, ffo_as_of, float_as_of, .. } = merged;
    let (splits, as_of) = (&basis.merged.split_table, basis.as_of);
    let eps_ttm = per_share(figures.eps_ttm, figures.eps_as_of.unwrap_or(figures.as_of), splits, as_of);
    let shares_as_of = figures.shares_as_of.unwrap_or(figures.as_of);
    let shares_outstanding = shares(figures.shares_outstanding, shares_as_of, splits, as_of);
    let foreign = figures.reported_currency.as_ref().is_some_and(|reported| *reported != basis.currency);
    let cash_flow = free_cash_flow(figures.operating_cash_flow_ttm, figures.capital_expenditure_ttm);
    Figures {
        shares_outstanding,
        float_shares: shares(figures.float_shares, *float_as_of, splits, as_of),
        market_cap: market_cap(basis.close(), shares_outstanding).or(figures.market_cap),
        eps_ttm,
        ffo_per_share: per_share(figures.ffo_per_share_ttm, *ffo_as_of, splits, as_of),
        book_value_per_share: per_share(figures.book_value_per_share, *book_value_as_of, splits, as_of),
        free_cash_flow: cash_flow.or(figures.free_cash_flow_ttm),
        pe_ratio: price_to(basis.close(), eps_ttm).filter(|_| !foreign),
        foreign,
    }
}

/// Measures payouts.
pub(crate) fn payouts(basis: &Basis<'_>, income: &Income, figures: &Figures) -> Payouts {
    let reported = basis.merged.fundamentals.as_ref().map(|merged| &merged.figures);
    let currency =
        reported.and_then(|reported| reported.reported_currency.as_deref()).unwrap_or(&basis.currency);
    let (ratio, measured_against) = payout(&PayoutFacts {
        is_fund: basis.is_fund(),
        is_real_estate: basis.is_real_estate(),
        dps_ttm: income.dps_ttm,
        eps_ttm: figures.eps_ttm,
        ffo_per_share: figures.ffo_per_share,
        currency_mismatch: income.mixed || (!basis.rates.is_empty() && basis.dividend_currency != currency),
    });
    let paid = reported.and_then(|reported| reported.dividends_paid_ttm).filter(|_| !basis.is_fund());
    Payouts { ratio, basis: measured_against, fcf: fcf_payout(paid, figures.free_cash_flow) }
}
