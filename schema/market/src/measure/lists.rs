//! Lists of dividend growers (R15).
//!
//! Aristocrat: member of the S&P 500, streak of 25 years or more, float market cap of at least 3 bn, average daily value
//! of three months of at least 5 m, paying and not at risk. Membership, float cap and liquidity are inputs; a missing one
//! means no. King: 50 years or more, any listing. Tiers: champion 25+, contender 10–24, challenger 5–9.
//! The bounds are the parameters `lists.…`. The index's 40-name minimum, sector cap and one share class per issuer are not modelled. Source: index methodology.

use rust_decimal::Decimal;

use super::rules::Lists;
use crate::row::{DividendState, ListTier};

/// What membership rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ListFacts {
    /// Years of increases in a row (R14).
    pub streak_years: i32,
    /// Whether the forward dividend would end the streak.
    pub streak_at_risk: bool,
    /// Whether it pays at present.
    pub status: DividendState,
    /// Whether the security still trades.
    pub is_listed: bool,
    /// Whether it is a member of the S&P 500.
    pub in_sp500: bool,
    /// Worth of the shares that trade freely, in US dollars.
    pub float_market_cap: Option<Decimal>,
    /// Mean traded value a day over three months.
    pub average_daily_value: Option<Decimal>,
}

/// Whether it is a Dividend Aristocrat.
pub fn is_aristocrat(facts: &ListFacts, rules: &Lists) -> bool {
    let at_least = |value: Option<Decimal>, least: Decimal| value.is_some_and(|value| value >= least);
    facts.in_sp500
        && i64::from(facts.streak_years) >= rules.aristocrat_years
        && at_least(facts.float_market_cap, rules.aristocrat_float_cap)
        && at_least(facts.average_daily_value, rules.aristocrat_daily_value)
        && facts.status == DividendState::Active
        && facts.is_listed
        && !facts.streak_at_risk
}

/// Whether it is a Dividend King.
pub fn is_king(streak_years: i32, rules: &Lists) -> bool {
    i64::from(streak_years) >= rules.king_years
}

/// The tier of a streak.
pub fn tier(streak_years: i32, rules: &Lists) -> Option<ListTier> {
    let tiers = [
        (ListTier::Champion, rules.champion_years),
        (ListTier::Contender, rules.contender_years),
        (ListTier::Challenger, rules.challenger_years),
    ];
    tiers.into_iter().find(|(_, least)| i64::from(streak_years) >= *least).map(|(tier, _)| tier)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::rules::Rules;

    const RULES: Lists = Rules::DEFAULT.lists;

    #[test]
    fn every_condition_of_an_aristocrat_is_needed() {
        let member = ListFacts {
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
            ListFacts { streak_years: 24, ..member },
            ListFacts { streak_at_risk: true, ..member },
            ListFacts { status: DividendState::Suspended, ..member },
            ListFacts { is_listed: false, ..member },
            ListFacts { in_sp500: false, ..member },
            ListFacts { float_market_cap: Some(2_999_999_999i64.into()), ..member },
            ListFacts { average_daily_value: None, ..member },
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
            assert_eq!(tier(years, &RULES), expected, "{years}");
        }
        assert!(is_king(50, &RULES) && !is_king(49, &RULES));
    }
}
