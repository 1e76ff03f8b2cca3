//! Market capitalisation, and ratios of price to per-share figures (R24).
//!
//! Share counts and per-share figures are adjusted for the splits between their date and the as-of date. P/E is null if
//! earnings are 0 or less, or if earnings and price are in different currencies. All ratios have their usual
//! definitions.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::arithmetic::{keep_positive, quotient};
use super::prices::adjustment::Splits;

/// Converts a figure per share of the date `basis` to a figure per share of the date `as_of`.
pub(crate) fn per_share(
    value: Option<Decimal>,
    basis: NaiveDate,
    splits: &Splits,
    as_of: NaiveDate,
) -> Option<Decimal> {
    value.map(|value| splits.ratio_to_basis(basis, as_of).apply(value))
}

/// Adjusts a share count for the splits between two dates. The count is in shares of the date `basis`, and the result
/// is in shares of the date `as_of`.
pub(crate) fn shares(
    value: Option<Decimal>,
    basis: NaiveDate,
    splits: &Splits,
    as_of: NaiveDate,
) -> Option<Decimal> {
    value.map(|value| splits.ratio_to_basis(basis, as_of).inverse().apply(value))
}

/// Market capitalisation: price x shares outstanding; `None` if either is unknown.
pub fn market_cap(price: Option<Decimal>, shares_outstanding: Option<Decimal>) -> Option<Decimal> {
    price?.checked_mul(shares_outstanding?)
}

/// Price divided by a per-share figure. `None` if either is unknown, or if the figure is 0 or less.
pub fn price_to(price: Option<Decimal>, per_share: Option<Decimal>) -> Option<Decimal> {
    quotient(price?, keep_positive(per_share)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::prices::adjustment::{Ratio, SplitEvent};

    #[test]
    fn figures_reported_before_a_split() {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        let split = SplitEvent::of_shares(day("2024-08-12"), Ratio { from: dec!(1), to: dec!(2) });
        let splits = Splits::new(vec![split]);
        let (reported, as_of) = (day("2024-06-30"), day("2024-09-30"));
        let outstanding = shares(Some(dec!(50000000)), reported, &splits, as_of);
        assert_eq!(market_cap(Some(dec!(40)), outstanding), Some(dec!(4000000000)));
        assert_eq!(
            price_to(Some(dec!(40)), per_share(Some(dec!(5)), reported, &splits, as_of)),
            Some(dec!(16))
        );
        assert_eq!(price_to(Some(dec!(40)), Some(dec!(-1))), None);
    }
}
