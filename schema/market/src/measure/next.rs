//! The next ex-dates (R19).
//!
//! The earliest live declared ex-date from the as-of date on (today included). Else, for an active payer of known rhythm,
//! the same slot of last year (the n-th latest ex-date) plus 12 months, a weekly one plus 7 days, a biweekly one plus 14,
//! rolled forward to a session; with fewer ex-dates than a year holds, the last one plus 12/n months. One that already
//! passed is `overdue` and not served. Calendars hold declared events only, unless projections are asked for.
//! Source: the slot rule is this service's own; vendors served the last ex-date as the next one.

use chrono::{Days, Months, NaiveDate};

use super::calendar::session_on_or_after;

/// Days ahead for which ex-dates are projected.
const HORIZON: u64 = 366;

/// The projected ex-dates after the last known one, in order, passed ones included.
///
/// `ex_dates` are the regular ones in order, declared future ones included, same-day merged.
pub fn projected(ex_dates: &[NaiveDate], payments_per_year: i32, as_of: NaiveDate) -> Vec<NaiveDate> {
    let (Some(last), Ok(payments)) = (ex_dates.last().copied(), usize::try_from(payments_per_year)) else {
        return Vec::new();
    };
    let horizon = as_of.checked_add_days(Days::new(HORIZON)).unwrap_or(NaiveDate::MAX);
    let mut expected: Vec<NaiveDate> = match payments {
        0 => Vec::new(),
        52 => every(last, 7, horizon),
        26 => every(last, 14, horizon),
        _ if ex_dates.len() >= payments => ex_dates[ex_dates.len() - payments..]
            .iter()
            .filter_map(|date| date.checked_add_months(Months::new(12)))
            .collect(),
        24 => last.checked_add_days(Days::new(15)).into_iter().collect(),
        _ => last
            .checked_add_months(Months::new(12 / u32::try_from(payments).unwrap_or(12)))
            .into_iter()
            .collect(),
    };
    expected.iter_mut().for_each(|date| *date = session_on_or_after(*date));
    expected.retain(|date| *date > last && *date <= horizon);
    expected.sort_unstable();
    expected.dedup();
    expected
}

fn every(last: NaiveDate, days: u64, until: NaiveDate) -> Vec<NaiveDate> {
    std::iter::successors(last.checked_add_days(Days::new(days)), |date| {
        date.checked_add_days(Days::new(days))
    })
    .take_while(|date| *date <= until)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ex_dates: &[&str], payments: i32, as_of: &str, expected: &[&str]) {
        let dates =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<NaiveDate>>();
        assert_eq!(
            projected(&dates(ex_dates), payments, as_of.parse().unwrap()),
            dates(expected),
            "{ex_dates:?}"
        );
    }

    #[test]
    fn slots_of_last_year() {
        let quarterly = ["2023-12-07", "2024-03-07", "2024-06-06", "2024-09-05"];
        check(&quarterly, 4, "2024-11-15", &["2024-12-09", "2025-03-07", "2025-06-06", "2025-09-05"]);
        check(&["2024-03-15"], 1, "2025-03-10", &["2025-03-17"]);
        check(&["2024-03-15"], 4, "2024-04-01", &["2024-06-17"]);
        check(&[], 4, "2024-04-01", &[]);
    }

    #[test]
    fn weeks_follow_each_other() {
        let mut ex_date = "2024-06-06".parse::<NaiveDate>().unwrap();
        let projected = projected(&[ex_date], 52, ex_date);
        assert_eq!(projected.len(), 52);
        ex_date = "2024-06-13".parse().unwrap();
        assert_eq!(projected.first(), Some(&ex_date));
    }
}
