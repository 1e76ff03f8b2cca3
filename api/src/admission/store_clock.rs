//! Estimate of the database clock. All instances use the database time for charges, not the time of their own host.

use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};

/// Estimate of the database clock. Each database reply can make it more precise.
#[derive(Debug)]
pub(crate) struct StoreClock {
    base: Instant,
    /// Database time at `base`; `None` before the first reply.
    at_base: Option<DateTime<Utc>>,
}

impl StoreClock {
    pub(crate) fn new() -> Self {
        Self { base: Instant::now(), at_base: None }
    }

    /// Database time at a local instant; `None` before the first reply. The estimate is never earlier than the true
    /// database time. It is later by at most the network delay.
    pub(crate) fn estimate_at(&self, instant: Instant) -> Option<DateTime<Utc>> {
        self.at_base.map(|at_base| at_base + self.elapsed(instant))
    }

    /// Corrects the estimate with a database time from a reply. The database read its clock between `sent` and
    /// `received`.
    pub(crate) fn update(&mut self, database_time: DateTime<Utc>, sent: Instant, received: Instant) {
        let (earliest, latest) = (database_time - self.elapsed(received), database_time - self.elapsed(sent));
        self.at_base = Some(self.at_base.map_or(latest, |known| known.clamp(earliest, latest)));
    }

    fn elapsed(&self, instant: Instant) -> TimeDelta {
        TimeDelta::from_std(instant.saturating_duration_since(self.base)).unwrap_or(TimeDelta::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn instant(clock: &StoreClock, microseconds: u64) -> Instant {
        clock.base + Duration::from_micros(microseconds)
    }

    /// Database time that is `microseconds` after `began`. `began` is in microseconds after the Unix epoch.
    fn database_time(began: i64, microseconds: u64) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(began + i64::try_from(microseconds).expect("a time")).expect("a time")
    }

    proptest! {
        /// The estimate is never earlier than the database time. It is later by at most the shortest network delay.
        #[test]
        fn answers_narrow_it_down(trips in prop::collection::vec((0u64..5_000, 0u64..5_000, 0u64..50_000), 1..40)) {
            let mut clock = StoreClock::new();
            let (mut now, mut fastest) = (1, u64::MAX);
            for (there, back, pause) in trips {
                let (sent, executed, received) = (now, now + there, now + there + back);
                clock.update(database_time(1_000_000_000, executed), instant(&clock, sent), instant(&clock, received));
                fastest = fastest.min(there);
                now = received + pause;
                let estimate = clock.estimate_at(instant(&clock, now)).expect("known");
                let ahead = (estimate - database_time(1_000_000_000, now)).num_microseconds().expect("small");
                prop_assert!((0..=i64::try_from(fastest).expect("small")).contains(&ahead), "{ahead} µs ahead");
            }
        }

        /// If the database clock is set forward or back, the next reply corrects the estimate.
        #[test]
        fn steps_are_followed(step in -10_000_000_000i64..10_000_000_000, way in 0u64..5_000) {
            let mut clock = StoreClock::new();
            for (began, sent) in [(1_000_000_000_000, 1), (1_000_000_000_000 + step, 1_000_000)] {
                let received = sent + 2 * way;
                clock.update(database_time(began, sent + way), instant(&clock, sent), instant(&clock, received));
                let estimate = clock.estimate_at(instant(&clock, received)).expect("known");
                let off = (estimate - database_time(began, received)).num_microseconds().expect("small");
                prop_assert!(off.unsigned_abs() <= way, "{off} µs");
            }
        }
    }
}
