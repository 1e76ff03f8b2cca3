//! Limiter of one account: rate-limit bucket and monthly quota. It does no I/O.
//!
//! Invariant: if the clock is set back, the bucket gets no tokens.

use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveTime, TimeDelta, Utc};

use crate::admission::decision::{AdmissionDecision, AdmissionRequest, AdmissionVerdict};
use crate::admission::token_bucket::{Bucket, RemainingLimits};
use crate::auth::ids::{AccountId, KeyId};
use crate::auth::tier::Tier;

/// Threshold for a decision with an earlier time than the previous decision. If the difference is below the threshold,
/// the two decisions are treated as reordered. Otherwise, the clock is treated as set back.
const CLOCK_JUMP_THRESHOLD: TimeDelta = TimeDelta::seconds(1);

/// Rate-limit bucket and used quota of an account.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AccountLimiter {
    pub(crate) account: AccountId,
    pub(crate) tier: Tier,
    /// Bucket as of the time `at`.
    pub(crate) bucket: Bucket,
    pub(crate) at: DateTime<Utc>,
    pub(crate) monthly_quota: i64,
    /// First day of the month in which the calls in `used` were counted, UTC.
    pub(crate) month: NaiveDate,
    /// Number of calls that were counted against the quota of `month`.
    pub(crate) used: i64,
}

/// Bucket of a key that has its own rate limit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyLimiter {
    pub(crate) bucket: Bucket,
    pub(crate) at: DateTime<Utc>,
}

impl AccountLimiter {
    /// Refills the bucket for the elapsed time, and starts a new month if one has begun.
    pub(crate) fn advance(&mut self, now: DateTime<Utc>) {
        self.bucket = self.bucket.refilled_after(now - self.at);
        self.at = monotonic_time(self.at, now);
        let today = now.date_naive();
        let month = today.with_day(1).unwrap_or(today);
        if month > self.month {
            (self.month, self.used) = (month, 0);
        }
    }

    /// True if the tier of the account permits the call.
    fn includes(&self, call: &AdmissionRequest) -> bool {
        self.tier.rank() >= call.required_rank
    }

    /// True if the call counts against the quota and the tier of the account permits the call.
    pub(crate) fn is_counted(&self, call: &AdmissionRequest) -> bool {
        call.counted && self.includes(call)
    }

    /// True if the bucket has `calls` calls left, and the quota has `counted` calls left.
    pub(crate) fn has_capacity(&self, calls: i32, counted: i32) -> bool {
        self.bucket.available_calls() >= i64::from(calls)
            && self.used + i64::from(counted) <= self.monthly_quota
    }

    /// Decides one call. A call that is refused because of tier or quota also takes tokens. Only an admitted call
    /// counts against the quota.
    pub(crate) fn decide(
        &mut self,
        call: &AdmissionRequest,
        mut key: Option<&mut KeyLimiter>,
    ) -> AdmissionDecision {
        let (included, counts) = (self.includes(call), self.is_counted(call));
        let granted = self.bucket.available_calls() > 0
            && key.as_ref().is_none_or(|key| key.bucket.available_calls() > 0);
        let passed = granted && (!counts || self.used < self.monthly_quota);
        if granted {
            self.bucket = self.bucket.minus_one_call();
            if let Some(key) = &mut key {
                key.bucket = key.bucket.minus_one_call();
            }
        }
        let counted = counts && passed;
        self.used += i64::from(counted);
        let verdict = match () {
            () if !included => AdmissionVerdict::Tier,
            () if !granted => AdmissionVerdict::Rate,
            () if !passed => AdmissionVerdict::Quota,
            () => AdmissionVerdict::Passed,
        };
        let usage = self.usage(key.as_deref());
        AdmissionDecision { account: self.account, key: KeyId(0), tier: self.tier, verdict, counted, usage }
    }

    /// Remaining limits, with the bucket that refuses calls first: the account's or the key's.
    fn usage(&self, key: Option<&KeyLimiter>) -> RemainingLimits {
        let seconds = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc().timestamp();
        RemainingLimits {
            bucket: key.map_or(self.bucket, |key| key.bucket.tighter_of(self.bucket)),
            now: self.at,
            quota: self.monthly_quota,
            used: self.used,
            month: seconds(self.month)..seconds(self.month + Months::new(1)),
        }
    }
}

impl KeyLimiter {
    /// Refills the bucket for the elapsed time.
    pub(crate) fn advance(&mut self, now: DateTime<Utc>) {
        self.bucket = self.bucket.refilled_after(now - self.at);
        self.at = monotonic_time(self.at, now);
    }
}

/// Later of the two times. If the clock was set back by [`CLOCK_JUMP_THRESHOLD`] or more, returns `now`.
fn monotonic_time(before: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
    if before > now && before - now < CLOCK_JUMP_THRESHOLD { before } else { now }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use secrecy::ExposeSecret;

    use super::*;
    use crate::auth::credential::{GeneratedKey, PresentedKey};

    /// Rate per minute, burst and quota of each tier, from the lowest tier on. The quotas are small, so that tests
    /// reach them.
    const TIERS: [(i32, i32, i64); 4] = [(10, 20, 30), (30, 60, 100), (100, 200, 300), (300, 600, 900)];
    /// Rate of the key with a separate bucket, in calls per minute.
    const OWN: i32 = 12;
    const NAMES: [Tier; 4] = [Tier::Free, Tier::Starter, Tier::Premium, Tier::Professional];
    /// Number of integer units per call. At a rate of one call per minute, the bucket gains one unit per microsecond.
    const CALL: i64 = 60_000_000;
    /// Tolerance for rounding errors: a millionth of a call, in the same units as [`CALL`].
    const FORGIVEN: i64 = CALL / 1_000_000;
    const START: i64 = 1_769_900_000_000_000;

    #[derive(Debug, Clone)]
    enum Step {
        /// Clock change in milliseconds, positive or negative.
        Clock(i64),
        MonthEnd,
        Tier(usize),
        /// Calls, each with the rank of its minimum tier and two flags. The first flag is true if the call counts
        /// against the quota. The second flag is true if the call uses the key with a separate bucket.
        Calls(Vec<(i16, bool, bool)>),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let call = (
            prop_oneof![4 => Just(0i16), 1 => 1i16..4],
            prop::bool::weighted(0.8),
            prop::bool::weighted(0.3),
        );
        let step = prop_oneof![
            6 => prop::collection::vec(call, 1..60).prop_map(Step::Calls),
            4 => (0i64..30_000).prop_map(Step::Clock),
            1 => (-3_000i64..0).prop_map(Step::Clock),
            1 => (-100_000i64..0).prop_map(Step::Clock),
            1 => Just(Step::MonthEnd),
            1 => (0usize..4).prop_map(Step::Tier),
        ];
        prop::collection::vec(step, 1..40)
    }

    fn instant(microseconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(microseconds).expect("a time")
    }

    #[derive(Debug, Clone)]
    struct Model {
        tier: usize,
        capacity: i64,
        units: i64,
        at: i64,
        month: (i32, u32),
        used: i64,
        own: i64,
        own_at: i64,
    }

    impl Model {
        fn new() -> Self {
            let (capacity, own) = (i64::from(TIERS[0].1), i64::from(OWN) * CALL);
            let month = (instant(START).year(), instant(START).month());
            Self { tier: 0, capacity, units: capacity * CALL, at: START, month, used: 0, own, own_at: START }
        }

        fn advance(&mut self, now: i64) {
            let (rate, capacity, _) = TIERS[self.tier];
            let used = self.capacity * CALL - self.units;
            self.capacity = i64::from(capacity);
            let flowed = i64::from(rate) * (now - self.at).max(0);
            self.units = ((self.capacity * CALL - used).max(0) + flowed).min(self.capacity * CALL);
            let flowed = i64::from(OWN) * (now - self.own_at).max(0);
            self.own = (self.own + flowed).min(i64::from(OWN) * CALL);
            // A backward jump below one second is treated as reordering.
            let later = |at: i64| if at - now > 0 && at - now < 1_000_000 { at } else { now };
            (self.at, self.own_at) = (later(self.at), later(self.own_at));
            let month = (instant(now).year(), instant(now).month());
            if month > self.month {
                (self.month, self.used) = (month, 0);
            }
        }

        fn call(&mut self, (required_rank, counted, own): (i16, bool, bool)) -> AdmissionVerdict {
            let full = |units: i64| units + FORGIVEN >= CALL;
            let included = self.tier >= usize::try_from(required_rank).expect("a rank");
            let granted = full(self.units) && (!own || full(self.own));
            if granted {
                self.units -= CALL;
                self.own -= if own { CALL } else { 0 };
            }
            let left = TIERS[self.tier].2 > self.used;
            match (included, granted, counted) {
                (false, ..) => AdmissionVerdict::Tier,
                (true, false, _) => AdmissionVerdict::Rate,
                (true, true, true) if !left => AdmissionVerdict::Quota,
                (true, true, counts) => {
                    self.used += i64::from(counts);
                    AdmissionVerdict::Passed
                }
            }
        }
    }

    /// Simulates a read of the stored account from the database, after the account's tier was changed to `tier`.
    fn read(stored: &AccountLimiter, tier: usize) -> AccountLimiter {
        let (rate_per_minute, capacity, monthly_quota) = TIERS[tier];
        let bucket = Bucket { rate_per_minute, capacity, tokens: stored.bucket.tokens };
        let bucket = bucket.with_capacity_changed_from(stored.bucket.capacity);
        AccountLimiter { tier: NAMES[tier], bucket, monthly_quota, ..stored.clone() }
    }

    fn new_account() -> (AccountLimiter, KeyLimiter) {
        let full =
            |rate_per_minute, capacity| Bucket { rate_per_minute, capacity, tokens: f64::from(capacity) };
        let at = instant(START);
        let (month, used) = (at.date_naive().with_day(1).expect("a day"), 0);
        let bucket = full(TIERS[0].0, TIERS[0].1);
        let account = AccountLimiter {
            account: AccountId(1),
            tier: Tier::Free,
            bucket,
            at,
            monthly_quota: TIERS[0].2,
            month,
            used,
        };
        (account, KeyLimiter { bucket: full(OWN, OWN), at })
    }

    fn agrees(account: &AccountLimiter, key: &KeyLimiter, model: &Model) -> Result<(), TestCaseError> {
        #[expect(clippy::cast_precision_loss, reason = "a few thousand calls")]
        let calls = |units: i64| units as f64 / CALL as f64;
        prop_assert!((account.bucket.tokens - calls(model.units)).abs() < 1e-6, "{account:?} {model:?}");
        prop_assert!((key.bucket.tokens - calls(model.own)).abs() < 1e-6, "{key:?} {model:?}");
        prop_assert_eq!((account.at, account.used), (instant(model.at), model.used));
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

        #[test]
        fn calls_are_decided_as_the_rules_say(steps in steps()) {
            let (mut account, mut key) = new_account();
            let presented = PresentedKey::parse(GeneratedKey::generate().text.expose_secret()).expect("a key");
            let (mut model, mut now) = (Model::new(), START);
            for step in steps {
                match step {
                    Step::Clock(milliseconds) => now += milliseconds * 1_000,
                    Step::MonthEnd => {
                        let first = instant(now).date_naive().with_day(1).expect("a day") + Months::new(1);
                        now = first.and_time(NaiveTime::MIN).and_utc().timestamp_micros() - 1_000_000;
                    }
                    Step::Tier(tier) => model.tier = tier,
                    Step::Calls(calls) => {
                        account = read(&account, model.tier);
                        account.advance(instant(now));
                        key.advance(instant(now));
                        model.advance(now);
                        agrees(&account, &key, &model)?;
                        // If all calls fit, one subtraction of all calls has the same result as single decisions in
                        // any order.
                        let of_account = calls.iter().filter(|(.., own)| !own);
                        let call = |(required_rank, counted, _): &(i16, bool, bool)| {
                            AdmissionRequest { key: presented, required_rank: *required_rank, counted: *counted }
                        };
                        let wanted: Vec<AdmissionRequest> = of_account.map(call).collect();
                        let (mut all, many) = (account.clone(), i32::try_from(wanted.len()).expect("few"));
                        let counted = wanted.iter().fold(0, |sum, call| sum + i32::from(all.is_counted(call)));
                        if all.has_capacity(many, counted) {
                            for call in &wanted {
                                let verdict = all.decide(call, None).verdict;
                                prop_assert!(matches!(verdict, AdmissionVerdict::Passed | AdmissionVerdict::Tier));
                            }
                            let left = account.bucket.tokens - f64::from(many);
                            prop_assert!((left - all.bucket.tokens).abs() < 1e-6);
                            prop_assert_eq!(all.used, account.used + i64::from(counted));
                        }
                        for (required_rank, counted, own) in calls {
                            let call = AdmissionRequest { key: presented, required_rank, counted };
                            let before = account.clone();
                            let admitted = account.decide(&call, own.then_some(&mut key));
                            let verdict = model.call((required_rank, counted, own));
                            prop_assert_eq!(admitted.verdict, verdict, "{:?}", before);
                            prop_assert_eq!(admitted.counted, account.used > before.used);
                        }
                        agrees(&account, &key, &model)?;
                    }
                }
            }
        }
    }
}
