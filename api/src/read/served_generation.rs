//! Served generation: one generation of the read tables in one database, with its connections and batched look-ups.
//!
//! Invariants: the statement that reads the rows of a response also reads their data version. Every look-up with a waiting
//! caller gets a result or an error.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use deadpool_postgres::{Object, Pool};
use foldhash::fast::RandomState;
use store::ids::{GenerationId, JournalPosition};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::{Error, Row};
use tokio_util::sync::CancellationToken;

use super::QueryError;
use super::data_version::{ControlState, DataVersion};
use super::past_securities::{BenchmarkCache, MAX_BENCHMARKS, RecordBatches};
use crate::concurrency::{BackgroundTasks, gather};
use crate::metrics::PoolUse;
use crate::parameters::served_rules::ServedRules;

/// Served generation with its connections.
#[derive(Debug)]
pub(crate) struct ServedGeneration {
    pub(crate) id: GenerationId,
    pool: Pool,
    batches: LookupBatcher,
    version: Arc<RwLock<DataVersion>>,
    /// Greatest journal position that this instance has returned in a response.
    answered: Arc<AtomicI64>,
    served_rules: RwLock<Arc<ServedRules>>,
    control_state: Arc<RwLock<ControlState>>,
    pub(crate) past_benchmarks: Arc<BenchmarkCache>,
    pub(crate) record_batches: Arc<RecordBatches>,
    /// Cancelled when the database stops replying.
    unresponsive: CancellationToken,
    /// Second handle of this generation, with the connections for expensive responses. `None` in the second handle.
    expensive: Option<Arc<ServedGeneration>>,
}

impl ServedGeneration {
    /// Creates a served generation whose data version is not known yet. `pools` contains the pool for ordinary reads
    /// and the pool for expensive responses.
    pub(super) fn new(
        id: GenerationId,
        pools: [Pool; 2],
        tasks: &BackgroundTasks,
        answered: &Arc<AtomicI64>,
    ) -> Arc<Self> {
        let unknown = DataVersion {
            generation: id,
            sequence: 0,
            as_of: None,
            position: JournalPosition(0),
            is_repeated: false,
        };
        let (version, unresponsive) = (Arc::new(RwLock::new(unknown)), CancellationToken::new());
        let control_state = Arc::default();
        let past_benchmarks = Arc::new(BenchmarkCache::new(MAX_BENCHMARKS));
        let record_batches = RecordBatches::new();
        let open = |pool, expensive| {
            Arc::new(Self {
                id,
                pool,
                batches: LookupBatcher::new(tasks.clone(), unresponsive.clone()),
                version: Arc::clone(&version),
                answered: Arc::clone(answered),
                served_rules: RwLock::default(),
                control_state: Arc::clone(&control_state),
                past_benchmarks: Arc::clone(&past_benchmarks),
                record_batches: Arc::clone(&record_batches),
                unresponsive: unresponsive.clone(),
                expensive,
            })
        };
        let [reads, expensive_reads] = pools;
        let expensive = open(expensive_reads, None);
        open(reads, Some(expensive))
    }

    /// Connection with the search path of this generation.
    pub(crate) async fn client(&self) -> Result<Object, QueryError> {
        if self.expensive.is_some() {
            // Boxed, because every future that reads would reserve the 3 KB of the pool's future.
            let taken = Box::pin(self.pool.get());
            return self.run_while_responsive(async { Ok::<_, QueryError>(taken.await?) }).await;
        }
        // A task on a worker thread opens the connection. Expensive requests run on low-priority threads, and the
        // threads that tokio starts for name resolution would inherit the low priority.
        let pool = self.pool.clone();
        tokio::spawn(async move { pool.get().await })
            .await
            .map_err(|_| QueryError::TaskEnded)?
            .map_err(QueryError::from)
    }

    /// Looks up the row of one symbol. One statement serves the look-ups of several requests. For an unknown symbol,
    /// the row contains only the data version. Returns `None` if the generation has no version row.
    pub(crate) async fn look_up_row(
        &self,
        statement: &'static str,
        candidates: Vec<String>,
    ) -> Result<Option<Row>, QueryError> {
        self.batches.look_up_row(&self.pool, statement, candidates).await
    }

    /// Runs `work` on this database. Fails when the database stops replying, because `work` would then never end.
    pub(crate) async fn run_while_responsive<T, E: From<QueryError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.unresponsive.cancelled() => Err(QueryError::Timeout.into()),
        }
    }

    /// Cancels the running work of this generation. The callers get [`QueryError::Timeout`].
    pub(super) fn abandon(&self) {
        self.unresponsive.cancel();
    }

    /// The same generation, read through the connections for expensive responses.
    pub(crate) fn expensive_generation(self: &Arc<Self>) -> Arc<Self> {
        Arc::clone(self.expensive.as_ref().unwrap_or(self))
    }

    /// Usage of both connection pools: first the pool for ordinary reads, then the pool for expensive responses.
    pub(crate) fn pool_usage(&self) -> [PoolUse; 2] {
        let used = |pool: &Pool| {
            let status = pool.status();
            PoolUse { waiting: status.waiting, in_use: status.size.saturating_sub(status.available) }
        };
        [used(&self.pool), used(self.expensive.as_ref().map_or(&self.pool, |expensive| &expensive.pool))]
    }

    /// Rules that were used to derive the figures of the generation.
    pub(crate) fn served_rules(&self) -> Arc<ServedRules> {
        Arc::clone(&self.served_rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Newest known state of the control tables.
    pub(crate) fn control_state(&self) -> ControlState {
        *self.control_state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the data version, the rules and the control state of a polled row.
    pub(super) fn record_polled(&self, row: &Row) -> Result<DataVersion, Error> {
        let version = DataVersion::from_row(row)?;
        self.record_known_version(version);
        let rules = Arc::new(ServedRules::from_row(row)?);
        *self.served_rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
        let control_state = ControlState::from_row(row)?;
        *self.control_state.write().unwrap_or_else(PoisonError::into_inner) = control_state;
        Ok(version)
    }

    /// Newest known data version of the generation.
    pub(crate) fn version(&self) -> DataVersion {
        *self.version.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the data version of a response of this instance. This version may be newer than the version that the
    /// latest poll found.
    pub(crate) fn record_returned_version(&self, version: DataVersion) {
        self.record_known_version(version);
        self.answered.fetch_max(version.position.0, Ordering::Relaxed);
    }

    /// Records a version, unless a newer version is known.
    fn record_known_version(&self, version: DataVersion) {
        let mut known = self.version.write().unwrap_or_else(PoisonError::into_inner);
        // The version of a response can be older than the known version, or belong to another generation. Such a
        // version is not recorded.
        if version.generation == self.id && version.position >= known.position {
            *known = version;
        }
    }
}

/// Maximum number of waiting look-ups. Further look-ups are refused.
const QUEUE: usize = 16_384;
/// Maximum number of look-ups per statement.
const BATCH: usize = 256;

type LookupResult = Result<Option<Row>, QueryError>;

struct PendingLookup {
    /// Spellings of the symbol to look up, the most likely first.
    candidates: Vec<String>,
    found: oneshot::Sender<LookupResult>,
}

/// Queues of look-ups, one per statement. A queue is created when its statement is first used.
#[derive(Debug)]
pub(crate) struct LookupBatcher {
    tasks: BackgroundTasks,
    /// Cancelled when the database stops replying.
    unresponsive: CancellationToken,
    queues: Mutex<HashMap<&'static str, mpsc::Sender<PendingLookup>, RandomState>>,
}

impl LookupBatcher {
    pub(crate) fn new(tasks: BackgroundTasks, unresponsive: CancellationToken) -> Self {
        Self { tasks, unresponsive, queues: Mutex::default() }
    }

    /// Looks up the row of the first spelling in `candidates` that is a known symbol.
    ///
    /// The statement gets two arrays of equal length: look-up indexes and spellings. It returns the index in the column
    /// `ordinal`.
    pub(crate) async fn look_up_row(
        &self,
        pool: &Pool,
        statement: &'static str,
        candidates: Vec<String>,
    ) -> LookupResult {
        let (found, answer) = oneshot::channel();
        let full = |_| QueryError::QueueFull;
        self.queue(pool, statement).try_send(PendingLookup { candidates, found }).map_err(full)?;
        answer.await.map_err(|_| QueryError::TaskEnded)?
    }

    fn queue(&self, pool: &Pool, statement: &'static str) -> mpsc::Sender<PendingLookup> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let (sender, waiting) = mpsc::channel(QUEUE);
            self.tasks.spawn(run_lookups(pool.clone(), self.unresponsive.clone(), statement, waiting));
            sender
        };
        queues.entry(statement).or_insert_with(start).clone()
    }
}

async fn run_lookups(
    pool: Pool,
    unresponsive: CancellationToken,
    statement: &'static str,
    mut waiting: mpsc::Receiver<PendingLookup>,
) {
    let mut queue = Vec::new();
    while waiting.recv_many(&mut queue, BATCH).await > 0 {
        gather(&mut waiting, &mut queue, BATCH).await;
        queue.retain(|waiting| !waiting.found.is_closed());
        if queue.is_empty() {
            continue;
        }
        let found = unresponsive.run_until_cancelled(look_up(&pool, statement, &queue)).await;
        match found.unwrap_or(Err(QueryError::Timeout)) {
            Ok(rows) => {
                queue.drain(..).zip(rows).for_each(|(waiting, row)| drop(waiting.found.send(Ok(row))))
            }
            Err(error) => queue.drain(..).for_each(|waiting| drop(waiting.found.send(Err(error.clone())))),
        }
    }
}

/// Runs the statement for one batch. Returns the rows in the order of the look-ups.
async fn look_up(
    pool: &Pool,
    statement: &'static str,
    queue: &[PendingLookup],
) -> Result<Vec<Option<Row>>, QueryError> {
    let spelled = queue.iter().zip(0i32..).flat_map(|(waiting, place)| {
        waiting.candidates.iter().map(move |candidate| (place, candidate.as_str()))
    });
    let (places, candidates): (Vec<i32>, Vec<&str>) = spelled.unzip();
    let client = pool.get().await?;
    let statement = client.prepare_cached(statement).await?;
    let mut found: Vec<Option<Row>> = queue.iter().map(|_| None).collect();
    for row in client.query(&statement, &[&places, &candidates]).await? {
        let place: i32 = row.try_get("ordinal")?;
        if let Some(slot) = usize::try_from(place).ok().and_then(|place| found.get_mut(place)) {
            *slot = Some(row);
        }
    }
    Ok(found)
}
