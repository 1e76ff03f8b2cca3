//! High-yield screen, yield-trap warning and safety label (R18).
//!
//! The screen contains listed, paying stocks with a headline yield from the minimum (4 %) up to 25 %. Any higher yield
//! sets the flag `yield_suspect`. The price must be at most 5 sessions old, and dividends and price must be in one
//! currency.
//!
//! A yield is a trap if at least one of these signs is present:
//! - a payout ratio or free-cash-flow payout above 100 %;
//! - a forward dividend more than 10 % below the trailing dividend;
//! - a price fall of more than 40 % in 12 months.
//!
//! The safety label is `unsafe` for a suspended or lapsed payer, for a streak at risk, and for a payout above 100 %.
//! Otherwise, it is `borderline` at a payout of 75–100 % (real estate 90–100 %), and `safe` at a lower payout. Here,
//! the payout is the higher one of payout ratio and free-cash-flow payout. The label is null for funds, for securities
//! that never paid, and if the dividends are unknown. It is also null if the payout ratio is unknown and no reason for
//! `unsafe` is present.
//!
//! Source: the thresholds are this service's own (two are parameters `safety.…`). They are not advice.
//!
//! # Payout ratio and free-cash-flow payout (R17)
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

use crate::event::SecurityType;
use crate::metrics::arithmetic::{
    exact, keep_positive, percent_of, percent_to_fraction, remove_division_error,
};
use crate::metrics::rules::SafetyRules;
use crate::row::{DividendState, Safety, StockFigures, StockRow};
use crate::text_enum;

/// Default minimum yield of the high-yield screen, percent.
pub const HIGH_YIELD_MINIMUM: i64 = 4;
/// Maximum age of a price in the high-yield screen, sessions.
const FRESH_SESSIONS: i32 = 5;

/// True if a headline yield, in percent, is too high to be trusted.
pub fn is_suspect(dividend_yield: Option<Decimal>, rules: &SafetyRules) -> bool {
    dividend_yield.is_some_and(|value| value > rules.suspect_yield)
}

/// True if the high-yield screen contains a security. Without `min_yield`, any yield is accepted. Without `types`, all
/// types of stocks are accepted.
pub fn passes_high_yield(
    stock: &StockRow,
    figures: &StockFigures,
    min_yield: Option<Decimal>,
    types: Option<&[SecurityType]>,
) -> bool {
    let has_type = match types {
        Some(types) => types.contains(&stock.r#type),
        None => stock.r#type.is_stock(),
    };
    has_type
        && stock.is_active
        && stock.pays_dividend == Some(true)
        && stock.dividend_yield.is_some_and(|value| min_yield.is_none_or(|least| least <= value.0))
        && !figures.yield_suspect
        && figures.price_age_sessions.is_some_and(|age| age <= FRESH_SESSIONS)
        && stock.dividend_currency.as_ref().is_none_or(|paid| *paid == stock.currency)
}

/// A yield is a trap if the forward dividend is below the trailing dividend by more than this, percent.
pub(crate) const TRAP_DIVIDEND_FALL: Decimal = Decimal::TEN;
/// A yield is a trap if the price fell by more than this over 12 months, percent.
pub(crate) const TRAP_PRICE_FALL: Decimal = exact("40");

/// Inputs of the trap warning and the safety label. A percentage of 4.5 % is the number 4.5.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SafetyInput {
    /// True for funds.
    pub is_fund: bool,
    /// True if the thresholds for real estate apply.
    pub is_real_estate: bool,
    /// Dividend status of the payer.
    pub status: DividendState,
    /// True if the increase streak is at risk.
    pub at_risk: bool,
    /// Dividends over earnings, percent.
    pub payout_ratio: Option<Decimal>,
    /// Dividends over free cash flow, percent.
    pub fcf_payout_ratio: Option<Decimal>,
    /// Forward dividend per share, next twelve months.
    pub dps_forward: Option<Decimal>,
    /// Dividends per share of the last twelve months.
    pub dps_ttm: Option<Decimal>,
    /// Split-adjusted price change over 12 months, percent.
    pub price_change_1y: Option<Decimal>,
}

/// Yield-trap warning: true if any sign of a trap is present. `None` if the dividends are unknown, for non-payers, or
/// if no sign can be checked.
pub fn yield_trap_risk(input: &SafetyInput, rules: &SafetyRules) -> Option<bool> {
    if matches!(input.status, DividendState::NonPayer | DividendState::Unknown) {
        return None;
    }
    let kept = Decimal::ONE - percent_to_fraction(TRAP_DIVIDEND_FALL);
    let falling = input.dps_forward.zip(input.dps_ttm).map(|(forward, ttm)| {
        remove_division_error(forward) < remove_division_error(ttm.saturating_mul(kept))
    });
    let signs = [
        input.payout_ratio.map(|payout| is_unsafe(payout, rules)),
        input.fcf_payout_ratio.map(|payout| is_unsafe(payout, rules)),
        falling,
        input.price_change_1y.map(|change| remove_division_error(change) < -TRAP_PRICE_FALL),
    ];
    signs.into_iter().flatten().reduce(|a, b| a || b)
}

/// Safety label. `None` for funds, for non-payers and if the dividends are unknown. Also `None` if the payout ratio is
/// unknown and no reason for `unsafe` is present.
pub fn safety_label(input: &SafetyInput, rules: &SafetyRules) -> Option<Safety> {
    if input.is_fund || matches!(input.status, DividendState::NonPayer | DividendState::Unknown) {
        return None;
    }
    let payouts = [input.payout_ratio, input.fcf_payout_ratio];
    let highest = payouts.into_iter().flatten().max().map(remove_division_error);
    let too_high = highest.is_some_and(|payout| is_unsafe(payout, rules));
    if input.status != DividendState::Active || input.at_risk || too_high {
        return Some(Safety::Unsafe);
    }
    let threshold = borderline_payout(input.is_real_estate);
    input.payout_ratio?;
    highest.map(|payout| if payout >= threshold { Safety::Borderline } else { Safety::Safe })
}

/// Minimum payout ratio of a borderline dividend, percent.
pub(crate) fn borderline_payout(is_real_estate: bool) -> Decimal {
    if is_real_estate { exact("90") } else { exact("75") }
}

fn is_unsafe(payout: Decimal, rules: &SafetyRules) -> bool {
    remove_division_error(payout) > rules.payout_limit
}

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
mod tests;
