//! Enumerations of events: record kinds, actions, security and dividend types, frequencies.
//!
//! Review decision about a quarantined row.

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::symbol::Symbol;
use crate::text_enum;

text_enum! {
    /// Kind of the rows in a record batch. The NATS subject of the batch ends with the kind. The name of the batch's
    /// schema begins with the kind, for example `price.v1`.
    pub enum Kind {
        Security = "security", Price = "price", Dividend = "dividend", Split = "split", Fundamentals = "fundamentals",
        Etf = "etf", Holding = "holding", Fx = "fx", Session = "session", Decision = "decision", Evidence = "evidence", Reject = "reject",
        Run = "run",
    }
}

text_enum! {
    /// Action of a feed row. `put` adds the row's record. If a record with the same key exists, the row is a new
    /// version of this record. `retract` withdraws the record with the row's key.
    pub enum Action { Put = "put", Retract = "retract" }
}

text_enum! {
    /// Type of a security.
    pub enum SecurityType {
        Stock = "stock", Etf = "etf", Adr = "adr", Reit = "reit", Mlp = "mlp", Preferred = "preferred",
        ClosedEndFund = "closed_end_fund", Trust = "trust",
    }
}

text_enum! {
    /// Declared type of a distribution. Rule R3 derives the class of the distribution from this type. The classes are
    /// regular, special, spin-off and stock.
    pub enum DividendType {
        Regular = "regular", Special = "special", Supplemental = "supplemental", Irregular = "irregular",
        ReturnOfCapital = "return_of_capital", CapitalGain = "capital_gain", CapitalGainLong = "capital_gain_long",
        CapitalGainShort = "capital_gain_short", Stock = "stock", SpinOff = "spin_off", Liquidation = "liquidation",
        Unknown = "unknown",
    }
}

text_enum! {
    /// Payment frequency. `biweekly`: every two weeks. `semi_monthly`: twice a month. `bimonthly`: every two months.
    /// `triannual`: three times a year. `none`: the security pays nothing. `unknown`: the frequency cannot be
    /// determined.
    pub enum Frequency {
        Weekly = "weekly", Biweekly = "biweekly", SemiMonthly = "semi_monthly", FourWeekly = "four_weekly", Monthly = "monthly",
        Bimonthly = "bimonthly", Quarterly = "quarterly", Triannual = "triannual", SemiAnnual = "semi_annual",
        Annual = "annual", Irregular = "irregular", None = "none", Unknown = "unknown",
    }
}

impl Frequency {
    /// Number of payments a year; `None` for the frequencies irregular, none and unknown.
    pub fn payments_per_year(self) -> Option<i32> {
        Some(match self {
            Self::Weekly => 52,
            Self::Biweekly => 26,
            Self::SemiMonthly => 24,
            Self::FourWeekly => 13,
            Self::Monthly => 12,
            Self::Bimonthly => 6,
            Self::Quarterly => 4,
            Self::Triannual => 3,
            Self::SemiAnnual => 2,
            Self::Annual => 1,
            Self::Irregular | Self::None | Self::Unknown => return None,
        })
    }

    /// Frequency with the given number of payments a year. `irregular` for 0 payments; `None` if no frequency has the
    /// given number.
    pub fn from_payments_per_year(payments: i64) -> Option<Self> {
        if payments == 0 {
            return Some(Self::Irregular);
        }
        let has_number = |frequency: &&Self| frequency.payments_per_year().map(i64::from) == Some(payments);
        Self::ALL.iter().find(has_number).copied()
    }
}

text_enum! {
    /// Share basis of an amount or price: raw (as declared or traded), or adjusted for later splits.
    pub enum ShareBasis { Raw = "raw", SplitAdjusted = "split_adjusted" }
}

text_enum! {
    /// Listing status of a security.
    pub enum ListingStatus { Active = "active", Delisted = "delisted" }
}

text_enum! {
    /// Decision of an operator about a quarantined row.
    pub enum DecisionVerdict as "Verdict" {
        /// The row is correct and is used in the figures.
        Release = "release",
        /// The row is wrong. It stays quarantined, even if its neighbouring rows change.
        Confirm = "confirm",
    }
}

/// Review decision about one row. The decision applies only while the row still has the key in `row`. If the vendor
/// corrects the date or the value, the decision no longer applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Canonical ticker of the security at the time of the decision.
    pub symbol: Symbol,
    /// Verdict: release the row, or confirm that it is wrong.
    pub verdict: DecisionVerdict,
    /// Key of the row that the decision is about.
    #[serde(flatten)]
    pub row: DecidedRow,
    /// Code of the reason for the quarantine, for example `amount_outlier`.
    pub reason: String,
    /// Reason that the operator gave for the decision.
    pub note: String,
}

/// Key that identifies a row in a decision: kind, feed, vendor's id, date and value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DecidedRow {
    /// Kind: price, dividend or split.
    pub kind: Kind,
    /// Name of the feed that reported the row.
    pub source: String,
    /// Vendor's id of the row; `None` if the vendor gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_id: Option<String>,
    /// Session of a price, or ex-date of a dividend or split. For a dividend without an ex-date, its record date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<NaiveDate>,
    /// Value of the row: close of a price, amount per share of a dividend, or number of new shares of a split.
    pub value: Decimal,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rhythm_is_known_by_its_payments_a_year() {
        let known =
            Frequency::ALL.iter().filter_map(|frequency| Some((*frequency, frequency.payments_per_year()?)));
        let known: Vec<(Frequency, i32)> = known.collect();
        assert_eq!(
            known.iter().map(|(_, payments)| *payments).collect::<Vec<_>>(),
            [52, 26, 24, 13, 12, 6, 4, 3, 2, 1]
        );
        for (frequency, payments) in known {
            assert_eq!(Frequency::from_payments_per_year(payments.into()), Some(frequency));
        }
        assert_eq!(Frequency::from_payments_per_year(0), Some(Frequency::Irregular));
        assert_eq!([-1, 5, 365].map(Frequency::from_payments_per_year), [None; 3]);
    }
}
