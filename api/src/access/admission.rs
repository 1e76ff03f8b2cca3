//! Decides on calls, many at a time: while Postgres works on a queue, arrivals wait; then the whole next queue goes.
//!
//! Invariants: limits are exact over all instances, because an account is charged only if its row is the one that the
//! decision was made on; a call that cannot be decided in time is answered "cannot decide", never "yes".

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::NaiveDate;
use futures::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::Config;

use super::Tier;
use super::bucket::Usage;
use super::ledger::Charge;
use super::memory::Memory;
use super::store::Store;
use crate::error::ApiError;

/// A queue is looked up key by key in indexes: planned once, and never by reading a whole table of accounts, however
/// small it looks. Losing less than a second of counts in a crash is worth not waiting for the disk.
const SESSION: &str = "-c synchronous_commit=off -c plan_cache_mode=force_generic_plan -c enable_hashjoin=off \
                       -c enable_mergejoin=off -c jit=off";
/// Calls that may wait; more are refused at once.
const QUEUE: usize = 16_384;
/// Calls decided on together at most.
const BATCH: usize = 4_096;
const SILENCE: &str = "the store does not answer in time";
const CONTENDED: &str = "others kept changing the account";

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

/// What came of a call.
#[derive(Debug)]
pub(super) enum Outcome {
    /// `None` for a key that is not valid.
    Decided(Option<Admitted>),
    /// Its account was only read, or changed meanwhile.
    Open,
}

#[derive(Debug)]
struct Waiting {
    call: Call,
    since: Instant,
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
    /// Starts the worker with connections of its own, so that slow reads cannot starve them.
    pub(crate) fn start(mut config: Config, patience: Duration) -> Self {
        let options = format!(
            "{} {SESSION} -c statement_timeout={}",
            config.get_options().unwrap_or_default(),
            patience.as_millis()
        );
        config.options(options.trim()).connect_timeout(patience.max(Duration::from_secs(1)));
        let (calls, waiting) = mpsc::channel(QUEUE);
        // One queue: more of them would be smaller, and get into each other's way.
        tokio::spawn(decide_queues(Connection::new(&config, patience), waiting));
        let (refunds, refunding) = mpsc::channel(1_024);
        tokio::spawn(give_back(Connection::new(&config, patience), refunding));
        Self { calls, refunds }
    }

    /// Decides on one call; `None` for a key that is not valid.
    pub(super) async fn decide(&self, call: Call) -> Result<Option<Admitted>, ApiError> {
        let unavailable = |why: &str| ApiError::Unavailable(format!("admission: {why}"));
        let (decision, decided) = oneshot::channel();
        let waiting = Waiting { call, since: Instant::now(), decision };
        self.calls.try_send(waiting).map_err(|_| unavailable("the queue is full"))?;
        // The worker keeps the time: a queue is answered within the patience after the one before it.
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

async fn decide_queues(mut connection: Connection, mut waiting: mpsc::Receiver<Waiting>) {
    let (mut queue, mut memory) = (Vec::with_capacity(BATCH), Memory::new());
    // The first calls find the connection open; a server that does not answer keeps none of them waiting.
    let _ = timeout(connection.patience, connection.store()).await;
    // Calls that are left over wait for no others.
    while !queue.is_empty() || waiting.recv_many(&mut queue, BATCH).await > 0 {
        let room = BATCH.saturating_sub(queue.len());
        let _ = waiting.recv_many(&mut queue, room).now_or_never();
        settle(&mut connection, &mut memory, &mut queue).await;
    }
}

/// Decides on what can be decided on; the rest stays in the queue.
async fn settle(connection: &mut Connection, memory: &mut Memory, queue: &mut Vec<Waiting>) {
    // A client that has gone away is not charged.
    queue.retain(|waiting| !waiting.decision.is_closed());
    let calls: Vec<Call> = queue.iter().map(|waiting| waiting.call).collect();
    let patience = connection.patience;
    let deciding = async { connection.store().await?.decide(memory, &calls).await };
    match timeout(patience, deciding).await.unwrap_or_else(|_| Err(Undecided(SILENCE.into()))) {
        Ok(outcomes) => {
            let answered = queue.drain(..).zip(outcomes);
            let open = answered.filter_map(|(waiting, outcome)| waiting.answer(outcome, patience)).collect();
            *queue = open;
        }
        Err(Undecided(why)) => {
            // The connection may still be at work on the statement; the next queue gets a fresh one.
            connection.close();
            tracing::warn!("admission: {why}");
            for waiting in queue.drain(..) {
                let _ = waiting.decision.send(Err(Arc::clone(&why)));
            }
        }
    }
}

impl Waiting {
    /// Gives the answer; without one, waits on as long as there is patience.
    fn answer(self, outcome: Outcome, patience: Duration) -> Option<Self> {
        let decision = match outcome {
            Outcome::Open if self.since.elapsed() < patience => return Some(self),
            Outcome::Open => Err(CONTENDED.into()),
            Outcome::Decided(decision) => Ok(decision),
        };
        let _ = self.decision.send(decision);
        None
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

impl From<tokio_postgres::Error> for Undecided {
    fn from(error: tokio_postgres::Error) -> Self {
        Self(store::db::error_chain(&error).into())
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
