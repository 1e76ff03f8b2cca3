//! Accounts and keys as the store holds them, and as a queue's calls leave them.

use chrono::{DateTime, Utc};
use tokio_postgres::{Error, Row};

use super::bucket::Bucket;
use super::decision::{Admitted, Call};
use super::limiter::{KeyLimiter, Limiter};

/// An account's limits, and what tells whether they still are what they were.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) limiter: Limiter,
    /// Of the row that was read or written; another row has another version.
    pub(super) version: i64,
    /// Since when nobody else changed anything: what was read of its keys since then still holds.
    pub(super) epoch: u64,
    /// When its tier ends by itself.
    pub(super) paid_until: Option<DateTime<Utc>>,
    /// Whether it was just read.
    pub(super) fresh: bool,
    /// Looks in a row that found it as it was left here.
    pub(super) looks: u8,
}

/// A valid key.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) account: i64,
    /// The account's, when the key was read.
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
    /// In their order.
    pub(super) list: Vec<Account>,
    /// By the place of a key among those asked for: where its account stands, and the key.
    pub(super) keys: Vec<Option<(usize, Key)>>,
}

impl Accounts {
    /// Decides on one call of the key in this place; `None` where its account is not among these.
    pub(super) fn decide(&mut self, call: &Call, place: usize) -> Option<Admitted> {
        let (account, key) = self.keys.get_mut(place)?.as_mut()?;
        let own = key.own.as_mut().map(|own| &mut own.limiter);
        Some(self.list.get_mut(*account)?.limiter.decide(call, own))
    }

    /// Those of keys that have their own.
    pub(super) fn own_buckets(&self) -> impl Iterator<Item = &OwnBucket> {
        self.keys.iter().flatten().filter_map(|(_, key)| key.own.as_ref())
    }
}

impl Account {
    /// Reads a row; for its caller to place it beside what was known.
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
        Ok(Self { limiter, version: row.try_get("version")?, epoch: 0, paid_until, fresh: true, looks: 0 })
    }
}

impl Key {
    /// Reads the row of an account.
    pub(super) fn read(row: &Row, now: DateTime<Utc>, account: &Account) -> Result<Self, Error> {
        let own = match row.try_get::<_, Option<i32>>("key_rate")? {
            Some(rate) => Some(OwnBucket::read(row, rate, now)?),
            None => None,
        };
        let expires_at = row.try_get("expires_at")?;
        Ok(Self { account: account.limiter.account, epoch: account.epoch, expires_at, own })
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
