//! High-yield screen, yield traps and the safety label (R18). Thresholds are this service's own
//! (the parameters `safety.…`), not advice.
//!
//! Screen: a listed stock, paying, headline yield from the minimum (4 %) up to 25 % (above: `yield_suspect`), price at
//! most 5 sessions old, dividends and price in one currency. Trap: a payout above 100 %, forward dividend more than 10 %
//! under the trailing one, or a price that fell more than 40 % in 12 months. Safety: `unsafe` (not paying, at risk, or a
//! payout above 100 %), `borderline` (75–100 %; real estate 90–100 %), `safe`; null for funds, non-payers and without a
//! payout ratio.

use rust_decimal::Decimal;

use super::arithmetic::{settle, share};
use super::rules::SafetyRules;
use crate::event::SecurityType;
use crate::row::{DividendState, Safety};

/// Default minimum of the high-yield screen, percent.
pub const HIGH_YIELD_MINIMUM: i64 = 4;
/// Maximum age of a price in the high-yield screen, sessions.
const FRESH_SESSIONS: i32 = 5;

/// Whether a headline yield in percent is suspect.
pub fn is_suspect(dividend_yield: Option<Decimal>, rules: &SafetyRules) -> bool {
    dividend_yield.is_some_and(|value| value > rules.suspect_yield)
}

/// Whether a price of this age, in sessions, is fresh enough for the high-yield screen. An unknown age is not.
fn is_fresh(price_age_sessions: Option<i32>) -> bool {
    price_age_sessions.is_some_and(|age| age <= FRESH_SESSIONS)
}

/// Facts of one security for the high-yield screen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScreenFacts {
    /// Security type.
    pub security_type: SecurityType,
    /// Whether the security still trades.
    pub is_listed: bool,
    /// Whether the dividend status is active.
    pub is_paying: bool,
    /// Headline yield, percent; null when currencies differ.
    pub dividend_yield: Option<Decimal>,
    /// Whether that yield is suspect ([`is_suspect`]).
    pub yield_suspect: bool,
    /// Sessions since the latest price.
    pub price_age_sessions: Option<i32>,
    /// Whether dividends and prices are in different currencies.
    pub currency_mismatch: bool,
}

/// High-yield screen (R18).
#[derive(Debug, Clone, Copy)]
pub struct HighYieldScreen<'a> {
    /// Minimum headline yield, percent; `None` for no minimum.
    pub min_yield: Option<Decimal>,
    /// Security types to include; `None` for stocks.
    pub types: Option<&'a [SecurityType]>,
}

impl HighYieldScreen<'_> {
    /// Whether a security passes the screen.
    pub fn passes(&self, facts: &ScreenFacts) -> bool {
        let has_type = match self.types {
            Some(types) => types.contains(&facts.security_type),
            None => facts.security_type.is_stock(),
        };
        has_type
            && facts.is_listed
            && facts.is_paying
            && facts.dividend_yield.is_some_and(|value| self.min_yield.is_none_or(|least| least <= value))
            && !facts.yield_suspect
            && is_fresh(facts.price_age_sessions)
            && !facts.currency_mismatch
    }
}

/// What traps and safety rest on; percents in points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SafetyFacts {
    /// Whether it is a fund.
    pub is_fund: bool,
    /// Whether it is measured by funds from operations.
    pub is_real_estate: bool,
    /// Whether it pays at present.
    pub status: DividendState,
    /// Whether its streak of increases is at risk.
    pub at_risk: bool,
    /// Dividends in percent of earnings.
    pub payout_ratio: Option<Decimal>,
    /// Dividends in percent of free cash flow.
    pub fcf_payout_ratio: Option<Decimal>,
    /// Indicated dividends a share of the next twelve months.
    pub dps_forward: Option<Decimal>,
    /// Dividends a share of the last twelve months.
    pub dps_ttm: Option<Decimal>,
    /// Split-adjusted price change of 12 months.
    pub price_change_1y: Option<Decimal>,
}

/// Whether the yield looks like a trap; `None` for non-payers and when nothing can be told.
pub fn yield_trap_risk(facts: &SafetyFacts, rules: &SafetyRules) -> Option<bool> {
    if facts.status == DividendState::NonPayer {
        return None;
    }
    let kept = Decimal::ONE - share(rules.trap_dividend_fall);
    let falling = facts
        .dps_forward
        .zip(facts.dps_ttm)
        .map(|(forward, ttm)| settle(forward) < settle(ttm.saturating_mul(kept)));
    let signs = [
        facts.payout_ratio.map(|payout| is_unsafe(payout, rules)),
        facts.fcf_payout_ratio.map(|payout| is_unsafe(payout, rules)),
        falling,
        facts.price_change_1y.map(|change| settle(change) < -rules.trap_price_fall),
    ];
    signs.into_iter().flatten().reduce(|a, b| a || b)
}

/// The safety label.
pub fn safety(facts: &SafetyFacts, rules: &SafetyRules) -> Option<Safety> {
    if facts.is_fund || facts.status == DividendState::NonPayer {
        return None;
    }
    let payouts = [facts.payout_ratio, facts.fcf_payout_ratio];
    let highest = payouts.into_iter().flatten().max().map(settle);
    let too_high = highest.is_some_and(|payout| is_unsafe(payout, rules));
    if facts.status != DividendState::Active || facts.at_risk || too_high {
        return Some(Safety::Unsafe);
    }
    let threshold = if facts.is_real_estate { rules.borderline_real_estate } else { rules.borderline_payout };
    facts.payout_ratio?;
    highest.map(|payout| if payout >= threshold { Safety::Borderline } else { Safety::Safe })
}

fn is_unsafe(payout: Decimal, rules: &SafetyRules) -> bool {
    settle(payout) > rules.payout_limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::rules::Rules;

    const RULES: SafetyRules = Rules::DEFAULT.safety;

    #[test]
    fn the_screen_needs_everything() {
        let row = ScreenFacts {
            security_type: SecurityType::Stock,
            is_listed: true,
            is_paying: true,
            dividend_yield: Some(dec!(4)),
            yield_suspect: false,
            price_age_sessions: Some(5),
            currency_mismatch: false,
        };
        let screen = HighYieldScreen { min_yield: Some(HIGH_YIELD_MINIMUM.into()), types: None };
        assert!(screen.passes(&row));
        assert!(screen.passes(&ScreenFacts { security_type: SecurityType::Reit, ..row }));
        for other in [
            ScreenFacts { security_type: SecurityType::Etf, ..row },
            ScreenFacts { is_listed: false, ..row },
            ScreenFacts { is_paying: false, ..row },
            ScreenFacts { dividend_yield: Some(dec!(3.9999)), ..row },
            ScreenFacts { dividend_yield: None, ..row },
            ScreenFacts { yield_suspect: true, ..row },
            ScreenFacts { price_age_sessions: Some(6), ..row },
            ScreenFacts { price_age_sessions: None, ..row },
            ScreenFacts { currency_mismatch: true, ..row },
        ] {
            assert!(!screen.passes(&other), "{other:?}");
        }
        let funds = HighYieldScreen { min_yield: None, types: Some(&[SecurityType::Etf]) };
        let fund = ScreenFacts { security_type: SecurityType::Etf, dividend_yield: Some(dec!(1)), ..row };
        assert!(funds.passes(&fund));
        assert!(!funds.passes(&row));
    }

    #[test]
    fn labels_and_traps() {
        let facts = SafetyFacts {
            is_fund: false,
            is_real_estate: false,
            status: DividendState::Active,
            at_risk: false,
            payout_ratio: Some(dec!(50)),
            fcf_payout_ratio: None,
            dps_forward: Some(dec!(1)),
            dps_ttm: Some(dec!(1)),
            price_change_1y: None,
        };
        let check = |facts: SafetyFacts, label, trap| {
            assert_eq!((safety(&facts, &RULES), yield_trap_risk(&facts, &RULES)), (label, trap), "{facts:?}");
        };
        check(facts, Some(Safety::Safe), Some(false));
        check(SafetyFacts { payout_ratio: Some(dec!(75)), ..facts }, Some(Safety::Borderline), Some(false));
        check(
            SafetyFacts { payout_ratio: Some(dec!(80)), is_real_estate: true, ..facts },
            Some(Safety::Safe),
            Some(false),
        );
        check(SafetyFacts { payout_ratio: Some(dec!(100)), ..facts }, Some(Safety::Borderline), Some(false));
        check(SafetyFacts { fcf_payout_ratio: Some(dec!(100.1)), ..facts }, Some(Safety::Unsafe), Some(true));
        check(
            SafetyFacts { at_risk: true, dps_forward: Some(dec!(0.89)), ..facts },
            Some(Safety::Unsafe),
            Some(true),
        );
        check(SafetyFacts { dps_forward: Some(dec!(0.9)), ..facts }, Some(Safety::Safe), Some(false));
        check(SafetyFacts { price_change_1y: Some(dec!(-40.1)), ..facts }, Some(Safety::Safe), Some(true));
        check(SafetyFacts { payout_ratio: None, ..facts }, None, Some(false));
        check(SafetyFacts { status: DividendState::NonPayer, ..facts }, None, None);
    }

    #[test]
    fn bounds_of_yields_and_ages() {
        let suspect = |value| is_suspect(value, &RULES);
        assert_eq!([None, Some(dec!(25)), Some(dec!(25.0001))].map(suspect), [false, false, true]);
        assert_eq!([None, Some(5), Some(6)].map(is_fresh), [false, true, false]);
    }

    #[test]
    fn bounds_of_labels() {
        let facts = SafetyFacts {
            is_fund: false,
            is_real_estate: false,
            status: DividendState::Active,
            at_risk: false,
            payout_ratio: Some(dec!(50)),
            fcf_payout_ratio: None,
            dps_forward: None,
            dps_ttm: None,
            price_change_1y: None,
        };
        let label = |is_real_estate, payout| {
            safety(&SafetyFacts { is_real_estate, payout_ratio: Some(payout), ..facts }, &RULES)
        };
        assert_eq!(
            [dec!(74.9999), dec!(75), dec!(100), dec!(100.0001)].map(|payout| label(false, payout)),
            [Some(Safety::Safe), Some(Safety::Borderline), Some(Safety::Borderline), Some(Safety::Unsafe)]
        );
        assert_eq!(
            [dec!(89.9999), dec!(90)].map(|payout| label(true, payout)),
            [Some(Safety::Safe), Some(Safety::Borderline)]
        );
        let with = |facts: SafetyFacts| (safety(&facts, &RULES), yield_trap_risk(&facts, &RULES));
        assert_eq!(with(SafetyFacts { is_fund: true, ..facts }), (None, Some(false)));
        assert_eq!(with(SafetyFacts { status: DividendState::Lapsed, ..facts }).0, Some(Safety::Unsafe));
        assert_eq!(with(SafetyFacts { at_risk: true, ..facts }).0, Some(Safety::Unsafe));
        // The higher payout of two decides; cash flow alone is no payout ratio.
        assert_eq!(
            with(SafetyFacts { fcf_payout_ratio: Some(dec!(80)), ..facts }),
            (Some(Safety::Borderline), Some(false))
        );
        assert_eq!(
            with(SafetyFacts { payout_ratio: None, fcf_payout_ratio: Some(dec!(80)), ..facts }),
            (None, Some(false))
        );
        assert_eq!(with(SafetyFacts { payout_ratio: None, ..facts }), (None, None));
        for (change, trap) in [(dec!(-40), false), (dec!(-40.0001), true)] {
            assert_eq!(with(SafetyFacts { price_change_1y: Some(change), ..facts }).1, Some(trap));
        }
        for (payout, trap) in [(dec!(100), false), (dec!(100.0001), true)] {
            assert_eq!(with(SafetyFacts { payout_ratio: Some(payout), ..facts }).1, Some(trap));
        }
    }
}
