//! Accounts and keys, read from the store and charged in memory.

use chrono::{DateTime, Utc};
use tokio_postgres::{Error, Row};

use crate::admission::bucket::Bucket;
use crate::admission::decision::{Admitted, Call};
use crate::admission::limiter::{KeyLimiter, Limiter};
use crate::admission::row_version::RowVersion;

/// An account's limits, and what tells whether they still hold.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) limiter: Limiter,
    /// The version of the row that was read or written; every change of the row gives it another.
    pub(crate) version: RowVersion,
    /// Version of the plan that was read; every change of tier, paid period or keys raises it.
    pub(crate) plan_version: i64,
    /// End of the paid period, when the tier falls to the next one; `None` when it has none or has ended.
    pub(crate) paid_until: Option<DateTime<Utc>>,
    /// True if its row is of this month, of this bucket and of no later time, so that adding is all that a call needs.
    pub(crate) is_settled: bool,
    /// What the calls of this round want.
    pub(crate) wanted: Wanted,
    /// How they get it.
    pub(crate) way: Way,
    /// The version that its row was written as, once it was.
    pub(crate) written: Option<RowVersion>,
}

/// How an account is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// Calls are decided on by what is remembered; what is left is written if the row is unchanged.
    #[default]
    Charged,
    /// Calls that all pass are taken from the row as it is; what it held before them is known afterwards.
    Taken,
}

/// What the calls of one round want of an account.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted {
    pub(crate) calls: i32,
    /// How many of them count against the quota if they pass.
    pub(crate) counted: i32,
    /// True if a key's own bucket is asked, too.
    pub(crate) of_keys: bool,
}

/// A valid key.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) id: i64,
    pub(crate) account: i64,
    /// Version of the account's plan when the key was read; under another version the key is read again.
    pub(crate) plan_version: i64,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    /// Its own bucket, if it has one.
    pub(crate) own: Option<OwnBucket>,
}

/// The bucket of a key with a rate of its own.
#[derive(Debug, Clone)]
pub(crate) struct OwnBucket {
    pub(crate) key: i64,
    pub(crate) limiter: KeyLimiter,
    /// The version of the account's row that it belongs to; every charge of it writes that row, too.
    pub(crate) version: RowVersion,
}

/// Accounts to charge together, and the keys that calls use.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// By id, ascending.
    pub(crate) list: Vec<Account>,
    /// One entry a key, in the order they were asked for: the position of its account in `list`, and the key.
    pub(crate) keys: Vec<Option<(usize, Key)>>,
}

impl Accounts {
    /// Adds a call of the key at this position to what is wanted of its account.
    pub(crate) fn want(&mut self, call: &Call, place: usize) {
        let Some((account, key)) = &self.keys[place] else { return };
        let account = &mut self.list[*account];
        account.wanted.calls += 1;
        account.wanted.counted += i32::from(account.limiter.counts(call));
        account.wanted.of_keys |= key.own.is_some();
    }

    /// Takes from each account what is wanted of it if, by what is remembered, all of it passes. To charge it also brings
    /// another month or another tier's bucket into its row.
    pub(crate) fn plan(&mut self) {
        for account in &mut self.list {
            let Wanted { calls, counted, of_keys } = account.wanted;
            let is_taken = account.is_settled && !of_keys && account.limiter.suffices(calls, counted);
            account.way = if is_taken { Way::Taken } else { Way::Charged };
        }
    }

    /// The accounts that are written so.
    pub(crate) fn of_way(&self, way: Way) -> Vec<&Account> {
        self.list.iter().filter(|account| account.way == way).collect()
    }

    /// Decides on a call of the key at this position if its account is written so; `None` too when that has to be read
    /// first.
    pub(crate) fn decide(&mut self, call: &Call, place: usize, way: Way) -> Option<Admitted> {
        let (account, key) = self.keys[place].as_mut()?;
        let account = Some(&mut self.list[*account]).filter(|account| account.way == way)?;
        let own = key.own.as_mut().map(|own| &mut own.limiter);
        let admitted = account.limiter.decide(call, own);
        Some(Admitted { key: key.id, ..admitted })
    }

    /// Notes that the row of an account was written, as this version.
    pub(crate) fn note(&mut self, account: i64, version: RowVersion) -> Option<&mut Account> {
        let position = self.list.binary_search_by_key(&account, |account| account.limiter.account).ok()?;
        let account = &mut self.list[position];
        account.written = Some(version);
        Some(account)
    }

    /// Notes the rows that calls were taken from.
    pub(crate) fn note_taken(&mut self, row: &Row) -> Result<(), Error> {
        let (accounts, versions): (Vec<i64>, Vec<RowVersion>) =
            (row.try_get("accounts")?, row.try_get("versions")?);
        let (tokens, times): (Vec<f64>, Vec<DateTime<Utc>>) = (row.try_get("tokens")?, row.try_get("times")?);
        let used: Vec<i64> = row.try_get("used")?;
        let left = tokens.into_iter().zip(times).zip(used);
        for ((account, version), ((tokens, at), used)) in accounts.into_iter().zip(versions).zip(left) {
            if let Some(account) = self.note(account, version) {
                // What it held before, from which its calls are decided on one after the other.
                let Wanted { calls, counted, .. } = account.wanted;
                account.limiter.bucket.tokens = tokens + f64::from(calls);
                (account.limiter.at, account.limiter.used) = (at, used - i64::from(counted));
            }
        }
        Ok(())
    }

    /// True if the account of the key at this position was written; `None` when it has to be read first.
    pub(crate) fn is_written(&self, place: usize) -> Option<bool> {
        let (account, _) = self.keys[place].as_ref()?;
        Some(self.list[*account].written.is_some())
    }

    /// The buckets of keys that have a rate of their own.
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
        // A period that has ended changes nothing any more.
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
    /// Reads a key from the row that its account was read from.
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
        // A key never used is full.
        let tokens = row.try_get::<_, Option<f64>>("key_tokens")?.unwrap_or(f64::from(rate));
        let at = row.try_get::<_, Option<DateTime<Utc>>>("key_at")?.unwrap_or(now);
        let limiter = KeyLimiter { bucket: Bucket { rate_per_minute: rate, burst: rate, tokens }, at };
        Ok(Self { key: row.try_get("key_id")?, limiter, version })
    }
}
