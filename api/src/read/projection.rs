//! Projection: the databases that serve reads, and the selection of one for each request.
//!
//! Invariants: a request reads one generation of one database for its whole duration. A replica is read only if it has
//! all data that the instance has already returned. If the primary does not have a version, no replica has it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use store::ids::GenerationId;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, timeout_at};

use super::QueryError;
use super::kept_generations::KeptGenerations;
use super::read_source::{ConnectionSettings, ReadSource, SharedReadState};
use super::served_generation::ServedGeneration;
use crate::auth::tier::TierTable;
use crate::concurrency::background_tasks::BackgroundTasks;
use crate::parameters::MinVersion;
use crate::parameters::served_rules::ServedRules;

/// Maximum wait for a replica with the requested version, before the primary is read.
const REPLICA_WAIT: Duration = Duration::from_millis(200);
/// Maximum wait for any database with the requested version, before the request fails.
const VERSION_WAIT: Duration = Duration::from_secs(2);
/// A request concludes that a version does not exist only after this number of polls of the primary. The first poll may
/// have started before the request. The second poll started later, so it finds every version that existed at the start
/// of the request.
const FRESH_POLLS: u64 = 2;

/// Databases that serve reads, shared by all requests.
#[derive(Debug)]
pub(crate) struct Projection {
    shared: Arc<SharedReadState>,
    replicas: Vec<Arc<ReadSource>>,
    primary: Arc<ReadSource>,
    kept: KeptGenerations,
    /// Number of requests so far. It selects the replica that the next request tries first.
    next: AtomicUsize,
    max_replica_age: Duration,
}

impl Projection {
    /// Starts the tasks that follow the active generation of the primary and of each replica. They end when `tasks` is
    /// stopped. `tasks` also runs the batched look-ups.
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

    /// Pins a generation with the data version `min` or a newer one. Waits briefly for a replica, then for the primary.
    /// If the primary does not have the version, no database has it. The call then pins the generation of the primary,
    /// or fails if the client named the version explicitly.
    ///
    /// # Errors
    /// [`QueryError::VersionNotServed`] if the client named the version explicitly, and the data of the primary is
    /// older.
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

    /// Pins a former generation; `None` if its tables no longer exist.
    pub(crate) async fn pin_kept(
        &self,
        served: &ServedGeneration,
        id: GenerationId,
    ) -> Option<Arc<ServedGeneration>> {
        self.kept.find(served, id).await
    }

    /// Minimum version for the next read: the greatest journal position in the responses of this instance.
    fn answered(&self) -> MinVersion {
        MinVersion::of_position(self.shared.answered.load(Ordering::Relaxed))
    }

    /// Finds a generation with the data version `min` or a newer one. The replicas are tried first, and then the
    /// primary if `is_primary_allowed`. `turn` selects the first replica.
    fn find(&self, min: &MinVersion, is_primary_allowed: bool, turn: usize) -> Option<Arc<ServedGeneration>> {
        let first = turn.checked_rem(self.replicas.len()).unwrap_or_default();
        let (before, after) = self.replicas.split_at(first);
        let replicas = after.iter().chain(before).filter(|replica| self.is_read(replica));
        let replicas = replicas.filter_map(|replica| replica.generation());
        let primary = self.primary.generation().filter(|_| is_primary_allowed);
        replicas.chain(primary).find(|generation| generation.version().reaches(min))
    }

    /// True if the replica is reachable and its data is not older than `max_replica_age`.
    fn is_read(&self, replica: &ReadSource) -> bool {
        replica.is_reachable() && replica.age() <= self.max_replica_age
    }

    /// True if the primary or a replica answered its latest poll.
    pub(crate) fn is_database_reachable(&self) -> bool {
        self.replicas.iter().chain([&self.primary]).any(|source| source.is_reachable())
    }

    /// Number of replicas in use, and number of replicas that are unreachable or too old.
    pub(crate) fn count_replicas(&self) -> [usize; 2] {
        let read = self.replicas.iter().filter(|replica| self.is_read(replica)).count();
        [read, self.replicas.len() - read]
    }

    /// Rules that were used to derive the figures of the served generation.
    pub(crate) fn served_rules(&self) -> Arc<ServedRules> {
        self.pin().map_or_else(|_| Arc::default(), |generation| generation.served_rules())
    }

    /// Limits of the tiers.
    pub(crate) fn tiers(&self) -> Arc<TierTable> {
        Arc::clone(&self.shared.tiers.read().unwrap_or_else(PoisonError::into_inner))
    }
}
