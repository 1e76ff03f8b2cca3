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
    /// Parameters of the payment frequency. The frequency is inferred from the gaps between ex-dates.
    frequency: FrequencyRules, "R5" {
        /// Maximum gap between two ex-dates of one series of payments. After a longer gap, payments have restarted, and
        /// earlier ex-dates are ignored. Also used by R8, R28, R34, R36 and R37.
        restart_days: i64 = 550, 366..=3650, "days";
        /// Number of newest ex-dates from which the frequency is inferred.
        newest_ex_dates: i64 = 7, 4..=25, "ex-dates";
        /// A payer is semi-annual if at least this share of its pairs of adjacent gaps are together about a year long.
        yearly_pairs: i64 = 60, 1..=100, "percent";
        /// Two adjacent gaps are together about a year long if their sum is at least this.
        year_least_days: i64 = 330, 300..=365, "days";
        /// Two adjacent gaps are together about a year long if their sum is at most this.
        year_most_days: i64 = 400, 365..=430, "days";
        /// A payer is irregular if a smaller share of its gaps has the same frequency as the median gap.
        class_agreement: i64 = 60, 1..=100, "percent";
        /// The inferred frequency overrules the vendor's frequency only if there are at least this number of gaps.
        overruling_gaps: i64 = 4, 1..=24, "gaps";
        /// The inferred frequency overrules the vendor's frequency only if at least this share of gaps agree with it.
        overruling_agreement: i64 = 75, 1..=100, "percent";
        /// A vendor's frequency of 3, 6, 24 or 26 payments a year is used if the median gap fits this frequency. The
        /// gap may deviate from the payment period by at most this.
        tag_tolerance: i64 = 15, 0..=50, "percent";
        /// Shortest gap between ex-dates that counts as weekly.
        weekly_least_days: i64 = 5, 1..=7, "days";
        /// Longest gap between ex-dates that counts as weekly.
        weekly_most_days: i64 = 10, 7..=19, "days";
        /// Shortest gap between ex-dates that counts as monthly.
        monthly_least_days: i64 = 20, 8..=30, "days";
        /// Longest gap between ex-dates that counts as monthly.
        monthly_most_days: i64 = 45, 30..=59, "days";
        /// Shortest gap between ex-dates that counts as quarterly.
        quarterly_least_days: i64 = 60, 32..=91, "days";
        /// Longest gap between ex-dates that counts as quarterly.
        quarterly_most_days: i64 = 135, 91..=150, "days";
        /// Shortest gap between ex-dates that counts as semi-annual.
        semi_annual_least_days: i64 = 136, 92..=182, "days";
        /// Longest gap between ex-dates that counts as semi-annual.
        semi_annual_most_days: i64 = 250, 182..=300, "days";
        /// Shortest gap between ex-dates that counts as annual.
        annual_least_days: i64 = 251, 183..=365, "days";
        /// Longest gap between ex-dates that counts as annual.
        annual_most_days: i64 = 450, 365..=550, "days";
    }
    /// Parameters of the dividend status of a security.
    status: StatusRules, "R6" {
        /// A payer has lapsed after more than this number of payment periods without an ex-date.
        lapse_periods: Decimal = 1.5, 1..=5, "periods";
        /// A payer of 12 or 13 payments a year lapses only after more than this number of days without an ex-date.
        monthly_least_days: i64 = 75, 31..=366, "days";
        /// A payer of 24 or more payments a year lapses only after more than this number of days without an ex-date.
        weekly_least_days: i64 = 21, 7..=366, "days";
        /// An irregular payer has lapsed after more than this number of days without an ex-date.
        irregular_days: i64 = 450, 31..=3650, "days";
    }
    /// Parameters of the forward dividend.
    forward: ForwardRules, "R8" {
        /// The latest amount is unusual if it is at least this multiple of the median of the four amounts before it.
        /// The forward dividend then uses the previous amount.
        unusual_factor: Decimal = 3, 1.01..=100, "times";
        /// The latest amount is not unusual if it differs from the previous amount by at most this factor.
        confirming_factor: Decimal = 1.5, 1..=100, "times";
        /// Two half-yearly amounts are an interim and a final dividend if they differ by more than this.
        unequal_halves: Decimal = 10, 0..=100, "percent";
    }
    /// Parameters of the payment schedule.
    schedule: ScheduleRules, "R34" {
        /// Two rows can be one payment if their ex-dates are at most this number of days apart. 0: no rows are merged.
        duplicate_days: i64 = 20, 0..=60, "days";
        /// Two rows can be one payment if their amounts are equal, or if one amount is twice the other. In both cases,
        /// a deviation of at most this is accepted.
        equal_tolerance: Decimal = 2, 0..=20, "percent";
        /// Minimum gap between two regular payments, as a share of the payment period. If two payments are closer, one
        /// of them may be special. 0: no payment is special for this reason.
        slot_share: i64 = 60, 0..=90, "percent";
        /// An amount can contain a special part if it is at least this multiple of both neighbouring amounts.
        combined_factor: Decimal = 1.3, 1.01..=1000, "times";
        /// An amount can contain a special part only if the payer returns to about the previous annual rate. Minimum
        /// ratio of the annual rate after the payment to the annual rate before it.
        return_least: Decimal = 0.8, 0..=1, "times";
        /// An amount can contain a special part only if the payer returns to about the previous annual rate. Maximum
        /// ratio of the annual rate after the payment to the annual rate before it.
        return_most: Decimal = 1.7, 1..=10, "times";
        /// An amount is a dip if it is below this multiple of both neighbouring amounts. Growth and streak replace a
        /// dip with the smaller neighbouring amount. 0: no amount is a dip.
        dip_share: Decimal = 0.98, 0..=1, "times";
        /// A payer is steady if at least this share of the nearby amounts is equal to or above the amount before. Only
        /// amounts of steady payers are compared to detect special parts and dips.
        steady_share: Decimal = 80, 0..=100, "percent";
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
        /// A headline yield above this is probably an error or a liquidation.
        suspect_yield: Decimal = 25, 1..=1000, "percent";
        /// A dividend with a payout ratio above this is unsafe, and its yield is a trap.
        payout_limit: Decimal = 100, 10..=1000, "percent";
        /// A dividend with a payout ratio of at least this is borderline.
        borderline_payout: Decimal = 75, 0..=1000, "percent";
        /// A real-estate dividend with a payout ratio of at least this is borderline.
        borderline_real_estate: Decimal = 90, 0..=1000, "percent";
        /// A yield is a trap if the forward dividend is below the trailing dividend by more than this.
        trap_dividend_fall: Decimal = 10, 0..=100, "percent";
        /// A yield is a trap if the price fell by more than this over 12 months.
        trap_price_fall: Decimal = 40, 0..=100, "percent";
    }
    /// Parameters of the risk against the benchmark.
    risk: RiskRules, "R23" {
        /// A beta needs at least this number of months with a return of both the security and the benchmark.
        beta_least_pairs: i64 = 24, 2..=60, "pairs";
    }
    /// Parameters of spin-offs that a feed publishes as a split ratio without a type.
    spin_off: SpinOffRules, "R35" {
        /// A split with a ratio above this is not a spin-off. The ratio is the larger number of shares, divided by the
        /// smaller number.
        largest_ratio: Decimal = 2.5, 1.01..=10, "times";
        /// A split such as 1281:1000 can be a spin-off only if both numbers, in lowest terms, are above this.
        least_term: i64 = 50, 1..=10000, "shares";
        /// A split such as 1281:1000 can be a spin-off only if the number of old shares, in lowest terms, is at least
        /// this.
        least_old_shares: i64 = 100, 1..=10000, "shares";
        /// Weaker limit instead of `least_term` and `least_old_shares`, used if the source has another spin-off of the
        /// security.
        least_term_of_sibling: i64 = 20, 1..=10000, "shares";
        /// Two splits of equal ratio are not spin-offs if they are at least this number of days apart.
        repeat_days: i64 = 180, 1..=3650, "days";
    }
    /// Parameters of the checks for implausible prices: isolated bars, wrong units, and splits without a matching price
    /// move.
    level: LevelRules, "R36" {
        /// A move between adjacent closes by more than this factor needs an explanation, for example a split.
        factor: Decimal = 3, 1.5..=100, "times";
        /// Two bars are adjacent if they are at most this number of days apart.
        adjacent_days: i64 = 7, 1..=31, "days";
        /// The closes before and after a bar agree if they differ by at most this. The bar is wrong if these closes
        /// agree and its own close is far from both.
        agreement: Decimal = 50, 0..=200, "percent";
        /// A price may change to a wrong unit, such as pence instead of pounds. The price then moves by a factor of 100
        /// or 1,000, with at most this deviation.
        unit_tolerance: Decimal = 15, 0..=50, "percent";
        /// Maximum number of newest bars in a wrong unit, after a move by about 100 or 1,000. A longer run is a lasting
        /// move of the price.
        unit_run_sessions: i64 = 60, 1..=1000, "sessions";
        /// The price denies a split if ln(unexplained factor) is above this share of ln(ratio). The unexplained factor
        /// is the close after the split, divided by the close that the ratio predicts. A ratio above e is treated as e.
        denied_share: i64 = 40, 5..=60, "percent";
        /// A split that the price denies is excluded from the figures only if ln(unexplained factor) is above this
        /// share of ln(ratio). See `level.denied_share`.
        excluded_share: i64 = 80, 50..=100, "percent";
        /// If the price denies a split on its ex-date, the ex-date may be too early. The search for a matching price
        /// move then includes this number of sessions after the ex-date.
        early_sessions: i64 = 3, 0..=10, "sessions";
    }
    /// Parameters of the check for dividend amounts that are adjusted for a split twice.
    share_basis: ShareBasisRules, "R37" {
        /// Amounts before a split are suspect if the split-adjusted amount changes by about the split ratio at the
        /// split. The change may deviate from the ratio by at most this.
        tolerance: Decimal = 2, 0..=20, "percent";
        /// Smallest ratio of a split for which the amounts are checked: the larger number of shares, divided by the
        /// smaller.
        least_ratio: Decimal = 2, 1.01..=100, "times";
    }
    /// Parameters of outliers among regular amounts. Amounts are compared as annual rates: the amount, multiplied by
    /// the number of payments a year.
    outlier: OutlierRules, "R28" {
        /// A new annual rate is compared with this number of earlier annual rates.
        compared_sums: i64 = 4, 2..=20, "sums";
        /// A new annual rate is large if it is at least this multiple of the median of the earlier rates. The rates
        /// after a large rate must confirm it.
        factor: Decimal = 10, 2..=1000, "times";
        /// An annual rate is probably in a wrong unit if it is about 10, 100 or 1,000 times too high or too low.
        /// Maximum deviation from these factors.
        unit_tolerance: Decimal = 15, 0..=50, "percent";
        /// Two annual rates confirm each other if they differ by at most this factor.
        near_factor: Decimal = 3, 1..=100, "times";
        /// Minimum number of days between special amounts that recur every year.
        yearly_least_days: i64 = 335, 300..=365, "days";
        /// Maximum number of days between special amounts that recur every year.
        yearly_most_days: i64 = 395, 365..=430, "days";
        /// Minimum amount that the price can prove, as a share of the close before the ex-date. The effect of a smaller
        /// amount is not visible in the price.
        special_share: Decimal = 5, 0.1..=100, "percent";
        /// The price fall on the ex-date proves an amount only if the fall is at least this. A smaller fall does not
        /// prove the amount.
        special_least_fall: Decimal = 0.6, 0..=1, "times the amount";
        /// The price fall on the ex-date proves an amount only if the fall is at most this. A larger fall does not
        /// prove the amount.
        special_most_fall: Decimal = 1.4, 1..=10, "times the amount";
    }
    /// Parameters of the completeness of a security's dividends. A security without dividends in the data is a
    /// non-payer only if its dividends are complete.
    absence: AbsenceRules, "R38" {
        /// A source is expected to report dividends if it has a dividend, of any security, in the years of its prices.
        /// The period is extended by this number of years on both sides.
        feed_years: i64 = 1, 0..=100, "years";
        /// A change in the ratio of adjusted close to raw close shows a payment if the change is above this. Also used
        /// by R40.
        least_step: Decimal = 0.05, 0.0001..=10, "percent";
        /// Maximum difference between the dividend factor implied by a feed's adjusted closes and the computed factor.
        /// Also used by R28.
        agreement: Decimal = 0.05, 0.0001..=10, "percent";
        /// Maximum number of days between a payment and the change in adjusted closes that the payment explains.
        step_days: i64 = 7, 0..=90, "days";
    }
}
