//! Choices of a calendar page: kind of day (ex-dates or payments), span (week or month), and filters.

use chrono::{Datelike, Days, Months, NaiveDate};

use crate::dashboard::market::api_calls::encode;
use crate::dashboard::session::form::Form;

/// Kinds of days, each with the value of the parameter `days`, a title, and the API endpoint.
pub(crate) const KINDS: [(&str, &str, &str); 2] =
    [("ex", "Ex-dates", "ex-dates"), ("pay", "Payments", "payment-dates")];
/// Names of the filter parameters, the same on the page and in the API.
const FILTERS: [&str; 3] = ["symbols", "sector", "min_yield"];
/// Maximum length of a filter's value, in characters.
const LONGEST: usize = 1_300;

/// Choices of the reader on the calendar page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CalendarChoice {
    pub(crate) kind: &'static str,
    /// True for a span of one week, false for one month.
    pub(crate) is_week: bool,
    /// First day of the span.
    pub(crate) first: NaiveDate,
    /// First day of the history that the reader may see. No span begins earlier.
    floor: NaiveDate,
    /// Filters that are set, as pairs of parameter name and value.
    pub(crate) filters: Vec<(&'static str, String)>,
}

impl CalendarChoice {
    /// Reads the choices from the query. `floor` is the first day of the history that the reader may see.
    pub(crate) fn read(parameters: &Form, today: NaiveDate, floor: NaiveDate) -> Self {
        let kind = KINDS.iter().find(|(name, ..)| *name == parameters.text("days")).unwrap_or(&KINDS[0]);
        let is_week = parameters.text("span") == "week";
        let asked = parameters.text("from").parse().unwrap_or(today);
        let first = begin(asked.clamp(floor, today + Days::new(366)), is_week);
        let filters = FILTERS.into_iter().filter_map(|name| {
            let value: String = parameters.text(name).chars().take(LONGEST).collect();
            (!value.is_empty()).then_some((name, value))
        });
        Self { kind: kind.0, is_week, first: first.max(floor), floor, filters: filters.collect() }
    }

    /// Last day of the span.
    pub(crate) fn last(&self) -> NaiveDate {
        let monday = begin(self.first, true);
        match self.is_week {
            true => monday + Days::new(6),
            false => begin(self.first, false) + Months::new(1) - Days::new(1),
        }
    }

    /// The same choices for the next span if `is_later`, otherwise for the previous span. `None` if the previous span is
    /// before the reader's history.
    pub(crate) fn moved(&self, is_later: bool) -> Option<Self> {
        let first = match is_later {
            true => self.last() + Days::new(1),
            false if self.first == self.floor => return None,
            false => begin(begin(self.first, self.is_week) - Days::new(1), self.is_week).max(self.floor),
        };
        Some(Self { first, ..self.clone() })
    }

    /// Copy of the choices for another kind of date: `ex` (ex-dates) or `pay` (payments).
    pub(crate) fn of_kind(&self, kind: &'static str) -> Self {
        Self { kind, ..self.clone() }
    }

    /// The same choices for the week or month that contains the first day of this span.
    pub(crate) fn in_span(&self, is_week: bool) -> Self {
        Self { is_week, first: begin(self.first, is_week).max(self.floor), ..self.clone() }
    }

    /// The same choices for the week that contains a day.
    pub(crate) fn week_of(&self, day: NaiveDate) -> Self {
        Self { first: day, ..self.clone() }.in_span(true)
    }

    /// Path and query of the page.
    pub(crate) fn address(&self) -> String {
        let span = if self.is_week { "week" } else { "month" };
        let filters: String = self.filters_query();
        format!("/calendar?days={}&span={span}&from={}{filters}", self.kind, self.first)
    }

    /// Path and query of the API call that returns the rows of the page.
    pub(crate) fn call(&self) -> String {
        let endpoint =
            KINDS.iter().find(|(name, ..)| *name == self.kind).map_or("", |(.., endpoint)| *endpoint);
        format!(
            "/v1/dividends/{endpoint}?start_date={}&end_date={}{}&include_projected=true&limit=500",
            self.first,
            self.last(),
            self.filters_query()
        )
    }

    fn filters_query(&self) -> String {
        self.filters.iter().map(|(name, value)| format!("&{name}={}", encode(value))).collect()
    }

    /// Value of a filter; empty if it is not set.
    pub(crate) fn filter(&self, name: &str) -> &str {
        self.filters.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }
}

/// First day of the week or month that contains a day.
fn begin(day: NaiveDate, is_week: bool) -> NaiveDate {
    match is_week {
        true => day - Days::new(day.weekday().num_days_from_monday().into()),
        false => day.with_day(1).unwrap_or(day),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().expect("a date")
    }

    fn choice(query: &str) -> CalendarChoice {
        CalendarChoice::read(&Form::from_query(query), day("2024-06-17"), day("2023-06-17"))
    }

    fn moved(choice: &CalendarChoice, is_later: bool) -> Option<NaiveDate> {
        choice.moved(is_later).map(|choice| choice.first)
    }

    #[test]
    fn spans_follow_each_other_without_a_gap() {
        let month = choice("");
        assert_eq!((month.first, month.last()), (day("2024-06-01"), day("2024-06-30")));
        assert_eq!(
            (moved(&month, true), moved(&month, false)),
            (Some(day("2024-07-01")), Some(day("2024-05-01")))
        );
        let week = choice("span=week&from=2024-06-19");
        assert_eq!((week.first, week.last()), (day("2024-06-17"), day("2024-06-23")));
        let around = (moved(&week, true), moved(&week, false));
        assert_eq!(around, (Some(day("2024-06-24")), Some(day("2024-06-10"))));
    }

    #[test]
    fn no_span_begins_before_the_readers_history() {
        assert_eq!(choice("from=1990-01-01").first, day("2023-06-17"));
        assert_eq!(choice("from=1990-01-01").last(), day("2023-06-30"));
        assert_eq!(moved(&choice("from=2023-07-05"), false), Some(day("2023-06-17")));
        assert_eq!(moved(&choice("from=1990-01-01"), false), None);
        assert_eq!(choice("from=1990-01-01").in_span(true).first, day("2023-06-17"));
        assert_eq!(choice("from=nonsense").first, day("2024-06-01"));
    }

    #[test]
    fn the_call_has_the_filters() {
        let call = choice("days=pay&symbols=KO,PEP&min_yield=2&sector=Real+Estate").call();
        let expected = "/v1/dividends/payment-dates?start_date=2024-06-01&end_date=2024-06-30&symbols=KO,PEP&sector=Real%20Estate&min_yield=2&include_projected=true&limit=500";
        assert_eq!(call, expected);
    }
}
