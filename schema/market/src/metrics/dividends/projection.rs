//! Expected ex-dates of the next 366 days, projected from past payments (R19).
//!
//! Dates are projected for active payers of known frequency. The n newest ex-dates repeat after 12 months, where n is
//! the number of payments a year. If the market is closed on the repeated day, the next business day is projected. Weekly,
//! biweekly and four-weekly payments repeat after 7, 14 and 28 days. If fewer than n ex-dates are known, the last ex-date
//! repeats after each payment period.
//!
//! All ex-dates of 366 days are projected, so that a year's income can be added up. A projected date before the as-of
//! date sets the flag `overdue` and is left out of responses. The next ex-date of a security is the earliest declared
//! one, or else the first projection. Calendars contain projections only on request. Source: the repetition after 12
//! months is this service's own rule.

use chrono::{Days, Months, NaiveDate};

use super::ex_date::Settlement;

/// Length of the projected period, days.
const HORIZON: u64 = 366;

/// Ex-date that is expected but not declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedExDate {
    /// Projected ex-date.
    pub ex_date: NaiveDate,
    /// Known ex-date that the projection repeats. With n payments a year, it is one of the n newest ex-dates. If fewer
    /// than n ex-dates are known, it is the last ex-date.
    pub repeats: NaiveDate,
}

/// Expected ex-dates after the last known ex-date, ascending. Dates before `as_of` are included.
///
/// `ex_dates` are the regular ex-dates in order, one per day, including declared future ex-dates.
pub fn project_ex_dates(
    ex_dates: &[NaiveDate],
    payments_per_year: i32,
    as_of: NaiveDate,
    market: Settlement,
) -> Vec<ExpectedExDate> {
    let (Some(last), Ok(payments @ 1..)) = (ex_dates.last().copied(), u32::try_from(payments_per_year))
    else {
        return Vec::new();
    };
    let horizon = as_of.checked_add_days(Days::new(HORIZON)).unwrap_or(NaiveDate::MAX);
    let year = ex_dates.len().checked_sub(payments as usize).map(|start| &ex_dates[start..]);
    let mut expected = match (step(payments), year) {
        (Some(days), year) => project_periods(year.unwrap_or(&[last]), horizon, market, |periods| {
            last.checked_add_days(Days::new(u64::from(days * periods)))
        }),
        (None, Some(year)) => project_slots(year, last, horizon, market),
        (None, None) => {
            project_periods(&[last], horizon, market, |periods| period_after(last, payments, periods))
        }
    };
    expected.sort_unstable_by_key(|date| date.ex_date);
    expected.dedup_by_key(|date| date.ex_date);
    expected
}

/// Days between two payments for weekly, biweekly and four-weekly payers; `None` for other frequencies.
fn step(payments_per_year: u32) -> Option<u32> {
    match payments_per_year {
        52 => Some(7),
        26 => Some(14),
        13 => Some(28),
        _ => None,
    }
}

/// Adds a number of payment periods to a day; `None` beyond the calendar.
fn period_after(day: NaiveDate, payments_per_year: u32, periods: u32) -> Option<NaiveDate> {
    if 12 % payments_per_year == 0 {
        day.checked_add_months(Months::new(12 / payments_per_year * periods))
    } else {
        day.checked_add_days(Days::new(u64::from(365 * periods / payments_per_year)))
    }
}

/// Projects one ex-date per payment period, up to `until`. `after(k)` is the day k periods after the last known
/// ex-date. The projections repeat the ex-dates in `slots` in turn.
fn project_periods(
    slots: &[NaiveDate],
    until: NaiveDate,
    market: Settlement,
    after: impl Fn(u32) -> Option<NaiveDate>,
) -> Vec<ExpectedExDate> {
    let days = (1..).map_while(|periods| after(periods).map(|day| market.business_day_on_or_after(day)));
    let repeated = slots.iter().copied().cycle();
    days.zip(repeated)
        .map(|(ex_date, repeats)| ExpectedExDate { ex_date, repeats })
        .take_while(|date| date.ex_date <= until)
        .collect()
}

/// Projects each of the n newest ex-dates (`slots`) to the same day of later years. `last` is the newest ex-date.
fn project_slots(
    slots: &[NaiveDate],
    last: NaiveDate,
    until: NaiveDate,
    market: Settlement,
) -> Vec<ExpectedExDate> {
    let later = |slot: NaiveDate, years: u32| {
        slot.checked_add_months(Months::new(12 * years)).map(|day| market.business_day_on_or_after(day))
    };
    // If an ex-date plus one year is not after `last`, the payer has already repeated this ex-date. It is then not
    // projected.
    let open = slots.iter().copied().filter(|slot| later(*slot, 1).is_some_and(|date| date > last));
    open.flat_map(|repeats| {
        let dates = (1..).map_while(move |years| later(repeats, years));
        dates.take_while(move |date| *date <= until).map(move |ex_date| ExpectedExDate { ex_date, repeats })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(texts: &[&str]) -> Vec<NaiveDate> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn check(ex_dates: &[&str], payments: i32, as_of: &str, wanted: &[&str]) {
        let found =
            project_ex_dates(&dates(ex_dates), payments, as_of.parse().unwrap(), Settlement::UnitedStates);
        let found: Vec<NaiveDate> = found.iter().map(|date| date.ex_date).collect();
        assert_eq!(found, dates(wanted), "{ex_dates:?}");
    }

    #[test]
    fn slots_of_last_year() {
        let quarterly = ["2023-12-07", "2024-03-07", "2024-06-06", "2024-09-05"];
        check(&quarterly, 4, "2024-11-15", &["2024-12-09", "2025-03-07", "2025-06-06", "2025-09-05"]);
        check(&["2024-03-15"], 1, "2025-03-10", &["2025-03-17"]);
        check(&[], 4, "2024-04-01", &[]);
        let found =
            project_ex_dates(&dates(&quarterly), 4, "2024-11-15".parse().unwrap(), Settlement::UnitedStates);
        assert_eq!(found.iter().map(|date| date.repeats).collect::<Vec<_>>(), dates(&quarterly));
    }

    #[test]
    fn a_passed_slot_comes_again_within_the_year() {
        let quarterly = ["2023-12-07", "2024-03-07", "2024-06-06", "2024-09-05"];
        check(
            &quarterly,
            4,
            "2024-12-20",
            &["2024-12-09", "2025-03-07", "2025-06-06", "2025-09-05", "2025-12-08"],
        );
    }

    #[test]
    fn a_slot_behind_a_gap_is_not_counted_twice() {
        let gap = ["2023-03-07", "2023-09-07", "2023-12-07", "2024-03-07"];
        check(&gap, 4, "2024-04-01", &["2024-09-09", "2024-12-09", "2025-03-07"]);
        check(&["2023-03-07", "2024-03-07"], 2, "2024-04-01", &["2025-03-07"]);
        // No ex-date is expected before the ex-date of a payment that is declared long in advance.
        check(&["2024-03-07", "2025-09-05"], 2, "2024-04-01", &[]);
        check(&["2025-09-05"], 4, "2024-04-01", &[]);
    }

    #[test]
    fn a_young_payer_goes_on_by_periods() {
        check(&["2024-03-15"], 4, "2024-04-01", &["2024-06-17", "2024-09-16", "2024-12-16", "2025-03-17"]);
        let twice_a_month = project_ex_dates(
            &dates(&["2024-03-14"]),
            24,
            "2024-03-14".parse().unwrap(),
            Settlement::UnitedStates,
        );
        assert_eq!(twice_a_month.len(), 24);
    }

    #[test]
    fn weeks_follow_each_other() {
        let first = "2024-06-06".parse::<NaiveDate>().unwrap();
        // 364 days are 52 weeks, 26 fortnights and 13 times four weeks.
        for (payments, next) in [(52, "2024-06-13"), (26, "2024-06-20"), (13, "2024-07-05")] {
            let found = project_ex_dates(&[first], payments, first, Settlement::UnitedStates);
            assert_eq!(i32::try_from(found.len()), Ok(payments));
            assert_eq!(found[0].ex_date, next.parse::<NaiveDate>().unwrap());
            assert_eq!(found[found.len() - 1].ex_date, "2025-06-05".parse::<NaiveDate>().unwrap());
        }
    }

    #[test]
    fn a_year_is_looked_ahead() {
        check(&["2024-03-13"], 1, "2024-03-12", &["2025-03-13"]);
        check(&["2024-03-13"], 1, "2024-03-11", &[]);
        // A payer with three payments a year pays every four months. With 24 payments a year, it pays every 365 / 24
        // days.
        check(&["2024-03-13"], 3, "2024-03-13", &["2024-07-15", "2024-11-13", "2025-03-13"]);
        let found = project_ex_dates(
            &dates(&["2024-03-14"]),
            24,
            "2024-03-14".parse().unwrap(),
            Settlement::UnitedStates,
        );
        assert_eq!(
            [0, 1, 11].map(|place: usize| found[place].ex_date),
            ["2024-04-01", "2024-04-15", "2024-09-12"].map(|day| day.parse::<NaiveDate>().unwrap())
        );
        check(&["2024-03-13"], 0, "2024-03-13", &[]);
        check(&["2024-03-13"], -1, "2024-03-13", &[]);
    }

    #[test]
    fn weekly_slots_repeat_in_turn() {
        let first: NaiveDate = "2024-06-06".parse().unwrap();
        let year: Vec<NaiveDate> = (0..26).map(|number| first + Days::new(14 * number)).collect();
        let found = project_ex_dates(&year, 26, year[25], Settlement::UnitedStates);
        assert_eq!((found[0].repeats, found[25].repeats), (year[0], year[25]));
        assert_eq!(found[1].repeats, year[1]);
    }

    #[test]
    fn a_holiday_of_the_united_states_is_a_business_day_elsewhere() {
        let on = |market: Settlement| {
            let found = project_ex_dates(&dates(&["2023-07-04"]), 1, "2023-08-01".parse().unwrap(), market);
            found[0].ex_date.to_string()
        };
        assert_eq!([Settlement::UnitedStates, Settlement::TwoDays].map(on), ["2024-07-05", "2024-07-04"]);
    }
}
