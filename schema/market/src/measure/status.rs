//! Whether a payer pays (R6).
//!
//! - `non_payer`: no regular dividend ever;
//! - `suspended`: the operator or vendor says so, and nothing was declared since;
//! - `active`: a declared ex-date lies ahead, or the last one is at most 1.5 periods of 365/n days old (450 days when
//!   the rhythm is irregular or unknown);
//! - `lapsed`: none of these.
//!
//! Suspended and lapsed payers have a forward dividend and headline yield of 0 and no projection.
//! Source: 1.5 periods and 450 days are this service's own.

use chrono::NaiveDate;

use crate::row::DividendState;

/// Days after which an irregular payer has lapsed.
const IRREGULAR_DAYS: i64 = 450;

/// What the status rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusFacts {
    pub as_of: NaiveDate,
    /// Newest regular ex-date, declared future ones included.
    pub last_ex_date: Option<NaiveDate>,
    /// Newest declaration date of a regular dividend, its ex-date where none is given.
    pub last_declared: Option<NaiveDate>,
    /// Payments a year, when known.
    pub payments_per_year: Option<i32>,
    /// Day of a suspension notice.
    pub suspended_on: Option<NaiveDate>,
}

/// The status of a payer.
pub fn status(facts: &StatusFacts) -> DividendState {
    let Some(last_ex_date) = facts.last_ex_date else { return DividendState::NonPayer };
    let notice = facts.suspended_on.filter(|day| *day <= facts.as_of);
    if notice.is_some_and(|day| facts.last_declared.is_none_or(|declared| declared <= day)) {
        return DividendState::Suspended;
    }
    let silent = (facts.as_of - last_ex_date).num_days();
    let paying = match facts.payments_per_year {
        Some(payments) => 2 * i64::from(payments) * silent <= 3 * 365,
        None => silent <= IRREGULAR_DAYS,
    };
    if paying { DividendState::Active } else { DividendState::Lapsed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn silence_is_measured_in_periods() {
        let check = |last: &str, payments_per_year, as_of: &str, expected| {
            let last = date(last);
            let facts = StatusFacts {
                as_of: date(as_of),
                last_ex_date: Some(last),
                last_declared: Some(last),
                payments_per_year,
                suspended_on: None,
            };
            assert_eq!(status(&facts), expected, "{last} {as_of}");
        };
        check("2024-01-15", Some(4), "2024-05-30", DividendState::Active);
        check("2024-01-15", Some(4), "2024-06-01", DividendState::Lapsed);
        check("2024-01-15", Some(1), "2025-07-15", DividendState::Active);
        check("2024-01-15", None, "2025-04-09", DividendState::Active);
        check("2024-01-15", None, "2025-04-10", DividendState::Lapsed);
        check("2024-07-15", Some(12), "2024-06-01", DividendState::Active);
    }

    #[test]
    fn a_notice_holds_until_the_next_declaration() {
        let facts = StatusFacts {
            as_of: date("2020-05-11"),
            last_ex_date: Some(date("2020-01-29")),
            last_declared: Some(date("2020-01-29")),
            payments_per_year: Some(4),
            suspended_on: Some(date("2020-03-19")),
        };
        assert_eq!(status(&facts), DividendState::Suspended);
        assert_eq!(status(&StatusFacts { as_of: date("2020-03-18"), ..facts }), DividendState::Active);
        assert_eq!(
            status(&StatusFacts { last_declared: Some(date("2020-04-01")), ..facts }),
            DividendState::Active
        );
        assert_eq!(status(&StatusFacts { last_ex_date: None, ..facts }), DividendState::NonPayer);
    }
}
