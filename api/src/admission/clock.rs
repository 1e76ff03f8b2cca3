//! Estimate of the database clock between decisions; the database clock decides.

use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};

/// What the store's clock shows, as exactly as its answers tell.
#[derive(Debug)]
pub(crate) struct StoreClock {
    base: Instant,
    /// What the store's clock showed at `base`, once it is known.
    at_base: Option<DateTime<Utc>>,
}

impl StoreClock {
    pub(crate) fn new() -> Self {
        Self { base: Instant::now(), at_base: None }
    }

    /// The store's time at a moment here; not before the true one, and ahead of it by no more than the way to the store.
    pub(crate) fn at(&self, moment: Instant) -> Option<DateTime<Utc>> {
        self.at_base.map(|at_base| at_base + self.elapsed(moment))
    }

    /// Learns what the store's clock showed at some moment between `sent` and `received`. What is known already is kept
    /// as far as it agrees, so that time does not jump from answer to answer; a clock that was set is followed.
    pub(crate) fn learn(&mut self, shown: DateTime<Utc>, sent: Instant, received: Instant) {
        let (earliest, latest) = (shown - self.elapsed(received), shown - self.elapsed(sent));
        self.at_base = Some(self.at_base.map_or(latest, |known| known.clamp(earliest, latest)));
    }

    fn elapsed(&self, moment: Instant) -> TimeDelta {
        let elapsed = moment.saturating_duration_since(self.base);
        TimeDelta::seconds(elapsed.as_secs().cast_signed())
            + TimeDelta::nanoseconds(elapsed.subsec_nanos().into())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn moment(clock: &StoreClock, microseconds: u64) -> Instant {
        clock.base + Duration::from_micros(microseconds)
    }

    /// What a store shows whose clock began so far after the epoch.
    fn shown(began: i64, microseconds: u64) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(began + i64::try_from(microseconds).expect("a time")).expect("a time")
    }

    proptest! {
        /// Round trips at any speed leave it right to within the fastest way there, and never behind.
        #[test]
        fn answers_narrow_it_down(trips in prop::collection::vec((0u64..5_000, 0u64..5_000, 0u64..50_000), 1..40)) {
            let mut clock = StoreClock::new();
            let (mut now, mut fastest) = (1, u64::MAX);
            for (there, back, pause) in trips {
                let (sent, executed, received) = (now, now + there, now + there + back);
                clock.learn(shown(1_000_000_000, executed), moment(&clock, sent), moment(&clock, received));
                fastest = fastest.min(there);
                now = received + pause;
                let estimate = clock.at(moment(&clock, now)).expect("known");
                let ahead = (estimate - shown(1_000_000_000, now)).num_microseconds().expect("small");
                prop_assert!((0..=i64::try_from(fastest).expect("small")).contains(&ahead), "{ahead} µs ahead");
            }
        }

        /// A step of the store's clock, forward or back, is known with the next answer.
        #[test]
        fn steps_are_followed(step in -10_000_000_000i64..10_000_000_000, way in 0u64..5_000) {
            let mut clock = StoreClock::new();
            for (began, sent) in [(1_000_000_000_000, 1), (1_000_000_000_000 + step, 1_000_000)] {
                let received = sent + 2 * way;
                clock.learn(shown(began, sent + way), moment(&clock, sent), moment(&clock, received));
                let estimate = clock.at(moment(&clock, received)).expect("known");
                let off = (estimate - shown(began, received)).num_microseconds().expect("small");
                prop_assert!(off.unsigned_abs() <= way, "{off} µs");
            }
        }
    }
}
