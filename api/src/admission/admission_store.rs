//! SQL statements of admission and of the usage statistics.
//!
//! Database connection of an admission worker, reopened after each loss.
//!
//! Invariant: a call is never refused because of an earlier failure.

use std::collections::{BTreeMap, HashMap};
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveDate, Utc};
use store::connect;
use store::db::refuse_older_schema;
use store::tls::MakeRustlsConnect;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, Config, Error, Row, Statement};

use super::decision::{AdmissionDecision, AdmissionError, AdmissionRequest, CallGroups, Grant};
use crate::account::statistics::CallOutcome;
use crate::auth::credential::PresentedKey;
use crate::auth::{AccountId, KeyId, SharedTiers, Tier};
use crate::concurrency::{BackgroundTasks, connection_pauses};

const ADMIT: &str = include_str!("../../queries/access/admit.sql");
const REFUND: &str = include_str!("../../queries/access/refund.sql");
const COUNT: &str = include_str!("../../queries/access/count.sql");
const FORGET: &str = include_str!("../../queries/access/forget_counts.sql");
const OPEN_STREAM: &str = include_str!("../../queries/access/open_stream.sql");
const RENEW_STREAMS: &str = include_str!("../../queries/access/renew_streams.sql");
const CLOSE_STREAM: &str = include_str!("../../queries/access/close_stream.sql");

/// Cheap statement that checks the connection. It succeeds only on a server that can write the limits of accounts. A
/// read-only server, such as a demoted primary, refuses it.
const CHECK: &str = "select from accounts.limiter limit 0 for update";
/// Timeout for preparing the statements of a new connection.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(5);
/// Length of the lease of a stream slot.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// Maximum number of attempts to take a slot. An attempt fails if another instance takes the same free slot first.
const SLOT_ATTEMPTS: usize = 10;

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

/// Random id of a running instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InstanceId(pub(super) i64);

/// Slot of an open stream: a row in Postgres with a lease, which all instances share. An account has one slot per
/// permitted stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StreamSlot {
    pub(crate) account: AccountId,
    /// Number of the slot, from 1 to the plan's limit of open streams.
    pub(crate) number: i32,
}

/// Open connection with prepared statements.
pub(crate) struct AdmissionStore {
    client: Client,
    admit: Statement,
    refund: Statement,
}

impl AdmissionStore {
    pub(crate) async fn open(
        config: Config,
        tls: MakeRustlsConnect,
        tasks: BackgroundTasks,
        tiers: SharedTiers,
    ) -> Result<Self, AdmissionError> {
        let (client, driver) = connect::open(&config, &tls).await?;
        tasks.spawn(driver);
        timeout(PREPARE_TIMEOUT, Self::prepare(client, &tiers)).await.map_err(|_| AdmissionError::Timeout)?
    }

    async fn prepare(client: Client, tiers: &SharedTiers) -> Result<Self, AdmissionError> {
        refuse_older_schema(&client).await?;
        // No call is decided before the limits of the tiers are known.
        tiers.reload(&client).await?;
        let (admit, refund) = (client.prepare(ADMIT).await?, client.prepare(REFUND).await?);
        Ok(Self { client, admit, refund })
    }

    /// Succeeds if the server replies and accepts writes.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        self.client.simple_query(CHECK).await.map(drop)
    }

    pub(super) async fn reload_tiers(&self, tiers: &SharedTiers) -> Result<(), AdmissionError> {
        Ok(tiers.reload(&self.client).await?)
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Decides calls, and charges them to accounts and keys; `None` for an invalid key. After an error, the caller must
    /// drop the connection, because the statement may still run.
    pub(crate) async fn decide(
        &self,
        calls: &[AdmissionRequest],
    ) -> Result<Vec<Option<AdmissionDecision>>, AdmissionError> {
        let groups = CallGroups::new(calls);
        let hashes = column(&groups.keys, |key| key.0.as_slice());
        let rows = self.client.query(&self.admit, &[&hashes, &groups.calls, &groups.counted_ranks]).await?;
        let mut grants: Vec<Option<Grant>> = groups.keys.iter().map(|_| None).collect();
        for row in &rows {
            let index = usize::try_from(row.try_get::<_, i64>("ordinal")? - 1).ok();
            let grant = index.and_then(|index| grants.get_mut(index));
            let unrequested = AdmissionError::Undecided("the database returned a key that was not requested");
            *grant.ok_or(unrequested)? = Some(Grant::from_row(row)?);
        }
        let decide =
            |(call, index): (&AdmissionRequest, usize)| Some(grants[index].as_mut()?.decide_next(call));
        Ok(calls.iter().zip(groups.indexes).map(decide).collect())
    }

    /// Refunds one call of an account. `month` is the first day of the month in which the call was charged to the
    /// quota.
    pub(crate) async fn refund(&self, account_id: AccountId, month: NaiveDate) -> Result<(), AdmissionError> {
        self.client.execute(&self.refund, &[&account_id, &month]).await?;
        Ok(())
    }

    /// Takes a slot of an account that has at most `limit` slots; `None` if all are in use.
    pub(super) async fn take_slot(
        &self,
        instance: InstanceId,
        account: AccountId,
        limit: usize,
    ) -> Result<Option<StreamSlot>, AdmissionError> {
        // No instance has 2^31 streams, so a larger limit limits nothing.
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        for _ in 0..SLOT_ATTEMPTS {
            let lease = LEASE.as_secs_f64();
            let row = self.client.query_one(OPEN_STREAM, &[&account, &instance.0, &limit, &lease]).await?;
            if let Some(number) = row.try_get("slot")? {
                return Ok(Some(StreamSlot { account, number }));
            }
            if !row.try_get::<_, bool>("was_free")? {
                return Ok(None);
            }
        }
        Err(AdmissionError::Undecided("concurrent changes of the account prevented a decision"))
    }

    /// Renews the leases of slots that this instance has, each given with the key of its stream. Returns the renewed
    /// slots, each with the tier of its key; `None` for an invalid key.
    pub(super) async fn renew_slots(
        &self,
        instance: InstanceId,
        slots: &[(StreamSlot, PresentedKey)],
    ) -> Result<HashMap<StreamSlot, Option<Tier>>, AdmissionError> {
        let accounts = column(slots, |(slot, _)| slot.account);
        let numbers = column(slots, |(slot, _)| slot.number);
        let hashes = column(slots, |(_, key)| key.0.as_slice());
        let lease = LEASE.as_secs_f64();
        let rows =
            self.client.query(RENEW_STREAMS, &[&instance.0, &accounts, &numbers, &hashes, &lease]).await?;
        let renewed = |row: &Row| {
            let slot = StreamSlot { account: row.try_get("account_id")?, number: row.try_get("slot")? };
            Ok((slot, row.try_get("tier")?))
        };
        rows.iter().map(renewed).collect()
    }

    pub(super) async fn free_slot(
        &self,
        instance: InstanceId,
        slot: StreamSlot,
    ) -> Result<(), AdmissionError> {
        self.client.execute(CLOSE_STREAM, &[&slot.account, &slot.number, &instance.0]).await?;
        Ok(())
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

/// Idle time after which an open connection is checked.
const CHECK_AFTER: Duration = Duration::from_millis(300);
/// Minimum timeout of a check. It is longer than the default response timeout, because a busy host may delay a reply.
const CHECK_TIMEOUT: Duration = Duration::from_millis(1_200);
/// Number of consecutive failures after which the database is treated as unreachable.
const FAILURES: u32 = 2;
/// Minimum pause before a repeated connection attempt.
const MIN_PAUSE: Duration = Duration::from_millis(50);
/// Maximum pause before a repeated connection attempt.
const MAX_PAUSE: Duration = Duration::from_millis(300);

/// One database connection, used by one caller at a time.
pub(crate) struct StoreConnection {
    config: Config,
    tls: MakeRustlsConnect,
    tasks: BackgroundTasks,
    /// Tier table, which each new connection reloads.
    tiers: SharedTiers,
    /// Timeout of one database reply.
    pub(crate) response_timeout: Duration,
    /// True while the database is treated as reachable. Checks and decisions update the value.
    pub(crate) reachability: Arc<AtomicBool>,
    replied_at: Instant,
    store: Option<AdmissionStore>,
    /// Connection attempt in progress. It continues after a caller's timeout, so that a later caller can use the
    /// connection to a slow server.
    connecting: Option<JoinHandle<Result<AdmissionStore, AdmissionError>>>,
    /// Pauses before the next connection attempts.
    pauses: Box<dyn Iterator<Item = Duration> + Send>,
    /// Number of consecutive failures since the last reply.
    failures: u32,
}

impl StoreConnection {
    /// Creates a connection that is opened at its first use.
    pub(crate) fn new(
        config: &Config,
        tls: &MakeRustlsConnect,
        response_timeout: Duration,
        tasks: &BackgroundTasks,
        tiers: &SharedTiers,
    ) -> Self {
        Self {
            config: config.clone(),
            tls: tls.clone(),
            tasks: tasks.clone(),
            tiers: tiers.clone(),
            response_timeout,
            reachability: Arc::default(),
            replied_at: Instant::now(),
            store: None,
            connecting: None,
            pauses: pauses(),
            failures: 0,
        }
    }

    /// Records a reply of the database, which is therefore reachable.
    pub(crate) fn record_reply(&mut self) {
        self.replied_at = Instant::now();
        self.failures = 0;
        self.reachability.store(true, Ordering::Relaxed);
    }

    /// Drops the connection after a failure, because a statement may still run on it. The database is treated as
    /// unreachable after [`FAILURES`] consecutive failures. One failure is enough if no connection was open.
    pub(crate) fn close_after_failure(&mut self) {
        self.failures += 1;
        if !self.is_open() || self.failures >= FAILURES {
            self.reachability.store(false, Ordering::Relaxed);
        }
        self.close();
    }

    /// Reopens a lost connection and checks it at once. An open connection is checked only if it has been idle for
    /// [`CHECK_AFTER`].
    pub(crate) async fn check(&mut self) {
        if self.is_open() && self.replied_at.elapsed() < CHECK_AFTER {
            return;
        }
        let limit = CHECK_TIMEOUT.max(self.response_timeout);
        let checking = async { Ok::<_, AdmissionError>(self.open_store().await?.check().await?) };
        match timeout(limit, checking).await {
            Ok(Ok(())) => self.record_reply(),
            _ => {
                self.reachability.store(false, Ordering::Relaxed);
                self.close();
            }
        }
    }

    /// True if there is a connection, and no loss was detected.
    pub(crate) fn is_open(&self) -> bool {
        self.store.as_ref().is_some_and(AdmissionStore::is_open)
    }

    /// Returns the open connection. If there is none, waits for the connection attempt in progress, or starts one.
    pub(crate) async fn open_store(&mut self) -> Result<&AdmissionStore, AdmissionError> {
        let store = match self.store.take().filter(AdmissionStore::is_open) {
            Some(store) => store,
            None => self.connect().await?,
        };
        Ok(self.store.insert(store))
    }

    async fn connect(&mut self) -> Result<AdmissionStore, AdmissionError> {
        let connecting = match &mut self.connecting {
            Some(connecting) => connecting,
            None => {
                let pause = self.pauses.next().unwrap_or(MAX_PAUSE);
                let (config, tls) = (self.config.clone(), self.tls.clone());
                let opening = AdmissionStore::open(config, tls, self.tasks.clone(), self.tiers.clone());
                let attempt = async move {
                    sleep(pause).await;
                    opening.await
                };
                self.connecting.insert(self.tasks.spawn(attempt))
            }
        };
        let connected = connecting.await;
        self.connecting = None;
        let store = connected.map_err(|_| AdmissionError::Ended)??;
        self.pauses = pauses();
        Ok(store)
    }

    /// Drops the connection, because a statement may still run on it.
    pub(crate) fn close(&mut self) {
        self.store = None;
    }
}

/// Pauses before connection attempts. The first attempt is made at once.
fn pauses() -> Box<dyn Iterator<Item = Duration> + Send> {
    Box::new(iter::once(Duration::ZERO).chain(connection_pauses(MIN_PAUSE, MAX_PAUSE)))
}
