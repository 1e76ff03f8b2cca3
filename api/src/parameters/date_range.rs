//! Date ranges with inclusive bounds.

use chrono::NaiveDate;
use utoipa::IntoParams;

use super::Reader;

/// Date range with inclusive bounds; `None` is unbounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: Option<NaiveDate>,
    pub(crate) end: Option<NaiveDate>,
}

/// Date ranges of a dividend's declaration and record dates.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OtherDays {
    pub(crate) declared: Window,
    pub(crate) record: Window,
}

/// Documents the windows of a dividend's other days.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents what Reader::other_days reads")]
pub(super) struct OtherDaysParameters {
    /// First declaration date.
    declared_from: Option<NaiveDate>,
    /// Last declaration date.
    declared_to: Option<NaiveDate>,
    /// First record date.
    record_from: Option<NaiveDate>,
    /// Last record date.
    record_to: Option<NaiveDate>,
}

/// Parameter names of [`OtherDays`].
pub(crate) const OTHER_DAYS: [&str; 4] = ["declared_from", "declared_to", "record_from", "record_to"];

impl Reader<'_> {
    /// Reads `start_date` and `end_date`.
    pub(crate) fn window(&mut self) -> Window {
        self.days("start_date", "end_date")
    }

    /// Reads the ranges of the declaration date and the record date.
    pub(crate) fn other_days(&mut self) -> OtherDays {
        let [declared_from, declared_to, record_from, record_to] = OTHER_DAYS;
        OtherDays {
            declared: self.days(declared_from, declared_to),
            record: self.days(record_from, record_to),
        }
    }

    /// Reads both bounds. An end before the start is an error.
    fn days(&mut self, first: &'static str, last: &'static str) -> Window {
        let (start, end) = (self.date(first), self.date(last));
        let ordered = start.zip(end).is_none_or(|(start, end)| start <= end);
        self.require(ordered, last, &format!("is before {first}"));
        Window { start, end }
    }
}
