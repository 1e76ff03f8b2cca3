//! Progress of one connection, shared by its reader, its writer and the sweep of slow clients.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::AbortHandle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::metrics::Connections;

/// Bytes of a request head that any client may send. A larger head needs a valid key or a permit.
const SMALL_HEAD: usize = 16 * 1024;
/// Bytes of a response that a client must accept within the write timeout, unless fewer remain.
const LEAST_TAKEN: usize = 64 * 1024;

/// Timeouts of a client connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Time for a request head, from its first byte.
    pub(crate) head: Duration,
    /// Idle time between requests, and before the first.
    pub(crate) idle: Duration,
    /// Time for each 64 KiB of a response.
    pub(crate) write: Duration,
}

/// One client connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Abort handle of the future that serves the connection.
    pub(super) closing: AbortHandle,
    large_heads: Arc<Semaphore>,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
struct Progress {
    phase: Phase,
    /// Start of the phase.
    since: Instant,
    /// True after a request with a valid key.
    has_shown_key: bool,
    /// Set while the client accepts less than the required rate.
    blocked: Option<Blocked>,
}

#[derive(Debug)]
enum Phase {
    /// No request is in progress.
    Idle,
    /// A request head is being received; `place` is the permit of a large one.
    Head { bytes: usize, place: Option<OwnedSemaphorePermit> },
    /// A request is being answered.
    Working,
}

#[derive(Debug)]
struct Blocked {
    since: Instant,
    taken: usize,
}

/// Eviction priority. The connection with the lowest value is evicted first.
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

    /// Records a request with a valid key.
    pub(crate) fn show_key(&self) {
        self.progress().has_shown_key = true;
    }

    pub(super) fn has_shown_key(&self) -> bool {
        self.progress().has_shown_key
    }

    /// Adds the connection to the count of its phase.
    pub(super) fn count(&self, connections: &mut Connections) {
        let same = match self.progress().phase {
            Phase::Idle => &mut connections.idle,
            Phase::Head { .. } => &mut connections.head,
            Phase::Working => &mut connections.working,
        };
        *same += 1;
    }

    /// Records a complete request. The working phase ends when the guard is dropped.
    pub(crate) fn working(self: &Arc<Self>) -> Working {
        self.progress().enter(Phase::Working);
        Working(Arc::clone(self))
    }

    /// Records received bytes. Returns `false` if a large head gets no permit.
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
            // These bytes belong to the next, pipelined request. hyper's read buffer bounds them.
            Phase::Working => {}
        }
        true
    }

    /// Records bytes accepted by the client.
    pub(super) fn took(&self, count: usize) {
        let mut progress = self.progress();
        if let Some(blocked) = &mut progress.blocked {
            blocked.taken += count;
            if blocked.taken >= LEAST_TAKEN {
                progress.blocked = None;
            }
        }
    }

    /// Records that the client accepts no bytes now.
    pub(super) fn blocked(&self) {
        self.progress().blocked.get_or_insert_with(|| Blocked { since: Instant::now(), taken: 0 });
    }

    /// Records that the client has accepted all bytes.
    pub(super) fn drained(&self) {
        let mut progress = self.progress();
        if progress.blocked.take().is_some() {
            progress.since = Instant::now();
        }
    }

    /// True if the client has exceeded a timeout.
    pub(super) fn is_overdue(&self, now: Instant, patience: &Patience) -> bool {
        let progress = self.progress();
        let beyond = |since: Instant, limit| now.saturating_duration_since(since) > limit;
        let is_late = match progress.phase {
            Phase::Idle => beyond(progress.since, patience.idle),
            Phase::Head { .. } => beyond(progress.since, patience.head),
            // The deadline of the request applies.
            Phase::Working => false,
        };
        is_late || progress.blocked.as_ref().is_some_and(|blocked| beyond(blocked.since, patience.write))
    }

    /// Eviction priority. `None` for a connection that must not be evicted, because a request is in progress.
    pub(super) fn worth(&self) -> Option<Worth> {
        let progress = self.progress();
        let is_sending = matches!(progress.phase, Phase::Head { .. });
        // Only clients with a key receive data, so only their pending writes prevent eviction.
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

/// Guard of a request in progress.
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
