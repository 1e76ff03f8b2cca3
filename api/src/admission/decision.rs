//! Decisions on calls. Postgres grants a number of calls to each group of equal calls, and the calls take their shares in
//! order of arrival.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Months, NaiveDate, NaiveTime, Utc};
use foldhash::fast::RandomState;
use store::db::DbError;
use tokio_postgres::{Error, Row};

use super::token_bucket::{Bucket, CALL, RemainingLimits};
use crate::auth::credential::PresentedKey;
use crate::auth::{AccountId, KeyId, Tier};

/// Request to admit one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmissionRequest {
    pub(crate) key: PresentedKey,
    /// Minimum tier that the call needs, as a rank.
    pub(crate) required_rank: i16,
    /// True if the call counts against the quota.
    pub(crate) counted: bool,
}

/// Verdict on a call with a known key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmissionVerdict {
    Passed,
    Tier,
    Rate,
    Quota,
}

/// Decision on a call with a known key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AdmissionDecision {
    pub(crate) account: AccountId,
    pub(crate) key: KeyId,
    pub(crate) tier: Tier,
    pub(crate) verdict: AdmissionVerdict,
    /// True if the call was charged to the quota.
    pub(crate) counted: bool,
    pub(crate) usage: RemainingLimits,
}

impl AdmissionDecision {
    /// Decision for a call of the service itself, which is not charged.
    pub(crate) fn uncharged(tier: Tier) -> Self {
        let bucket = Bucket { rate_per_minute: 1, capacity: 1, tokens: CALL };
        let usage = RemainingLimits { bucket, now: Utc::now(), quota: 0, used: 0, month: 0..1 };
        Self {
            account: AccountId(0),
            key: KeyId(0),
            tier,
            verdict: AdmissionVerdict::Passed,
            counted: false,
            usage,
        }
    }
}

/// Calls of a batch, grouped by key and by the rank from which on they count against the quota.
#[derive(Debug, Default)]
pub(crate) struct CallGroups {
    pub(crate) keys: Vec<PresentedKey>,
    pub(crate) calls: Vec<i32>,
    /// Minimum rank of the tiers at which the calls count against the quota; `None` if they do not count.
    pub(crate) counted_ranks: Vec<Option<i16>>,
    /// For each call of the batch, the index of its group.
    pub(crate) indexes: Vec<usize>,
}

impl CallGroups {
    pub(crate) fn new(calls: &[AdmissionRequest]) -> Self {
        let mut groups = Self::default();
        let mut known = HashMap::with_capacity_and_hasher(calls.len(), RandomState::default());
        for call in calls {
            let counted_rank = call.counted.then_some(call.required_rank);
            let index = *known.entry((call.key, counted_rank)).or_insert(groups.keys.len());
            if index == groups.keys.len() {
                groups.keys.push(call.key);
                groups.calls.push(0);
                groups.counted_ranks.push(counted_rank);
            }
            groups.calls[index] += 1;
            groups.indexes.push(index);
        }
        groups
    }
}

/// Calls that the database granted to one group, with the balances of its account and key.
#[derive(Debug)]
pub(crate) struct Grant {
    account: AccountId,
    key: KeyId,
    tier: Tier,
    /// Bucket of the account before the calls that are still to be taken.
    bucket: Bucket,
    /// Bucket of the key, likewise; `None` if the key has no rate limit of its own.
    key_bucket: Option<Bucket>,
    quota: i64,
    used: i64,
    month: NaiveDate,
    decided_at: DateTime<Utc>,
    granted: i64,
    counted: i64,
}

impl Grant {
    pub(crate) fn from_row(row: &Row) -> Result<Self, Error> {
        let (granted, counted): (i64, i64) = (row.try_get("granted")?, row.try_get("counted")?);
        let before = |tokens: i64| tokens + granted * CALL;
        let key_rate: Option<i32> = row.try_get("key_rate")?;
        let key_tokens: Option<i64> = row.try_get("key_tokens")?;
        let key_bucket = key_rate.zip(key_tokens).map(|(rate, tokens)| Bucket {
            rate_per_minute: rate,
            capacity: rate,
            tokens: before(tokens),
        });
        Ok(Self {
            account: row.try_get("account_id")?,
            key: row.try_get("key_id")?,
            tier: row.try_get("tier")?,
            bucket: Bucket {
                rate_per_minute: row.try_get("rate_per_minute")?,
                capacity: row.try_get("burst")?,
                tokens: before(row.try_get("tokens")?),
            },
            key_bucket,
            quota: row.try_get("monthly_quota")?,
            used: row.try_get::<_, i64>("used")? - counted,
            month: row.try_get("month")?,
            decided_at: row.try_get("decided_at")?,
            granted,
            counted,
        })
    }

    /// Decides the next call of the group. A call that is refused because of tier or quota also takes tokens.
    pub(crate) fn decide_next(&mut self, call: &AdmissionRequest) -> AdmissionDecision {
        let (granted, counted) = (self.granted > 0, self.counted > 0);
        if granted {
            self.granted -= 1;
            self.bucket.tokens -= CALL;
            self.key_bucket.iter_mut().for_each(|bucket| bucket.tokens -= CALL);
        }
        if counted {
            self.counted -= 1;
            self.used += 1;
        }
        let verdict = match () {
            () if self.tier.rank() < call.required_rank => AdmissionVerdict::Tier,
            () if !granted => AdmissionVerdict::Rate,
            () if call.counted && !counted => AdmissionVerdict::Quota,
            () => AdmissionVerdict::Passed,
        };
        let (account, key, tier, usage) = (self.account, self.key, self.tier, self.usage());
        AdmissionDecision { account, key, tier, verdict, counted, usage }
    }

    /// Remaining limits, with the bucket that refuses calls first: the account's or the key's.
    fn usage(&self) -> RemainingLimits {
        let seconds = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc().timestamp();
        RemainingLimits {
            bucket: self.key_bucket.map_or(self.bucket, |key| key.tighter_of(self.bucket)),
            now: self.decided_at,
            quota: self.quota,
            used: self.used,
            month: seconds(self.month)..seconds(self.month + Months::new(1)),
        }
    }
}

/// Reason for a missing decision. One failure may concern all waiting calls, so the type is `Clone`.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum AdmissionError {
    #[error("the admission worker has stopped")]
    Ended,
    #[error("the database did not respond in time")]
    Timeout,
    #[error("{0}")]
    Undecided(&'static str),
    #[error("the connection to the database was lost")]
    ConnectionLost(#[source] Arc<tokio_postgres::Error>),
    #[error("the database refused a statement")]
    Statement(#[source] Arc<tokio_postgres::Error>),
    #[error("cannot connect to the database")]
    NoConnection(#[source] Arc<DbError>),
}

impl From<DbError> for AdmissionError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Unanswered { .. } => Self::Timeout,
            error => Self::NoConnection(error.into()),
        }
    }
}

impl From<tokio_postgres::Error> for AdmissionError {
    fn from(error: tokio_postgres::Error) -> Self {
        if error.is_closed() { Self::ConnectionLost(error.into()) } else { Self::Statement(error.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(key: u8, required_rank: i16, counted: bool) -> AdmissionRequest {
        AdmissionRequest { key: PresentedKey([key; 32]), required_rank, counted }
    }

    fn grant(granted: i64, counted: i64) -> Grant {
        let bucket = Bucket { rate_per_minute: 10, capacity: 20, tokens: granted * CALL };
        Grant {
            account: AccountId(1),
            key: KeyId(2),
            tier: Tier::Starter,
            bucket,
            key_bucket: Some(Bucket { rate_per_minute: 5, capacity: 5, tokens: 5 * CALL }),
            quota: 100,
            used: 100 - counted,
            month: NaiveDate::from_ymd_opt(2026, 2, 1).expect("a day"),
            decided_at: Utc::now(),
            granted,
            counted,
        }
    }

    #[test]
    fn calls_are_grouped_by_key_and_by_what_counts() {
        let calls =
            [call(1, 0, true), call(2, 0, true), call(1, 0, true), call(1, 3, false), call(1, 2, false)];
        let groups = CallGroups::new(&calls);
        assert_eq!(groups.keys, [1, 2, 1].map(|key| PresentedKey([key; 32])));
        assert_eq!(groups.calls, [2, 1, 2]);
        assert_eq!(groups.counted_ranks, [Some(0), Some(0), None]);
        assert_eq!(groups.indexes, [0, 1, 0, 2, 2]);
    }

    #[test]
    fn calls_take_what_was_granted_in_order() {
        let mut granted = grant(3, 2);
        let decisions: Vec<_> = (0..4).map(|_| granted.decide_next(&call(1, 0, true))).collect();
        let verdicts = decisions.iter().map(|decision| decision.verdict);
        use AdmissionVerdict::{Passed, Quota, Rate};
        assert_eq!(verdicts.collect::<Vec<_>>(), [Passed, Passed, Quota, Rate]);
        let used = decisions.iter().map(|decision| (decision.counted, decision.usage.used));
        assert_eq!(used.collect::<Vec<_>>(), [(true, 99), (true, 100), (false, 100), (false, 100)]);
        let left = decisions.iter().map(|decision| decision.usage.bucket.tokens / CALL);
        assert_eq!(left.collect::<Vec<_>>(), [2, 1, 0, 0]);
        let month = &decisions[0].usage.month;
        assert_eq!((month.end - month.start) / 86_400, 28);
    }

    #[test]
    fn a_call_beyond_the_tier_takes_tokens_and_no_quota() {
        let mut granted = grant(1, 0);
        let decision = granted.decide_next(&call(1, 2, true));
        assert_eq!((decision.verdict, decision.counted), (AdmissionVerdict::Tier, false));
        assert_eq!(decision.usage.bucket.tokens, 0);
        assert_eq!(granted.decide_next(&call(1, 2, false)).verdict, AdmissionVerdict::Tier);
        assert_eq!(granted.decide_next(&call(1, 0, false)).verdict, AdmissionVerdict::Rate);
    }
}
