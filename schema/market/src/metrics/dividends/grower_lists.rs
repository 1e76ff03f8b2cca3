//! Membership in the lists of dividend growers: Aristocrats, Kings and tiers (R15).
//!
//! An Aristocrat is a member of the S&P 500 that pays dividends. Its increase streak is at least 25 years and not at
//! risk. Its float market cap is at least 3 billion US dollars. Its mean daily traded value over three months is at
//! least 5 million US dollars. If one of these values is unknown, the security is not an Aristocrat. A King has a
//! streak of at least 50 years; there are no further conditions. Tiers by streak: champion 25+ years, contender 10–24,
//! challenger 5–9. Parameters `lists.…` change the bounds of Aristocrats and Kings. A list contains only securities
//! that still trade. The high-yield list follows R18. This service chose the two thresholds of the dividend-growth list.
//!
//! The stock index "S&P 500 Dividend Aristocrats" has three more rules: a minimum of 40 members, a sector cap and a limit
//! of one share class per issuer. This service does not apply these three rules. Source: methodology of this index.
//!
//! # Chowder number (R16)
//!
//! The number is the forward yield plus the five-year dividend growth, both in percent. A utility passes with a number
//! of at least 8. Other companies need at least 12 with a forward yield of 3 % or more, and at least 15 with a lower
//! yield. All bounds are inclusive. Without a forward yield or five-year growth, the number is null. Source: the author
//! of the rule.

use rust_decimal::Decimal;

use super::safety::{HIGH_YIELD_MINIMUM, passes_high_yield};
use crate::metrics::arithmetic::{exact, remove_division_error};
use crate::metrics::rules::ListRules;
use crate::row::{DividendState, ListTier, StockFigures, StockRow};
use crate::text_enum;

/// Minimum mean daily traded value of an Aristocrat, US dollars.
pub(crate) const ARISTOCRAT_DAILY_VALUE: Decimal = exact("5_000_000");
/// Tiers with their minimum increase streaks in years, longest first.
pub(crate) const TIERS: [(ListTier, i32); 3] =
    [(ListTier::Champion, 25), (ListTier::Contender, 10), (ListTier::Challenger, 5)];

/// Inputs of membership in the lists of dividend growers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GrowerListInput {
    /// Consecutive years of increases (R14).
    pub streak_years: i32,
    /// True if the forward dividend is below the dividends of the last complete year (R14).
    pub streak_at_risk: bool,
    /// Dividend status of the payer.
    pub status: DividendState,
    /// True if the security still trades.
    pub is_listed: bool,
    /// True for members of the S&P 500.
    pub in_sp500: bool,
    /// Market value of the freely traded shares, US dollars.
    pub float_market_cap: Option<Decimal>,
    /// Mean traded value a day over three months, US dollars.
    pub average_daily_value: Option<Decimal>,
}

/// True for a Dividend Aristocrat.
pub fn is_aristocrat(input: &GrowerListInput, rules: &ListRules) -> bool {
    let at_least = |value: Option<Decimal>, least: Decimal| value.is_some_and(|value| value >= least);
    input.in_sp500
        && i64::from(input.streak_years) >= rules.aristocrat_years
        && at_least(input.float_market_cap, rules.aristocrat_float_cap)
        && at_least(input.average_daily_value, ARISTOCRAT_DAILY_VALUE)
        && input.status == DividendState::Active
        && input.is_listed
        && !input.streak_at_risk
}

/// True for a Dividend King.
pub fn is_king(streak_years: i32, rules: &ListRules) -> bool {
    i64::from(streak_years) >= rules.king_years
}

/// Tier for a streak of `streak_years` years; `None` if the streak is below the lowest tier.
pub fn grower_tier(streak_years: i32) -> Option<ListTier> {
    TIERS.into_iter().find(|(_, least)| streak_years >= *least).map(|(tier, _)| tier)
}

/// Default minimum of the five-year growth in the dividend-growth list, percent a year.
pub const GROWTH_MINIMUM: i64 = 10;
/// Default minimum of the headline yield in the dividend-growth list, percent.
pub const GROWTH_YIELD_MINIMUM: i64 = 2;

text_enum! {
    /// Dividend list. It contains the securities that the screener of the same name finds without further filters.
    pub enum DividendList {
        HighYield = "high-yield", DividendGrowth = "dividend-growth", Aristocrats = "dividend-aristocrats",
        Kings = "dividend-kings",
    }
}

impl DividendList {
    /// True if the list contains the security.
    pub fn contains(self, stock: &StockRow, figures: &StockFigures) -> bool {
        let at_least = |value: Option<Decimal>, least: i64| value.is_some_and(|value| value >= least.into());
        stock.is_active
            && match self {
                Self::HighYield => passes_high_yield(stock, figures, Some(HIGH_YIELD_MINIMUM.into()), None),
                Self::DividendGrowth => {
                    let growth = figures.screened.growth_5y.map(|value| value.0);
                    at_least(growth, GROWTH_MINIMUM)
                        && at_least(stock.dividend_yield.map(|value| value.0), GROWTH_YIELD_MINIMUM)
                }
                Self::Aristocrats => figures.screened.is_dividend_aristocrat,
                Self::Kings => figures.screened.is_dividend_king,
            }
    }
}

/// Lists that contain the security, in the order of [`DividendList::ALL`].
pub fn lists_of(stock: &StockRow, figures: &StockFigures) -> impl Iterator<Item = DividendList> {
    DividendList::ALL.iter().copied().filter(|list| list.contains(stock, figures))
}

/// Chowder number of a company and its test result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChowderNumber {
    /// Forward yield plus five-year growth, in percentage points.
    pub number: Decimal,
    /// True if the number reaches the threshold for the yield and the sector.
    pub passes: bool,
}

/// Computes the Chowder number from a forward yield and a five-year growth, both in percent.
pub fn chowder_number(
    yield_forward: Option<Decimal>,
    growth_5y: Option<Decimal>,
    sector: Option<&str>,
) -> Option<ChowderNumber> {
    let (yield_forward, growth) = (yield_forward?, growth_5y?);
    let number = remove_division_error(yield_forward.checked_add(growth)?);
    let utility = sector.is_some_and(|sector| sector.eq_ignore_ascii_case("Utilities"));
    let threshold = match (utility, remove_division_error(yield_forward) >= Decimal::from(3)) {
        (true, _) => 8,
        (false, true) => 12,
        (false, false) => 15,
    };
    Some(ChowderNumber { number, passes: number >= Decimal::from(threshold) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::rules::Rules;

    const RULES: ListRules = Rules::DEFAULT.lists;

    #[test]
    fn every_condition_of_an_aristocrat_is_needed() {
        let member = GrowerListInput {
            streak_years: 25,
            streak_at_risk: false,
            status: DividendState::Active,
            is_listed: true,
            in_sp500: true,
            float_market_cap: Some(3_000_000_000i64.into()),
            average_daily_value: Some(5_000_000.into()),
        };
        assert!(is_aristocrat(&member, &RULES));
        for other in [
            GrowerListInput { streak_years: 24, ..member },
            GrowerListInput { streak_at_risk: true, ..member },
            GrowerListInput { status: DividendState::Suspended, ..member },
            GrowerListInput { is_listed: false, ..member },
            GrowerListInput { in_sp500: false, ..member },
            GrowerListInput { float_market_cap: Some(2_999_999_999i64.into()), ..member },
            GrowerListInput { average_daily_value: None, ..member },
        ] {
            assert!(!is_aristocrat(&other, &RULES), "{other:?}");
        }
    }

    #[test]
    fn tiers() {
        for (years, expected) in [
            (4, None),
            (5, Some(ListTier::Challenger)),
            (10, Some(ListTier::Contender)),
            (24, Some(ListTier::Contender)),
            (25, Some(ListTier::Champion)),
        ] {
            assert_eq!(grower_tier(years), expected, "{years}");
        }
        assert!(is_king(50, &RULES) && !is_king(49, &RULES));
    }
}

#[cfg(test)]
mod chowder_tests {
    use super::*;

    #[test]
    fn thresholds_are_inclusive() {
        for (yielded, growth, sector, passes) in [
            (dec!(3), dec!(8.8), None, false),
            (dec!(3), dec!(9), None, true),
            (dec!(2.99), dec!(12), None, false),
            (dec!(2), dec!(13), None, true),
            (dec!(3.9), dec!(6.8), Some("Utilities"), true),
            (dec!(1), dec!(7), Some("Utilities"), true),
            (dec!(3.9), dec!(6.8), Some("Industrials"), false),
        ] {
            assert_eq!(
                chowder_number(Some(yielded), Some(growth), sector).map(|c| c.passes),
                Some(passes),
                "{yielded} {growth}"
            );
        }
        assert_eq!(chowder_number(Some(dec!(4)), None, None), None);
    }
}
