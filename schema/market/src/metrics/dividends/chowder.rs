//! Chowder number (R16): forward yield plus five-year dividend growth, both in percent.
//!
//! A utility passes with a number of at least 8. Other companies need at least 12 with a forward yield of 3 % or more,
//! and at least 15 with a lower yield. All bounds are inclusive. Without a forward yield or five-year growth, the
//! number is null. Source: the author of the rule.

use rust_decimal::Decimal;

use crate::metrics::arithmetic::remove_division_error;

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
