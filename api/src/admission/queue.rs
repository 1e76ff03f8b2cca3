//! Decides on calls, many at a time: while Postgres works on a queue, arrivals wait; then the whole next queue goes.
//!
//! Invariants: limits are exact over all instances, because an account is charged only if its row is the one that the
//! decision was made on; a call that cannot be decided in time is answered "cannot decide", never "yes".

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use chrono::NaiveDate;
use futures::FutureExt;
use store::tls::MakeRustlsConnect;
use telemetry::spans::SPAN_TARGET;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_postgres::Config;
use tracing::Instrument;

use crate::admission::account_cache::AccountCache;
use crate::admission::connection::Connection;
use crate::admission::decision::{AdmissionError, Admitted, Call, Outcome, Verdict};
use crate::admission::request_context::{Caller, Charge};
use crate::admission::usage_recorder::Counts;
use crate::concurrency::tasks::Tasks;
use crate::metrics::AdmissionMetrics;

/// A queue is looked up key by key in indexes: planned once, and never by reading a whole table of accounts, however
/// small it looks. Losing less than a second of counts in a crash is worth not waiting for the disk.
const SESSION: &str = "-c synchronous_commit=off -c plan_cache_mode=force_generic_plan -c enable_hashjoin=off \
                       -c enable_mergejoin=off -c jit=off";
/// Calls that may wait; more are refused at once.
const QUEUE: usize = 16_384;
/// Calls decided on together at most.
const BATCH: usize = 4_096;
/// How often everybody else runs before a queue is sent, as long as it grows.
const PASSES: usize = 4;
/// How often it is tried to open a lost connection again while nobody calls.
const REOPEN: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Waiting {
    call: Call,
    since: Instant,
    decision: oneshot::Sender<Result<Option<Admitted>, AdmissionError>>,
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
    counts: Counts,
    metrics: AdmissionMetrics,
}

impl Admission {
    /// Starts the workers with connections of their own, so that slow reads cannot starve them; they end when the last
    /// handle is gone and all that was handed to them is done.
    pub(crate) fn start(
        mut config: Config,
        tls: &MakeRustlsConnect,
        patience: Duration,
        tasks: &Tasks,
        metrics: AdmissionMetrics,
    ) -> Self {
        let options = format!(
            "{} {SESSION} -c statement_timeout={}",
            config.get_options().unwrap_or_default(),
            patience.as_millis()
        );
        config.options(options.trim()).connect_timeout(patience.max(Duration::from_secs(1)));
        let connection = || Connection::new(&config, tls, patience, tasks);
        let (calls, waiting) = mpsc::channel(QUEUE);
        // One queue: more of them would be smaller, and get into each other's way.
        tasks.spawn(decide_queues(connection(), waiting, metrics.clone()));
        let (refunds, refunding) = mpsc::channel(1_024);
        tasks.spawn(give_back(connection(), refunding));
        let counts = Counts::start(&config, tls, tasks);
        Self { calls, refunds, counts, metrics }
    }

    /// Decides on one call; `None` for a key that is not valid.
    pub(crate) async fn decide(&self, call: Call) -> Result<Option<Admitted>, AdmissionError> {
        let decision = self.wait_for_decision(call).await;
        self.metrics.count(&decision);
        decision
    }

    /// Calls that wait for a decision.
    pub(crate) fn waiting(&self) -> usize {
        self.calls.max_capacity().saturating_sub(self.calls.capacity())
    }

    async fn wait_for_decision(&self, call: Call) -> Result<Option<Admitted>, AdmissionError> {
        let (decision, decided) = oneshot::channel();
        let waiting = Waiting { call, since: Instant::now(), decision };
        self.calls.try_send(waiting).map_err(|_| AdmissionError::QueueFull)?;
        // The worker keeps the time: a queue is answered within the patience after the one before it.
        decided.await.map_err(|_| AdmissionError::Ended)?
    }

    /// Adds a call to its account's statistics.
    pub(crate) fn count(&self, caller: &Caller, status: StatusCode) {
        if let Some(charge) = caller.charge() {
            self.counts.count(charge, status, caller.endpoint());
        }
    }

    /// Gives an account back what a failed request was counted, best effort.
    pub(crate) fn refund_failed(&self, caller: &Caller) {
        if let Some(charge) = caller.charge().filter(|charge| charge.counted) {
            self.refund(charge);
        }
    }

    fn refund(&self, charge: &Charge) {
        let refund = Refund { account: charge.account, month: charge.usage.month_start() };
        let _ = self.refunds.try_send(refund);
    }
}

impl AdmissionMetrics {
    fn count(&self, decision: &Result<Option<Admitted>, AdmissionError>) {
        let counter = match decision {
            Err(_) => &self.undecided,
            Ok(None) => &self.invalid_key,
            Ok(Some(admitted)) => match admitted.verdict {
                Verdict::Passed => &self.passed,
                Verdict::Tier => &self.tier,
                Verdict::Rate => &self.rate,
                Verdict::Quota => &self.quota,
            },
        };
        counter.inc();
    }
}

async fn decide_queues(
    mut connection: Connection,
    mut waiting: mpsc::Receiver<Waiting>,
    metrics: AdmissionMetrics,
) {
    let (mut queue, mut cache) = (Vec::with_capacity(BATCH), AccountCache::new());
    // The first calls find the connection open; a server that does not answer keeps none of them waiting.
    let _ = timeout(connection.patience, connection.store()).await;
    // Calls that are left over wait for no others.
    while !queue.is_empty() || next(&mut connection, &mut waiting, &mut queue).await {
        gather(&mut waiting, &mut queue).await;
        settle(&mut connection, &mut cache, &mut queue, &metrics).await;
    }
}

/// Lets everybody who is ready join the queue: the more calls a statement has, the less each of them costs.
async fn gather(waiting: &mut mpsc::Receiver<Waiting>, queue: &mut Vec<Waiting>) {
    for _ in 0..PASSES {
        tokio::task::yield_now().await;
        let room = BATCH.saturating_sub(queue.len());
        if room == 0 || waiting.recv_many(queue, room).now_or_never().is_none_or(|joined| joined == 0) {
            break;
        }
    }
}

/// Waits for calls, `false` when none can come any more. Meanwhile a lost connection is opened again, so that the first
/// call after an outage finds it open.
async fn next(
    connection: &mut Connection,
    waiting: &mut mpsc::Receiver<Waiting>,
    queue: &mut Vec<Waiting>,
) -> bool {
    loop {
        let reopened = async {
            tokio::time::sleep(REOPEN).await;
            if !connection.is_open() {
                // A call that comes during the attempt waits for it, or makes its own.
                let _ = connection.store().await;
            }
        };
        tokio::select! {
            biased;
            count = waiting.recv_many(queue, BATCH) => return count > 0,
            () = reopened => {}
        }
    }
}

/// Decides on what can be decided on; the rest stays in the queue.
async fn settle(
    connection: &mut Connection,
    cache: &mut AccountCache,
    queue: &mut Vec<Waiting>,
    metrics: &AdmissionMetrics,
) {
    // A client that has gone away is not charged.
    queue.retain(|waiting| !waiting.decision.is_closed());
    let calls: Vec<Call> = queue.iter().map(|waiting| waiting.call).collect();
    let patience = connection.patience;
    let (round, deciding) = (Instant::now(), decide(connection, cache, &calls));
    let span = tracing::info_span!(target: SPAN_TARGET, "admission", otel.kind = "client", calls = i64::try_from(calls.len()).ok());
    let decided = timeout(patience, deciding.instrument(span)).await.unwrap_or(Err(AdmissionError::Silent));
    metrics.statement.observe(round.elapsed().as_secs_f64());
    metrics.batch.observe(count(calls.len()));
    match decided {
        Ok(outcomes) => {
            let answered = queue.drain(..).zip(outcomes);
            let open = answered.filter_map(|(waiting, outcome)| waiting.answer(outcome, patience)).collect();
            *queue = open;
        }
        Err(error) => {
            connection.close();
            tracing::warn!("admission: {error}");
            for waiting in queue.drain(..) {
                let _ = waiting.decision.send(Err(error.clone()));
            }
        }
    }
}

/// A count of calls, at most a queue's, as histograms take it.
fn count(calls: usize) -> f64 {
    u32::try_from(calls).map_or(f64::INFINITY, f64::from)
}

/// One round with the store; a second one where the connection turns out to have been lost before.
async fn decide(
    connection: &mut Connection,
    cache: &mut AccountCache,
    calls: &[Call],
) -> Result<Vec<Outcome>, AdmissionError> {
    let was_open = connection.is_open();
    match connection.store().await?.decide(cache, calls).await {
        Err(AdmissionError::ConnectionLost(_)) if was_open => {
            connection.close();
            connection.store().await?.decide(cache, calls).await
        }
        decided => decided,
    }
}

impl Waiting {
    /// Gives the answer; without one, waits on as long as there is patience.
    fn answer(self, outcome: Outcome, patience: Duration) -> Option<Self> {
        let decision = match outcome {
            Outcome::Open if self.since.elapsed() < patience => return Some(self),
            Outcome::Open => Err(AdmissionError::Contended),
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
