//! Wall clock, in the time resolution of the log.

use chrono::{DateTime, Utc};

/// Current time, truncated to microseconds.
pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_micros(Utc::now().timestamp_micros()).unwrap_or_default()
}
