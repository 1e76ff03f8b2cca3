//! Dividends across securities: calendars and history.

pub(crate) mod calendar;
pub(crate) mod history;
