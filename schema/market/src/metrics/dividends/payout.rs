//! Payout ratio and free-cash-flow payout (R17).
//!
//! The payout ratio is trailing regular dividends over trailing diluted earnings per share, in percent. For real
//! estate, funds from operations per share replace earnings if a vendor gives them. With earnings of 0 or less, the
//! ratio is null and its status is `negative_earnings`. Values above 100 are valid.
//!
//! The free-cash-flow payout is dividends paid over free cash flow, in percent. Free cash flow is operating cash flow
//! less capital expenditure. The payout is null if the free cash flow is 0 or less. The signs of dividends paid and
//! expenditure are ignored, because vendors differ in these signs. Funds have no payout. Source: payout ratios as
//! brokers define them; funds from operations as real estate investment trusts report them.

use rust_decimal::Decimal;

use crate::metrics::arithmetic::{keep_positive, percent_of};
use crate::text_enum;

text_enum! {
    /// Reason for a missing payout ratio.
    pub enum NoPayoutReason {
        /// The security is a fund.
        NotApplicable = "not_applicable",
        /// Earnings are 0 or less.
        NegativeEarnings = "negative_earnings",
        /// Earnings and dividends are in different currencies.
        CurrencyMismatch = "currency_mismatch",
        /// Earnings or dividends are unknown.
        Missing = "missing",
    }
}

text_enum! {
    /// Denominator of the payout ratio.
    pub enum PayoutBasis {
        /// Earnings per share.
        Eps = "eps",
        /// Funds from operations per share.
        Ffo = "ffo",
    }
}

/// Inputs of the payout ratio. All per-share figures are adjusted for the same splits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PayoutInput {
    /// True for funds. A fund has no payout ratio.
    pub is_fund: bool,
    /// True for real estate: if funds from operations are known, they replace earnings as the denominator.
    pub is_real_estate: bool,
    /// Regular dividends per share over twelve months.
    pub dps_ttm: Option<Decimal>,
    /// Diluted earnings per share over twelve months.
    pub eps_ttm: Option<Decimal>,
    /// Funds from operations per share over twelve months.
    pub ffo_per_share: Option<Decimal>,
    /// True if dividends and earnings are in different currencies.
    pub currency_mismatch: bool,
}

/// Payout ratio in percent, or the reason for its absence. The second value is the kind of denominator.
pub fn payout_ratio(input: &PayoutInput) -> (Result<Decimal, NoPayoutReason>, PayoutBasis) {
    let funds = input.ffo_per_share.filter(|_| input.is_real_estate);
    let basis = if funds.is_some() { PayoutBasis::Ffo } else { PayoutBasis::Eps };
    if input.is_fund {
        return (Err(NoPayoutReason::NotApplicable), basis);
    }
    let ratio = match (input.dps_ttm, funds.or(input.eps_ttm)) {
        (_, Some(earned)) if earned <= Decimal::ZERO => Err(NoPayoutReason::NegativeEarnings),
        (Some(_), Some(_)) if input.currency_mismatch => Err(NoPayoutReason::CurrencyMismatch),
        (Some(paid), Some(earned)) => percent_of(paid, earned).ok_or(NoPayoutReason::Missing),
        _ => Err(NoPayoutReason::Missing),
    };
    (ratio, basis)
}

/// Free cash flow: operating cash flow less capital expenditure. Vendors differ in the sign of the expenditure, so the
/// sign is ignored.
pub fn free_cash_flow(operating: Option<Decimal>, capital_expenditure: Option<Decimal>) -> Option<Decimal> {
    operating?.checked_sub(capital_expenditure?.abs())
}

/// Dividends paid over free cash flow, percent; `None` if the free cash flow is 0 or less.
pub fn fcf_payout(dividends_paid: Option<Decimal>, free_cash_flow: Option<Decimal>) -> Option<Decimal> {
    percent_of(dividends_paid?.abs(), keep_positive(free_cash_flow)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_and_reasons() {
        let input = PayoutInput {
            is_fund: false,
            is_real_estate: false,
            dps_ttm: Some(dec!(3)),
            eps_ttm: Some(dec!(7.5)),
            ffo_per_share: Some(dec!(4)),
            currency_mismatch: false,
        };
        assert_eq!(payout_ratio(&input), (Ok(dec!(40)), PayoutBasis::Eps));
        assert_eq!(
            payout_ratio(&PayoutInput { is_real_estate: true, ..input }),
            (Ok(dec!(75)), PayoutBasis::Ffo)
        );
        assert_eq!(payout_ratio(&PayoutInput { eps_ttm: Some(dec!(2.5)), ..input }).0, Ok(dec!(120)));
        for (input, gap) in [
            (PayoutInput { is_fund: true, ..input }, NoPayoutReason::NotApplicable),
            (PayoutInput { eps_ttm: Some(dec!(-2)), ..input }, NoPayoutReason::NegativeEarnings),
            (PayoutInput { eps_ttm: Some(dec!(0)), ..input }, NoPayoutReason::NegativeEarnings),
            (PayoutInput { eps_ttm: None, ..input }, NoPayoutReason::Missing),
            (PayoutInput { currency_mismatch: true, ..input }, NoPayoutReason::CurrencyMismatch),
        ] {
            assert_eq!(payout_ratio(&input).0, Err(gap));
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
            NoPayoutReason::NotApplicable,
            NoPayoutReason::NegativeEarnings,
            NoPayoutReason::CurrencyMismatch,
            NoPayoutReason::Missing,
        ];
        assert_eq!(
            gaps.map(NoPayoutReason::as_str),
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
