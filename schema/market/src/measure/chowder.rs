//! The Chowder number (R16): forward yield plus five-year dividend growth, both in percent.
//!
//! Passes at 12 with a yield of 3 % or more, at 15 below that, at 8 for utilities; all inclusive. Null without five-year
//! growth or forward yield. Source: the rule's author.

use rust_decimal::Decimal;

use super::arithmetic::settle;

/// A Chowder number and whether it passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chowder {
    /// Yield and growth, in percent points.
    pub number: Decimal,
    /// Whether it is as high as its kind of company needs.
    pub passes: bool,
}

/// The Chowder number of a forward yield and growth in percent.
pub fn chowder(
    yield_forward: Option<Decimal>,
    growth_5y: Option<Decimal>,
    sector: Option<&str>,
) -> Option<Chowder> {
    let (yield_forward, growth) = (yield_forward?, growth_5y?);
    let number = settle(yield_forward.checked_add(growth)?);
    let utility = sector.is_some_and(|sector| sector.eq_ignore_ascii_case("Utilities"));
    let threshold = match (utility, settle(yield_forward) >= Decimal::from(3)) {
        (true, _) => 8,
        (false, true) => 12,
        (false, false) => 15,
    };
    Some(Chowder { number, passes: number >= Decimal::from(threshold) })
}

#[cfg(test)]
mod tests {
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
                chowder(Some(yielded), Some(growth), sector).map(|c| c.passes),
                Some(passes),
                "{yielded} {growth}"
            );
        }
        assert_eq!(chowder(Some(dec!(4)), None, None), None);
    }
}
