//! Rows of a payment schedule, and the reading (interpretation) of each row (R34).

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::event::Frequency;
use crate::metrics::dividends::yields::RegularDividend;
use crate::row::AmountReading;

/// Row of a payment schedule: the sum of the regular payments of one ex-date in one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleRow {
    /// Ex-date.
    pub ex_date: NaiveDate,
    /// Sum per share, adjusted for splits up to the as-of date.
    pub amount: Decimal,
    /// Frequency that the vendor states for the payment; `None` if the vendor states none.
    pub tag: Option<Frequency>,
    /// Payment date; `None` if unknown.
    pub payment_date: Option<NaiveDate>,
    /// Reason to doubt the amount; `None` if the amount is usual or a later row confirms it.
    pub doubt: Option<AmountDoubt>,
}

/// Reason to doubt an amount (R28): it is far above the amounts of the rows before it, and no later row confirms it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmountDoubt {
    /// Amount below a quarter of the price, or without a known price. The row is read as combined: a regular payment
    /// and a special payment.
    Unconfirmed,
    /// Amount of at least a quarter of the price: a distribution of capital, without a regular part. If the payer had a
    /// doubtful amount a year before, it is treated like [`Self::Unconfirmed`].
    Capital,
}

impl From<RegularDividend> for ScheduleRow {
    fn from(RegularDividend { ex_date, amount }: RegularDividend) -> Self {
        Self { ex_date, amount, tag: None, doubt: None, payment_date: None }
    }
}

/// Interpretation of one row of a payment schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Ex-date.
    pub ex_date: NaiveDate,
    /// Amount of the row per share, adjusted for splits up to the as-of date.
    pub amount: Decimal,
    /// Regular part of the amount per share.
    pub regular: Decimal,
    /// Amount per share from which dividend growth and increase streaks are computed.
    pub sustained: Decimal,
    /// Kind of the row: regular, special, combined (a regular and a special payment) or dip (below both neighbours).
    pub kind: AmountReading,
    /// Payment date; `None` if unknown.
    pub payment_date: Option<NaiveDate>,
    /// Number of payments a year around the row. `None` for irregular payers, and for 13 or more payments a year.
    pub per_year: Option<i32>,
    /// Dividend year to which the row belongs.
    pub year: i32,
    /// Calendar year of the row, with which the dividend year should agree: that of the payment date if payment dates
    /// decide, else that of the ex-date.
    pub calendar_year: i32,
}

impl Reading {
    /// Regular part of one payment of the row's ex-date. `adjusted` is the amount of the payment, and both are adjusted
    /// for splits up to the as-of date. The regular part is 0 for a special payment, and the rest after the special
    /// part for a combined payment.
    pub(crate) fn regular_part(&self, adjusted: Decimal) -> Decimal {
        match self.kind {
            AmountReading::Special => Decimal::ZERO,
            AmountReading::Combined => {
                // Special part of the whole ex-date. A payment that is not larger is completely regular.
                let special = self.amount - self.regular;
                if adjusted > special { adjusted - special } else { adjusted }
            }
            _ => adjusted,
        }
    }
}

/// Missing payment: no row in the period of one regular payment (slot), although earlier and later rows exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingSlot {
    /// Dividend year of the missing payment.
    pub year: i32,
    /// Payments per year at the time of the missing payment.
    pub per_year: i32,
    /// Amount that growth and streak assume for the missing payment; `None` if no amount is assumed.
    pub assumed: Option<Decimal>,
}
