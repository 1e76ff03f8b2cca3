//! Decides on calls, many at a time: while a transaction is in flight, arrivals queue; then one transaction decides on
//! the whole queue.
//!
//! Invariants: limits are exact over all instances, because an account's row is locked while its calls are decided; no
//! call waits for another account's transaction longer than the time-out; on time-out the answer is "cannot decide",
//! never "yes".

use std::sync::Arc;
use std::time::Duration;

use chrono::NaiveDate;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::Config;

use super::Tier;
use super::bucket::Usage;
use super::ledger::Charge;
use super::store::Store;
use crate::error::ApiError;

/// A queue is looked up key by key in indexes: planned once, and never by reading a whole table of accounts, however
/// small it looks. Losing less than a second of counts in a crash is worth not waiting for the disk.
const SESSION: &str = "-c synchronous_commit=off -c plan_cache_mode=force_generic_plan -c enable_hashjoin=off \
                       -c enable_mergejoin=off -c jit=off";
/// Calls that may wait; more are refused at once.
const QUEUE: usize = 16_384;
/// Calls decided by one transaction at most.
const BATCH: usize = 4_096;
/// Transactions in flight: while Postgres works on one queue, the instance works on the other.
const WORKERS: usize = 2;

/// A call to decide on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    /// SHA-256 of the key.
    pub(super) hash: [u8; 32],
    /// Least rank of the tier.
    pub(super) need: i16,
    /// Whether it counts against the quota.
    pub(super) counted: bool,
}

/// How a call of a known key is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Tier,
    Rate,
    Quota,
}

/// A decision on a call of a known key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Admitted {
    pub(crate) account: i64,
    pub(crate) tier: Tier,
    pub(crate) verdict: Verdict,
    /// Whether the quota was charged.
    pub(crate) counted: bool,
    pub(crate) usage: Usage,
}

/// Decisions in the order of the calls; `None` for a key that is not valid.
pub(super) type Decisions = Vec<Option<Admitted>>;

#[derive(Debug)]
struct Waiting {
    call: Call,
    decision: oneshot::Sender<Result<Option<Admitted>, Arc<str>>>,
}

/// A counted call to give back, in the month it was counted in.
#[derive(Debug)]
struct Refund {
    account: i64,
    month: NaiveDate,
}

/// The queue to the store.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    calls: mpsc::Sender<Waiting>,
    refunds: mpsc::Sender<Refund>,
}

impl Admission {
    /// Starts the workers with connections of their own, so that slow reads cannot starve them.
    pub(crate) fn start(mut config: Config, patience: Duration) -> Self {
        let (calls, waiting) = mpsc::channel(QUEUE);
        let (refunds, refunding) = mpsc::channel(1_024);
        // A transaction that an instance left open must not hold accounts for longer than a statement may take.
        let options = format!(
            "{} {SESSION} -c statement_timeout={limit} -c idle_in_transaction_session_timeout={limit}",
            config.get_options().unwrap_or_default(),
            limit = patience.as_millis()
        );
        config.options(options.trim()).connect_timeout(patience.max(Duration::from_secs(1)));
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..WORKERS {
            tokio::spawn(decide_queues(Connection::new(&config, patience), Arc::clone(&waiting)));
        }
        tokio::spawn(give_back(Connection::new(&config, patience), refunding));
        Self { calls, refunds }
    }

    /// Decides on one call; `None` for a key that is not valid.
    pub(super) async fn decide(&self, call: Call) -> Result<Option<Admitted>, ApiError> {
        let unavailable = |why: &str| ApiError::Unavailable(format!("admission: {why}"));
        let (decision, decided) = oneshot::channel();
        self.calls.try_send(Waiting { call, decision }).map_err(|_| unavailable("the queue is full"))?;
        // The workers keep the time: a queue is answered within the patience after the one before it.
        match decided.await {
            Ok(decision) => decision.map_err(|why| unavailable(&why)),
            Err(_) => Err(unavailable("the worker ended")),
        }
    }

    /// Gives an account a counted call back, best effort.
    pub(crate) fn refund(&self, charge: &Charge) {
        let refund = Refund { account: charge.account, month: charge.usage.month_start() };
        let _ = self.refunds.try_send(refund);
    }
}

async fn decide_queues(mut connection: Connection, waiting: Arc<Mutex<mpsc::Receiver<Waiting>>>) {
    let mut queue = Vec::with_capacity(BATCH);
    // The first calls find the connection open; a server that does not answer keeps none of them waiting.
    let _ = timeout(connection.patience, connection.store()).await;
    while waiting.lock().await.recv_many(&mut queue, BATCH).await > 0 {
        settle(&mut connection, &mut queue).await;
    }
}

async fn settle(connection: &mut Connection, queue: &mut Vec<Waiting>) {
    // A client that has gone away is not charged.
    queue.retain(|waiting| !waiting.decision.is_closed());
    let calls: Vec<Call> = queue.iter().map(|waiting| waiting.call).collect();
    let patience = connection.patience;
    let deciding = async { connection.store().await?.decide(&calls).await };
    match timeout(patience, deciding).await.unwrap_or_else(|_| Err(Undecided::silence())) {
        Ok(decisions) => {
            for (waiting, decision) in queue.drain(..).zip(decisions) {
                let _ = waiting.decision.send(Ok(decision));
            }
        }
        Err(Undecided(why)) => {
            // The connection may still be at work on the transaction; the next queue gets a fresh one.
            connection.close();
            tracing::warn!("admission: {why}");
            for waiting in queue.drain(..) {
                let _ = waiting.decision.send(Err(Arc::clone(&why)));
            }
        }
    }
}

async fn give_back(mut connection: Connection, mut refunding: mpsc::Receiver<Refund>) {
    while let Some(refund) = refunding.recv().await {
        let patience = connection.patience;
        let giving = async { connection.store().await?.refund(refund.account, refund.month).await };
        let _ = timeout(patience, giving).await;
    }
}

/// Why there is no decision.
#[derive(Debug)]
pub(super) struct Undecided(Arc<str>);

impl Undecided {
    fn silence() -> Self {
        Self("the store does not answer in time".into())
    }
}

impl From<tokio_postgres::Error> for Undecided {
    fn from(error: tokio_postgres::Error) -> Self {
        Self(schema::db::error_chain(&error).into())
    }
}

/// A connection that is opened again whenever it is lost.
struct Connection {
    config: Config,
    patience: Duration,
    store: Option<Store>,
    /// Goes on beyond one queue's patience, so that a slow server is reached in the end.
    connecting: Option<JoinHandle<Result<Store, tokio_postgres::Error>>>,
}

impl Connection {
    fn new(config: &Config, patience: Duration) -> Self {
        Self { config: config.clone(), patience, store: None, connecting: None }
    }

    /// The open connection, or the one being opened.
    async fn store(&mut self) -> Result<&Store, Undecided> {
        let open = self.store.take().filter(Store::is_open);
        let store = match open {
            Some(store) => store,
            None => {
                let config = self.config.clone();
                let connecting = self.connecting.get_or_insert_with(|| tokio::spawn(Store::open(config)));
                let connected = connecting.await;
                self.connecting = None;
                connected.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?
            }
        };
        Ok(self.store.insert(store))
    }

    fn close(&mut self) {
        self.store = None;
    }
}
