//! Share bases and adjustment factors: splits and dividends as multipliers of earlier prices (R10, R11).
//!
//! # Share bases (R10)
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
//! # Adjustment factors (R11)
//!
//! A dividend multiplies earlier prices by 1 - ΣD / C. ΣD is all cash and spin-off value of the ex-date. C is the last
//! raw close before the ex-date, on the price basis of the ex-date. The factor is 1 in these cases:
//! - C is unknown (flag `no_prev_close`).
//! - ΣD is at least C, or in another currency (flag `factor_skipped`).
//!
//! Factors are not rounded. Source: CRSP's factor to adjust prices. In CRSP's published example, a price of 46.99
//! becomes 23.419696.
//!
//! # Test of a split against the price (R36)
//!
//! The unexplained factor is the part of the price move that the split ratio does not explain. For example, if a split
//! of 2 for 1 should halve the price, but the price stays the same, the unexplained factor is 2. The price denies the
//! split if the logarithm of this factor is too large compared with the logarithm of the ratio.
//!
//! The logarithms are compared exactly by powers: ln a > p/q ln b if and only if a^q > b^p.

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::metrics::arithmetic::{clamp_to_limit, power, quotient};

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

    /// Product of the ratios of the splits and price-only actions with `after` < ex-date <= `through`.
    pub fn price_ratio_between(&self, after: NaiveDate, through: NaiveDate) -> Ratio {
        self.product(after, through, |_| true)
    }

    /// Ratio that converts an amount per share from the share basis of `date` to the share basis of `basis`. `basis`
    /// may be the earlier day. Share counts and volumes use the inverse. Price-only actions are left out.
    pub fn ratio_to_basis(&self, date: NaiveDate, basis: NaiveDate) -> Ratio {
        self.convert(date, basis, |event| !event.is_price_only)
    }

    /// Ratio that converts a price from the price basis of `date` to the price basis of `basis`. `basis` may be the
    /// earlier day.
    pub fn price_ratio_to_basis(&self, date: NaiveDate, basis: NaiveDate) -> Ratio {
        self.convert(date, basis, |_| true)
    }

    fn convert(&self, date: NaiveDate, basis: NaiveDate, counts: impl Fn(&SplitEvent) -> bool) -> Ratio {
        if date <= basis {
            self.product(date, basis, counts)
        } else {
            self.product(basis, date, counts).inverse()
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

/// Number e to eight decimal places: the ratio with the natural logarithm 1.
pub(crate) const E: Decimal = Decimal::from_parts(271_828_183, 0, 0, false, 8);

/// Factor of the price change at a split, always at least 1. `None` for ratios below 3 for 2, because such a change is
/// not visible in a price.
pub(crate) fn detectable_factor(ratio: Ratio) -> Option<Decimal> {
    let (more, fewer) = (ratio.from.max(ratio.to), ratio.from.min(ratio.to));
    quotient(more, fewer).filter(|size| *size >= Decimal::new(15, 1))
}

/// True if the price denies a split: the logarithm of `rest` exceeds `share` percent of the logarithm of `ratio`.
///
/// `rest` is the unexplained factor, and 1 means a perfect fit. A ratio above `largest_ratio` is limited to it.
pub(crate) fn is_denied(rest: Decimal, ratio: Ratio, share: i64, largest_ratio: Decimal) -> bool {
    let Some(size) = quotient(ratio.from.max(ratio.to), ratio.from.min(ratio.to)) else { return false };
    let base = size.min(largest_ratio);
    let Some(rest) = (if rest < Decimal::ONE { quotient(Decimal::ONE, rest) } else { Some(rest) }) else {
        return true;
    };
    // Powers are exact: ln a > p/q ln b if and only if a^q > b^p.
    let (numerator, denominator) = lowest_share(share);
    match (power(rest, denominator), power(base, numerator)) {
        (Some(rest), Some(base)) => rest > base,
        // `None` means that a power has more than 28 digits. It exceeds every power that fits. If both powers have more
        // than 28 digits, their bases are compared.
        (None, Some(_)) => true,
        (Some(_), None) => false,
        (None, None) => rest >= base,
    }
}

/// Numerator and denominator of a percentage in lowest terms: 40 percent is 2/5.
fn lowest_share(percent: i64) -> (u32, u32) {
    let divisor = [20, 10, 5, 4, 2].into_iter().find(|divisor| percent % divisor == 0 && 100 % divisor == 0);
    let divisor = divisor.unwrap_or(1);
    (u32::try_from(percent / divisor).unwrap_or_default(), u32::try_from(100 / divisor).unwrap_or(1))
}

#[cfg(test)]
mod tests;
