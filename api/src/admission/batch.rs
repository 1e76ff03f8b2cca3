//! Accounts and keys, read from the store and charged in memory.

use chrono::{DateTime, Utc};
use tokio_postgres::{Error, Row};

use crate::admission::bucket::Bucket;
use crate::admission::decision::{Admitted, Call};
use crate::admission::limiter::{KeyLimiter, Limiter};
use crate::admission::row_version::RowVersion;

/// Limits of an account, with the versions that detect a change.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) limiter: Limiter,
    /// Version of the row at the last read or write. Every change of the row replaces it.
    pub(crate) version: RowVersion,
    /// Version of the plan at the last read. Every change of tier, paid period or keys raises it.
    pub(crate) plan_version: i64,
    /// End of the paid period, after which the account falls to the next tier. `None` without a paid period.
    pub(crate) paid_until: Option<DateTime<Utc>>,
    /// True if the row has the current month, the current bucket size and no later time. Calls then need only a
    /// subtraction.
    pub(crate) is_settled: bool,
    /// Calls of this round.
    pub(crate) wanted: Wanted,
    /// Write method of this round.
    pub(crate) way: Way,
    /// Version after the write of this round; `None` before it.
    pub(crate) written: Option<RowVersion>,
}

/// Write method of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// Calls are decided on the cached values. The result is written only if the row is unchanged.
    #[default]
    Charged,
    /// All calls pass and are subtracted in the database. The previous values are computed from the result.
    Taken,
}

/// Calls of one round that concern one account.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted {
    pub(crate) calls: i32,
    /// Calls that count against the quota if they pass.
    pub(crate) counted: i32,
    /// True if a call uses a key with a separate bucket.
    pub(crate) of_keys: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) id: i64,
    pub(crate) account: i64,
    /// Version of the account's plan when the key was read. A key with an outdated version is read again.
    pub(crate) plan_version: i64,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    /// Bucket of a key with a separate rate.
    pub(crate) own: Option<OwnBucket>,
}

/// Bucket of a key with a separate rate.
#[derive(Debug, Clone)]
pub(crate) struct OwnBucket {
    pub(crate) key: i64,
    pub(crate) limiter: KeyLimiter,
    /// Version of the account's row. Every charge of this bucket also writes that row.
    pub(crate) version: RowVersion,
}

/// Accounts of one batch, with the keys of its calls.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// Sorted by id, ascending.
    pub(crate) list: Vec<Account>,
    /// One entry per requested key, in request order: position of the account in `list`, and the key.
    pub(crate) keys: Vec<Option<(usize, Key)>>,
}

impl Accounts {
    /// Adds a call of the key at this position to the demand on its account.
    pub(crate) fn want(&mut self, call: &Call, place: usize) {
        let Some((account, key)) = &self.keys[place] else { return };
        let account = &mut self.list[*account];
        account.wanted.calls += 1;
        account.wanted.counted += i32::from(account.limiter.counts(call));
        account.wanted.of_keys |= key.own.is_some();
    }

    /// Chooses the write method of each account: `Taken` if all calls pass by the cached values, else `Charged`. A
    /// charge also writes a new month or another bucket size to the row.
    pub(crate) fn plan(&mut self) {
        for account in &mut self.list {
            let Wanted { calls, counted, of_keys } = account.wanted;
            let is_taken = account.is_settled && !of_keys && account.limiter.suffices(calls, counted);
            account.way = if is_taken { Way::Taken } else { Way::Charged };
        }
    }

    /// Accounts with this write method.
    pub(crate) fn of_way(&self, way: Way) -> Vec<&Account> {
        self.list.iter().filter(|account| account.way == way).collect()
    }

    /// Decides a call of the key at this position. `None` if the account has another write method or must be read
    /// first.
    pub(crate) fn decide(&mut self, call: &Call, place: usize, way: Way) -> Option<Admitted> {
        let (account, key) = self.keys[place].as_mut()?;
        let account = Some(&mut self.list[*account]).filter(|account| account.way == way)?;
        let own = key.own.as_mut().map(|own| &mut own.limiter);
        let admitted = account.limiter.decide(call, own);
        Some(Admitted { key: key.id, ..admitted })
    }

    /// Records a write of an account's row, with its new version.
    pub(crate) fn note(&mut self, account: i64, version: RowVersion) -> Option<&mut Account> {
        let position = self.list.binary_search_by_key(&account, |account| account.limiter.account).ok()?;
        let account = &mut self.list[position];
        account.written = Some(version);
        Some(account)
    }

    /// Records the rows updated by the take statement.
    pub(crate) fn note_taken(&mut self, row: &Row) -> Result<(), Error> {
        let (accounts, versions): (Vec<i64>, Vec<RowVersion>) =
            (row.try_get("accounts")?, row.try_get("versions")?);
        let (tokens, times): (Vec<f64>, Vec<DateTime<Utc>>) = (row.try_get("tokens")?, row.try_get("times")?);
        let used: Vec<i64> = row.try_get("used")?;
        let left = tokens.into_iter().zip(times).zip(used);
        for ((account, version), ((tokens, at), used)) in accounts.into_iter().zip(versions).zip(left) {
            if let Some(account) = self.note(account, version) {
                // Balance before the statement. The calls are decided on it one by one.
                let Wanted { calls, counted, .. } = account.wanted;
                account.limiter.bucket.tokens = tokens + f64::from(calls);
                (account.limiter.at, account.limiter.used) = (at, used - i64::from(counted));
            }
        }
        Ok(())
    }

    /// True if the account of this key was written; `None` if it must be read first.
    pub(crate) fn is_written(&self, place: usize) -> Option<bool> {
        let (account, _) = self.keys[place].as_ref()?;
        Some(self.list[*account].written.is_some())
    }

    /// Buckets of the keys with a separate rate.
    pub(crate) fn own_buckets(&self) -> impl Iterator<Item = &OwnBucket> {
        self.keys.iter().flatten().filter_map(|(_, key)| key.own.as_ref())
    }
}

impl Account {
    /// Reads an account from a row.
    pub(crate) fn read(row: &Row, now: DateTime<Utc>) -> Result<Self, Error> {
        let bucket = Bucket {
            rate_per_minute: row.try_get("rate_per_minute")?,
            burst: row.try_get("burst")?,
            tokens: row.try_get("tokens")?,
        };
        let cap: i32 = row.try_get("cap")?;
        let limiter = Limiter {
            account: row.try_get("account_id")?,
            tier: row.try_get("tier")?,
            bucket: bucket.in_place_of(cap),
            at: row.try_get("at")?,
            monthly_quota: row.try_get("monthly_quota")?,
            month: row.try_get("month")?,
            used: row.try_get("used")?,
        };
        // An expired paid period has no further effect.
        let paid_until = row.try_get::<_, Option<DateTime<Utc>>>("paid_until")?.filter(|end| *end > now);
        Ok(Self {
            limiter,
            version: row.try_get("version")?,
            plan_version: row.try_get("plan_version")?,
            paid_until,
            is_settled: cap == bucket.burst,
            wanted: Wanted::default(),
            way: Way::default(),
            written: None,
        })
    }
}

impl Key {
    /// Reads a key from its account's row.
    pub(crate) fn read(row: &Row, now: DateTime<Utc>, account: &Account) -> Result<Self, Error> {
        let own = match row.try_get::<_, Option<i32>>("key_rate")? {
            Some(rate) => Some(OwnBucket::read(row, rate, now, account.version)?),
            None => None,
        };
        let expires_at = row.try_get("expires_at")?;
        let id = row.try_get("key_id")?;
        Ok(Self { id, account: account.limiter.account, plan_version: account.plan_version, expires_at, own })
    }
}

impl OwnBucket {
    fn read(row: &Row, rate: i32, now: DateTime<Utc>, version: RowVersion) -> Result<Self, Error> {
        // An unused key has a full bucket.
        let tokens = row.try_get::<_, Option<f64>>("key_tokens")?.unwrap_or(f64::from(rate));
        let at = row.try_get::<_, Option<DateTime<Utc>>>("key_at")?.unwrap_or(now);
        let limiter = KeyLimiter { bucket: Bucket { rate_per_minute: rate, burst: rate, tokens }, at };
        Ok(Self { key: row.try_get("key_id")?, limiter, version })
    }
}
