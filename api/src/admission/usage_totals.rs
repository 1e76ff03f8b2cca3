//! Row key and totals of the usage statistics.

use chrono::{DateTime, NaiveDate, Utc};

use crate::account::statistics::CallOutcome;
use crate::auth::ids::{AccountId, KeyId};

/// Key of one row of the usage statistics.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UsageKey {
    pub(crate) account: AccountId,
    /// Day, in UTC.
    pub(crate) day: NaiveDate,
    /// Path template of the endpoint.
    pub(crate) endpoint: String,
    pub(crate) key: KeyId,
    pub(crate) outcome: CallOutcome,
}

/// Number of calls to add to a row of the usage statistics, and the time of the last call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageIncrement {
    pub(crate) calls: i64,
    pub(crate) last_at: DateTime<Utc>,
}
