//! Rows of a payment schedule and their readings (R34).

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::event::Frequency;
use crate::metrics::dividends::yields::RegularDividend;
use crate::row::AmountReading;

/// Sum of the regular rows of one ex-date in one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleRow {
    /// Ex-date.
    pub ex_date: NaiveDate,
    /// Sum per share on the as-of date's share basis.
    pub amount: Decimal,
    /// Frequency as tagged by the vendor.
    pub tag: Option<Frequency>,
    /// Doubt about the amount; `None` for a usual amount and for an amount that a later row confirms.
    pub doubt: Option<AmountDoubt>,
}

/// Reason to doubt an amount that is far above the rows before it. No later row confirms the amount (R28).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmountDoubt {
    /// A part of the amount is special.
    Unconfirmed,
    /// The amount is at least a quarter of the price, as in R2: a distribution of capital, without a regular part.
    Capital,
}

impl From<RegularDividend> for ScheduleRow {
    fn from(RegularDividend { ex_date, amount }: RegularDividend) -> Self {
        Self { ex_date, amount, tag: None, doubt: None }
    }
}

/// Reading of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Ex-date.
    pub ex_date: NaiveDate,
    /// Amount of the row.
    pub amount: Decimal,
    /// Regular part of the amount.
    pub regular: Decimal,
    /// Amount for growth and streak.
    pub sustained: Decimal,
    /// Kind of the reading.
    pub kind: AmountReading,
    /// Local payments a year; `None` for irregular payers and for 13 and more payments a year.
    pub per_year: Option<i32>,
    /// Dividend year of the slot.
    pub year: i32,
}

/// Missing slot between two rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingSlot {
    /// Dividend year of the slot.
    pub year: i32,
    /// Local payments a year.
    pub per_year: i32,
    /// Amount that growth and streak assume for the slot; `None` if the amount is unknown.
    pub assumed: Option<Decimal>,
}
