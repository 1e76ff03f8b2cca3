//! Durations of recent round trips to the database. The response timeout depends on the shortest one, which overload
//! hardly changes.

use std::collections::VecDeque;
use std::time::Duration;

/// Number of recent round trips that are stored.
const MAX_STORED: usize = 16;
/// Number of round trips that a decision may take: a read, a charge, and one repetition of each.
const PER_DECISION: u32 = 4;
/// Maximum timeout that is computed from round trips.
const MAX_COMPUTED_TIMEOUT: Duration = Duration::from_secs(2);

/// Recent round trips of one connection.
#[derive(Debug, Default)]
pub(crate) struct RoundTrips(VecDeque<Duration>);

impl RoundTrips {
    /// Forgets all stored round trips, and stores the first round trip of a new connection.
    pub(crate) fn restart(&mut self, first: Duration) {
        self.0.clear();
        self.record(first);
    }

    pub(crate) fn record(&mut self, round_trip: Duration) {
        if self.0.len() >= MAX_STORED {
            self.0.pop_front();
        }
        self.0.push_back(round_trip);
    }

    /// Response timeout: the longer of two values. The first is the configured timeout. The second is four times the
    /// shortest round trip, but at most 2 s.
    pub(crate) fn response_timeout(&self, configured: Duration) -> Duration {
        let shortest = self.0.iter().min().copied().unwrap_or_default();
        configured.max((shortest * PER_DECISION).min(MAX_COMPUTED_TIMEOUT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_distance_and_not_the_load() {
        let (near, far, configured) =
            (Duration::from_millis(1), Duration::from_millis(200), Duration::from_millis(250));
        let mut trips = RoundTrips::default();
        assert_eq!(trips.response_timeout(configured), configured);
        trips.restart(far);
        assert_eq!(trips.response_timeout(configured), far * 4);
        trips.restart(far * 100);
        assert_eq!(trips.response_timeout(configured), MAX_COMPUTED_TIMEOUT);
        // One quick response of an overloaded server shows that it is near.
        trips.restart(near);
        (0..MAX_STORED - 1).for_each(|_| trips.record(far));
        assert_eq!(trips.response_timeout(configured), configured);
        trips.record(far);
        assert_eq!(trips.response_timeout(configured), far * 4);
        // The configured timeout may exceed the bound.
        assert_eq!(trips.response_timeout(MAX_COMPUTED_TIMEOUT * 3), MAX_COMPUTED_TIMEOUT * 3);
    }
}
