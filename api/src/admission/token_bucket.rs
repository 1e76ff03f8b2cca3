//! Token bucket and monthly quota: remaining calls, and the values of the limit headers.
//!
//! Pure integer arithmetic. All times are times of the database clock.

use std::ops::Range;

use chrono::{DateTime, NaiveDate, Utc};

/// Micro-tokens that a call takes. A rate of one call per minute adds one micro-token per microsecond.
pub(crate) const CALL: i64 = 60_000_000;
const SECOND_US: i64 = 1_000_000;

/// State of a token bucket at one point in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bucket {
    /// Refill rate, in calls per minute.
    pub(crate) rate_per_minute: i32,
    /// Capacity, in calls.
    pub(crate) capacity: i32,
    /// Micro-tokens in the bucket, at least 0.
    pub(crate) tokens: i64,
}

impl Bucket {
    /// Available calls, rounded down.
    pub(crate) fn available_calls(&self) -> i64 {
        self.tokens / CALL
    }

    /// Number of available calls minus the burst reserve, at least 0. The burst reserve is the capacity minus the rate
    /// per minute. For example, it is 10 calls if the capacity is 20 and the rate is 10.
    pub(crate) fn remaining_within_rate(&self) -> i64 {
        (self.available_calls() - i64::from(self.capacity - self.rate_per_minute))
            .clamp(0, i64::from(self.rate_per_minute))
    }

    /// Time to refill an empty bucket, in seconds, rounded.
    pub(crate) fn seconds_to_fill_empty(&self) -> i64 {
        (self.refill_us(self.capacity_tokens()) + SECOND_US / 2) / SECOND_US
    }

    /// Seconds until the bucket is full, rounded up.
    pub(crate) fn seconds_until_full(&self) -> i64 {
        div_ceil(self.until_full_us(), SECOND_US)
    }

    /// Whole seconds until the bucket admits the next call, at least 1.
    pub(crate) fn retry_after_seconds(&self) -> u64 {
        div_ceil(self.wait_us(), SECOND_US).max(1).unsigned_abs()
    }

    /// Bucket that refuses calls first: this bucket or `other`.
    pub(crate) fn tighter_of(self, other: Self) -> Self {
        let stops_sooner =
            (other.wait_us(), self.remaining_within_rate()) > (self.wait_us(), other.remaining_within_rate());
        if stops_sooner { other } else { self }
    }

    fn capacity_tokens(&self) -> i64 {
        i64::from(self.capacity) * CALL
    }

    fn until_full_us(&self) -> i64 {
        self.refill_us(self.capacity_tokens() - self.tokens)
    }

    /// Time until the bucket admits the next call, in microseconds.
    fn wait_us(&self) -> i64 {
        self.refill_us(CALL - self.tokens)
    }

    /// Time in which the bucket gains these micro-tokens, in microseconds, rounded up.
    fn refill_us(&self, tokens: i64) -> i64 {
        div_ceil(tokens.max(0), i64::from(self.rate_per_minute.max(1)))
    }
}

/// Remaining limits of an account after a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RemainingLimits {
    /// Bucket of the account or bucket of the key: the one that refuses calls first. If the key has no rate limit of
    /// its own, the field contains the bucket of the account.
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
        let full_at_us = self.now.timestamp_micros() + self.bucket.until_full_us();
        div_ceil(full_at_us, SECOND_US).max(self.now.timestamp() + 1)
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

/// Quotient rounded up, for a non-negative dividend.
fn div_ceil(dividend: i64, divisor: i64) -> i64 {
    (dividend + divisor - 1) / divisor
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bucket(millicalls: i64) -> Bucket {
        Bucket { rate_per_minute: 10, capacity: 20, tokens: millicalls * CALL / 1_000 }
    }

    #[test]
    fn remaining_counts_the_minute_and_hides_the_reserve() {
        for (millicalls, remaining) in
            [(20_000, 10), (19_000, 9), (10_000, 0), (10_999, 0), (11_000, 1), (0, 0)]
        {
            assert_eq!(bucket(millicalls).remaining_within_rate(), remaining, "{millicalls}");
        }
    }

    #[test]
    fn retry_is_when_one_call_is_there() {
        for (millicalls, wait) in [(0, 6), (500, 3), (990, 1), (1_000, 1)] {
            assert_eq!(bucket(millicalls).retry_after_seconds(), wait, "{millicalls}");
        }
    }

    #[test]
    fn the_bucket_that_stops_the_next_call_governs() {
        let key = |millicalls| Bucket { rate_per_minute: 5, capacity: 5, ..bucket(millicalls) };
        assert_eq!(bucket(19_000).tighter_of(key(4_000)), key(4_000));
        assert_eq!(bucket(500).tighter_of(key(4_000)), bucket(500));
        assert_eq!(bucket(19_000).tighter_of(key(500)), key(500));
        assert_eq!(bucket(12_000).tighter_of(key(4_000)), bucket(12_000));
    }

    /// Reference implementation of the bucket.
    #[derive(Debug, Clone)]
    struct Model {
        rate: i64,
        capacity: i64,
        units: i64,
        /// Current time in microseconds after the Unix epoch.
        now: i64,
    }

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
            let passes = self.units >= CALL;
            self.units -= if passes { CALL } else { 0 };
            passes
        }

        fn usage(&self) -> RemainingLimits {
            let (rate, capacity) = (i32::try_from(self.rate), i32::try_from(self.capacity));
            let bucket = Bucket {
                rate_per_minute: rate.expect("a rate"),
                capacity: capacity.expect("a capacity"),
                tokens: self.units,
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
