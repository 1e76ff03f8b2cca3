//! Interface of records that can be merged: keys, faults, and comparison with other rows of the same key (R29).

use std::cmp::Ordering;

use chrono::NaiveDate;

use crate::event::{Action, Dividend, Split};
use crate::metrics::dividends::ex_date::Settlement;
use crate::metrics::dividends::schedule::ScheduleRow;
use crate::metrics::dividends::status::DividendClass;
use crate::metrics::merge::same_day_payments::{SameDayPayments, natural_key};
use crate::metrics::merge::validation::{RowFault, dividend_fault, dividend_key_fault, split_fault};
use crate::symbol::Symbol;

/// Measure of the distance at which a record may take the place of another source's record (R32).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// A quarter of the payment period, and at most 20 days.
    PaymentPeriod,
    /// Five sessions.
    Sessions,
}

/// Record that can be merged: a dividend or a split.
pub(crate) trait MergeRecord {
    /// Distance at which the record may take the place of another source's record.
    const REACH: Reach;
    /// Orders records by natural key. This is date, type and currency for a dividend, and the ex-date for a split.
    fn compare_natural(&self, other: &Self) -> Ordering;
    /// Rank by dates. Of rows with the same id and revision, the row with the highest rank is used.
    fn preference(&self, settlement: Settlement) -> u32;
    /// Ex-date of the record, derived from the record date if it is missing (R1). `None` if the record has neither date.
    fn date(&self, settlement: Settlement) -> Option<NaiveDate>;
    /// Fault of a row with this record; `None` if the row is valid. A retraction only needs to identify a record.
    fn fault(&self, action: Action, has_id: bool) -> Option<RowFault>;
    fn symbol(&self) -> &Symbol;
    /// True if two records with the same natural key are different payments, not versions of one payment.
    fn is_distinct_payment(&self, other: &Self, same_day_payments: &SameDayPayments<'_>) -> bool;
    /// Orders different payments of one day by amount.
    fn compare_same_day(&self, other: &Self) -> Ordering;
    /// True if the records have the same amount (dividend) or ratio (split).
    fn same_content(&self, other: &Self) -> bool;
    /// True if any field has different values in the two records. The symbol is not compared. A field that is missing
    /// in one of the records is not compared either.
    fn contradicts(&self, other: &Self) -> bool;
    /// True if the record may take the place of `older`, a record of another source that is within reach (R32).
    /// `is_same_day` is true if both have the same ex-date.
    fn may_cover(&self, older: &Self, is_same_day: bool) -> bool;
    /// Row of the payment schedule. `None` for a record that is not a regular payment.
    fn schedule_row(&self, settlement: Settlement) -> Option<ScheduleRow>;
}

impl MergeRecord for Dividend {
    const REACH: Reach = Reach::PaymentPeriod;

    fn compare_natural(&self, other: &Self) -> Ordering {
        natural_key(self).cmp(&natural_key(other))
    }

    fn preference(&self, settlement: Settlement) -> u32 {
        // An ex-date that agrees with the record date is more important than the number of dates.
        let derived = self.record_date.map(|date| settlement.ex_date(date));
        let agrees = derived.is_some() && derived == self.ex_date;
        let dates = [self.ex_date, self.record_date, self.payment_date, self.declaration_date];
        dates.iter().flatten().fold(8 * u32::from(agrees), |sum, _| sum + 1)
    }

    fn date(&self, settlement: Settlement) -> Option<NaiveDate> {
        self.ex_date.or_else(|| self.record_date.map(|date| settlement.ex_date(date)))
    }

    fn fault(&self, action: Action, has_id: bool) -> Option<RowFault> {
        match action {
            Action::Put => dividend_fault(self),
            Action::Retract if has_id => None,
            Action::Retract => dividend_key_fault(self),
        }
    }

    fn symbol(&self) -> &Symbol {
        &self.symbol
    }

    fn is_distinct_payment(&self, other: &Self, same_day_payments: &SameDayPayments<'_>) -> bool {
        same_day_payments.are_distinct(self, other)
    }

    fn compare_same_day(&self, other: &Self) -> Ordering {
        self.amount.cmp(&other.amount)
    }
    fn same_content(&self, other: &Self) -> bool {
        self.amount == other.amount && self.amount_basis == other.amount_basis
    }

    fn contradicts(&self, other: &Self) -> bool {
        (self.amount, &self.currency, self.r#type, self.amount_basis)
            != (other.amount, &other.currency, other.r#type, other.amount_basis)
            || differ(&self.ex_date, &other.ex_date)
            || differ(&self.record_date, &other.record_date)
            || differ(&self.payment_date, &other.payment_date)
            || differ(&self.declaration_date, &other.declaration_date)
    }

    fn may_cover(&self, older: &Self, is_same_day: bool) -> bool {
        let [own, other] = [self, older].map(|dividend| dividend.r#type.class(dividend.frequency));
        // Sources differ in the type of a payment. One payment must not be both regular and special.
        let is_equal_cash = || {
            [own, other].into_iter().all(DividendClass::in_ttm_total)
                && is_same_day
                && self.currency == older.currency
                && self.same_content(older)
        };
        own == other || is_equal_cash()
    }

    fn schedule_row(&self, settlement: Settlement) -> Option<ScheduleRow> {
        let ex_date = self.date(settlement).filter(|_| self.r#type.class(self.frequency).is_regular())?;
        let (tag, payment_date) = (self.frequency, self.payment_date);
        Some(ScheduleRow { ex_date, amount: self.amount, tag, doubt: None, payment_date })
    }
}

impl MergeRecord for Split {
    const REACH: Reach = Reach::Sessions;

    fn compare_natural(&self, other: &Self) -> Ordering {
        self.ex_date.cmp(&other.ex_date)
    }

    fn preference(&self, _: Settlement) -> u32 {
        [self.declaration_date, self.payable_date].iter().flatten().fold(0, |sum, _| sum + 1)
    }

    fn date(&self, _: Settlement) -> Option<NaiveDate> {
        Some(self.ex_date)
    }

    fn fault(&self, action: Action, _: bool) -> Option<RowFault> {
        if action == Action::Put { split_fault(self) } else { None }
    }

    fn symbol(&self) -> &Symbol {
        &self.symbol
    }

    fn is_distinct_payment(&self, _: &Self, _: &SameDayPayments<'_>) -> bool {
        false
    }

    fn compare_same_day(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
    fn same_content(&self, other: &Self) -> bool {
        self.from.checked_mul(other.to) == self.to.checked_mul(other.from)
    }

    fn contradicts(&self, other: &Self) -> bool {
        (self.ex_date, self.from, self.to) != (other.ex_date, other.from, other.to)
            || differ(&self.declaration_date, &other.declaration_date)
            || differ(&self.payable_date, &other.payable_date)
    }

    fn may_cover(&self, _: &Self, _: bool) -> bool {
        true
    }

    fn schedule_row(&self, _: Settlement) -> Option<ScheduleRow> {
        None
    }
}

/// True if both values are given and differ.
fn differ<V: PartialEq>(a: &Option<V>, b: &Option<V>) -> bool {
    a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| a != b)
}
