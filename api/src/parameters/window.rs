//! `start_date` and `end_date`: a window of days, both ends included.

use chrono::NaiveDate;

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
