//! The table of the parameters: name, type, default, range, unit and meaning of each, by rule.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::{Deserialize, Serialize};

use super::parameter::{Parameter, exact};

/// A literal as the type of its field.
macro_rules! literal {
    (i64, $text:literal) => {
        $text
    };
    (Decimal, $text:literal) => {
        exact(stringify!($text))
    };
}

/// An admitted value as the type of its field.
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

/// Declares the parameters: a struct for each group, and their table.
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

        /// Every parameter of the rules.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "BTreeMap<String, Decimal>", into = "BTreeMap<String, Decimal>")]
        pub struct Rules {
            $($(#[doc = $about])* pub $group: $Group,)*
        }

        impl Rules {
            /// The rules as they stand.
            pub const DEFAULT: Self = Self {
                $($group: $Group { $($field: literal!($type, $default),)* },)*
            };

            /// Every parameter, in the order of the rules.
            pub const PARAMETERS: &'static [Parameter] = &[$($(Parameter {
                name: concat!(stringify!($group), ".", stringify!($field)),
                rule: $rule,
                unit: $unit,
                default: exact(stringify!($default)),
                least: exact(stringify!($least)),
                most: exact(stringify!($most)),
                whole: is_whole!($type),
                meaning: concat!($($meaning),*).trim_ascii(),
            },)*)*];

            /// The values, in the order of [`Rules::PARAMETERS`].
            pub(super) fn values(&self) -> Vec<Decimal> {
                vec![$($(Decimal::from(self.$group.$field),)*)*]
            }

            /// Sets a parameter; `None` when the value does not fit its type.
            pub(super) fn set(&mut self, name: &str, value: Decimal) -> Option<()> {
                $($(if name == concat!(stringify!($group), ".", stringify!($field)) {
                    self.$group.$field = admitted!($type, value);
                })*)*
                Some(())
            }
        }
    };
}

rules! {
    /// How often a payer pays, from the gaps between its ex-dates.
    frequency: Frequency, "R5" {
        /// A longer gap between ex-dates begins anew: what was paid before it says nothing. Also for R8 and R28.
        restart_days: i64 = 550, 366..=3650, "days";
        /// Ex-dates that are looked at, the newest.
        newest_ex_dates: i64 = 7, 4..=25, "ex-dates";
        /// Share of adjacent gap pairs that must make a year to be semi-annual.
        yearly_pairs: i64 = 60, 1..=100, "percent";
        /// Days that two gaps of a year have at least.
        year_least_days: i64 = 330, 300..=365, "days";
        /// Days that two gaps of a year have at most.
        year_most_days: i64 = 400, 365..=430, "days";
        /// Share of gaps that must lie in the class of their median.
        class_agreement: i64 = 60, 1..=100, "percent";
        /// Gaps that overrule a vendor's tag, at least.
        overruling_gaps: i64 = 4, 1..=24, "gaps";
        /// Share of those that must agree.
        overruling_agreement: i64 = 75, 1..=100, "percent";
        /// Distance of the median gap from a tagged rhythm without a class, at most.
        tag_tolerance: i64 = 15, 0..=50, "percent";
        /// Shortest weekly gap.
        weekly_least_days: i64 = 5, 1..=7, "days";
        /// Longest weekly gap.
        weekly_most_days: i64 = 10, 7..=19, "days";
        /// Shortest monthly gap.
        monthly_least_days: i64 = 20, 8..=30, "days";
        /// Longest monthly gap.
        monthly_most_days: i64 = 45, 30..=59, "days";
        /// Shortest quarterly gap.
        quarterly_least_days: i64 = 60, 32..=91, "days";
        /// Longest quarterly gap.
        quarterly_most_days: i64 = 135, 91..=150, "days";
        /// Shortest semi-annual gap.
        semi_annual_least_days: i64 = 136, 92..=182, "days";
        /// Longest semi-annual gap.
        semi_annual_most_days: i64 = 250, 182..=300, "days";
        /// Shortest annual gap.
        annual_least_days: i64 = 251, 183..=365, "days";
        /// Longest annual gap.
        annual_most_days: i64 = 450, 365..=550, "days";
    }
    /// Whether a payer pays.
    status: Status, "R6" {
        /// Periods of 365/n days after which a payer that is silent has lapsed.
        lapse_periods: Decimal = 1.5, 1..=5, "periods";
        /// Days of silence of a payer of 12 or 13 a year that say nothing.
        monthly_least_days: i64 = 75, 31..=366, "days";
        /// Days of silence of a payer of 24 and more a year that say nothing.
        weekly_least_days: i64 = 21, 7..=366, "days";
        /// Days of silence after which an irregular payer has lapsed.
        irregular_days: i64 = 450, 31..=3650, "days";
    }
    /// The indicated dividend.
    forward: ForwardRules, "R8" {
        /// An amount this many times the median of the four before it is no rate until confirmed.
        unusual_factor: Decimal = 3, 1.01..=100, "times";
        /// What confirms it: the factor within which the next one lies.
        confirming_factor: Decimal = 1.5, 1..=100, "times";
        /// Difference of two half-yearly amounts above which they are an interim and a final one.
        unequal_halves: Decimal = 10, 0..=100, "percent";
    }
    /// Streaks of increases.
    streak: StreakRules, "R14" {
        /// A total or rate that differs by no more is the same. Also for changes of the rate (R13).
        tolerance: Decimal = 0.05, 0..=10, "percent";
        /// Years in a row with the same total that neither count nor end a streak.
        tolerated_flat_years: i64 = 0, 0..=10, "years";
    }
    /// Lists of dividend growers.
    lists: Lists, "R15" {
        /// Increases of a Dividend Aristocrat, at least.
        aristocrat_years: i64 = 25, 1..=100, "years";
        /// Worth of an Aristocrat's freely traded shares, at least.
        aristocrat_float_cap: Decimal = 3_000_000_000, 0..=1_000_000_000_000, "US dollars";
        /// Value of an Aristocrat traded a day, at least.
        aristocrat_daily_value: Decimal = 5_000_000, 0..=1_000_000_000_000, "US dollars";
        /// Increases of a Dividend King, at least.
        king_years: i64 = 50, 1..=100, "years";
        /// Increases of a champion, at least.
        champion_years: i64 = 25, 1..=100, "years";
        /// Increases of a contender, at least.
        contender_years: i64 = 10, 1..=100, "years";
        /// Increases of a challenger, at least.
        challenger_years: i64 = 5, 1..=100, "years";
    }
    /// Suspect yields, yield traps, the safety label.
    safety: SafetyRules, "R18" {
        /// A higher headline yield is taken for an error or a liquidation.
        suspect_yield: Decimal = 25, 1..=1000, "percent";
        /// A higher payout is unsafe, and a trap.
        payout_limit: Decimal = 100, 10..=1000, "percent";
        /// A payout from here on is borderline.
        borderline_payout: Decimal = 75, 0..=1000, "percent";
        /// The same for real estate.
        borderline_real_estate: Decimal = 90, 0..=1000, "percent";
        /// A forward dividend that is further below the trailing one is a trap.
        trap_dividend_fall: Decimal = 10, 0..=100, "percent";
        /// A price that fell further in 12 months is a trap.
        trap_price_fall: Decimal = 40, 0..=100, "percent";
    }
    /// Risk against the benchmark.
    risk: Risk, "R23" {
        /// Pairs of monthly returns that a beta is made of, at least.
        beta_least_pairs: i64 = 24, 2..=60, "pairs";
    }
    /// Isolated outliers among regular amounts.
    outlier: Outlier, "R28" {
        /// Sums that a new one is compared with.
        compared_sums: i64 = 4, 2..=20, "sums";
        /// A sum this many times their median is suspect.
        factor: Decimal = 10, 2..=1000, "times";
        /// The factor within which two sums bear each other out.
        near_factor: Decimal = 3, 1..=100, "times";
        /// Days between a yearly extra and the next, at least.
        yearly_least_days: i64 = 335, 300..=365, "days";
        /// Days between a yearly extra and the next, at most.
        yearly_most_days: i64 = 395, 365..=430, "days";
        /// Share of the close before it that an amount has at least, to be seen in the price.
        special_share: Decimal = 5, 0.1..=100, "percent";
        /// Fall of the price on the ex-date, at least, that shows it to be a special.
        special_least_fall: Decimal = 0.6, 0..=1, "times the amount";
        /// Fall of the price on the ex-date, at most, that shows it to be a special.
        special_most_fall: Decimal = 1.4, 1..=10, "times the amount";
    }
}
