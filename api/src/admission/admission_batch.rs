//! Admission batch: calls that are decided together, with their accounts from the cache. `admission_store` sends the
//! result to Postgres in one round trip.

use chrono::{DateTime, Utc};
use tokio_postgres::{Error, Row};

use crate::admission::account_limiter::{AccountLimiter, KeyLimiter};
use crate::admission::decision::{AdmissionDecision, AdmissionRequest};
use crate::admission::row_version::RowVersion;
use crate::admission::token_bucket::Bucket;
use crate::auth::ids::{AccountId, KeyId};

/// Limits of an account, as of the last read or write of the account's row. The versions show if the row has changed
/// since then.
#[derive(Debug)]
pub(crate) struct CachedAccount {
    pub(crate) limiter: AccountLimiter,
    /// Version of the account's row at the last read or write. Every change of the row gives it a new version.
    pub(crate) version: RowVersion,
    /// Version of the plan at the last read. Every change of the tier, the paid period or an existing key increases it.
    pub(crate) plan_version: i64,
    /// End of the paid period. After it, the next tier applies. `None` without a paid period.
    pub(crate) paid_until: Option<DateTime<Utc>>,
    /// True if the row's month and bucket size are current, and the clock was not set back.
    pub(crate) is_settled: bool,
    /// Calls in this batch that belong to the account.
    pub(crate) demand: BatchDemand,
    /// Method by which this batch writes the account's row.
    pub(crate) write_mode: WriteMode,
    /// Version of the row after this batch has written it; `None` if the batch has not written it.
    pub(crate) written: Option<RowVersion>,
}

/// Method by which a batch writes the row of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// The calls are decided in memory from the cached values, before the row is written. The result is written only if
    /// the row is unchanged since it was cached.
    #[default]
    CompareAndSet,
    /// One statement subtracts all calls of the account. The batch then decides each call from the returned balance.
    Decrement,
}

/// Calls of one account in one batch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchDemand {
    pub(crate) calls: i32,
    /// Number of calls that count against the quota if they are admitted.
    pub(crate) counted: i32,
    /// True if a call uses a key that has its own bucket.
    pub(crate) uses_key_bucket: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct CachedKey {
    pub(crate) id: KeyId,
    pub(crate) account: AccountId,
    /// Version of the account's plan when the key was read. A key with an outdated version is read again.
    pub(crate) plan_version: i64,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    /// Bucket of the key; `None` if the key has no rate limit of its own.
    pub(crate) key_bucket: Option<KeyBucket>,
}

/// Bucket of a key that has its own rate.
#[derive(Debug, Clone)]
pub(crate) struct KeyBucket {
    pub(crate) key: KeyId,
    pub(crate) limiter: KeyLimiter,
    /// Version of the account's row when the bucket was last read or written. Every charge of the bucket also changes
    /// that row.
    pub(crate) version: RowVersion,
}

/// Accounts of one batch, with the keys of its calls.
#[derive(Debug)]
pub(crate) struct AdmissionBatch {
    /// Accounts, sorted by id.
    pub(crate) list: Vec<CachedAccount>,
    /// One entry per distinct key of the batch: the index of its account in `list`, and the key. `None` if the key is
    /// not cached.
    pub(crate) keys: Vec<Option<(usize, CachedKey)>>,
}

impl AdmissionBatch {
    /// Adds a call to the demand of its account. `key_index` is the index of the call's key in `keys`.
    pub(crate) fn add_demand(&mut self, call: &AdmissionRequest, key_index: usize) {
        let Some((account, key)) = &self.keys[key_index] else { return };
        let account = &mut self.list[*account];
        account.demand.calls += 1;
        account.demand.counted += i32::from(account.limiter.is_counted(call));
        account.demand.uses_key_bucket |= key.key_bucket.is_some();
    }

    /// Chooses the write mode of each account: `Decrement` if a plain subtraction of calls is enough.
    pub(crate) fn choose_write_modes(&mut self) {
        for account in &mut self.list {
            let BatchDemand { calls, counted, uses_key_bucket } = account.demand;
            let is_decrement =
                account.is_settled && !uses_key_bucket && account.limiter.has_capacity(calls, counted);
            account.write_mode = if is_decrement { WriteMode::Decrement } else { WriteMode::CompareAndSet };
        }
    }

    /// Accounts whose rows are written by the method `write_mode`.
    pub(crate) fn accounts_by_write_mode(&self, write_mode: WriteMode) -> Vec<&CachedAccount> {
        self.list.iter().filter(|account| account.write_mode == write_mode).collect()
    }

    /// Decides a call. Returns `None` if the account has another write mode, or the key is not cached.
    pub(crate) fn decide_in_mode(
        &mut self,
        call: &AdmissionRequest,
        key_index: usize,
        write_mode: WriteMode,
    ) -> Option<AdmissionDecision> {
        let (account, key) = self.keys[key_index].as_mut()?;
        let account = Some(&mut self.list[*account]).filter(|account| account.write_mode == write_mode)?;
        let key_bucket = key.key_bucket.as_mut().map(|key_bucket| &mut key_bucket.limiter);
        let admitted = account.limiter.decide(call, key_bucket);
        Some(AdmissionDecision { key: key.id, ..admitted })
    }

    /// Records the new version of an account's row after a write. Returns the account.
    pub(crate) fn record_write(
        &mut self,
        account: AccountId,
        version: RowVersion,
    ) -> Option<&mut CachedAccount> {
        let position = self.list.binary_search_by_key(&account, |account| account.limiter.account).ok()?;
        let account = &mut self.list[position];
        account.written = Some(version);
        Some(account)
    }

    /// Records the new versions and balances of the account rows that `decrement.sql` changed.
    pub(crate) fn record_decrements(&mut self, row: &Row) -> Result<(), Error> {
        let (accounts, versions): (Vec<AccountId>, Vec<RowVersion>) =
            (row.try_get("accounts")?, row.try_get("versions")?);
        let (tokens, times): (Vec<f64>, Vec<DateTime<Utc>>) = (row.try_get("tokens")?, row.try_get("times")?);
        let used: Vec<i64> = row.try_get("used")?;
        let left = tokens.into_iter().zip(times).zip(used);
        for ((account, version), ((tokens, at), used)) in accounts.into_iter().zip(versions).zip(left) {
            if let Some(account) = self.record_write(account, version) {
                // The statement returns the balance after all calls. The balance before them is stored, because
                // `decide_in_mode` subtracts the calls one by one.
                let BatchDemand { calls, counted, .. } = account.demand;
                account.limiter.bucket.tokens = tokens + f64::from(calls);
                (account.limiter.at, account.limiter.used) = (at, used - i64::from(counted));
            }
        }
        Ok(())
    }

    /// True if this batch wrote the row of the key's account; `None` if the key is not cached.
    pub(crate) fn is_written(&self, key_index: usize) -> Option<bool> {
        let (account, _) = self.keys[key_index].as_ref()?;
        Some(self.list[*account].written.is_some())
    }
}

impl CachedAccount {
    /// Reads an account from a row.
    pub(crate) fn from_row(row: &Row, now: DateTime<Utc>) -> Result<Self, Error> {
        let bucket = Bucket {
            rate_per_minute: row.try_get("rate_per_minute")?,
            capacity: row.try_get("burst")?,
            tokens: row.try_get("tokens")?,
        };
        let stored_capacity: i32 = row.try_get("cap")?;
        let limiter = AccountLimiter {
            account: row.try_get("account_id")?,
            tier: row.try_get("tier")?,
            bucket: bucket.with_capacity_changed_from(stored_capacity),
            at: row.try_get("at")?,
            monthly_quota: row.try_get("monthly_quota")?,
            month: row.try_get("month")?,
            used: row.try_get("used")?,
        };
        // A paid period that has ended is left out: the row already has the limits of the next tier, and the next tier
        // has no last day.
        let paid_until = row.try_get::<_, Option<DateTime<Utc>>>("paid_until")?.filter(|end| *end > now);
        Ok(Self {
            limiter,
            version: row.try_get("version")?,
            plan_version: row.try_get("plan_version")?,
            paid_until,
            is_settled: stored_capacity == bucket.capacity,
            demand: BatchDemand::default(),
            write_mode: WriteMode::default(),
            written: None,
        })
    }
}

impl CachedKey {
    /// Reads the API key from a row that joins a key with its account.
    pub(crate) fn from_row(row: &Row, now: DateTime<Utc>, account: &CachedAccount) -> Result<Self, Error> {
        let rate: Option<i32> = row.try_get("key_rate")?;
        Ok(Self {
            id: row.try_get("key_id")?,
            account: account.limiter.account,
            plan_version: account.plan_version,
            expires_at: row.try_get("expires_at")?,
            key_bucket: rate.map(|rate| KeyBucket::from_row(row, rate, now, account.version)).transpose()?,
        })
    }
}

impl KeyBucket {
    fn from_row(row: &Row, rate: i32, now: DateTime<Utc>, version: RowVersion) -> Result<Self, Error> {
        // An unused key has a full bucket.
        let tokens = row.try_get::<_, Option<f64>>("key_tokens")?.unwrap_or(f64::from(rate));
        let at = row.try_get::<_, Option<DateTime<Utc>>>("key_at")?.unwrap_or(now);
        let limiter = KeyLimiter { bucket: Bucket { rate_per_minute: rate, capacity: rate, tokens }, at };
        Ok(Self { key: row.try_get("key_id")?, limiter, version })
    }
}
