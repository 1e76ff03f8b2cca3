//! Payout ratios (R17).
//!
//! Payout: trailing regular dividends over trailing diluted earnings per share (for real estate over funds from
//! operations per share, where given), percent. Earnings of 0 or less give null with the reason `negative_earnings`,
//! never a negative ratio; more than 100 is a true value. Free-cash-flow payout: dividends paid over operating cash flow
//! less capital expenditure; null when that is 0 or less. Both signs of outflows are understood. Not applicable to funds.
//! Source: payout ratios as brokers define them; funds from operations as real estate investment trusts report them.

use rust_decimal::Decimal;

use super::arithmetic::{percent_of, positive};

/// Why there is no payout ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayoutGap {
    /// A fund.
    NotApplicable,
    /// It earned nothing.
    NegativeEarnings,
    /// Earnings and dividends are in different currencies.
    CurrencyMismatch,
    /// No earnings or no dividends are known.
    Missing,
}

impl PayoutGap {
    /// The word in explanations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotApplicable => "not_applicable",
            Self::NegativeEarnings => "negative_earnings",
            Self::CurrencyMismatch => "currency_mismatch",
            Self::Missing => "missing",
        }
    }
}

/// What dividends are measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayoutBasis {
    /// Earnings a share.
    Eps,
    /// Funds from operations a share.
    Ffo,
}

impl PayoutBasis {
    /// The word in explanations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Eps => "eps",
            Self::Ffo => "ffo",
        }
    }
}

/// What a payout ratio rests on; per-share figures on one share basis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PayoutFacts {
    /// Whether it is a fund, which earns nothing itself.
    pub is_fund: bool,
    /// Whether it is measured by funds from operations.
    pub is_real_estate: bool,
    /// Dividends a share of twelve months.
    pub dps_ttm: Option<Decimal>,
    /// Earnings a share of twelve months.
    pub eps_ttm: Option<Decimal>,
    /// Funds from operations a share of twelve months.
    pub ffo_per_share: Option<Decimal>,
    /// Whether dividends and earnings are in different currencies.
    pub currency_mismatch: bool,
}

/// The payout ratio in percent, or why there is none, and what it is measured against.
pub fn payout(facts: &PayoutFacts) -> (Result<Decimal, PayoutGap>, PayoutBasis) {
    let funds = facts.ffo_per_share.filter(|_| facts.is_real_estate);
    let basis = if funds.is_some() { PayoutBasis::Ffo } else { PayoutBasis::Eps };
    if facts.is_fund {
        return (Err(PayoutGap::NotApplicable), basis);
    }
    let ratio = match (facts.dps_ttm, funds.or(facts.eps_ttm)) {
        (_, Some(earned)) if earned <= Decimal::ZERO => Err(PayoutGap::NegativeEarnings),
        (Some(_), Some(_)) if facts.currency_mismatch => Err(PayoutGap::CurrencyMismatch),
        (Some(paid), Some(earned)) => percent_of(paid, earned).ok_or(PayoutGap::Missing),
        _ => Err(PayoutGap::Missing),
    };
    (ratio, basis)
}

/// Free cash flow: operating cash flow less capital expenditure of either sign.
pub fn free_cash_flow(operating: Option<Decimal>, capital_expenditure: Option<Decimal>) -> Option<Decimal> {
    operating?.checked_sub(capital_expenditure?.abs())
}

/// Dividends paid over free cash flow, percent; null unless the cash flow is positive.
pub fn fcf_payout(dividends_paid: Option<Decimal>, free_cash_flow: Option<Decimal>) -> Option<Decimal> {
    percent_of(dividends_paid?.abs(), positive(free_cash_flow)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_and_reasons() {
        let facts = PayoutFacts {
            is_fund: false,
            is_real_estate: false,
            dps_ttm: Some(dec!(3)),
            eps_ttm: Some(dec!(7.5)),
            ffo_per_share: Some(dec!(4)),
            currency_mismatch: false,
        };
        assert_eq!(payout(&facts), (Ok(dec!(40)), PayoutBasis::Eps));
        assert_eq!(payout(&PayoutFacts { is_real_estate: true, ..facts }), (Ok(dec!(75)), PayoutBasis::Ffo));
        assert_eq!(payout(&PayoutFacts { eps_ttm: Some(dec!(2.5)), ..facts }).0, Ok(dec!(120)));
        for (facts, gap) in [
            (PayoutFacts { is_fund: true, ..facts }, PayoutGap::NotApplicable),
            (PayoutFacts { eps_ttm: Some(dec!(-2)), ..facts }, PayoutGap::NegativeEarnings),
            (PayoutFacts { eps_ttm: Some(dec!(0)), ..facts }, PayoutGap::NegativeEarnings),
            (PayoutFacts { eps_ttm: None, ..facts }, PayoutGap::Missing),
            (PayoutFacts { currency_mismatch: true, ..facts }, PayoutGap::CurrencyMismatch),
        ] {
            assert_eq!(payout(&facts).0, Err(gap));
        }
    }

    #[test]
    fn cash_flow() {
        assert_eq!(
            fcf_payout(Some(dec!(800)), free_cash_flow(Some(dec!(1500)), Some(dec!(500)))),
            Some(dec!(80))
        );
        assert_eq!(
            fcf_payout(Some(dec!(-800)), free_cash_flow(Some(dec!(1500)), Some(dec!(-500)))),
            Some(dec!(80))
        );
        assert_eq!(fcf_payout(Some(dec!(800)), free_cash_flow(Some(dec!(400)), Some(dec!(500)))), None);
    }

    #[test]
    fn the_words_of_an_explanation() {
        let gaps = [
            PayoutGap::NotApplicable,
            PayoutGap::NegativeEarnings,
            PayoutGap::CurrencyMismatch,
            PayoutGap::Missing,
        ];
        assert_eq!(
            gaps.map(PayoutGap::as_str),
            ["not_applicable", "negative_earnings", "currency_mismatch", "missing"]
        );
        assert_eq!([PayoutBasis::Eps, PayoutBasis::Ffo].map(PayoutBasis::as_str), ["eps", "ffo"]);
    }

    #[test]
    fn nothing_is_paid_out_of_no_cash() {
        assert_eq!(fcf_payout(Some(dec!(800)), Some(dec!(0))), None);
        assert_eq!(fcf_payout(None, Some(dec!(800))), None);
        assert_eq!(free_cash_flow(Some(dec!(400)), None), None);
        assert_eq!(free_cash_flow(Some(dec!(400)), Some(dec!(-500))), Some(dec!(-100)));
    }
}
