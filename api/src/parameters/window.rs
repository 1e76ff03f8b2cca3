//! `start_date` and `end_date`: a window of days, both ends included.

use chrono::{Datelike, Months, NaiveDate};

use super::Reader;

/// Days from `start` to `end`, both included, either open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: Option<NaiveDate>,
    pub(crate) end: Option<NaiveDate>,
}

impl Reader<'_> {
    /// Reads both ends; `end < start` is a mistake.
    pub(crate) fn window(&mut self) -> Window {
        let (start, end) = (self.date("start_date"), self.date("end_date"));
        let ordered = start.zip(end).is_none_or(|(start, end)| start <= end);
        self.require(ordered, "end_date", "is before start_date");
        Window { start, end }
    }
}

/// The day this many years earlier; 29 February becomes the 28th.
pub(crate) fn years_before(day: NaiveDate, years: i32) -> NaiveDate {
    let months = u32::try_from(years.max(0)).unwrap_or(0).saturating_mul(12);
    let clamped = NaiveDate::from_ymd_opt(1, 1, 1).unwrap_or(NaiveDate::MIN);
    if day.year() <= years { clamped } else { day.checked_sub_months(Months::new(months)).unwrap_or(clamped) }
}
