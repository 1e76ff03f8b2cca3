//! Date ranges with inclusive bounds.

use chrono::NaiveDate;

use super::ParameterReader;

/// Date range with inclusive bounds. If a bound is `None`, the range is unlimited on that side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DateRange {
    pub(crate) start: Option<NaiveDate>,
    pub(crate) end: Option<NaiveDate>,
}

impl DateRange {
    /// True if the range includes a date. A range with a bound does not include an unknown date (`None`).
    fn includes(self, date: Option<NaiveDate>) -> bool {
        self.start.is_none_or(|start| date.is_some_and(|date| start <= date))
            && self.end.is_none_or(|end| date.is_some_and(|date| date <= end))
    }
}

/// Date ranges for the declaration date and the record date of a dividend.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OtherDateRanges {
    pub(crate) declared: DateRange,
    pub(crate) record: DateRange,
}

impl OtherDateRanges {
    /// True if the ranges include the declaration date and the record date of a dividend.
    pub(crate) fn include(&self, declared: Option<NaiveDate>, record: Option<NaiveDate>) -> bool {
        self.declared.includes(declared) && self.record.includes(record)
    }
}

/// Names of the parameters in [`OtherDateRanges`].
pub(crate) const OTHER_DATE_PARAMETERS: [&str; 4] =
    ["declared_from", "declared_to", "record_from", "record_to"];

impl ParameterReader<'_> {
    /// Reads a day. The request is refused later if this day is before the start of the history in the account's plan.
    pub(crate) fn read_day_of_history(&mut self, name: &'static str) -> Option<NaiveDate> {
        let day = self.read_date(name);
        self.properties.oldest_day = day;
        day
    }

    /// Reads `end_date`. Records an error if it is earlier than `start_date`, which the caller has read already.
    pub(crate) fn read_end_date(&mut self, start_date: Option<NaiveDate>) -> Option<NaiveDate> {
        self.read_last_day("end_date", "start_date", start_date)
    }

    /// Reads the ranges of the declaration date and the record date.
    pub(crate) fn read_other_date_ranges(&mut self) -> OtherDateRanges {
        let [declared_from, declared_to, record_from, record_to] = OTHER_DATE_PARAMETERS;
        let declared = self.read_days(declared_from, declared_to);
        self.describe(declared_from, "First declaration date.");
        self.describe(declared_to, "Last declaration date.");
        let record = self.read_days(record_from, record_to);
        self.describe(record_from, "First record date.");
        self.describe(record_to, "Last record date.");
        OtherDateRanges { declared, record }
    }

    /// Reads a range from the parameters `first` and `last`.
    fn read_days(&mut self, first: &'static str, last: &'static str) -> DateRange {
        let start = self.read_date(first);
        DateRange { start, end: self.read_last_day(last, first, start) }
    }

    /// Reads the last day of a range from the parameter `last`. Records an error if it is before `start`, the value of
    /// the parameter `first`.
    pub(crate) fn read_last_day(
        &mut self,
        last: &'static str,
        first: &str,
        start: Option<NaiveDate>,
    ) -> Option<NaiveDate> {
        let end = self.read_date(last);
        let ordered = start.zip(end).is_none_or(|(start, end)| start <= end);
        self.require(ordered, last, &format!("is before {first}"));
        end
    }
}
