//! Where limits stand: Postgres, in one transaction a queue.
//!
//! Invariants: accounts are locked in their order before anything is decided; a key's own bucket is read and written
//! only under its account's lock.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use futures::{FutureExt, future};
use tokio_postgres::{Client, Config, Error, NoTls, Row, Statement};

use super::admission::{Call, Decisions, Undecided};
use super::bucket::Bucket;
use super::limiter::{KeyLimiter, Limiter};

const LOCK: &str = include_str!("../../queries/access/lock.sql");
const KEYS: &str = include_str!("../../queries/access/keys.sql");
const CHARGE: &str = include_str!("../../queries/access/charge.sql");
const CHARGE_KEYS: &str = include_str!("../../queries/access/charge_keys.sql");
const REFUND: &str = include_str!("../../queries/access/refund.sql");

/// An open connection with its statements.
pub(super) struct Store {
    client: Client,
    lock: Statement,
    keys: Statement,
    charge: Statement,
    charge_keys: Statement,
    refund: Statement,
}

impl Store {
    pub(super) async fn open(config: Config) -> Result<Self, Error> {
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(Self {
            lock: client.prepare(LOCK).await?,
            keys: client.prepare(KEYS).await?,
            charge: client.prepare(CHARGE).await?,
            charge_keys: client.prepare(CHARGE_KEYS).await?,
            refund: client.prepare(REFUND).await?,
            client,
        })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Decides on calls in their order and charges what is due. A transaction that fails is to be given up with the
    /// connection.
    pub(super) async fn decide(&self, calls: &[Call]) -> Result<Decisions, Undecided> {
        let (hashes, places) = distinct(calls);
        // Both are on their way before either is answered.
        let begun = self.client.batch_execute("begin");
        let (_, rows) = future::try_join(begun, self.client.query(&self.lock, &[&hashes])).await?;
        let mut locked = Locked::read(hashes.len(), &rows)?;
        if !locked.own_rates.is_empty() {
            let keys: Vec<i64> = locked.own_rates.keys().copied().collect();
            locked.read_keys(&self.client.query(&self.keys, &[&keys]).await?)?;
        }
        let decide = |(call, place): (&Call, usize)| locked.decide(call, place);
        let decisions = calls.iter().zip(places).map(decide).collect();
        self.write(&locked).await?;
        Ok(decisions)
    }

    /// Writes what is left and ends the transaction; of refused calls too, or a clock set back would never be noticed.
    async fn write(&self, locked: &Locked) -> Result<(), Error> {
        let keys_written = match locked.keys.is_empty() {
            true => future::ok(0).left_future(),
            false => self.charge_keys(&locked.keys).right_future(),
        };
        let written = self.charge(&locked.accounts);
        future::try_join3(written, keys_written, self.client.batch_execute("commit")).await?;
        Ok(())
    }

    async fn charge(&self, accounts: &[Limiter]) -> Result<u64, Error> {
        fn column<T>(accounts: &[Limiter], field: impl Fn(&Limiter) -> T) -> Vec<T> {
            accounts.iter().map(field).collect()
        }
        let ids = column(accounts, |account| account.account);
        let tokens = column(accounts, |account| account.bucket.tokens);
        let sizes = column(accounts, |account| account.bucket.burst);
        let times = column(accounts, |account| account.at);
        let months = column(accounts, |account| account.month);
        let used = column(accounts, |account| account.used);
        self.client.execute(&self.charge, &[&ids, &tokens, &sizes, &times, &months, &used]).await
    }

    async fn charge_keys(&self, keys: &HashMap<i64, KeyLimiter>) -> Result<u64, Error> {
        let ids: Vec<i64> = keys.keys().copied().collect();
        let tokens: Vec<f64> = keys.values().map(|key| key.bucket.tokens).collect();
        let times: Vec<DateTime<Utc>> = keys.values().map(|key| key.at).collect();
        self.client.execute(&self.charge_keys, &[&ids, &tokens, &times]).await
    }

    /// Gives a counted call back within the month it was counted in.
    pub(super) async fn refund(&self, account: i64, month: NaiveDate) -> Result<(), Undecided> {
        self.client.execute(&self.refund, &[&account, &month]).await?;
        Ok(())
    }
}

/// The keys of calls, each once, and which of them each call has.
fn distinct(calls: &[Call]) -> (Vec<&[u8]>, Vec<usize>) {
    let (mut hashes, mut known) = (Vec::new(), HashMap::with_capacity(calls.len()));
    let mut place = |call| {
        let Call { hash, .. }: &Call = call;
        *known.entry(hash).or_insert_with(|| {
            hashes.push(hash.as_slice());
            hashes.len() - 1
        })
    };
    let places = calls.iter().map(&mut place).collect();
    (hashes, places)
}

/// The accounts of a queue, locked.
struct Locked {
    accounts: Vec<Limiter>,
    /// By key's place: which account it is of, and the key where it has a rate of its own.
    places: Vec<Option<(usize, Option<i64>)>>,
    /// Rates of keys that have their own, and the present.
    own_rates: HashMap<i64, (i32, DateTime<Utc>)>,
    keys: HashMap<i64, KeyLimiter>,
}

impl Locked {
    /// Reads rows that come in the order of their accounts.
    fn read(places: usize, rows: &[Row]) -> Result<Self, Error> {
        let mut locked = Self {
            accounts: Vec::with_capacity(rows.len()),
            places: vec![None; places],
            own_rates: HashMap::new(),
            keys: HashMap::new(),
        };
        for row in rows {
            locked.add(row)?;
        }
        Ok(locked)
    }

    fn add(&mut self, row: &Row) -> Result<(), Error> {
        let (account, now): (i64, DateTime<Utc>) = (row.try_get("account_id")?, row.try_get("now")?);
        if self.accounts.last().is_none_or(|last| last.account != account) {
            self.accounts.push(limiter(row, now)?);
        }
        let own_rate: Option<i32> = row.try_get("key_rate")?;
        let key = match own_rate {
            Some(rate) => {
                let key: i64 = row.try_get("key_id")?;
                self.own_rates.insert(key, (rate, now));
                Some(key)
            }
            None => None,
        };
        let place = usize::try_from(row.try_get::<_, i64>("place")? - 1).unwrap_or(usize::MAX);
        if let Some(slot) = self.places.get_mut(place) {
            *slot = Some((self.accounts.len() - 1, key));
        }
        Ok(())
    }

    fn read_keys(&mut self, rows: &[Row]) -> Result<(), Error> {
        for row in rows {
            let key: i64 = row.try_get("id")?;
            let Some((rate, now)) = self.own_rates.get(&key).copied() else { continue };
            // A key never used is full.
            let tokens = row.try_get::<_, Option<f64>>("tokens")?.unwrap_or(f64::from(rate));
            let at = row.try_get::<_, Option<DateTime<Utc>>>("at")?.unwrap_or(now);
            let bucket = Bucket { rate_per_minute: rate, burst: rate, tokens };
            let mut limiter = KeyLimiter { bucket, at };
            limiter.advance(now);
            self.keys.insert(key, limiter);
        }
        Ok(())
    }

    fn decide(&mut self, call: &Call, place: usize) -> Option<super::Admitted> {
        let (account, key) = self.places.get(place).copied().flatten()?;
        // A key whose own bucket is not there any more is no key.
        let key = match key {
            Some(key) => Some(self.keys.get_mut(&key)?),
            None => None,
        };
        Some(self.accounts.get_mut(account)?.decide(call, key))
    }
}

/// An account's limits, brought to the present.
fn limiter(row: &Row, now: DateTime<Utc>) -> Result<Limiter, Error> {
    let bucket = Bucket {
        rate_per_minute: row.try_get("rate_per_minute")?,
        burst: row.try_get("burst")?,
        tokens: row.try_get("tokens")?,
    };
    let mut limiter = Limiter {
        account: row.try_get("account_id")?,
        tier: row.try_get("tier")?,
        bucket: bucket.in_place_of(row.try_get("cap")?),
        at: row.try_get("at")?,
        monthly_quota: row.try_get("monthly_quota")?,
        month: row.try_get("month")?,
        used: row.try_get("used")?,
    };
    limiter.advance(now);
    Ok(limiter)
}
