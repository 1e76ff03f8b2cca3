//! What statistics are kept by, and what they sum up.

use chrono::{DateTime, NaiveDate, Utc};

use crate::account::statistics::Outcome;

/// One row of the statistics.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Counter {
    pub(super) account: i64,
    /// In UTC.
    pub(super) day: NaiveDate,
    /// The path's template.
    pub(super) endpoint: String,
    pub(super) key: i64,
    pub(super) outcome: Outcome,
}

/// Calls that are to be added to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) calls: i64,
    pub(super) last_at: DateTime<Utc>,
}
