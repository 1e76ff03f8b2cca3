//! Progress of one connection, shared by its reader, its writer and the sweep of slow clients.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::AbortHandle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::metrics::Connections;

/// Bytes of a head that any client may send; more take one of the places for large heads.
const SMALL_HEAD: usize = 16 * 1024;
/// Bytes of an answer that a client has to take in the time for writing, or all that is left.
const LEAST_TAKEN: usize = 64 * 1024;

/// How long a client may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For a request's head, from its first byte.
    pub(crate) head: Duration,
    /// Between requests, and before the first.
    pub(crate) idle: Duration,
    /// For each 64 KiB of an answer.
    pub(crate) write: Duration,
}

/// One client connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Ends what serves the connection.
    pub(super) closing: AbortHandle,
    large_heads: Arc<Semaphore>,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
struct Progress {
    phase: Phase,
    /// When the phase began.
    since: Instant,
    /// True if a request with a valid key came over it.
    has_shown_key: bool,
    /// Since when the client has taken less than it has to.
    blocked: Option<Blocked>,
}

#[derive(Debug)]
enum Phase {
    /// Nothing was asked, or all is answered.
    Idle,
    /// So many bytes of a head have come; a large one holds its place.
    Head { bytes: usize, place: Option<OwnedSemaphorePermit> },
    /// A request is being answered.
    Working,
}

#[derive(Debug)]
struct Blocked {
    since: Instant,
    taken: usize,
}

/// The order in which connections go when there are too many: the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Worth {
    has_shown_key: bool,
    is_sending: bool,
    since: Instant,
}

impl Connection {
    pub(super) fn new(closing: AbortHandle, large_heads: Arc<Semaphore>) -> Self {
        let progress =
            Progress { phase: Phase::Idle, since: Instant::now(), has_shown_key: false, blocked: None };
        Self { closing, large_heads, progress: Mutex::new(progress) }
    }

    /// Notes that a request with a valid key came.
    pub(crate) fn show_key(&self) {
        self.progress().has_shown_key = true;
    }

    /// True if a request with a valid key came.
    pub(super) fn has_shown_key(&self) -> bool {
        self.progress().has_shown_key
    }

    /// Adds the connection to those that do the same.
    pub(super) fn count(&self, connections: &mut Connections) {
        let same = match self.progress().phase {
            Phase::Idle => &mut connections.idle,
            Phase::Head { .. } => &mut connections.head,
            Phase::Working => &mut connections.working,
        };
        *same += 1;
    }

    /// Notes a whole request; it is being answered until the guard is dropped.
    pub(crate) fn working(self: &Arc<Self>) -> Working {
        self.progress().enter(Phase::Working);
        Working(Arc::clone(self))
    }

    /// Notes bytes from the client; `false` when they are more of a head than there is room for.
    pub(super) fn received(&self, count: usize) -> bool {
        let mut progress = self.progress();
        let has_shown_key = progress.has_shown_key;
        match &mut progress.phase {
            Phase::Idle => progress.enter(Phase::Head { bytes: count, place: None }),
            Phase::Head { bytes, place } => {
                *bytes += count;
                if *bytes > SMALL_HEAD && !has_shown_key && place.is_none() {
                    *place = Arc::clone(&self.large_heads).try_acquire_owned().ok();
                    return place.is_some();
                }
            }
            // The next request, sent ahead; how much of it is read is bounded where it is read.
            Phase::Working => {}
        }
        true
    }

    /// Notes bytes that the client took.
    pub(super) fn took(&self, count: usize) {
        let mut progress = self.progress();
        if let Some(blocked) = &mut progress.blocked {
            blocked.taken += count;
            if blocked.taken >= LEAST_TAKEN {
                progress.blocked = None;
            }
        }
    }

    /// Notes that the client takes nothing at the moment.
    pub(super) fn blocked(&self) {
        self.progress().blocked.get_or_insert_with(|| Blocked { since: Instant::now(), taken: 0 });
    }

    /// Notes that the client took all there was.
    pub(super) fn drained(&self) {
        let mut progress = self.progress();
        if progress.blocked.take().is_some() {
            progress.since = Instant::now();
        }
    }

    /// True if the client has taken longer than it may.
    pub(super) fn is_overdue(&self, now: Instant, patience: &Patience) -> bool {
        let progress = self.progress();
        let beyond = |since: Instant, limit| now.saturating_duration_since(since) > limit;
        let is_late = match progress.phase {
            Phase::Idle => beyond(progress.since, patience.idle),
            Phase::Head { .. } => beyond(progress.since, patience.head),
            // The request's own time limit governs.
            Phase::Working => false,
        };
        is_late || progress.blocked.as_ref().is_some_and(|blocked| beyond(blocked.since, patience.write))
    }

    /// How late it goes when there are too many; `None` while it is being answered.
    pub(super) fn worth(&self) -> Option<Worth> {
        let progress = self.progress();
        let is_sending = matches!(progress.phase, Phase::Head { .. });
        // Only a client with a key is given answers that are worth waiting for.
        let is_taking = progress.blocked.is_some() && progress.has_shown_key;
        let worth = Worth { has_shown_key: progress.has_shown_key, is_sending, since: progress.since };
        (!matches!(progress.phase, Phase::Working) && !is_taking).then_some(worth)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    fn enter(&mut self, phase: Phase) {
        (self.phase, self.since) = (phase, Instant::now());
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Working(Arc<Connection>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.progress().enter(Phase::Idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(75),
        write: Duration::from_secs(30),
    };

    fn new(large_heads: Arc<Semaphore>) -> Arc<Connection> {
        let (closing, _) = AbortHandle::new_pair();
        Arc::new(Connection::new(closing, large_heads))
    }

    fn connection() -> Arc<Connection> {
        new(Arc::new(Semaphore::new(1)))
    }

    fn is_overdue_after(connection: &Connection, seconds: u64) -> bool {
        connection.is_overdue(Instant::now() + Duration::from_secs(seconds), &PATIENCE)
    }

    #[test]
    fn each_phase_has_its_own_time() {
        let connection = connection();
        assert!(!is_overdue_after(&connection, 70) && is_overdue_after(&connection, 76));
        assert!(connection.received(1) && is_overdue_after(&connection, 11));
        let working = connection.working();
        assert!(!is_overdue_after(&connection, 1_000));
        drop(working);
        assert!(!is_overdue_after(&connection, 70) && is_overdue_after(&connection, 76));
    }

    #[test]
    fn an_answer_is_taken_in_time_or_in_large_parts() {
        let connection = connection();
        let _working = connection.working();
        connection.blocked();
        assert!(!is_overdue_after(&connection, 29) && is_overdue_after(&connection, 31));
        connection.took(LEAST_TAKEN - 1);
        assert!(is_overdue_after(&connection, 31));
        connection.took(1);
        assert!(!is_overdue_after(&connection, 31));
        connection.blocked();
        connection.drained();
        assert!(!is_overdue_after(&connection, 31));
    }

    #[test]
    fn large_heads_of_strangers_take_turns() {
        let places = Arc::new(Semaphore::new(1));
        let [one, two] = [(); 2].map(|()| new(Arc::clone(&places)));
        assert!(one.received(1) && one.received(SMALL_HEAD));
        assert!(two.received(1) && !two.received(SMALL_HEAD));
        drop(one.working());
        assert!(two.received(1));
        let keyed = new(places);
        keyed.show_key();
        assert!(keyed.received(1) && keyed.received(SMALL_HEAD));
    }
}
