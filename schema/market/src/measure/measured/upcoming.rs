//! What comes next: the next declared payment and the ex-dates to expect (R19).

use chrono::NaiveDate;

use super::basis::Basis;
use super::income::Income;
use crate::measure::next::projected;
use crate::row::{DividendState, Flag, Flags};

/// What lies ahead.
#[derive(Debug, Default)]
pub(crate) struct Upcoming {
    /// Position of the next declared payment among the merged ones.
    pub declared: Option<usize>,
    /// Expected ex-dates after the last known one, from the as-of date on.
    pub projections: Vec<NaiveDate>,
}

/// Looks ahead; flags an expected ex-date that passed without a declaration.
pub(crate) fn upcoming(basis: &Basis<'_>, income: &Income, flags: &mut Flags) -> Upcoming {
    if !basis.is_listed {
        return Upcoming::default();
    }
    let ahead = |payment: &crate::measure::merge::Payment<'_>| {
        payment.ex_date >= basis.as_of && payment.class.in_ttm_total()
    };
    let declared = basis.payments().iter().position(ahead);
    let active = income.status == DividendState::Active;
    let Some(per_year) = basis.payments_per_year().filter(|_| active) else {
        return Upcoming { declared, projections: Vec::new() };
    };
    let mut projections = projected(&basis.ex_dates, per_year, basis.as_of);
    if declared.is_none() && projections.first().is_some_and(|date| *date < basis.as_of) {
        flags.set(Flag::Overdue);
    }
    projections.retain(|date| *date >= basis.as_of);
    Upcoming { declared, projections }
}
