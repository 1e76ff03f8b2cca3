//! Projection: the primary database and its replicas, one of which serves each request, and former generations whose tables
//! are not dropped yet.
//!
//! Lag monitor. A background task measures how many messages of the log are not yet in the served data.
//!
//! Invariants: all queries of a request read one generation of one database. A replica is read only if it has all data
//! that the instance has returned.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use event_log::sequence::Sequence;
use event_log::write_failure::find_write_failure;
use store::ids::GenerationId;
use tokio::sync::Mutex;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, timeout_at};

use super::lookup::{first_row, run_query};
use super::read_source::{ConnectionSettings, ReadSource, SharedReadState};
use super::{QueryError, ServedGeneration};
use crate::concurrency::BackgroundTasks;
use crate::parameters::MinVersion;
use crate::parameters::served_rules::ServedRules;

/// Maximum wait for a replica with the requested version, before the primary is read.
const REPLICA_WAIT: Duration = Duration::from_millis(200);
/// Maximum wait for any database with the requested version, before the request fails.
const VERSION_WAIT: Duration = Duration::from_secs(2);
/// Number of completed polls of the primary that prove that a version does not exist. One poll is not enough, because
/// it may have started before the request.
const FRESH_POLLS: u64 = 2;

/// Databases that serve reads, shared by all requests.
#[derive(Debug)]
pub(crate) struct Projection {
    shared: Arc<SharedReadState>,
    replicas: Vec<Arc<ReadSource>>,
    primary: Arc<ReadSource>,
    pub(crate) kept: KeptGenerations,
    /// Number of requests so far. The replica that the next request tries first is computed from this number.
    next: AtomicUsize,
    max_replica_age: Duration,
}

impl Projection {
    /// Starts one task for the primary and one for each replica. Each task follows the active generation of its
    /// database. The tasks end when `tasks` is stopped. `tasks` also runs the batched look-ups.
    pub(crate) fn follow(
        primary: ConnectionSettings,
        replicas: Vec<ConnectionSettings>,
        max_replica_age: Duration,
        tasks: &BackgroundTasks,
    ) -> Self {
        let shared = Arc::new(SharedReadState { tasks: tasks.clone(), ..SharedReadState::default() });
        let follow = |settings, is_primary| {
            let source = Arc::new(ReadSource::new(is_primary));
            tasks.spawn_until_stopped(Arc::clone(&source).follow(Arc::clone(&shared), settings));
            source
        };
        let replicas = replicas.into_iter().map(|settings| follow(settings, false)).collect();
        let kept = KeptGenerations::new(primary.clone(), Arc::clone(&shared));
        let primary = follow(primary, true);
        Self { shared, replicas, primary, kept, next: AtomicUsize::default(), max_replica_age }
    }

    /// Pins the active generation of one database for the duration of a request.
    pub(crate) fn pin(&self) -> Result<Arc<ServedGeneration>, QueryError> {
        let turn = self.next.load(Ordering::Relaxed);
        let found = self.find(&self.answered(), true, turn).or_else(|| self.primary.generation());
        found.ok_or(QueryError::NoGeneration)
    }

    /// Pins a generation with data version `min` or newer. Waits for a replica first, then for any database. If the
    /// version does not exist, pins the primary, unless `min` is explicit.
    ///
    /// # Errors
    /// [`QueryError::VersionNotServed`] if `min` is explicit and does not exist.
    pub(crate) async fn pin_version(&self, min: &MinVersion) -> Result<Arc<ServedGeneration>, QueryError> {
        let (started, polls) = (Instant::now(), self.primary.polls());
        let mut is_primary_allowed =
            *min == MinVersion::default() || !self.replicas.iter().any(|replica| replica.is_reachable());
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let mut accepted = self.answered();
        accepted.raise(*min);
        loop {
            let polled = self.shared.polled.notified();
            if let Some(found) = self.find(&accepted, is_primary_allowed, turn) {
                return Ok(found);
            }
            if !self.is_database_reachable() {
                return Err(QueryError::NoGeneration);
            }
            if is_primary_allowed
                && self.primary.polls() >= polls + FRESH_POLLS
                && let Some(primary) = self.primary.generation()
            {
                let is_refused = min.is_explicit && primary.version().is_older_than(min);
                return if is_refused { Err(QueryError::VersionNotServed) } else { Ok(primary) };
            }
            self.shared.wanted.notify_waiters();
            let limit = if is_primary_allowed { VERSION_WAIT } else { REPLICA_WAIT };
            if timeout_at(started + limit, polled).await.is_err() {
                if is_primary_allowed {
                    return Err(QueryError::Timeout);
                }
                is_primary_allowed = true;
            }
        }
    }

    /// Future that completes after the next poll of any database. Each commit of the projector triggers a poll of the
    /// primary.
    pub(crate) fn polled(&self) -> Notified<'_> {
        self.shared.polled.notified()
    }

    /// Minimum version for the next read: the greatest journal position in the responses of this instance.
    fn answered(&self) -> MinVersion {
        MinVersion::of_position(self.shared.answered.load(Ordering::Relaxed))
    }

    /// Finds a generation whose data version is `min` or newer. The replicas are tried first, and then the primary if
    /// `is_primary_allowed`. `turn` determines the replica that is tried first.
    fn find(&self, min: &MinVersion, is_primary_allowed: bool, turn: usize) -> Option<Arc<ServedGeneration>> {
        let first = turn.checked_rem(self.replicas.len()).unwrap_or_default();
        let (before, after) = self.replicas.split_at(first);
        let replicas = after.iter().chain(before).filter(|replica| self.is_read(replica));
        let replicas = replicas.filter_map(|replica| replica.generation());
        let primary = self.primary.generation().filter(|_| is_primary_allowed);
        replicas.chain(primary).find(|generation| generation.version().reaches(min))
    }

    /// True if the replica is reachable, and had the newest data at most `max_replica_age` ago.
    fn is_read(&self, replica: &ReadSource) -> bool {
        replica.is_reachable() && replica.age() <= self.max_replica_age
    }

    /// True if the primary or a replica answered its latest poll.
    pub(crate) fn is_database_reachable(&self) -> bool {
        self.replicas.iter().chain([&self.primary]).any(|source| source.is_reachable())
    }

    /// True if the schema of the primary is older than that of this program.
    pub(crate) fn lacks_migrations(&self) -> bool {
        self.primary.lacks_migrations()
    }

    /// Two numbers of replicas: first the replicas in use, then the replicas that are unreachable or too old.
    pub(crate) fn count_replicas(&self) -> [usize; 2] {
        let read = self.replicas.iter().filter(|replica| self.is_read(replica)).count();
        [read, self.replicas.len() - read]
    }

    /// Rules that were used to derive the figures of the served generation.
    pub(crate) fn served_rules(&self) -> Arc<ServedRules> {
        self.pin().map_or_else(|_| Arc::default(), |generation| generation.served_rules())
    }
}

const VERSION: &str = include_str!("../../queries/projection/version.sql");
const EXISTS: &str = "select id from generations where id = $1";
/// Maximum number of former generations with open connections.
const MAX_OPEN: usize = 2;

/// Former generations in the primary database. Connections to a former generation are opened when a request first reads
/// it.
pub(crate) struct KeptGenerations {
    settings: ConnectionSettings,
    shared: Arc<SharedReadState>,
    /// Former generations with open connections, the most recently used last.
    open: Mutex<Vec<Arc<ServedGeneration>>>,
}

impl fmt::Debug for KeptGenerations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptGenerations").field("open", &self.open).finish_non_exhaustive()
    }
}

impl KeptGenerations {
    pub(super) fn new(settings: ConnectionSettings, shared: Arc<SharedReadState>) -> Self {
        Self { settings, shared, open: Mutex::default() }
    }

    /// Opens the former generation `id` in the primary database. Returns `None` if it was dropped or cannot be read. A
    /// connection of the generation `served` is used for this check.
    pub(crate) async fn find(
        &self,
        served: &ServedGeneration,
        id: GenerationId,
    ) -> Option<Arc<ServedGeneration>> {
        // Check the existence first: no connection to a dropped generation may be opened.
        run_query(served, EXISTS, &[&id]).await.ok()?.first()?;
        let mut open = self.open.lock().await;
        let known = open.iter().position(|generation| generation.id == id).map(|place| open.remove(place));
        let generation = match known {
            Some(generation) => generation,
            None => self.settings.open_generation(id, &self.shared.tasks, &self.shared.answered).ok()?,
        };
        learn_version(&generation).await.ok()?;
        open.push(Arc::clone(&generation));
        if open.len() > MAX_OPEN {
            open.remove(0);
        }
        Some(generation)
    }
}

async fn learn_version(generation: &ServedGeneration) -> Result<(), QueryError> {
    let rows = run_query(generation, VERSION, &[]).await?;
    generation.record_polled(first_row(generation, &rows)?)?;
    Ok(())
}

/// Measured lag of the served data behind the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LagMeasurement {
    /// Number of log messages that are not applied yet.
    pub(crate) events: u64,
    caught_up_at: Instant,
    /// Last time at which a poll found newly applied log messages or a lag of zero.
    progressed_at: Instant,
    measured_at: Instant,
    /// True if NATS could not store a message, and has stored none since.
    pub(crate) write_failed: bool,
}

impl LagMeasurement {
    /// Duration of the current lag, in seconds; 0 if the served data contains every log message.
    pub(crate) fn seconds(&self) -> u64 {
        if self.events == 0 { 0 } else { self.caught_up_at.elapsed().as_secs() }
    }

    /// True if the served data lags behind the log, and the last progress was more than `STALLED_AFTER` ago.
    pub(crate) fn is_stalled(&self) -> bool {
        self.events > 0 && self.progressed_at.elapsed() > STALLED_AFTER
    }
}

/// Latest measurement of the lag, shared by its readers and the polling task.
#[derive(Debug, Clone, Default)]
pub(crate) struct LagMonitor(Arc<RwLock<Option<LagMeasurement>>>);

/// Interval between two polls of the log server, and timeout of each poll. An unresponsive log server is therefore
/// reported within two seconds.
const POLL: Duration = Duration::from_millis(900);
/// Interval between two checks for a failed write to the log.
const WRITE_CHECK: Duration = Duration::from_secs(5);
/// Time for which a measurement is valid.
const VALID_FOR: Duration = Duration::from_secs(4);
/// Time without progress after which the lag is reported as stalled.
const STALLED_AFTER: Duration = Duration::from_secs(30);

impl LagMonitor {
    /// Latest measurement; `None` if there is no measurement, or if the latest one is older than `VALID_FOR`.
    pub(crate) fn latest(&self) -> Option<LagMeasurement> {
        let measurement = *self.0.read().unwrap_or_else(PoisonError::into_inner);
        measurement.filter(|measurement| measurement.measured_at.elapsed() < VALID_FOR)
    }

    /// Reads the number of the last log message at regular intervals, and measures the lag. Reconnects after a loss of
    /// the connection.
    pub(crate) async fn poll_stream(self, url: String, stream: String, projection: Arc<Projection>) {
        let settings = event_log::stream::StreamSettings {
            nats_url: url,
            nats_stream: stream,
            nats_subject_prefix: String::new(),
            nats_replicas: 1,
        };
        loop {
            if let Err(reason) = self.poll_until_disconnected(&settings, &projection).await {
                tracing::debug!(%reason, "cannot read the state of the log");
            }
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
            tokio::time::sleep(POLL).await;
        }
    }

    async fn poll_until_disconnected(
        &self,
        settings: &event_log::stream::StreamSettings,
        projection: &Projection,
    ) -> anyhow::Result<()> {
        let context = settings.connect("api").await?;
        let (mut caught_up_at, mut progressed_at, mut before) =
            (Instant::now(), Instant::now(), Sequence::default());
        let (mut write_failed, mut write_checked_at) = (false, None::<Instant>);
        loop {
            let reading = tokio::time::timeout(POLL, context.get_stream(&settings.nats_stream));
            let stream = reading.await??;
            let last = stream.cached_info().state.last_sequence;
            let applied = projection.pin().map_or(0, |generation| generation.version().sequence);
            let applied = Sequence::try_from(applied)?;
            // The projector may have applied messages published after the log server replied, so `applied` can exceed
            // `last`.
            let events = last.saturating_sub(applied.to_u64());
            if events == 0 {
                caught_up_at = Instant::now();
            }
            if events == 0 || std::mem::replace(&mut before, applied) != applied {
                progressed_at = Instant::now();
            }
            if write_checked_at.is_none_or(|at| at.elapsed() > WRITE_CHECK) {
                let failure = find_write_failure(&context, &settings.nats_stream, last);
                write_failed = tokio::time::timeout(POLL, failure).await?.is_some();
                write_checked_at = Some(Instant::now());
            }
            let measured_at = Instant::now();
            let measured = LagMeasurement { events, caught_up_at, progressed_at, measured_at, write_failed };
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(measured);
            tokio::time::sleep(POLL).await;
        }
    }
}
