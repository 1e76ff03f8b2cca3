//! What a distribution counts for (R3).
//!
//! | class | TTM | TTM total | forward, growth, streak, payout | price factor |
//! |---|---|---|---|---|
//! | regular (and scheduled return of capital) | yes | yes | yes | yes |
//! | special (capital gains, liquidation, one-off return of capital) | no | yes | no | yes |
//! | spin-off (value per parent share) | no | no | no | yes |
//! | stock dividend | no | no | no | as a split |
//!
//! A return of capital is scheduled when its frequency is a number (R31). Tax character never changes the class.
//! `irregular` and `unknown` count as regular; unknown is flagged.
//! Source: vendors' type codes (CD, SC, LT, ST) and the newer recurring, special and supplemental.

use crate::event::{DividendType, Frequency, SecurityType};

/// What a distribution counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Cash that is paid again and again.
    Regular,
    /// Cash that is paid once.
    Special,
    /// Shares of another company.
    SpinOff,
    /// Shares of the company itself.
    Stock,
}

impl Class {
    /// Counts in the trailing sum, the indicated dividend, growth, streaks and payouts.
    pub fn is_regular(self) -> bool {
        self == Self::Regular
    }
    /// Counts in the trailing sum with specials.
    pub fn in_ttm_total(self) -> bool {
        matches!(self, Self::Regular | Self::Special)
    }
    /// Lowers the price on its ex-date by its amount.
    pub fn in_price_factor(self) -> bool {
        self != Self::Stock
    }
}

impl DividendType {
    /// The class of a distribution of this type and vendor frequency.
    pub fn class(self, frequency: Option<Frequency>) -> Class {
        match self {
            Self::Regular | Self::Irregular | Self::Unknown => Class::Regular,
            Self::ReturnOfCapital if frequency.and_then(Frequency::payments_per_year).is_some() => {
                Class::Regular
            }
            Self::ReturnOfCapital | Self::Special | Self::Supplemental | Self::Liquidation => Class::Special,
            Self::CapitalGain | Self::CapitalGainLong | Self::CapitalGainShort => Class::Special,
            Self::SpinOff => Class::SpinOff,
            Self::Stock => Class::Stock,
        }
    }
}

impl SecurityType {
    /// Whether it counts as a stock in screens and sectors: no funds, no preferred shares.
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
            (T::Regular, Class::Regular),
            (T::Irregular, Class::Regular),
            (T::Unknown, Class::Regular),
            (T::Special, Class::Special),
            (T::Supplemental, Class::Special),
            (T::CapitalGain, Class::Special),
            (T::CapitalGainLong, Class::Special),
            (T::CapitalGainShort, Class::Special),
            (T::Liquidation, Class::Special),
            (T::ReturnOfCapital, Class::Special),
            (T::SpinOff, Class::SpinOff),
            (T::Stock, Class::Stock),
        ] {
            assert_eq!(kind.class(None), class, "{kind}");
        }
        assert_eq!(T::ReturnOfCapital.class(Some(Frequency::Monthly)), Class::Regular);
        assert_eq!(T::ReturnOfCapital.class(Some(Frequency::Irregular)), Class::Special);
    }

    #[test]
    fn what_each_class_counts_for() {
        let classes = [Class::Regular, Class::Special, Class::SpinOff, Class::Stock];
        assert_eq!(classes.map(Class::is_regular), [true, false, false, false]);
        assert_eq!(classes.map(Class::in_ttm_total), [true, true, false, false]);
        assert_eq!(classes.map(Class::in_price_factor), [true, true, true, false]);
        let stocks: Vec<&str> =
            SecurityType::ALL.iter().filter(|kind| kind.is_stock()).map(|kind| kind.as_str()).collect();
        assert_eq!(stocks, ["stock", "adr", "reit", "mlp"]);
    }
}
