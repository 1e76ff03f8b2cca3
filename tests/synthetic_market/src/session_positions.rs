//! List of the trading sessions of the generated market, from the exchange calendar. The position of a session is its
//! index in the list. The list also contains some sessions before and after the generated history.

use chrono::{Days, NaiveDate};
use market::metrics::calendar::is_session;

/// Sessions of the generated history, and of [`MARGIN`] days before and after it. Dividends may be declared before the
/// history, and have their ex-date after it.
#[derive(Debug)]
pub(super) struct SessionPositions {
    days: Vec<NaiveDate>,
    /// Position of the first session of the history.
    pub(super) first: usize,
    /// Position of the last session of the history.
    pub(super) last: usize,
}

/// Number of additional calendar days before the history, and also after it.
const MARGIN: u64 = 200;

impl SessionPositions {
    /// Creates the sessions of a history from `start` to `until`, both inclusive. `None` if the history has no session.
    pub(super) fn new(start: NaiveDate, until: NaiveDate) -> Option<Self> {
        let from = start.checked_sub_days(Days::new(MARGIN))?;
        let to = until.checked_add_days(Days::new(MARGIN))?;
        let days: Vec<NaiveDate> =
            from.iter_days().take_while(|day| *day <= to).filter(|day| is_session(*day)).collect();
        let first = days.partition_point(|day| *day < start);
        let last = days.partition_point(|day| *day <= until).checked_sub(1)?;
        (first <= last).then_some(Self { days, first, last })
    }

    /// Date of the session at a position. If the position is too large, the date of the last session in the list.
    pub(super) fn day(&self, position: usize) -> NaiveDate {
        self.days.get(position).or(self.days.last()).copied().unwrap_or_default()
    }

    /// Position of the first session on or after `date`.
    pub(super) fn on_or_after(&self, date: NaiveDate) -> usize {
        self.days.partition_point(|day| *day < date).min(self.days.len() - 1)
    }

    /// Position of the last session on or before `date`.
    pub(super) fn on_or_before(&self, date: NaiveDate) -> usize {
        self.days.partition_point(|day| *day <= date).saturating_sub(1)
    }

    /// Date of the last session of the history.
    pub(super) fn last_day(&self) -> NaiveDate {
        self.day(self.last)
    }
}
