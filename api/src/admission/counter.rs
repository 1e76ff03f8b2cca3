//! Keys and totals of usage statistics.

use chrono::{DateTime, NaiveDate, Utc};

use crate::account::statistics::Outcome;

/// One row of the statistics.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Counter {
    pub(crate) account: i64,
    /// In UTC.
    pub(crate) day: NaiveDate,
    /// The path's template.
    pub(crate) endpoint: String,
    pub(crate) key: i64,
    pub(crate) outcome: Outcome,
}

/// Calls that are to be added to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) calls: i64,
    pub(crate) last_at: DateTime<Utc>,
}
