//! Class of a distribution: regular, special, spin-off or stock. The class decides which metrics include the payment
//! (R3).
//!
//! | class | TTM | TTM total | forward, growth, streak, payout | price factor |
//! | --- | --- | --- | --- | --- |
//! | regular (and scheduled return of capital) | yes | yes | yes | yes |
//! | special (capital gains, liquidation, one-off return of capital) | no | yes | no | yes |
//! | spin-off (value per parent share) | no | no | no | yes |
//! | stock dividend | no | no | no | as a split |
//!
//! A return of capital is scheduled if the vendor states a number of payments a year (R31). For example, `monthly`
//! states 12 payments a year. The tax character never changes the class.
//!
//! Payments of the vendor types `irregular` and `unknown` have the class regular. The type `unknown` also sets the flag
//! `unknown_type`. Source: vendors' type codes (CD, SC, LT, ST) and their newer types recurring, special and
//! supplemental.

use crate::event::{DividendType, Frequency, SecurityType};

/// Class of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DividendClass {
    /// Recurring cash.
    Regular,
    /// One-time cash.
    Special,
    /// Shares of another company.
    SpinOff,
    /// Shares of the company itself.
    Stock,
}

impl DividendClass {
    /// True if trailing sum, forward dividend, growth, streaks and payouts include the payment.
    pub fn is_regular(self) -> bool {
        self == Self::Regular
    }
    /// True if the trailing sum with specials (TTM total) includes the payment.
    pub fn in_ttm_total(self) -> bool {
        matches!(self, Self::Regular | Self::Special)
    }
    /// True if prices before the ex-date are adjusted for the payment (R11).
    pub fn in_price_factor(self) -> bool {
        self != Self::Stock
    }
}

impl DividendType {
    /// Class of a distribution of this type. `frequency` is stated by the vendor, and matters only for a return of
    /// capital.
    pub fn class(self, frequency: Option<Frequency>) -> DividendClass {
        match self {
            Self::Regular | Self::Irregular | Self::Unknown => DividendClass::Regular,
            Self::ReturnOfCapital if frequency.and_then(Frequency::payments_per_year).is_some() => {
                DividendClass::Regular
            }
            Self::ReturnOfCapital | Self::Special | Self::Supplemental | Self::Liquidation => {
                DividendClass::Special
            }
            Self::CapitalGain | Self::CapitalGainLong | Self::CapitalGainShort => DividendClass::Special,
            Self::SpinOff => DividendClass::SpinOff,
            Self::Stock => DividendClass::Stock,
        }
    }
}

impl SecurityType {
    /// True for the security types that screeners and sector statistics treat as stocks. Funds and preferred shares are
    /// not stocks here.
    pub fn is_stock(self) -> bool {
        matches!(self, Self::Stock | Self::Adr | Self::Reit | Self::Mlp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_class() {
        use DividendType as T;
        for (kind, class) in [
            (T::Regular, DividendClass::Regular),
            (T::Irregular, DividendClass::Regular),
            (T::Unknown, DividendClass::Regular),
            (T::Special, DividendClass::Special),
            (T::Supplemental, DividendClass::Special),
            (T::CapitalGain, DividendClass::Special),
            (T::CapitalGainLong, DividendClass::Special),
            (T::CapitalGainShort, DividendClass::Special),
            (T::Liquidation, DividendClass::Special),
            (T::ReturnOfCapital, DividendClass::Special),
            (T::SpinOff, DividendClass::SpinOff),
            (T::Stock, DividendClass::Stock),
        ] {
            assert_eq!(kind.class(None), class, "{kind}");
        }
        assert_eq!(T::ReturnOfCapital.class(Some(Frequency::Monthly)), DividendClass::Regular);
        assert_eq!(T::ReturnOfCapital.class(Some(Frequency::Irregular)), DividendClass::Special);
    }

    #[test]
    fn what_each_class_counts_for() {
        let classes =
            [DividendClass::Regular, DividendClass::Special, DividendClass::SpinOff, DividendClass::Stock];
        assert_eq!(classes.map(DividendClass::is_regular), [true, false, false, false]);
        assert_eq!(classes.map(DividendClass::in_ttm_total), [true, true, false, false]);
        assert_eq!(classes.map(DividendClass::in_price_factor), [true, true, true, false]);
        let stocks: Vec<&str> =
            SecurityType::ALL.iter().filter(|kind| kind.is_stock()).map(|kind| kind.as_str()).collect();
        assert_eq!(stocks, ["stock", "adr", "reit", "mlp"]);
    }
}
