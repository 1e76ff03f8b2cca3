//! Admission in batches: calls that arrive during one database round trip form the next batch.
//!
//! Invariants: limits are exact across instances. A call without a decision in time is refused with 503.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::extract::MatchedPath;
use axum::http::StatusCode;
use chrono::NaiveDate;
use store::db::{add_session_options, error_chain};
use store::tls::MakeRustlsConnect;
use telemetry::LogLimit;
use telemetry::logging::SPAN_TARGET;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::Config;
use tracing::Instrument;

use super::admission_store::{InstanceId, StoreConnection, StreamSlot};
use super::decision::{AdmissionDecision, AdmissionError, AdmissionRequest, AdmissionVerdict};
use super::request_context::RequestContext;
use super::usage_recorder::UsageRecorder;
use crate::auth::credential::PresentedKey;
use crate::auth::{AccountId, SharedTiers, Tier, TierTable};
use crate::concurrency::{BackgroundTasks, gather};
use crate::metrics::AdmissionMetrics;

/// Postgres session settings. Queries use one generic plan with index look-ups, however small the tables were when the
/// plan was made. A crash of Postgres may lose the charges of the last second.
const SESSION: &str = "-c synchronous_commit=off -c plan_cache_mode=force_generic_plan -c enable_seqscan=off \
                       -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off";
/// Maximum number of waiting calls. Further calls are refused.
const QUEUE: usize = 16_384;
/// Maximum number of calls per batch.
const BATCH: usize = 4_096;
/// Interval between two runs of [`StoreConnection::check`] while no call waits.
const IDLE: Duration = Duration::from_millis(100);
/// Interval at which the tier table is read again.
const RELOAD: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct WaitingCall {
    call: AdmissionRequest,
    decision: oneshot::Sender<Result<Option<AdmissionDecision>, AdmissionError>>,
}

#[derive(Debug)]
enum BackgroundTask {
    /// Refund of one call of the account. The date is the first day of the month in which the call was charged to the
    /// quota.
    Refund(AccountId, NaiveDate),
    /// Request for a slot of the account, which permits one open change stream. The number is the maximum number of
    /// slots of the account.
    TakeSlot(AccountId, usize, oneshot::Sender<Option<StreamSlot>>),
    RenewSlots(Vec<(StreamSlot, PresentedKey)>, oneshot::Sender<HashMap<StreamSlot, Option<Tier>>>),
    FreeSlot(StreamSlot),
    ReloadTiers,
}

/// Handle of the workers that decide calls.
#[derive(Debug, Clone)]
pub(crate) struct AdmissionQueue {
    calls: mpsc::Sender<WaitingCall>,
    background: mpsc::Sender<BackgroundTask>,
    usage_recorder: UsageRecorder,
    metrics: AdmissionMetrics,
    /// True while the database is treated as reachable. Checks and decisions update the value.
    reachability: Arc<AtomicBool>,
    tiers: SharedTiers,
}

impl AdmissionQueue {
    /// Starts the workers. They have their own database connections, so that slow reads of other requests cannot delay
    /// admission. The workers end when the last handle is dropped and the remaining work is done.
    pub(crate) fn start(
        mut config: Config,
        tls: &MakeRustlsConnect,
        response_timeout: Duration,
        tasks: &BackgroundTasks,
        metrics: AdmissionMetrics,
    ) -> Self {
        let options = format!("{SESSION} -c statement_timeout={}", response_timeout.as_millis());
        add_session_options(&mut config, &options);
        let tiers = SharedTiers::default();
        let connection = || StoreConnection::new(&config, tls, response_timeout, tasks, &tiers);
        let (calls, waiting) = mpsc::channel(QUEUE);
        // One worker decides all calls. Several workers would have smaller batches and contend for the same rows.
        let deciding = connection();
        let reachability = Arc::clone(&deciding.reachability);
        tasks.spawn(decide_queues(deciding, waiting, metrics.clone()));
        let (background, waiting) = mpsc::channel(1_024);
        tasks.spawn(run_background_tasks(connection(), waiting, tiers.clone()));
        let usage_recorder = UsageRecorder::start(&config, tls, tasks, &tiers);
        Self { calls, background, usage_recorder, metrics, reachability, tiers }
    }

    /// Decides one call; `None` for an invalid key.
    pub(crate) async fn decide(
        &self,
        call: AdmissionRequest,
    ) -> Result<Option<AdmissionDecision>, AdmissionError> {
        let deciding = async {
            let (decision, decided) = oneshot::channel();
            let waiting = WaitingCall { call, decision };
            let full = |_| AdmissionError::Undecided("the admission queue is full");
            self.calls.try_send(waiting).map_err(full)?;
            // The worker enforces the timeout for a whole batch. The timeout begins with the batch, not with the
            // arrival of a call.
            decided.await.map_err(|_| AdmissionError::Ended)?
        };
        let decision = deciding.await;
        self.metrics.record_decision(&decision);
        decision
    }

    /// True while the database is treated as reachable. Checks and decisions update the value.
    pub(crate) fn is_database_reachable(&self) -> bool {
        self.reachability.load(Ordering::Relaxed)
    }

    /// Limits of the tiers.
    pub(crate) fn tiers(&self) -> Arc<TierTable> {
        self.tiers.get()
    }

    /// Number of calls that wait for a decision.
    pub(crate) fn waiting_calls(&self) -> usize {
        self.calls.max_capacity().saturating_sub(self.calls.capacity())
    }

    /// Adds a call to the statistics of its account.
    pub(crate) fn record_usage(&self, caller: &RequestContext, status: StatusCode) {
        if let Some(decision) = caller.decision() {
            self.usage_recorder.record_call(decision, status, caller.route());
        }
    }

    /// Adds one delivery of a change stream (a charged batch of changes) to the statistics of the stream's account. The
    /// delivery counts as one call of `endpoint`.
    pub(crate) fn record_delivery(&self, decision: &AdmissionDecision, endpoint: &MatchedPath) {
        self.usage_recorder.record_call(decision, StatusCode::OK, Some(endpoint));
    }

    /// If a failed request was charged to the quota, refunds this call. If the refund fails, it is not repeated.
    pub(crate) fn refund_failed_request(&self, caller: &RequestContext) {
        if let Some(decision) = caller.decision().filter(|decision| decision.counted) {
            let refund = BackgroundTask::Refund(decision.account, decision.usage.month_start());
            let _ = self.background.try_send(refund);
        }
    }

    /// Takes a slot for a stream; `None` if the account already has `limit` open streams on all instances together.
    pub(crate) async fn take_slot(
        &self,
        account: AccountId,
        limit: usize,
    ) -> Result<Option<StreamSlot>, AdmissionError> {
        self.run_in_background(|taken| BackgroundTask::TakeSlot(account, limit, taken)).await
    }

    /// Renews the leases of slots, each given with the key of its stream. Returns the renewed slots, each with the tier
    /// of its key; `None` for an invalid key.
    pub(crate) async fn renew_slots(
        &self,
        slots: Vec<(StreamSlot, PresentedKey)>,
    ) -> Result<HashMap<StreamSlot, Option<Tier>>, AdmissionError> {
        self.run_in_background(|renewed| BackgroundTask::RenewSlots(slots, renewed)).await
    }

    /// Sends a task to the background worker and waits for its result.
    async fn run_in_background<T>(
        &self,
        task: impl FnOnce(oneshot::Sender<T>) -> BackgroundTask,
    ) -> Result<T, AdmissionError> {
        let (sender, result) = oneshot::channel();
        self.background.send(task(sender)).await.map_err(|_| AdmissionError::Ended)?;
        result.await.map_err(|_| AdmissionError::Timeout)
    }

    /// Frees a slot. If this fails, the slot is free at the end of its lease.
    pub(crate) fn free_slot(&self, slot: StreamSlot) {
        let _ = self.background.try_send(BackgroundTask::FreeSlot(slot));
    }
}

impl AdmissionMetrics {
    fn record_decision(&self, decision: &Result<Option<AdmissionDecision>, AdmissionError>) {
        let counter = match decision {
            Err(_) => &self.undecided,
            Ok(None) => &self.invalid_key,
            Ok(Some(admitted)) => match admitted.verdict {
                AdmissionVerdict::Passed => &self.passed,
                AdmissionVerdict::Tier => &self.tier,
                AdmissionVerdict::Rate => &self.rate,
                AdmissionVerdict::Quota => &self.quota,
            },
        };
        counter.inc();
    }
}

async fn decide_queues(
    mut connection: StoreConnection,
    mut waiting: mpsc::Receiver<WaitingCall>,
    metrics: AdmissionMetrics,
) {
    let mut queue = Vec::with_capacity(BATCH);
    while wait_for_calls(&mut connection, &mut waiting, &mut queue).await {
        gather(&mut waiting, &mut queue, BATCH).await;
        decide_batch(&mut connection, &mut queue, &metrics).await;
    }
}

/// Waits for calls. Returns `false` after the last sender is dropped. While no call waits, a lost connection is opened
/// again. The first call after an outage then finds an open connection.
async fn wait_for_calls(
    connection: &mut StoreConnection,
    waiting: &mut mpsc::Receiver<WaitingCall>,
    queue: &mut Vec<WaitingCall>,
) -> bool {
    loop {
        let checked = async {
            tokio::time::sleep(IDLE).await;
            // A call that arrives during a connection attempt waits for this attempt.
            connection.check().await;
        };
        tokio::select! {
            biased;
            count = waiting.recv_many(queue, BATCH) => return count > 0,
            () = checked => {}
        }
    }
}

/// Decides one batch, and empties the queue.
async fn decide_batch(
    connection: &mut StoreConnection,
    queue: &mut Vec<WaitingCall>,
    metrics: &AdmissionMetrics,
) {
    // Calls of disconnected clients are dropped without a charge.
    queue.retain(|waiting| !waiting.decision.is_closed());
    let calls: Vec<AdmissionRequest> = queue.iter().map(|waiting| waiting.call).collect();
    let (response_timeout, started) = (connection.response_timeout, Instant::now());
    let span = tracing::info_span!(target: SPAN_TARGET, "admission", otel.kind = "client", calls = i64::try_from(calls.len()).ok());
    let deciding = decide_reconnecting(connection, &calls).instrument(span);
    let decided = timeout(response_timeout, deciding).await.unwrap_or(Err(AdmissionError::Timeout));
    metrics.statement.observe(started.elapsed().as_secs_f64());
    metrics.batch.observe(to_float(calls.len()));
    match decided {
        Ok(decisions) => {
            connection.record_reply();
            for (waiting, decision) in queue.drain(..).zip(decisions) {
                let _ = waiting.decision.send(Ok(decision));
            }
        }
        Err(error) => {
            connection.close_after_failure();
            // Every batch fails during an outage. The limit keeps most of the equal messages out of the log.
            static LIMIT: LogLimit = LogLimit::new();
            if let Some(suppressed) = LIMIT.admit() {
                tracing::warn!(error = %error_chain(&error), suppressed, "cannot decide a batch of calls");
            }
            for waiting in queue.drain(..) {
                let _ = waiting.decision.send(Err(error.clone()));
            }
        }
    }
}

/// Number of calls as a histogram value.
fn to_float(calls: usize) -> f64 {
    u32::try_from(calls).map_or(f64::INFINITY, f64::from)
}

/// Decides calls in one database round trip. If the connection turns out to be lost, opens a new one and tries once
/// more.
async fn decide_reconnecting(
    connection: &mut StoreConnection,
    calls: &[AdmissionRequest],
) -> Result<Vec<Option<AdmissionDecision>>, AdmissionError> {
    let was_open = connection.is_open();
    match connection.open_store().await?.decide(calls).await {
        Err(AdmissionError::ConnectionLost(_)) if was_open => {
            connection.close();
            connection.open_store().await?.decide(calls).await
        }
        decided => decided,
    }
}

/// Runs tasks one after another. A task that fails is not repeated.
async fn run_background_tasks(
    mut connection: StoreConnection,
    mut waiting: mpsc::Receiver<BackgroundTask>,
    tiers: SharedTiers,
) {
    let instance = InstanceId(rand::random());
    let mut reload = interval(RELOAD);
    reload.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let task = tokio::select! {
            task = waiting.recv() => task,
            _ = reload.tick() => Some(BackgroundTask::ReloadTiers),
        };
        let Some(task) = task else { return };
        let response_timeout = connection.response_timeout;
        let running = async {
            let store = connection.open_store().await?;
            match task {
                BackgroundTask::Refund(account, month) => store.refund(account, month).await,
                BackgroundTask::TakeSlot(account, limit, taken) => {
                    match taken.send(store.take_slot(instance, account, limit).await?) {
                        // The client disconnected before it got the slot, so the slot is freed.
                        Err(Some(slot)) => store.free_slot(instance, slot).await,
                        Err(None) | Ok(()) => Ok(()),
                    }
                }
                BackgroundTask::RenewSlots(slots, renewed) => {
                    let _ = renewed.send(store.renew_slots(instance, &slots).await?);
                    Ok(())
                }
                BackgroundTask::FreeSlot(slot) => store.free_slot(instance, slot).await,
                BackgroundTask::ReloadTiers => store.reload_tiers(&tiers).await,
            }
        };
        if !matches!(timeout(response_timeout, running).await, Ok(Ok(()))) {
            connection.close();
        }
    }
}
