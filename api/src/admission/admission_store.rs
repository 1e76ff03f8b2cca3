//! SQL statements of admission and of the usage statistics.
//!
//! Invariant: rows are locked in the order of the account ids, so instances cannot deadlock.

use std::collections::{BTreeMap, HashMap};
use std::iter::repeat_with;
use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveDate, Utc};
use foldhash::fast::RandomState;
use futures::future;
use store::connect;
use store::tls::MakeRustlsConnect;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, Error, Row, Statement};

use crate::account::statistics::CallOutcome;
use crate::admission::account_cache::AccountCache;
use crate::admission::admission_batch::{AdmissionBatch, CachedAccount, CachedKey, KeyBucket, WriteMode};
use crate::admission::decision::{AdmissionDecision, AdmissionError, AdmissionRequest, BatchOutcome};
use crate::auth::credential::PresentedKey;
use crate::auth::ids::{AccountId, KeyId};
use crate::auth::tier::Tier;
use crate::concurrency::background_tasks::BackgroundTasks;

const READ: &str = include_str!("../../queries/access/read.sql");
const DECREMENT: &str = include_str!("../../queries/access/decrement.sql");
const COMPARE_AND_SET: &str = include_str!("../../queries/access/compare_and_set.sql");
const REFUND: &str = include_str!("../../queries/access/refund.sql");
const COUNT: &str = include_str!("../../queries/access/count.sql");
const FORGET: &str = include_str!("../../queries/access/forget_counts.sql");

/// Cheap statement that checks the connection. It succeeds only on a server that can write the limits of accounts. A
/// read-only server, such as a demoted primary, refuses it.
const CHECK: &str = "select from accounts.limiter limit 0 for update";
/// Timeout for preparing the statements of a new connection.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(5);

/// Primary key of one row of the usage statistics.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UsageKey {
    pub(crate) account: AccountId,
    /// Day, in UTC.
    pub(crate) day: NaiveDate,
    /// Path template of the endpoint.
    pub(crate) endpoint: String,
    pub(crate) key: KeyId,
    pub(crate) outcome: CallOutcome,
}

/// Number of calls to add to a row of the usage statistics, and the time of the last call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsageIncrement {
    pub(crate) calls: i64,
    pub(crate) last_at: DateTime<Utc>,
}

/// Open connection with prepared statements.
pub(crate) struct AdmissionStore {
    pub(super) client: Client,
    read: Statement,
    decrement: Statement,
    compare_and_set: Statement,
    refund: Statement,
    /// Duration of one round trip, measured when the connection was opened.
    pub(crate) round_trip: Duration,
}

impl AdmissionStore {
    pub(crate) async fn open(
        config: Config,
        tls: MakeRustlsConnect,
        tasks: BackgroundTasks,
    ) -> Result<Self, AdmissionError> {
        let (client, driver) = connect::open(&config, &tls).await?;
        tasks.spawn(driver);
        timeout(PREPARE_TIMEOUT, Self::prepare(client)).await.map_err(|_| AdmissionError::Timeout)?
    }

    async fn prepare(client: Client) -> Result<Self, AdmissionError> {
        let (read, decrement) = (client.prepare(READ).await?, client.prepare(DECREMENT).await?);
        let (compare_and_set, refund) =
            (client.prepare(COMPARE_AND_SET).await?, client.prepare(REFUND).await?);
        let sent = Instant::now();
        client.simple_query(CHECK).await?;
        Ok(Self { client, read, decrement, compare_and_set, refund, round_trip: sent.elapsed() })
    }

    /// Succeeds if the server replies and accepts writes.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        self.client.simple_query(CHECK).await.map(drop)
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Decides calls in order of arrival. Uncached accounts are only read, and their calls stay undecided. After an
    /// error, the caller must drop the connection.
    pub(crate) async fn decide(
        &self,
        cache: &mut AccountCache,
        calls: &[AdmissionRequest],
    ) -> Result<Vec<BatchOutcome>, AdmissionError> {
        let (keys, key_indexes) = distinct_keys(calls);
        let mut accounts = cache.checkout(&keys);
        let placed = || calls.iter().zip(key_indexes.iter().copied());
        placed().for_each(|(call, key_index)| accounts.add_demand(call, key_index));
        accounts.choose_write_modes();
        // Only calls of accounts with compare-and-set are decided before the statements. Usually there are none.
        let decided: Vec<Option<AdmissionDecision>> = match accounts
            .accounts_by_write_mode(WriteMode::CompareAndSet)
            .is_empty()
        {
            true => vec![],
            false => placed()
                .map(|(call, key_index)| accounts.decide_in_mode(call, key_index, WriteMode::CompareAndSet))
                .collect(),
        };
        let unknown = |key_index: &usize| accounts.keys[*key_index].is_none();
        let unread_keys: Vec<usize> = (0..keys.len()).filter(unknown).collect();
        let sent = Instant::now();
        // The statements are pipelined and executed in this order.
        let (decremented, written, rows) = future::try_join3(
            self.decrement(&accounts.accounts_by_write_mode(WriteMode::Decrement)),
            self.compare_and_set(&accounts),
            self.read(unread_keys.iter().map(|key_index| keys[*key_index].hash()).collect()),
        )
        .await?;
        if let Some(row) = decremented.as_ref().or(written.first()).or(rows.first()) {
            cache.clock.update(row.try_get::<_, DateTime<Utc>>("now")?, sent, Instant::now());
        }
        for row in &written {
            accounts.record_write(row.try_get("account_id")?, row.try_get("version")?);
        }
        if let Some(row) = &decremented {
            accounts.record_decrements(row)?;
        }
        let mut found = vec![None; keys.len()];
        for row in &rows {
            found[key_index_of(row, &unread_keys)?] = Some(row);
        }
        let mut outcomes = Vec::with_capacity(calls.len());
        for ((call, key_index), decided) in placed().zip(decided.into_iter().chain(repeat_with(|| None))) {
            outcomes.push(match accounts.is_written(key_index) {
                Some(true) => BatchOutcome::Decided(
                    decided.or_else(|| accounts.decide_in_mode(call, key_index, WriteMode::Decrement)),
                ),
                None if found[key_index].is_none() => BatchOutcome::Decided(None),
                Some(false) | None => BatchOutcome::Undecided,
            });
        }
        cache.checkin(&keys, accounts);
        for (key, row) in keys.iter().zip(found) {
            let Some(row) = row else { continue };
            let now = row.try_get("now")?;
            let account = CachedAccount::from_row(row, now)?;
            cache.insert(key, CachedKey::from_row(row, now, &account)?, account);
        }
        Ok(outcomes)
    }

    async fn read(&self, hashes: Vec<[u8; 32]>) -> Result<Vec<Row>, Error> {
        if hashes.is_empty() {
            return Ok(vec![]);
        }
        let hashes: Vec<&[u8]> = hashes.iter().map(<[u8; 32]>::as_slice).collect();
        self.client.query(&self.read, &[&hashes]).await
    }

    /// Subtracts calls from the rows of these accounts, without reading the rows first. This is the common case.
    async fn decrement(&self, accounts: &[&CachedAccount]) -> Result<Option<Row>, Error> {
        if accounts.is_empty() {
            return Ok(None);
        }
        let ids = column(accounts, |account| account.limiter.account);
        let plans = column(accounts, |account| account.plan_version);
        let rates = column(accounts, |account| account.limiter.bucket.rate_per_second());
        let capacities = column(accounts, |account| account.limiter.bucket.capacity);
        let times = column(accounts, |account| account.limiter.at);
        let months = column(accounts, |account| account.limiter.month);
        let quotas = column(accounts, |account| account.limiter.monthly_quota);
        let calls = column(accounts, |account| account.demand.calls);
        let counted = column(accounts, |account| account.demand.counted);
        self.client
            .query_opt(
                &self.decrement,
                &[&ids, &plans, &rates, &capacities, &times, &months, &quotas, &calls, &counted],
            )
            .await
    }

    /// Writes accounts whose rows are unchanged since they were cached. Accounts with only refused calls are written
    /// too, because the row stores the batch's time.
    async fn compare_and_set(&self, accounts: &AdmissionBatch) -> Result<Vec<Row>, Error> {
        let list = accounts.accounts_by_write_mode(WriteMode::CompareAndSet);
        if list.is_empty() {
            return Ok(vec![]);
        }
        let ids = column(&list, |account| account.limiter.account);
        let tokens = column(&list, |account| account.limiter.bucket.tokens);
        let capacities = column(&list, |account| account.limiter.bucket.capacity);
        let times = column(&list, |account| account.limiter.at);
        let months = column(&list, |account| account.limiter.month);
        let used = column(&list, |account| account.limiter.used);
        let versions = column(&list, |account| account.version);
        let cached_keys = accounts.keys.iter().flatten();
        let key_buckets: Vec<&KeyBucket> =
            cached_keys.filter_map(|(_, key)| key.key_bucket.as_ref()).collect();
        let keys = column(&key_buckets, |key_bucket| key_bucket.key);
        let key_tokens = column(&key_buckets, |key_bucket| key_bucket.limiter.bucket.tokens);
        let key_times = column(&key_buckets, |key_bucket| key_bucket.limiter.at);
        self.client
            .query(
                &self.compare_and_set,
                &[
                    &ids,
                    &tokens,
                    &capacities,
                    &times,
                    &months,
                    &used,
                    &versions,
                    &keys,
                    &key_tokens,
                    &key_times,
                ],
            )
            .await
    }

    /// Refunds one call of an account. `month` is the first day of the month in which the call was charged to the
    /// quota.
    pub(crate) async fn refund(&self, account_id: AccountId, month: NaiveDate) -> Result<(), AdmissionError> {
        self.client.execute(&self.refund, &[&account_id, &month]).await?;
        Ok(())
    }

    /// Finds the valid keys among `keys`. Returns the tier of each, by its identifier ([`PresentedKey::tag`]).
    pub(crate) async fn find_key_tiers(
        &self,
        keys: &[PresentedKey],
    ) -> Result<HashMap<u128, Tier>, AdmissionError> {
        let rows = self.read(keys.iter().map(PresentedKey::hash).collect()).await?;
        let all: Vec<usize> = (0..keys.len()).collect();
        rows.iter().map(|row| Ok((keys[key_index_of(row, &all)?].tag, row.try_get("tier")?))).collect()
    }

    /// Adds calls to the statistics. Rows are written in the order of their [`UsageKey`], so that instances cannot
    /// deadlock.
    pub(crate) async fn add_usage(
        &self,
        sums: &BTreeMap<UsageKey, UsageIncrement>,
    ) -> Result<(), AdmissionError> {
        let accounts = column(sums.keys(), |row| row.account);
        let keys = column(sums.keys(), |row| row.key);
        let days = column(sums.keys(), |row| row.day);
        let endpoints = column(sums.keys(), |row| row.endpoint.as_str());
        let outcomes = column(sums.keys(), |row| row.outcome.as_str());
        let calls = column(sums.values(), |sum| sum.calls);
        let last = column(sums.values(), |sum| sum.last_at);
        self.client.execute(COUNT, &[&accounts, &days, &endpoints, &keys, &outcomes, &calls, &last]).await?;
        Ok(())
    }

    /// Deletes statistics whose age on the day `today` exceeds the retention period.
    pub(crate) async fn delete_old_usage(&self, today: NaiveDate) -> Result<(), AdmissionError> {
        self.client.execute(FORGET, &[&today]).await?;
        Ok(())
    }
}

/// Collects one field of all rows. The result is an array parameter of a statement.
fn column<'a, R: 'a, T>(rows: impl IntoIterator<Item = &'a R>, field: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.into_iter().map(field).collect()
}

/// Index of the row's key among the caller's keys: `unread_keys[ordinal - 1]`.
fn key_index_of(row: &Row, unread_keys: &[usize]) -> Result<usize, AdmissionError> {
    let key_index: i64 = row.try_get("ordinal")?;
    let key_index = usize::try_from(key_index - 1).ok().and_then(|key_index| unread_keys.get(key_index));
    key_index.copied().ok_or(AdmissionError::UnrequestedKey)
}

/// Distinct keys of the calls, and for each call the index of its key.
fn distinct_keys(calls: &[AdmissionRequest]) -> (Vec<PresentedKey>, Vec<usize>) {
    let (mut keys, mut known) =
        (Vec::new(), HashMap::with_capacity_and_hasher(calls.len(), RandomState::default()));
    let key_index = |call: &AdmissionRequest| {
        *known.entry(call.key.tag).or_insert_with(|| {
            keys.push(call.key);
            keys.len() - 1
        })
    };
    let key_indexes = calls.iter().map(key_index).collect();
    (keys, key_indexes)
}
