//! Token bucket and monthly quota: remaining calls, and the values of the limit headers.
//!
//! Pure arithmetic. All times are times of the database clock.

use std::ops::Range;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

/// Tolerance for rounding errors, in tokens. A call uses one token. The bucket admits a call if it has at least `1 -
/// TOKEN_TOLERANCE` tokens.
const TOKEN_TOLERANCE: f64 = 1e-6;

/// State of a token bucket at one point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bucket {
    /// Refill rate, in calls per minute.
    pub(crate) rate_per_minute: i32,
    /// Capacity, in calls.
    pub(crate) capacity: i32,
    /// Number of available calls. It may have a fraction, because the bucket refills continuously.
    pub(crate) tokens: f64,
}

impl Bucket {
    /// Refill rate, in calls per second.
    pub(crate) fn rate_per_second(&self) -> f64 {
        f64::from(self.rate_per_minute.max(1)) / 60.0
    }

    /// Adjusts `tokens` after the capacity changed from `previous` to `capacity`. The number of used calls (capacity
    /// minus tokens) stays the same.
    pub(crate) fn with_capacity_changed_from(self, previous: i32) -> Self {
        let used = f64::from(previous) - self.tokens;
        Self { tokens: (f64::from(self.capacity) - used).max(0.0), ..self }
    }

    /// Refills the bucket for the elapsed time. A negative time refills nothing.
    pub(crate) fn refilled_after(self, elapsed: TimeDelta) -> Self {
        let flowed = self.rate_per_second() * seconds(elapsed).max(0.0);
        Self { tokens: (self.tokens + flowed).min(f64::from(self.capacity)), ..self }
    }

    /// Subtracts one call.
    pub(crate) fn minus_one_call(self) -> Self {
        Self { tokens: self.tokens - 1.0, ..self }
    }

    /// Available calls, rounded down.
    pub(crate) fn available_calls(&self) -> i64 {
        floor(self.tokens + TOKEN_TOLERANCE).max(0)
    }

    /// Number of available calls without the burst reserve. The reserve is the capacity minus the rate per minute: for
    /// example 20 - 10 = 10 calls.
    pub(crate) fn remaining_within_rate(&self) -> i64 {
        (self.available_calls() - i64::from(self.capacity - self.rate_per_minute))
            .clamp(0, i64::from(self.rate_per_minute))
    }

    /// Time to refill an empty bucket, in seconds.
    pub(crate) fn seconds_to_fill_empty(&self) -> i64 {
        floor((f64::from(self.capacity) / self.rate_per_second()).round())
    }

    /// Seconds until the bucket is full, rounded up.
    pub(crate) fn seconds_until_full(&self) -> i64 {
        floor(self.filling().ceil())
    }

    fn filling(&self) -> f64 {
        ((f64::from(self.capacity) - self.tokens) / self.rate_per_second()).max(0.0)
    }

    /// Seconds until the bucket admits the next call.
    fn wait(&self) -> f64 {
        ((1.0 - TOKEN_TOLERANCE - self.tokens) / self.rate_per_second()).max(0.0)
    }

    /// Whole seconds until the bucket admits the next call, at least 1.
    pub(crate) fn retry_after_seconds(&self) -> u64 {
        floor(self.wait().ceil()).max(1).unsigned_abs()
    }

    /// Bucket that refuses calls first: this bucket or `other`.
    pub(crate) fn tighter_of(self, other: Self) -> Self {
        let stops_sooner =
            (other.wait(), self.remaining_within_rate()) > (self.wait(), other.remaining_within_rate());
        if stops_sooner { other } else { self }
    }
}

/// Remaining limits of an account after a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RemainingLimits {
    /// Bucket of the account or bucket of the key: the one that refuses calls first. If the key has no rate limit of
    /// its own, it is the bucket of the account.
    pub(crate) bucket: Bucket,
    pub(crate) now: DateTime<Utc>,
    pub(crate) quota: i64,
    /// Number of calls already counted against the quota of the current month.
    pub(crate) used: i64,
    /// Start and end of the current month, in Unix seconds. The quota resets at the end.
    pub(crate) month: Range<i64>,
}

impl RemainingLimits {
    /// Time at which the bucket is full, as a Unix second. The value is always later than `now`.
    pub(crate) fn full_at_unix(&self) -> i64 {
        let now = seconds(self.now - DateTime::UNIX_EPOCH);
        floor((now + self.bucket.filling()).ceil()).max(self.now.timestamp() + 1)
    }

    /// Seconds until the quota resets, at least 1.
    pub(crate) fn seconds_until_quota_reset(&self) -> i64 {
        (self.month.end - self.now.timestamp()).max(1)
    }

    /// First day of the month, UTC.
    pub(crate) fn month_start(&self) -> NaiveDate {
        DateTime::from_timestamp(self.month.start, 0).unwrap_or_default().date_naive()
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of centuries are below 2^53")]
fn seconds(time: TimeDelta) -> f64 {
    (time.num_seconds() * 1_000_000 + i64::from(time.subsec_micros())) as f64 / 1e6
}

#[expect(clippy::cast_possible_truncation, reason = "times and call counts are far below 2^53")]
fn floor(value: f64) -> i64 {
    value.floor() as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bucket(tokens: f64) -> Bucket {
        Bucket { rate_per_minute: 10, capacity: 20, tokens }
    }

    #[test]
    fn remaining_counts_the_minute_and_hides_the_reserve() {
        for (tokens, remaining) in [(20.0, 10), (19.0, 9), (10.0, 0), (10.999_999_9, 1), (0.5, 0), (0.0, 0)] {
            assert_eq!(bucket(tokens).remaining_within_rate(), remaining, "{tokens}");
        }
    }

    #[test]
    fn retry_is_when_one_call_is_there() {
        for (tokens, wait) in [(0.0, 6), (0.5, 3), (0.99, 1), (1.0, 1)] {
            assert_eq!(bucket(tokens).retry_after_seconds(), wait, "{tokens}");
        }
    }

    #[test]
    fn the_bucket_that_stops_the_next_call_governs() {
        let key = |tokens| Bucket { rate_per_minute: 5, capacity: 5, tokens };
        assert_eq!(bucket(19.0).tighter_of(key(4.0)), key(4.0));
        assert_eq!(bucket(0.5).tighter_of(key(4.0)), bucket(0.5));
        assert_eq!(bucket(19.0).tighter_of(key(0.5)), key(0.5));
        assert_eq!(bucket(12.0).tighter_of(key(4.0)), bucket(12.0));
    }

    /// Reference implementation of the bucket in integer arithmetic. A call is 60 million units. At a rate of one call
    /// per minute, the bucket gains one unit per microsecond.
    #[derive(Debug, Clone)]
    struct Model {
        rate: i64,
        capacity: i64,
        units: i64,
        /// Current time in microseconds after the Unix epoch.
        now: i64,
    }

    const CALL: i64 = 60_000_000;
    const TIERS: [(i64, i64); 4] = [(10, 20), (30, 60), (100, 200), (300, 600)];

    impl Model {
        fn advance(&mut self, microseconds: i64) {
            self.now += microseconds;
            self.units = (self.units + self.rate * microseconds.max(0)).min(self.capacity * CALL);
        }

        fn change(&mut self, (rate, capacity): (i64, i64)) {
            let used = self.capacity * CALL - self.units;
            (self.rate, self.capacity, self.units) = (rate, capacity, (capacity * CALL - used).max(0));
        }

        fn call(&mut self) -> bool {
            // The bucket tolerates a missing millionth of a call.
            let passes = self.units + CALL / 1_000_000 >= CALL;
            self.units -= if passes { CALL } else { 0 };
            passes
        }

        #[expect(clippy::cast_precision_loss, reason = "as the store counts")]
        fn usage(&self) -> RemainingLimits {
            let (rate, capacity) = (i32::try_from(self.rate), i32::try_from(self.capacity));
            let bucket = Bucket {
                rate_per_minute: rate.expect("a rate"),
                capacity: capacity.expect("a capacity"),
                tokens: self.units as f64 / CALL as f64,
            };
            let now = DateTime::from_timestamp_micros(self.now).expect("a time");
            RemainingLimits { bucket, now, quota: 1, used: 0, month: 0..1_000_000_000 }
        }

        fn refilled_after(&self, microseconds: i64) -> Model {
            let mut later = self.clone();
            later.advance(microseconds);
            later
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Wait(i64),
        Call,
        Change(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => Just(Step::Call),
            2 => (0i64..20_000_000).prop_map(Step::Wait),
            1 => (0i64..200).prop_map(|seconds| Step::Wait(seconds * 1_000_000)),
            1 => (0usize..4).prop_map(Step::Change),
        ];
        proptest::collection::vec(step, 1..150)
    }

    /// Checks the header values of a response. Later calls must be admitted or refused as these values predict.
    fn keeps_its_promises(model: &Model, passed: bool) -> Result<(), TestCaseError> {
        let usage = model.usage();
        let (bucket, limit) = (usage.bucket, i64::from(usage.bucket.rate_per_minute));
        prop_assert!((0..=limit).contains(&bucket.remaining_within_rate()));
        prop_assert!(
            bucket.remaining_within_rate() == 0 || model.clone().call(),
            "remaining {}",
            bucket.remaining_within_rate()
        );
        let reset = usage.full_at_unix();
        prop_assert!(reset * 1_000_000 > model.now);
        let mut full = model.refilled_after(reset * 1_000_000 - model.now);
        prop_assert!(full.call());
        prop_assert_eq!(full.usage().bucket.remaining_within_rate(), limit - 1);
        prop_assert_eq!(bucket.available_calls() > 0, model.clone().call());
        let retry_after = i64::try_from(bucket.retry_after_seconds()).expect("seconds");
        prop_assert!(model.refilled_after(retry_after * 1_000_000).call());
        prop_assert!(
            passed || retry_after == 1 || !model.refilled_after((retry_after - 1) * 1_000_000).call(),
            "{retry_after} s"
        );
        Ok(())
    }

    proptest! {
        #[test]
        fn headers_promise_what_then_happens(tier in 0usize..4, start in 0i64..10_000_000_000, steps in steps()) {
            let (rate, capacity) = TIERS[tier];
            let mut model = Model { rate, capacity, units: capacity * CALL, now: start };
            for step in steps {
                let passed = match step {
                    Step::Wait(microseconds) => { model.advance(microseconds); continue }
                    Step::Change(tier) => { model.change(TIERS[tier]); continue }
                    Step::Call => model.call(),
                };
                keeps_its_promises(&model, passed)?;
            }
        }
    }
}
