//! Share bases and adjustment factors: splits and dividends as multipliers of earlier prices (R10, R11).
//!
//! The share basis of an amount is the share count to which the amount refers. A split of `from` old shares to `to` new
//! shares changes the share count. An amount per share of day d can be converted to a later day t. The conversion
//! multiplies the amount by `from` / `to` of every split with d < ex-date <= t. Share counts and volumes are multiplied
//! by the inverse. A dividend on the ex-date of a split is already per new share. The numbers `from` and `to` of all
//! splits are multiplied separately, so that only one division is needed.
//!
//! A price-only action (R35), such as a spin-off, multiplies earlier prices in the same way. It does not change share
//! counts, volumes and amounts per share. The price basis of a price therefore changes at splits and at price-only
//! actions. The share basis changes only at splits.
//!
//! A dividend multiplies earlier prices by 1 - ΣD / C. ΣD is all cash and spin-off value of the ex-date. C is the last
//! raw close before the ex-date, on the price basis of the ex-date. The factor is 1 in these cases:
//! - C is unknown (flag `no_prev_close`).
//! - ΣD is at least C, or in another currency (flag `factor_skipped`).
//!
//! Factors are not rounded. Source: CRSP's factor to adjust prices. In CRSP's published example, a price of 46.99
//! becomes 23.419696.

use std::hash::Hasher;

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::metrics::arithmetic::clamp_to_limit;
use crate::row::Fingerprint;

/// Split ratio: `from` old shares become `to` new shares. Prices before the split are multiplied by `from` / `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ratio {
    /// Number of old shares.
    pub from: Decimal,
    /// Number of new shares.
    pub to: Decimal,
}

impl Ratio {
    /// Ratio of 1 to 1, which changes nothing.
    pub const ONE: Self = Self { from: Decimal::ONE, to: Decimal::ONE };

    /// True if `from` and `to` are equal. Such a ratio changes nothing.
    pub fn is_one(&self) -> bool {
        self.from == self.to
    }

    /// Inverse ratio: old and new shares are exchanged.
    pub fn inverse(self) -> Self {
        Self { from: self.to, to: self.from }
    }

    /// Product of two ratios. It has the same effect as `self`, then `next`.
    pub fn then(self, next: Self) -> Self {
        if self.is_one() {
            return next;
        }
        if next.is_one() {
            return self;
        }
        match (self.from.checked_mul(next.from), self.to.checked_mul(next.to)) {
            (Some(from), Some(to)) => Self { from, to }.reduced(),
            // On overflow, `next` is ignored. The splits of a real security never give a ratio of more than 28 digits,
            // so no served figure is affected.
            _ => self,
        }
    }

    /// `value` x from / to. The value is multiplied before it is divided, unless the product would overflow. Results
    /// are limited to ±10^18.
    pub fn apply(self, value: Decimal) -> Decimal {
        if self.is_one() {
            return value;
        }
        let divided_last = value.checked_mul(self.from).and_then(|product| product.checked_div(self.to));
        clamp_to_limit(divided_last.or_else(|| value.checked_div(self.to)?.checked_mul(self.from)))
    }

    /// Quotient from / to.
    pub fn factor(self) -> Decimal {
        self.apply(Decimal::ONE)
    }

    /// Divides both numbers by their greatest common divisor. If both are below a million, or one has decimal places,
    /// the ratio is returned unchanged.
    fn reduced(self) -> Self {
        let large = Decimal::from(1_000_000);
        if (self.from < large && self.to < large) || !self.from.is_integer() || !self.to.is_integer() {
            return self;
        }
        let divisor = gcd(self.from.trunc().mantissa(), self.to.trunc().mantissa());
        match Decimal::try_from_i128_with_scale(divisor, 0) {
            Ok(divisor) if divisor > Decimal::ONE => {
                Self { from: (self.from / divisor).normalize(), to: (self.to / divisor).normalize() }
            }
            _ => self,
        }
    }
}

/// Both numbers of a ratio as integers: a ratio of 1 to 1.5 becomes 10 to 15. `None` if a number exceeds 128 bits.
pub(crate) fn whole_terms(ratio: Ratio) -> Option<(i128, i128)> {
    let (from, to) = (ratio.from.normalize(), ratio.to.normalize());
    let scale = from.scale().max(to.scale());
    let whole = |value: Decimal| value.mantissa().checked_mul(10i128.checked_pow(scale - value.scale())?);
    Some((whole(from)?, whole(to)?))
}

/// Both numbers of a ratio as integers in lowest terms. `None` if a number exceeds 128 bits, or is 0 or less.
pub(crate) fn lowest_terms(ratio: Ratio) -> Option<(i128, i128)> {
    let (from, to) = whole_terms(ratio)?;
    let divisor = gcd(from, to);
    (from > 0 && to > 0).then(|| (from / divisor, to / divisor))
}

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Default for Ratio {
    fn default() -> Self {
        Self::ONE
    }
}

/// Split or price-only action of a security on its ex-date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitEvent {
    /// First session with prices after the split or price-only action.
    pub ex_date: NaiveDate,
    /// Old and new shares. Earlier prices are multiplied by `from` / `to`.
    pub ratio: Ratio,
    /// True if the action changes prices but not the share count (R35).
    pub is_price_only: bool,
}

impl SplitEvent {
    /// Builds the event of a split that changes the share count.
    pub fn of_shares(ex_date: NaiveDate, ratio: Ratio) -> Self {
        Self { ex_date, ratio, is_price_only: false }
    }
}

/// Splits of a security by ex-date, and actions that change only the price, such as spin-offs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Splits(Vec<SplitEvent>);

impl Splits {
    /// Builds a table from splits and price-only actions in any order.
    pub fn new(mut events: Vec<SplitEvent>) -> Self {
        events.sort_by_key(|event| event.ex_date);
        Self(events)
    }

    /// Splits and price-only actions, by ex-date.
    pub fn events(&self) -> &[SplitEvent] {
        &self.0
    }

    /// Product of the ratios of the splits with an ex-date after `after`, up to and including `through`. Price-only
    /// actions are left out.
    pub fn share_ratio_between(&self, after: NaiveDate, through: NaiveDate) -> Ratio {
        self.product(after, through, |event| !event.is_price_only)
    }

    /// Product of the ratios of the splits and price-only actions with `after` < ex-date <= `through`.
    pub fn price_ratio_between(&self, after: NaiveDate, through: NaiveDate) -> Ratio {
        self.product(after, through, |_| true)
    }

    /// Ratio that converts an amount per share from the share basis of `date` to the share basis of `basis`. `basis`
    /// may be the earlier day. Share counts and volumes use the inverse.
    pub fn ratio_to_basis(&self, date: NaiveDate, basis: NaiveDate) -> Ratio {
        if date <= basis {
            self.share_ratio_between(date, basis)
        } else {
            self.share_ratio_between(basis, date).inverse()
        }
    }

    /// Ratio that converts a price from the price basis of `date` to the price basis of `basis`. `basis` may be the
    /// earlier day.
    pub fn price_ratio_to_basis(&self, date: NaiveDate, basis: NaiveDate) -> Ratio {
        if date <= basis {
            self.price_ratio_between(date, basis)
        } else {
            self.price_ratio_between(basis, date).inverse()
        }
    }

    fn product(&self, after: NaiveDate, through: NaiveDate, counts: impl Fn(&SplitEvent) -> bool) -> Ratio {
        let passed = self.0.iter().filter(|event| after < event.ex_date && event.ex_date <= through);
        passed.filter(|event| counts(event)).fold(Ratio::ONE, |ratio, event| ratio.then(event.ratio))
    }
}

/// Price adjustment of one ex-date. Earlier prices are multiplied by `from` / `to` of `split`, by `from` / `to` of
/// `price_only`, and by `dividend_factor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdjustmentFactor {
    /// Ex-date: first session on which a buyer does not receive the distribution.
    pub ex_date: NaiveDate,
    /// Split of the day as old and new shares; 1 and 1 without a split.
    pub split: Ratio,
    /// Multiplier of earlier prices: 1 - distributions / close before the ex-date, not rounded. 1 without
    /// distributions, or if the factor cannot be computed.
    pub dividend_factor: Decimal,
    /// Cash per share on the share basis of the ex-date; 0 without cash. Special dividends are included, spin-off
    /// values are not.
    pub dividend: Decimal,
    /// Cash and spin-off value per share, on the share basis of the ex-date. The total return reinvests this value.
    ///
    /// `None` if a distribution is in another currency than the prices.
    #[serde(default)]
    pub value: Option<Decimal>,
    /// Product of the ratios of all price-only actions (such as spin-offs) of the ex-date. Earlier prices are
    /// multiplied by `from` / `to`, and volumes stay unchanged (R35). The field is omitted in JSON if the product is 1.
    #[serde(default, skip_serializing_if = "Ratio::is_one")]
    pub price_only: Ratio,
}

impl AdjustmentFactor {
    /// Multiplier of earlier prices for the split and the price-only actions. Dividends are left out.
    pub fn price_ratio(&self) -> Ratio {
        self.split.then(self.price_only)
    }
}

impl Fingerprint for AdjustmentFactor {
    fn hash_into(&self, state: &mut impl Hasher) {
        let Self { ex_date, split, dividend_factor, dividend, value, price_only } = self;
        ex_date.hash_into(state);
        [split.from, split.to, *dividend_factor, *dividend, price_only.from, price_only.to]
            .iter()
            .for_each(|decimal| decimal.hash_into(state));
        value.hash_into(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn splits(rows: &[(&str, i64, i64)]) -> Splits {
        Splits::new(
            rows.iter()
                .map(|(day, from, to)| {
                    SplitEvent::of_shares(date(day), Ratio { from: (*from).into(), to: (*to).into() })
                })
                .collect(),
        )
    }

    #[test]
    fn values_move_between_share_bases() {
        let apple = splits(&[("2020-08-31", 1, 4), ("2014-06-09", 1, 7)]);
        let check = |day, basis, value, expected: Decimal| {
            assert_eq!(apple.ratio_to_basis(date(day), date(basis)).apply(value), expected, "{day} {basis}");
        };
        check("2014-05-08", "2020-09-01", dec!(3.29), dec!(0.1175));
        check("2014-06-09", "2020-09-01", dec!(0.47), dec!(0.1175));
        check("2014-05-08", "2014-06-06", dec!(3.29), dec!(3.29));
        check("2020-09-01", "2014-05-08", dec!(0.1175), dec!(3.29));
        let there_and_back = splits(&[("2020-01-02", 1, 3), ("2021-01-04", 3, 1)]);
        assert_eq!(
            there_and_back.ratio_to_basis(date("2019-12-31"), date("2022-01-03")).apply(dec!(100.01)),
            dec!(100.01)
        );
    }

    #[test]
    fn a_price_only_action_moves_prices_and_no_amounts() {
        let mut events = splits(&[("2020-08-31", 1, 4), ("2023-01-04", 1000, 1281)]);
        events.0[1].is_price_only = true;
        let (before, after) = (date("2020-01-02"), date("2023-01-04"));
        assert_eq!(events.ratio_to_basis(before, after), Ratio { from: dec!(1), to: dec!(4) });
        assert_eq!(events.ratio_to_basis(after, before), Ratio { from: dec!(4), to: dec!(1) });
        assert_eq!(events.price_ratio_to_basis(before, after).apply(dec!(512.4)), dec!(100));
        assert_eq!(events.price_ratio_to_basis(after, before).apply(dec!(100)), dec!(512.4));
        assert!(events.ratio_to_basis(date("2020-08-31"), after).is_one());
    }

    #[test]
    fn ratios_never_overflow() {
        let huge = Ratio { from: Decimal::from(9_999_999_999i64), to: Decimal::ONE };
        let product = (0..50).fold(Ratio::ONE, |ratio, _| ratio.then(huge));
        assert!(product.apply(dec!(9999999999)) >= dec!(1000000));
        assert_eq!(
            (0..50).fold(product, |ratio, _| ratio.then(huge)).apply(dec!(0.01)),
            product.apply(dec!(0.01))
        );
    }

    #[test]
    fn long_chains_of_splits_stay_exact() {
        let ratio = |from: i64, to: i64| Ratio { from: from.into(), to: to.into() };
        let there = (0..5).fold(Ratio::ONE, |all, _| all.then(ratio(997, 991)));
        let back = (0..5).fold(there, |all, _| all.then(ratio(991, 997)));
        assert_eq!(back.apply(dec!(40.15)), dec!(40.15));
        let back_but_one = (0..4).fold(there, |all, _| all.then(ratio(991, 997)));
        assert_eq!(back_but_one.apply(dec!(991)), dec!(997));
        // Ratios with fractions, such as those of spin-offs, are not reduced.
        let fraction = Ratio { from: dec!(1500000.5), to: dec!(2) }.then(ratio(1, 1_500_000));
        assert_eq!(fraction.apply(dec!(3000000)), dec!(1500000.5));
        let fraction = Ratio { from: dec!(2), to: dec!(1500000.5) }.then(ratio(1_500_000, 1));
        assert_eq!(fraction.apply(dec!(1500000.5)), dec!(3000000));
    }

    #[test]
    fn old_and_new_shares_are_in_lowest_terms_from_a_million_on() {
        let ratio = |from: i64, to: i64| Ratio { from: from.into(), to: to.into() };
        for (first, second, both) in [
            (ratio(4, 2), ratio(3, 6), ratio(12, 12)),
            (ratio(999, 500), ratio(1001, 400), ratio(999_999, 200_000)),
            (ratio(1000, 500), ratio(1000, 400), ratio(5, 1)),
            (ratio(500, 1000), ratio(400, 1000), ratio(1, 5)),
            (ratio(500, 3), ratio(3, 1_000_000), ratio(1, 2000)),
            (ratio(1001, 1), ratio(1009, 1), ratio(1_010_009, 1)),
        ] {
            assert_eq!(first.then(second), both, "{first:?} {second:?}");
        }
        let (half, whole) = (dec!(1500000.5), dec!(3000000));
        let fraction = Ratio { from: half, to: dec!(2) }.then(ratio(1, 1_500_000));
        assert_eq!(fraction, Ratio { from: half, to: whole });
        let fraction = Ratio { from: dec!(2), to: half }.then(ratio(1_500_000, 1));
        assert_eq!(fraction, Ratio { from: whole, to: half });
    }

    #[test]
    fn a_product_too_large_to_hold_is_divided_first() {
        let halved = Ratio { from: dec!(1000000000000), to: dec!(2000000000000) };
        assert_eq!(halved.apply(dec!(100000000000000000)), dec!(50000000000000000));
        assert_eq!((halved.factor(), halved.inverse().factor()), (dec!(0.5), dec!(2)));
    }

    #[test]
    fn splits_are_sorted_by_date() {
        let sorted = splits(&[("2024-02-01", 1, 2), ("2024-01-01", 1, 3)]);
        assert_eq!(sorted.events()[0].ex_date, date("2024-01-01"));
    }
}
