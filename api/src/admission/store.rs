//! Admission statements on Postgres.
//!
//! Invariants: passing calls are subtracted in the database without a prior read. Every other write requires that the
//! row is unchanged since it was read. Rows are locked in account order.

use std::collections::{BTreeMap, HashMap};
use std::iter::repeat_with;
use std::time::Instant;

use chrono::{DateTime, NaiveDate, Utc};
use foldhash::fast::RandomState;
use futures::future;
use store::tls::MakeRustlsConnect;
use tokio_postgres::{Client, Config, Error, Row, Statement};

use crate::admission::account_cache::AccountCache;
use crate::admission::batch::{Account, Accounts, Key, OwnBucket, Way};
use crate::admission::counter::{Counter, Sum};
use crate::admission::decision::{AdmissionError, Admitted, Call, Outcome};
use crate::auth::credential::Presented;
use crate::concurrency::tasks::Tasks;

const READ: &str = include_str!("../../queries/access/read.sql");
const TAKE: &str = include_str!("../../queries/access/take.sql");
const CHARGE: &str = include_str!("../../queries/access/charge.sql");
const REFUND: &str = include_str!("../../queries/access/refund.sql");
const COUNT: &str = include_str!("../../queries/access/count.sql");
const FORGET: &str = include_str!("../../queries/access/forget_counts.sql");

/// Open connection with prepared statements.
pub(crate) struct Store {
    client: Client,
    read: Statement,
    take: Statement,
    charge: Statement,
    refund: Statement,
}

impl Store {
    pub(crate) async fn open(config: Config, tls: MakeRustlsConnect, tasks: Tasks) -> Result<Self, Error> {
        let (client, connection) = config.connect(tls).await?;
        tasks.spawn(connection);
        Ok(Self {
            read: client.prepare(READ).await?,
            take: client.prepare(TAKE).await?,
            charge: client.prepare(CHARGE).await?,
            refund: client.prepare(REFUND).await?,
            client,
        })
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Decides calls in their order. Demands on cached accounts are subtracted from their rows, or charged if the rows
    /// are unchanged. Other accounts are read, and their calls are decided in the next round. After an error the caller
    /// drops the connection.
    pub(crate) async fn decide(
        &self,
        cache: &mut AccountCache,
        calls: &[Call],
    ) -> Result<Vec<Outcome>, AdmissionError> {
        let (keys, places) = distinct(calls);
        let mut accounts = cache.checkout(&keys);
        let placed = || calls.iter().zip(places.iter().copied());
        placed().for_each(|(call, place)| accounts.want(call, place));
        accounts.plan();
        // This list is usually empty.
        let decided: Vec<Option<Admitted>> = match accounts.of_way(Way::Charged).is_empty() {
            true => vec![],
            false => placed().map(|(call, place)| accounts.decide(call, place, Way::Charged)).collect(),
        };
        let unknown = |place: &usize| accounts.keys[*place].is_none();
        let asked: Vec<usize> = (0..keys.len()).filter(unknown).collect();
        let sent = Instant::now();
        // The statements are pipelined and executed in this order.
        let (taken, charged, rows) = future::try_join3(
            self.take(&accounts.of_way(Way::Taken)),
            self.charge(&accounts),
            self.read(asked.iter().map(|place| keys[*place].hash()).collect()),
        )
        .await?;
        if let Some(row) = taken.as_ref().or(charged.first()).or(rows.first()) {
            cache.clock.learn(row.try_get::<_, DateTime<Utc>>("now")?, sent, Instant::now());
        }
        for row in &charged {
            accounts.note(row.try_get("account_id")?, row.try_get("version")?);
        }
        if let Some(row) = &taken {
            accounts.note_taken(row)?;
        }
        let mut found = vec![None; keys.len()];
        for row in &rows {
            found[place_of(row, &asked)?] = Some(row);
        }
        let outcome =
            |((call, place), decided): ((&Call, usize), Option<Admitted>)| match accounts.is_written(place) {
                Some(true) => Outcome::Decided(decided.or_else(|| accounts.decide(call, place, Way::Taken))),
                None if found[place].is_none() => Outcome::Decided(None),
                Some(false) | None => Outcome::Open,
            };
        let outcomes = placed().zip(decided.into_iter().chain(repeat_with(|| None))).map(outcome).collect();
        cache.checkin(&keys, accounts);
        for (key, row) in keys.iter().zip(found) {
            let Some(row) = row else { continue };
            let now = row.try_get("now")?;
            let account = Account::read(row, now)?;
            cache.insert(key, Key::read(row, now, &account)?, account);
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

    /// Subtracts calls from the rows of these accounts without reading them first. This is the common case.
    async fn take(&self, accounts: &[&Account]) -> Result<Option<Row>, Error> {
        if accounts.is_empty() {
            return Ok(None);
        }
        let ids = column(accounts, |account| account.limiter.account);
        let plans = column(accounts, |account| account.plan_version);
        let rates = column(accounts, |account| account.limiter.bucket.rate_per_second());
        let sizes = column(accounts, |account| account.limiter.bucket.burst);
        let times = column(accounts, |account| account.limiter.at);
        let months = column(accounts, |account| account.limiter.month);
        let quotas = column(accounts, |account| account.limiter.monthly_quota);
        let calls = column(accounts, |account| account.wanted.calls);
        let counted = column(accounts, |account| account.wanted.counted);
        self.client
            .query_opt(
                &self.take,
                &[&ids, &plans, &rates, &sizes, &times, &months, &quotas, &calls, &counted],
            )
            .await
    }

    /// Writes the accounts whose rows are unchanged since they were read. Refused calls are included, so that a
    /// backward clock change is detected.
    async fn charge(&self, accounts: &Accounts) -> Result<Vec<Row>, Error> {
        let list = accounts.of_way(Way::Charged);
        if list.is_empty() {
            return Ok(vec![]);
        }
        let ids = column(&list, |account| account.limiter.account);
        let tokens = column(&list, |account| account.limiter.bucket.tokens);
        let sizes = column(&list, |account| account.limiter.bucket.burst);
        let times = column(&list, |account| account.limiter.at);
        let months = column(&list, |account| account.limiter.month);
        let used = column(&list, |account| account.limiter.used);
        let versions = column(&list, |account| account.version);
        let own: Vec<&OwnBucket> = accounts.own_buckets().collect();
        let keys: Vec<i64> = own.iter().map(|own| own.key).collect();
        let key_tokens: Vec<f64> = own.iter().map(|own| own.limiter.bucket.tokens).collect();
        let key_times: Vec<DateTime<Utc>> = own.iter().map(|own| own.limiter.at).collect();
        self.client
            .query(
                &self.charge,
                &[&ids, &tokens, &sizes, &times, &months, &used, &versions, &keys, &key_tokens, &key_times],
            )
            .await
    }

    /// Refunds a counted call in its month.
    pub(crate) async fn refund(&self, account: i64, month: NaiveDate) -> Result<(), AdmissionError> {
        self.client.execute(&self.refund, &[&account, &month]).await?;
        Ok(())
    }

    /// Adds to the statistics in row order, so that instances cannot deadlock.
    pub(crate) async fn count(&self, sums: &BTreeMap<Counter, Sum>) -> Result<(), AdmissionError> {
        let column = |field: fn(&Counter) -> i64| sums.keys().map(field).collect::<Vec<i64>>();
        let (accounts, keys) = (column(|row| row.account), column(|row| row.key));
        let days: Vec<NaiveDate> = sums.keys().map(|row| row.day).collect();
        let endpoints: Vec<&str> = sums.keys().map(|row| row.endpoint.as_str()).collect();
        let outcomes: Vec<&str> = sums.keys().map(|row| row.outcome.as_str()).collect();
        let calls: Vec<i64> = sums.values().map(|sum| sum.calls).collect();
        let last: Vec<DateTime<Utc>> = sums.values().map(|sum| sum.last_at).collect();
        self.client.execute(COUNT, &[&accounts, &days, &endpoints, &keys, &outcomes, &calls, &last]).await?;
        Ok(())
    }

    /// Removes statistics older than the retention period on this day.
    pub(crate) async fn forget_counts(&self, today: NaiveDate) -> Result<(), AdmissionError> {
        self.client.execute(FORGET, &[&today]).await?;
        Ok(())
    }
}

fn column<T>(accounts: &[&Account], field: impl Fn(&Account) -> T) -> Vec<T> {
    accounts.iter().map(|account| field(account)).collect()
}

/// Position of a row's key among all keys of the batch.
fn place_of(row: &Row, asked: &[usize]) -> Result<usize, AdmissionError> {
    let place: i64 = row.try_get("ordinal")?;
    let place = usize::try_from(place - 1).ok().and_then(|place| asked.get(place));
    place.copied().ok_or(AdmissionError::Misplaced)
}

/// Distinct keys of the calls, and the key position of each call.
fn distinct(calls: &[Call]) -> (Vec<Presented>, Vec<usize>) {
    let (mut keys, mut known) =
        (Vec::new(), HashMap::with_capacity_and_hasher(calls.len(), RandomState::default()));
    let mut place = |call| {
        let Call { key, .. }: &Call = call;
        *known.entry(key.tag).or_insert_with(|| {
            keys.push(*key);
            keys.len() - 1
        })
    };
    let places = calls.iter().map(&mut place).collect();
    (keys, places)
}
