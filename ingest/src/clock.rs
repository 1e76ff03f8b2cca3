//! The wall clock, at the precision of the log.

use chrono::{DateTime, Utc};

pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_micros(Utc::now().timestamp_micros()).unwrap_or_default()
}
