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
    /// Reason to doubt the amount; `None` if the amount is usual or a later row confirms it.
    pub doubt: Option<AmountDoubt>,
}

/// Reason to doubt an amount (R28): it is far above the amounts of the rows before it, and no later row confirms it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmountDoubt {
    /// The amount is below a quarter of the price, or the price is unknown. The row is treated as a combined payment:
    /// the larger of the two neighbouring amounts is its regular part, and the rest is special.
    Unconfirmed,
    /// The amount is at least a quarter of the price (the limit of R2). It is a distribution of capital, without a
    /// regular part. There is one exception: if another row with a doubtful amount is about a year earlier, the amount
    /// is treated like [`Self::Unconfirmed`].
    Capital,
}

impl From<RegularDividend> for ScheduleRow {
    fn from(RegularDividend { ex_date, amount }: RegularDividend) -> Self {
        Self { ex_date, amount, tag: None, doubt: None }
    }
}

/// Interpretation of one row of a payment schedule: the regular part of the amount, the amount that is used to compute
/// dividend growth and increase streaks, and the dividend year of the row.
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
    /// Kind of the row: regular, special, combined or dip.
    pub kind: AmountReading,
    /// Payments per year at the time of the row. `None` for irregular payers, and for payers with 13 or more payments a
    /// year. The schedules of both kinds of payers have no slots.
    pub per_year: Option<i32>,
    /// Dividend year to which the row belongs.
    pub year: i32,
}

/// Missing payment: a slot without a row, with rows before and after the slot. A slot is the date range of one regular
/// payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingSlot {
    /// Dividend year to which the slot belongs.
    pub year: i32,
    /// Number of payments a year around the slot.
    pub per_year: i32,
    /// Amount that is assumed for the slot when dividend growth and increase streaks are computed; `None` if the amount
    /// is unknown.
    pub assumed: Option<Decimal>,
}
