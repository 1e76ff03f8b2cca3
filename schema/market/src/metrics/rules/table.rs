//! Table of rule parameters by rule: name, type, default, range, unit and meaning.
//!
//! Rule parameter: name, unit, default and range, and validation of a value.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::{Deserialize, Serialize};

use crate::metrics::arithmetic::exact;

/// Converts a literal to the type of its field.
macro_rules! literal {
    (i64, $text:literal) => {
        $text
    };
    (Decimal, $text:literal) => {
        exact(stringify!($text))
    };
}

/// Converts a validated value to the type of its field.
macro_rules! admitted {
    (i64, $value:ident) => {
        $value.to_i64()?
    };
    (Decimal, $value:ident) => {
        $value
    };
}

macro_rules! is_whole {
    (i64) => {
        true
    };
    (Decimal) => {
        false
    };
}

/// Declares the rule parameters: one struct per rule, and the table of all parameters.
macro_rules! rules {
    ($(
        $(#[doc = $about:literal])*
        $group:ident: $Group:ident, $rule:literal {
            $($(#[doc = $meaning:literal])* $field:ident: $type:ident = $default:literal, $least:literal..=$most:literal, $unit:literal;)*
        }
    )*) => {
        $(
            $(#[doc = $about])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub struct $Group {
                $($(#[doc = $meaning])* pub $field: $type,)*
            }
        )*

        /// Values of all rule parameters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "BTreeMap<String, Decimal>", into = "BTreeMap<String, Decimal>")]
        pub struct Rules {
            $($(#[doc = $about])* pub $group: $Group,)*
        }

        impl Rules {
            /// Default values of all parameters.
            pub const DEFAULT: Self = Self {
                $($group: $Group { $($field: literal!($type, $default),)* },)*
            };

            /// All parameters, in the order of the rules.
            pub const PARAMETERS: &'static [RuleParameter] = &[$($(RuleParameter {
                name: concat!(stringify!($group), ".", stringify!($field)),
                rule: $rule,
                unit: $unit,
                default: exact(stringify!($default)),
                least: exact(stringify!($least)),
                most: exact(stringify!($most)),
                whole: is_whole!($type),
                meaning: concat!($($meaning),*).trim_ascii(),
            },)*)*];

            /// Values of all parameters, in the order of [`Rules::PARAMETERS`].
            pub(crate) fn values(&self) -> Vec<Decimal> {
                vec![$($(Decimal::from(self.$group.$field),)*)*]
            }

            /// Sets a parameter. `None` if the value does not fit the type of the parameter.
            pub(crate) fn set(&mut self, name: &str, value: Decimal) -> Option<()> {
                $($(if name == concat!(stringify!($group), ".", stringify!($field)) {
                    self.$group.$field = admitted!($type, value);
                })*)*
                Some(())
            }
        }
    };
}

rules! {
    /// Parameters of the dividend status of a security.
    status: StatusRules, "R6" {
        /// A payer has lapsed after more than this number of payment periods without an ex-date.
        lapse_periods: Decimal = 1.5, 1..=5, "periods";
    }
    /// Parameters of the forward dividend.
    forward: ForwardRules, "R8" {
        /// The latest amount is unusual if it is at least this multiple of the median of the four amounts before it.
        /// The forward dividend then uses the previous amount.
        unusual_factor: Decimal = 3, 1.01..=100, "times";
    }
    /// Parameters of the payment schedule.
    schedule: ScheduleRules, "R34" {
        /// Two rows can be one payment if their ex-dates are at most this number of days apart. 0: no rows are merged.
        duplicate_days: i64 = 20, 0..=60, "days";
        /// Minimum gap between two regular payments, as a share of the payment period. If two payments are closer, one
        /// of them may be special. 0: no payment is special for this reason.
        slot_share: i64 = 60, 0..=90, "percent";
        /// An amount can contain a special part if it is at least this multiple of both neighbouring amounts.
        combined_factor: Decimal = 1.3, 1.01..=1000, "times";
        /// An amount is a dip if it is below this multiple of both neighbouring amounts. Growth and streak replace a
        /// dip with the smaller neighbouring amount. 0: no amount is a dip.
        dip_share: Decimal = 0.98, 0..=1, "times";
        /// Maximum number of consecutive missing payments for which growth and streak assume an amount.
        assumed_slots: i64 = 1, 0..=2, "slots";
        /// Dates with whose calendar years the dividend years agree. 1: payment dates, if at least half of the payments
        /// have one, as in published lists. 0: ex-dates.
        year_of: i64 = 1, 0..=1, "1 or 0";
    }
    /// Parameters of increase streaks.
    streak: StreakRules, "R14" {
        /// Two annual totals are equal if they differ by at most this. Also used to compare amounts per payment (R13).
        tolerance: Decimal = 0.05, 0..=10, "percent";
        /// A streak ends after more than this number of consecutive years with an unchanged total. Years with an
        /// unchanged total never count as years of the streak.
        tolerated_flat_years: i64 = 0, 0..=10, "years";
    }
    /// Parameters of the lists of dividend growers.
    lists: ListRules, "R15" {
        /// Minimum increase streak of a Dividend Aristocrat.
        aristocrat_years: i64 = 25, 1..=100, "years";
        /// Minimum market value of an Aristocrat's freely traded shares.
        aristocrat_float_cap: Decimal = 3_000_000_000, 0..=1_000_000_000_000, "US dollars";
        /// Minimum increase streak of a Dividend King.
        king_years: i64 = 50, 1..=100, "years";
    }
    /// Parameters of suspect yields, yield traps and the safety label.
    safety: SafetyRules, "R18" {
        /// A headline yield above this is probably an error or a liquidation.
        suspect_yield: Decimal = 25, 1..=1000, "percent";
        /// A dividend with a payout ratio above this is unsafe, and its yield is a trap.
        payout_limit: Decimal = 100, 10..=1000, "percent";
    }
    /// Parameters of spin-offs that a feed publishes as a split ratio without a type.
    spin_off: SpinOffRules, "R35" {
        /// A split with a ratio above this is not a spin-off. The ratio is the larger number of shares, divided by the
        /// smaller number.
        largest_ratio: Decimal = 2.5, 1.01..=10, "times";
    }
    /// Parameters of the checks for implausible prices: isolated bars, wrong units, and splits without a matching price
    /// move.
    level: LevelRules, "R36" {
        /// A move between adjacent closes by more than this factor needs an explanation, for example a split.
        factor: Decimal = 3, 1.5..=100, "times";
    }
    /// Parameters of the check for dividend amounts that are adjusted for a split twice.
    share_basis: ShareBasisRules, "R37" {
        /// Amounts before a split are suspect if the split-adjusted amount changes by about the split ratio at the
        /// split. The change may deviate from the ratio by at most this.
        tolerance: Decimal = 2, 0..=20, "percent";
    }
    /// Parameters of outliers among regular amounts. Amounts are compared as annual rates: the amount, multiplied by
    /// the number of payments a year.
    outlier: OutlierRules, "R28" {
        /// A new annual rate is large if it is at least this multiple of the median of the earlier rates. The rates
        /// after a large rate must confirm it.
        factor: Decimal = 10, 2..=1000, "times";
        /// An annual rate is probably in a wrong unit if it is about 10, 100 or 1,000 times too high or too low.
        /// Maximum deviation from these factors.
        unit_tolerance: Decimal = 15, 0..=50, "percent";
    }
}

/// Rule parameter: a number that this service chose for a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RuleParameter {
    /// Name, for example `streak.tolerance`.
    pub name: &'static str,
    /// Number of the rule, for example R14.
    pub rule: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// Default value.
    pub default: Decimal,
    /// Smallest valid value, in `unit`.
    pub least: Decimal,
    /// Largest valid value, in `unit`.
    pub most: Decimal,
    /// True if the value must be a whole number.
    pub whole: bool,
    /// Meaning of the parameter, as a sentence.
    pub meaning: &'static str,
}

/// Parameter whose value differs from its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ParameterDeviation {
    /// Name of the parameter.
    pub name: &'static str,
    /// Current value, in `unit`.
    pub value: Decimal,
    /// Default value, in `unit`.
    pub default: Decimal,
    /// Unit of `value` and `default`.
    pub unit: &'static str,
    /// Number of the rule, for example R14.
    pub rule: &'static str,
}

/// Error in a rule parameter.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("{0:?} is not NAME=VALUE with a decimal value, such as streak.tolerance=0.05")]
    Form(String),
    #[error("rule parameter {name:?} does not exist; the nearest is {nearest}")]
    Unknown { name: String, nearest: &'static str },
    #[error("{name} cannot be {value}: it is from {least} to {most}, in {unit}")]
    Range { name: &'static str, value: Decimal, least: Decimal, most: Decimal, unit: &'static str },
    #[error("{name} cannot be {value}: it is a whole number, in {unit}")]
    Fraction { name: &'static str, value: Decimal, unit: &'static str },
    #[error("{0} is given twice")]
    Twice(&'static str),
}

impl RuleParameter {
    /// Validates a value: it must be in the range, and whole if `whole` is true.
    pub(crate) fn validate(&self, value: Decimal) -> Result<Decimal, RuleError> {
        let Self { name, unit, least, most, .. } = *self;
        if value < least || most < value {
            return Err(RuleError::Range { name, value, least, most, unit });
        }
        if self.whole && !value.is_integer() {
            return Err(RuleError::Fraction { name, value, unit });
        }
        Ok(value.normalize())
    }

    /// Finds a parameter by name. The error suggests the most similar name.
    pub(crate) fn find(name: &str, among: &'static [Self]) -> Result<&'static Self, RuleError> {
        let distance = |parameter: &&Self| strsim::damerau_levenshtein(name, parameter.name);
        match among.iter().min_by_key(distance) {
            Some(nearest) if nearest.name == name => Ok(nearest),
            nearest => Err(RuleError::Unknown {
                name: name.to_owned(),
                nearest: nearest.map_or("none", |nearest| nearest.name),
            }),
        }
    }
}
