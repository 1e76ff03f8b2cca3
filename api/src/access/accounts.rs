//! Accounts and keys, read from the store and charged in memory.

use chrono::{DateTime, Utc};
use tokio_postgres::{Error, Row};

use super::bucket::Bucket;
use super::decision::{Admitted, Call};
use super::limiter::{KeyLimiter, Limiter};
use super::row_version::RowVersion;

/// An account's limits, and what tells whether they still hold.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) limiter: Limiter,
    /// The version of the row that was read or written; every change of the row gives it another.
    pub(super) version: RowVersion,
    /// Begins anew with every change by others, and ends what was read of its keys before.
    pub(super) epoch: u64,
    /// End of the paid period, when the tier falls to the next one; `None` when it has none or has ended.
    pub(super) paid_until: Option<DateTime<Utc>>,
    /// Whether it was read and not charged since.
    pub(super) fresh: bool,
    /// Reads in a row that found it unchanged by others.
    pub(super) quiet_reads: u8,
}

/// A valid key.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) id: i64,
    pub(super) account: i64,
    /// The account's epoch when the key was read; in another one it has to be read again.
    pub(super) epoch: u64,
    pub(super) expires_at: Option<DateTime<Utc>>,
    /// Its own bucket, if it has one.
    pub(super) own: Option<OwnBucket>,
}

/// The bucket of a key with a rate of its own.
#[derive(Debug, Clone)]
pub(super) struct OwnBucket {
    pub(super) key: i64,
    pub(super) limiter: KeyLimiter,
}

/// Accounts to charge together, and the keys that calls use.
#[derive(Debug)]
pub(super) struct Accounts {
    /// By id, ascending.
    pub(super) list: Vec<Account>,
    /// One entry a key, in the order they were asked for: the position of its account in `list`, and the key.
    pub(super) keys: Vec<Option<(usize, Key)>>,
}

impl Accounts {
    /// Decides on a call of the key at this position; `None` when its account has to be read first.
    pub(super) fn decide(&mut self, call: &Call, place: usize) -> Option<Admitted> {
        let (account, key) = self.keys.get_mut(place)?.as_mut()?;
        let own = key.own.as_mut().map(|own| &mut own.limiter);
        let admitted = self.list.get_mut(*account)?.limiter.decide(call, own);
        Some(Admitted { key: key.id, ..admitted })
    }

    /// The buckets of keys that have a rate of their own.
    pub(super) fn own_buckets(&self) -> impl Iterator<Item = &OwnBucket> {
        self.keys.iter().flatten().filter_map(|(_, key)| key.own.as_ref())
    }
}

impl Account {
    /// Reads an account from a row; its epoch is for the caller to set.
    pub(super) fn read(row: &Row, now: DateTime<Utc>) -> Result<Self, Error> {
        let bucket = Bucket {
            rate_per_minute: row.try_get("rate_per_minute")?,
            burst: row.try_get("burst")?,
            tokens: row.try_get("tokens")?,
        };
        let limiter = Limiter {
            account: row.try_get("account_id")?,
            tier: row.try_get("tier")?,
            bucket: bucket.in_place_of(row.try_get("cap")?),
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
            epoch: 0,
            paid_until,
            fresh: true,
            quiet_reads: 0,
        })
    }
}

impl Key {
    /// Reads a key from the row that its account was read from.
    pub(super) fn read(row: &Row, now: DateTime<Utc>, account: &Account) -> Result<Self, Error> {
        let own = match row.try_get::<_, Option<i32>>("key_rate")? {
            Some(rate) => Some(OwnBucket::read(row, rate, now)?),
            None => None,
        };
        let expires_at = row.try_get("expires_at")?;
        let id = row.try_get("key_id")?;
        Ok(Self { id, account: account.limiter.account, epoch: account.epoch, expires_at, own })
    }
}

impl OwnBucket {
    fn read(row: &Row, rate: i32, now: DateTime<Utc>) -> Result<Self, Error> {
        // A key never used is full.
        let tokens = row.try_get::<_, Option<f64>>("key_tokens")?.unwrap_or(f64::from(rate));
        let at = row.try_get::<_, Option<DateTime<Utc>>>("key_at")?.unwrap_or(now);
        let limiter = KeyLimiter { bucket: Bucket { rate_per_minute: rate, burst: rate, tokens }, at };
        Ok(Self { key: row.try_get("key_id")?, limiter })
    }
}
