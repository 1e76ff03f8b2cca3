//! `/calendar`: ex-dates and payments by month or week, and as iCalendar.

mod days;
mod filters;
pub(crate) mod page;
pub(crate) mod subscription;
