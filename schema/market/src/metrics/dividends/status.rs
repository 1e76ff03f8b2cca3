//! Dividend status of a security (R6). The first status with a true condition applies:
//! 1. `non_payer`: no regular dividend is known, and the dividends of the security are complete (R38).
//! 2. `unknown`: no regular dividend is known, and the dividends are incomplete. Either no source that covers the
//!    security carries dividends, or adjusted closes show missing payments (R38).
//! 3. `suspended`: an operator or vendor reports a suspension, and no regular dividend was declared after it.
//! 4. `active`: a future ex-date is declared, or the time since the last ex-date is within the limit below.
//! 5. `lapsed`: all other payers.
//!
//! With n payments a year, a period is 365/n days. The limit depends on n:
//!
//! | payments a year | longest time since the last ex-date |
//! | --- | --- |
//! | 12 or 13 | 1.5 periods or 75 days, whichever is longer |
//! | 24 or more | 1.5 periods or 21 days, whichever is longer |
//! | other numbers | 1.5 periods |
//! | irregular or unknown | 450 days |
//!
//! The 75 days exist because bond funds have two ex-dates in December and none in January. The 21 days exist because
//! weekly payers skip a holiday week. The ex-date of a quarantined regular amount (R28) still proves that the payer
//! pays.
//!
//! For suspended and lapsed payers, forward dividend and headline yield are 0, and no payment is projected. R8 and R9
//! (`yields`) list the exceptions. Source: this service chose 1.5 periods and the numbers of days.
//!
//! # Class of a distribution (R3)
//!
//! A distribution is regular, special, a spin-off or stock. The class decides which metrics include the payment.
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

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::event::{DividendType, Frequency, SecurityType};
use crate::metrics::rules;
use crate::row::DividendState;

/// Number of days after the last ex-date during which a payer of 12 or 13 payments a year is always active.
pub const MONTHLY_LEAST_DAYS: i64 = 75;
/// Number of days after the last ex-date during which a payer of 24 or more payments a year is always active.
const WEEKLY_LEAST_DAYS: i64 = 21;
/// Number of days after the last ex-date during which an irregular payer is active.
pub const IRREGULAR_DAYS: i64 = 450;

/// Inputs of the dividend status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusInput {
    /// As-of date.
    pub as_of: NaiveDate,
    /// Newest regular ex-date. Declared future ex-dates and ex-dates of quarantined amounts are included.
    pub last_ex_date: Option<NaiveDate>,
    /// Newest declaration date of a regular dividend. Without a declaration date, the ex-date is used.
    pub last_declared: Option<NaiveDate>,
    /// Number of payments a year; `None` if unknown.
    pub payments_per_year: Option<i32>,
    /// Date of a suspension notice; `None` without a notice.
    pub suspended_on: Option<NaiveDate>,
    /// True if the dividends of the security are complete (R38). If no dividend is known, completeness makes the
    /// security a non-payer.
    pub is_covered: bool,
}

/// Dividend status of a payer.
pub fn dividend_status(input: &StatusInput, rules: &rules::StatusRules) -> DividendState {
    let Some(last_ex_date) = input.last_ex_date else {
        return if input.is_covered { DividendState::NonPayer } else { DividendState::Unknown };
    };
    let notice = input.suspended_on.filter(|day| *day <= input.as_of);
    if notice.is_some_and(|day| input.last_declared.is_none_or(|declared| declared <= day)) {
        return DividendState::Suspended;
    }
    let silent = (input.as_of - last_ex_date).num_days();
    let paying = match input.payments_per_year {
        Some(payments) => {
            Decimal::from(i64::from(payments) * silent) <= rules.lapse_periods * Decimal::from(365)
                || silent <= least_days(payments)
        }
        None => silent <= IRREGULAR_DAYS,
    };
    if paying { DividendState::Active } else { DividendState::Lapsed }
}

fn least_days(payments_per_year: i32) -> i64 {
    match payments_per_year {
        12 | 13 => MONTHLY_LEAST_DAYS,
        24.. => WEEKLY_LEAST_DAYS,
        _ => 0,
    }
}

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
    use crate::metrics::rules::Rules;

    fn decided(input: &StatusInput) -> DividendState {
        dividend_status(input, &Rules::DEFAULT.status)
    }

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn silence_is_measured_in_periods() {
        let check = |last: &str, payments_per_year, as_of: &str, expected| {
            let last = date(last);
            let input = StatusInput {
                as_of: date(as_of),
                last_ex_date: Some(last),
                last_declared: Some(last),
                payments_per_year,
                suspended_on: None,
                is_covered: true,
            };
            assert_eq!(decided(&input), expected, "{last} {as_of}");
        };
        check("2024-01-15", Some(4), "2024-05-30", DividendState::Active);
        check("2024-01-15", Some(4), "2024-06-01", DividendState::Lapsed);
        check("2024-01-15", Some(1), "2025-07-15", DividendState::Active);
        check("2024-01-15", None, "2025-04-09", DividendState::Active);
        check("2024-01-15", None, "2025-04-10", DividendState::Lapsed);
        check("2024-07-15", Some(12), "2024-06-01", DividendState::Active);
        for payments in [12, 13] {
            check("2024-12-18", Some(payments), "2025-03-03", DividendState::Active);
            check("2024-12-18", Some(payments), "2025-03-04", DividendState::Lapsed);
        }
        for payments in [24, 26, 52] {
            check("2024-12-18", Some(payments), "2025-01-08", DividendState::Active);
        }
        check("2024-12-18", Some(52), "2025-01-09", DividendState::Lapsed);
        // With six payments a year, one and a half periods are 91.25 days.
        check("2024-01-01", Some(6), "2024-04-01", DividendState::Active);
        check("2024-01-01", Some(6), "2024-04-02", DividendState::Lapsed);
    }

    #[test]
    fn a_notice_holds_until_the_next_declaration() {
        let input = StatusInput {
            as_of: date("2020-05-11"),
            last_ex_date: Some(date("2020-01-29")),
            last_declared: Some(date("2020-01-29")),
            payments_per_year: Some(4),
            suspended_on: Some(date("2020-03-19")),
            is_covered: true,
        };
        assert_eq!(decided(&input), DividendState::Suspended);
        assert_eq!(decided(&StatusInput { as_of: date("2020-03-18"), ..input }), DividendState::Active);
        assert_eq!(
            decided(&StatusInput { last_declared: Some(date("2020-04-01")), ..input }),
            DividendState::Active
        );
        let silent = StatusInput { last_ex_date: None, ..input };
        assert_eq!(decided(&silent), DividendState::NonPayer);
        assert_eq!(decided(&StatusInput { is_covered: false, ..silent }), DividendState::Unknown);
    }

    #[test]
    fn a_notice_of_today_holds_and_one_of_tomorrow_does_not_yet() {
        let day = date("2020-05-11");
        let input = StatusInput {
            as_of: day,
            last_ex_date: Some(date("2020-04-29")),
            last_declared: None,
            payments_per_year: Some(4),
            suspended_on: Some(day),
            is_covered: true,
        };
        assert_eq!(decided(&input), DividendState::Suspended);
        assert_eq!(decided(&StatusInput { suspended_on: day.succ_opt(), ..input }), DividendState::Active);
        // A dividend that was declared on the day of the notice counts as older than the notice.
        assert_eq!(decided(&StatusInput { last_declared: Some(day), ..input }), DividendState::Suspended);
        assert_eq!(decided(&StatusInput { last_declared: day.succ_opt(), ..input }), DividendState::Active);
    }

    #[test]
    fn one_and_a_half_periods() {
        for (payments, days) in [
            (1, 547),
            (2, 273),
            (3, 182),
            (4, 136),
            (6, 91),
            (12, 75),
            (13, 75),
            (24, 22),
            (26, 21),
            (52, 21),
        ] {
            let at = |silent: i64| {
                let last = date("2020-01-02");
                let as_of = last + chrono::TimeDelta::days(silent);
                decided(&StatusInput {
                    as_of,
                    last_ex_date: Some(last),
                    last_declared: Some(last),
                    payments_per_year: Some(payments),
                    suspended_on: None,
                    is_covered: true,
                })
            };
            assert_eq!(
                [at(days), at(days + 1)],
                [DividendState::Active, DividendState::Lapsed],
                "{payments} a year"
            );
        }
    }
}

#[cfg(test)]
mod class_tests {
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
