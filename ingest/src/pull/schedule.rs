//! Schedule of a connector: a cron expression in New York time.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use chrono_tz::America::New_York;
use croner::Cron;
use serde::Deserialize;

/// Cron schedule with minute, hour, day of the month, month, and day of the week.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct PullSchedule(Cron);

impl TryFrom<String> for PullSchedule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Cron::from_str(&text).map(Self).map_err(|error| format!("schedule {text:?}: {error}"))
    }
}

impl PullSchedule {
    /// First scheduled time after `time`; `None` if the expression has no later time.
    pub(super) fn next_after(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let next = self.0.find_next_occurrence(&time.with_timezone(&New_York), false);
        next.ok().map(|next| next.to_utc())
    }

    /// Last scheduled time at or before `time`.
    pub(super) fn last_until(&self, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let last = self.0.find_previous_occurrence(&time.with_timezone(&New_York), true);
        last.ok().map(|last| last.to_utc())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_new_york_s_in_summer_and_winter() {
        let schedule = PullSchedule::try_from("30 18 * * mon-fri".to_owned()).unwrap();
        let next = |from: &str| schedule.next_after(from.parse().unwrap()).map(|next| next.to_rfc3339());
        // Friday before the clock change to Monday after it.
        assert_eq!(next("2024-03-08T12:00:00Z").as_deref(), Some("2024-03-08T23:30:00+00:00"));
        assert_eq!(next("2024-03-08T23:30:00Z").as_deref(), Some("2024-03-11T22:30:00+00:00"));
        let last = schedule.last_until("2024-03-10T12:00:00Z".parse().unwrap());
        assert_eq!(last.map(|last| last.to_rfc3339()).as_deref(), Some("2024-03-08T23:30:00+00:00"));
        assert!(PullSchedule::try_from("daily at six".to_owned()).is_err());
    }
}
