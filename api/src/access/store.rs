//! Where limits stand: Postgres.
//!
//! Invariants: an account is charged only by whoever knows what its row holds and finds it unchanged; rows are locked in
//! the order of their accounts.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use chrono::{DateTime, NaiveDate, Utc};
use foldhash::fast::RandomState;
use futures::future;
use store::tls::MakeRustlsConnect;
use tokio_postgres::{Client, Config, Error, Row, Statement};

use super::accounts::{Account, Accounts, OwnBucket};
use super::counter::{Counter, Sum};
use super::credential::Presented;
use super::decision::{AdmissionError, Admitted, Call, Outcome};
use super::limiter::Limiter;
use super::memory::{Memory, Written};
use super::row_version::RowVersion;
use crate::tasks::Tasks;

const READ: &str = include_str!("../../queries/access/read.sql");
const CHARGE: &str = include_str!("../../queries/access/charge.sql");
const REFUND: &str = include_str!("../../queries/access/refund.sql");
const COUNT: &str = include_str!("../../queries/access/count.sql");
const FORGET: &str = include_str!("../../queries/access/forget_counts.sql");

/// An open connection with its statements.
pub(super) struct Store {
    client: Client,
    read: Statement,
    charge: Statement,
    refund: Statement,
}

impl Store {
    pub(super) async fn open(config: Config, tls: MakeRustlsConnect, tasks: Tasks) -> Result<Self, Error> {
        let (client, connection) = config.connect(tls).await?;
        tasks.spawn(connection);
        Ok(Self {
            read: client.prepare(READ).await?,
            charge: client.prepare(CHARGE).await?,
            refund: client.prepare(REFUND).await?,
            client,
        })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Decides on calls in their order. Remembered accounts are charged if their rows are unchanged; the others are read,
    /// and their calls are decided on in the next round. After an error the caller drops the connection.
    pub(super) async fn decide(
        &self,
        memory: &mut Memory,
        calls: &[Call],
    ) -> Result<Vec<Outcome>, AdmissionError> {
        let (keys, places) = distinct(calls);
        let mut accounts = memory.take(&keys);
        let decisions: Vec<Option<Admitted>> =
            calls.iter().zip(&places).map(|(call, place)| accounts.decide(call, *place)).collect();
        let unknown = |place: &usize| accounts.keys[*place].is_none();
        let asked: Vec<usize> = (0..keys.len()).filter(unknown).collect();
        let sent = Instant::now();
        // Both are on their way before either is answered, and done in this order.
        let (charged, rows) = future::try_join(
            self.charge(&accounts),
            self.read(asked.iter().map(|place| keys[*place].hash()).collect()),
        )
        .await?;
        if let Some(row) = charged.first().or(rows.first()) {
            memory.clock.learn(row.try_get::<_, DateTime<Utc>>("now")?, sent, Instant::now());
        }
        let written: Written = pairs(&charged)?;
        memory.put_back(&keys, accounts, &written);
        let mut valid = vec![false; keys.len()];
        for row in &rows {
            let position: i64 = row.try_get("place")?;
            let position = usize::try_from(position - 1).ok().and_then(|position| asked.get(position));
            let place = *position.ok_or(AdmissionError::Misplaced)?;
            memory.learn(&keys[place], row)?;
            valid[place] = true;
        }
        let outcome = |(decision, place): (Option<Admitted>, usize)| match decision {
            Some(admitted) if written.contains_key(&admitted.account) => Outcome::Decided(Some(admitted)),
            Some(_) => Outcome::Open,
            None if valid[place] => Outcome::Open,
            None => Outcome::Decided(None),
        };
        Ok(decisions.into_iter().zip(places).map(outcome).collect())
    }

    async fn read(&self, hashes: Vec<[u8; 32]>) -> Result<Vec<Row>, Error> {
        if hashes.is_empty() {
            return Ok(vec![]);
        }
        let hashes: Vec<&[u8]> = hashes.iter().map(<[u8; 32]>::as_slice).collect();
        self.client.query(&self.read, &[&hashes]).await
    }

    /// Writes the accounts whose rows are still those that were read; of refused calls too, or a clock set back would
    /// never be noticed.
    async fn charge(&self, accounts: &Accounts) -> Result<Vec<Row>, Error> {
        fn column<T>(accounts: &[Account], field: impl Fn(&Limiter) -> T) -> Vec<T> {
            accounts.iter().map(|account| field(&account.limiter)).collect()
        }
        let list = &accounts.list;
        if list.is_empty() {
            return Ok(vec![]);
        }
        let ids = column(list, |limiter| limiter.account);
        let tokens = column(list, |limiter| limiter.bucket.tokens);
        let sizes = column(list, |limiter| limiter.bucket.burst);
        let times = column(list, |limiter| limiter.at);
        let months = column(list, |limiter| limiter.month);
        let used = column(list, |limiter| limiter.used);
        let versions: Vec<RowVersion> = list.iter().map(|account| account.version).collect();
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

    /// Gives a counted call back within the month it was counted in.
    pub(super) async fn refund(&self, account: i64, month: NaiveDate) -> Result<(), AdmissionError> {
        self.client.execute(&self.refund, &[&account, &month]).await?;
        Ok(())
    }

    /// Adds to the statistics, in the order of the rows, so that instances cannot wait for each other in a circle.
    pub(super) async fn count(&self, sums: &BTreeMap<Counter, Sum>) -> Result<(), AdmissionError> {
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

    /// Removes statistics that are too old on this day.
    pub(super) async fn forget_counts(&self, today: NaiveDate) -> Result<(), AdmissionError> {
        self.client.execute(FORGET, &[&today]).await?;
        Ok(())
    }
}

/// The accounts that were written, and the versions of their rows.
fn pairs(rows: &[Row]) -> Result<Written, Error> {
    rows.iter().map(|row| Ok((row.try_get("account_id")?, row.try_get("version")?))).collect()
}

/// The keys of calls, each once, and which of them each call has.
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
