//! Table of rule parameters by rule: name, type, default, range, unit and meaning.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::{Deserialize, Serialize};

use super::parameter::{RuleParameter, exact};

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
    /// Parameters of the payment frequency inferred from gaps between ex-dates.
    frequency: FrequencyRules, "R5" {
        /// Gap between ex-dates above which payments have restarted. Ex-dates before the gap are ignored. Also used by
        /// R8 and R28.
        restart_days: i64 = 550, 366..=3650, "days";
        /// Number of newest ex-dates from which the frequency is inferred.
        newest_ex_dates: i64 = 7, 4..=25, "ex-dates";
        /// Minimum share of adjacent pairs of gaps that sum to a year, for the semi-annual frequency.
        yearly_pairs: i64 = 60, 1..=100, "percent";
        /// Minimum sum of two gaps that together are a year.
        year_least_days: i64 = 330, 300..=365, "days";
        /// Maximum sum of two gaps that together are a year.
        year_most_days: i64 = 400, 365..=430, "days";
        /// Minimum share of gaps that lie in the class of the median gap.
        class_agreement: i64 = 60, 1..=100, "percent";
        /// Minimum number of gaps at which the inference overrules a vendor's tag.
        overruling_gaps: i64 = 4, 1..=24, "gaps";
        /// Minimum share of gaps that agree with the inferred frequency to overrule a vendor's tag.
        overruling_agreement: i64 = 75, 1..=100, "percent";
        /// Maximum deviation of the median gap from the period of a tagged frequency that has no gap class.
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
    /// Parameters of the dividend status of a payer.
    status: StatusRules, "R6" {
        /// Number of payment periods without an ex-date after which a payer has lapsed.
        lapse_periods: Decimal = 1.5, 1..=5, "periods";
        /// Minimum number of days without an ex-date before a payer of 12 or 13 payments a year lapses.
        monthly_least_days: i64 = 75, 31..=366, "days";
        /// Minimum number of days without an ex-date before a payer of 24 or more payments a year lapses.
        weekly_least_days: i64 = 21, 7..=366, "days";
        /// Number of days without an ex-date after which an irregular payer has lapsed.
        irregular_days: i64 = 450, 31..=3650, "days";
    }
    /// Parameters of the forward dividend.
    forward: ForwardRules, "R8" {
        /// Minimum ratio of the latest amount to the median of the four amounts before it, from which it is unusual.
        unusual_factor: Decimal = 3, 1.01..=100, "times";
        /// Maximum ratio between the latest amount and the amount before it. Up to this ratio, the latest amount is
        /// not unusual.
        confirming_factor: Decimal = 1.5, 1..=100, "times";
        /// Minimum difference between half-yearly amounts that are an interim and a final dividend.
        unequal_halves: Decimal = 10, 0..=100, "percent";
    }
    /// Parameters of the payment schedule.
    schedule: ScheduleRules, "R34" {
        /// Maximum number of days between two rows that are one payment. 0: no rows are merged.
        duplicate_days: i64 = 20, 0..=60, "days";
        /// Maximum difference between the amounts of two rows that are one payment.
        equal_tolerance: Decimal = 2, 0..=20, "percent";
        /// Minimum gap between two regular payments, as a share of the payment period. Of two closer payments, one may
        /// be special. 0: no payment is special.
        slot_share: i64 = 60, 0..=90, "percent";
        /// Minimum ratio of an amount to both neighbouring amounts, from which a part of it is special.
        combined_factor: Decimal = 1.3, 1.01..=1000, "times";
        /// Minimum ratio of the rate after a row with a special part to the rate before it.
        return_least: Decimal = 0.8, 0..=1, "times";
        /// Maximum ratio of the rate after a row with a special part to the rate before it.
        return_most: Decimal = 1.5, 1..=10, "times";
        /// Ratio of an amount to both neighbouring amounts below which it is a dip. 0: no amount is a dip.
        dip_share: Decimal = 0.98, 0..=1, "times";
        /// Minimum share of changes between the rows around a row that are not falls. Below it, the declared amount is
        /// regular.
        steady_share: Decimal = 80, 0..=100, "percent";
        /// Maximum number of consecutive missing payments for which growth and streak assume an amount.
        assumed_slots: i64 = 1, 0..=2, "slots";
    }
    /// Parameters of increase streaks.
    streak: StreakRules, "R14" {
        /// Maximum difference at which two annual totals or rates are equal. Also used for changes of the rate (R13).
        tolerance: Decimal = 0.05, 0..=10, "percent";
        /// Maximum number of consecutive years with an equal total that neither extend nor end a streak.
        tolerated_flat_years: i64 = 0, 0..=10, "years";
    }
    /// Parameters of the lists of dividend growers.
    lists: ListRules, "R15" {
        /// Minimum increase streak of a Dividend Aristocrat.
        aristocrat_years: i64 = 25, 1..=100, "years";
        /// Minimum market value of an Aristocrat's freely traded shares.
        aristocrat_float_cap: Decimal = 3_000_000_000, 0..=1_000_000_000_000, "US dollars";
        /// Minimum mean daily traded value of an Aristocrat, over three months.
        aristocrat_daily_value: Decimal = 5_000_000, 0..=1_000_000_000_000, "US dollars";
        /// Minimum increase streak of a Dividend King.
        king_years: i64 = 50, 1..=100, "years";
        /// Minimum increase streak of a champion.
        champion_years: i64 = 25, 1..=100, "years";
        /// Minimum increase streak of a contender.
        contender_years: i64 = 10, 1..=100, "years";
        /// Minimum increase streak of a challenger.
        challenger_years: i64 = 5, 1..=100, "years";
    }
    /// Parameters of suspect yields, yield traps and the safety label.
    safety: SafetyRules, "R18" {
        /// Headline yield above which the yield is probably an error or a liquidation.
        suspect_yield: Decimal = 25, 1..=1000, "percent";
        /// Payout ratio above which a dividend is unsafe and its yield is a trap.
        payout_limit: Decimal = 100, 10..=1000, "percent";
        /// Payout ratio from which a dividend is borderline.
        borderline_payout: Decimal = 75, 0..=1000, "percent";
        /// Payout ratio from which a real-estate dividend is borderline.
        borderline_real_estate: Decimal = 90, 0..=1000, "percent";
        /// Fall from the trailing to the forward dividend above which a yield is a trap.
        trap_dividend_fall: Decimal = 10, 0..=100, "percent";
        /// Price fall over 12 months above which a yield is a trap.
        trap_price_fall: Decimal = 40, 0..=100, "percent";
    }
    /// Parameters of the risk against the benchmark.
    risk: RiskRules, "R23" {
        /// Minimum number of pairs of monthly returns from which a beta is computed.
        beta_least_pairs: i64 = 24, 2..=60, "pairs";
    }
    /// Parameters of spin-offs that a feed publishes as a split ratio without a type.
    spin_off: SpinOffRules, "R35" {
        /// Largest ratio of a spin-off, in either direction.
        largest_ratio: Decimal = 2.5, 1.01..=10, "times";
        /// Number that both numbers of a spin-off's ratio in lowest terms must exceed.
        least_term: i64 = 50, 1..=10000, "shares";
        /// Minimum number of old shares in a spin-off's ratio in lowest terms.
        least_old_shares: i64 = 100, 1..=10000, "shares";
        /// Number that replaces `least_term` if another action of the same source is a spin-off.
        least_term_of_sibling: i64 = 20, 1..=10000, "shares";
        /// Minimum distance between two splits of equal ratio that shows that they are not spin-offs.
        repeat_days: i64 = 180, 1..=3650, "days";
    }
    /// Parameters of price levels: isolated bars, wrong units, and splits that the price denies.
    level: LevelRules, "R36" {
        /// Factor between adjacent closes above which the move needs an explanation.
        factor: Decimal = 3, 1.5..=100, "times";
        /// Maximum distance between bars that are adjacent.
        adjacent_days: i64 = 7, 1..=31, "days";
        /// Maximum difference between the closes before and after a bar at which they agree.
        agreement: Decimal = 50, 0..=200, "percent";
        /// Maximum deviation of a move from the factor 100 or 1,000 at which it is a change of unit.
        unit_tolerance: Decimal = 15, 0..=50, "percent";
        /// Maximum length of a run of newest bars in a wrong unit. A longer run is a lasting move.
        unit_run_sessions: i64 = 60, 1..=1000, "sessions";
        /// Unexplained price move above which the price denies a split: its logarithm, as a share of the split's
        /// logarithm (at most 1).
        denied_share: i64 = 40, 5..=60, "percent";
        /// Unexplained price move above which a denied split is excluded: its logarithm, as a share of the split's
        /// logarithm.
        excluded_share: i64 = 80, 50..=100, "percent";
        /// Number of sessions after the ex-date in which the price move of an early split is searched.
        early_sessions: i64 = 3, 0..=10, "sessions";
    }
    /// Parameters of the share basis of amounts before a split.
    share_basis: ShareBasisRules, "R37" {
        /// Maximum deviation of an amount's change at a split from the inverse ratio, at which the basis is suspect.
        /// Amounts are split-adjusted.
        tolerance: Decimal = 2, 0..=20, "percent";
        /// Minimum ratio of a split, in either direction, at which the share basis of earlier amounts is checked.
        least_ratio: Decimal = 2, 1.01..=100, "times";
    }
    /// Parameters of outliers among regular amounts.
    outlier: OutlierRules, "R28" {
        /// Number of earlier annual rates with which a new rate is compared.
        compared_sums: i64 = 4, 2..=20, "sums";
        /// Minimum ratio of a new annual rate to the median of the earlier rates, from which it needs a confirmation.
        factor: Decimal = 10, 2..=1000, "times";
        /// Maximum deviation from 10, 100 or 1,000 times the surrounding rate at which the unit is probably wrong.
        unit_tolerance: Decimal = 15, 0..=50, "percent";
        /// Maximum factor between two annual rates that confirm each other.
        near_factor: Decimal = 3, 1..=100, "times";
        /// Minimum number of days between two extra payments of a yearly series.
        yearly_least_days: i64 = 335, 300..=365, "days";
        /// Maximum number of days between two extra payments of a yearly series.
        yearly_most_days: i64 = 395, 365..=430, "days";
        /// Minimum amount that is visible in the price, as a share of the close before the ex-date.
        special_share: Decimal = 5, 0.1..=100, "percent";
        /// Minimum price fall on the ex-date that proves an amount.
        special_least_fall: Decimal = 0.6, 0..=1, "times the amount";
        /// Maximum price fall on the ex-date that proves an amount.
        special_most_fall: Decimal = 1.4, 1..=10, "times the amount";
    }
    /// Parameters of completeness: conditions under which a missing dividend means that none was paid.
    absence: AbsenceRules, "R38" {
        /// Maximum distance between the years of a source's prices and a year with a dividend of any security. Within
        /// it, the source carries dividends.
        feed_years: i64 = 1, 0..=100, "years";
        /// Smallest step of a feed's adjusted closes that shows a payment. R40 uses the same step.
        least_step: Decimal = 0.05, 0.0001..=10, "percent";
        /// Maximum difference at which a feed's implied dividend factor agrees with the computed factor. Also used by
        /// R28.
        agreement: Decimal = 0.05, 0.0001..=10, "percent";
        /// Maximum number of days between a step of the adjusted closes and a payment that explains it.
        step_days: i64 = 7, 0..=90, "days";
    }
}
