//! Client connection with its phase, its progress and its eviction rank. The code that reads, the code that writes and
//! the periodic timeout check share this state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::AbortHandle;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum size of a request head that any client may send, in bytes. For a larger head, the client needs a valid key
/// or one of a limited number of permits.
const SMALL_HEAD: usize = 16 * 1024;
/// Number of bytes that a client must accept within the write timeout, unless fewer bytes remain.
const MIN_ACCEPTED_BYTES: usize = 64 * 1024;

/// Names of the phases of a connection.
pub(super) const PHASES: [&str; 3] = ["idle", "head", "working"];

/// Timeouts of a client connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientTimeouts {
    /// Maximum time for a request head, from its first byte.
    pub(crate) head: Duration,
    /// Maximum idle time between two requests, or before the first request.
    pub(crate) idle: Duration,
    /// Time in which the client must accept the next 64 KiB (or the rest) of a response.
    pub(crate) write: Duration,
}

/// One client connection.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    /// Abort handle of the task that serves the connection.
    pub(super) closing: AbortHandle,
    large_heads: Arc<Semaphore>,
    progress: Mutex<ConnectionProgress>,
}

#[derive(Debug)]
struct ConnectionProgress {
    phase: ConnectionPhase,
    /// Start of the phase, or the end of the last blocked write if that is later.
    phase_started_at: Instant,
    /// True after a request with a valid key.
    has_shown_key: bool,
    /// Set when a write blocks. Cleared when the client has accepted [`MIN_ACCEPTED_BYTES`] or all bytes.
    blocked: Option<BlockedWrite>,
}

#[derive(Debug)]
enum ConnectionPhase {
    /// No request is in progress.
    Idle,
    /// A request head is being received. `permit` is the permit for a large head.
    Head { bytes: usize, permit: Option<OwnedSemaphorePermit> },
    /// A request is being processed.
    Working,
}

#[derive(Debug)]
struct BlockedWrite {
    since: Instant,
    accepted_bytes: usize,
}

/// Eviction rank, compared field by field. The connection with the lowest rank is evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EvictionRank {
    has_shown_key: bool,
    is_sending: bool,
    phase_started_at: Instant,
}

impl ClientConnection {
    pub(super) fn new(closing: AbortHandle, large_heads: Arc<Semaphore>) -> Self {
        let progress = ConnectionProgress {
            phase: ConnectionPhase::Idle,
            phase_started_at: Instant::now(),
            has_shown_key: false,
            blocked: None,
        };
        Self { closing, large_heads, progress: Mutex::new(progress) }
    }

    /// Records a request with a valid key.
    pub(crate) fn record_valid_key(&self) {
        self.progress.lock().has_shown_key = true;
    }

    pub(super) fn has_shown_key(&self) -> bool {
        self.progress.lock().has_shown_key
    }

    /// Name of the current phase, one of [`PHASES`].
    pub(super) fn phase_name(&self) -> &'static str {
        match self.progress.lock().phase {
            ConnectionPhase::Idle => "idle",
            ConnectionPhase::Head { .. } => "head",
            ConnectionPhase::Working => "working",
        }
    }

    /// Starts the phase `working` after the head of a request was received. The phase ends when the guard is dropped.
    pub(crate) fn begin_request(self: &Arc<Self>) -> RequestGuard {
        self.progress.lock().enter(ConnectionPhase::Working);
        RequestGuard(Arc::clone(self))
    }

    /// Records received bytes. Returns `false` if the connection must be closed, because no permit for its large head
    /// is available.
    pub(super) fn record_received(&self, count: usize) -> bool {
        let mut progress = self.progress.lock();
        let has_shown_key = progress.has_shown_key;
        match &mut progress.phase {
            ConnectionPhase::Idle => progress.enter(ConnectionPhase::Head { bytes: count, permit: None }),
            ConnectionPhase::Head { bytes, permit } => {
                *bytes += count;
                if *bytes > SMALL_HEAD && !has_shown_key && permit.is_none() {
                    *permit = Arc::clone(&self.large_heads).try_acquire_owned().ok();
                    return permit.is_some();
                }
            }
            // The received bytes belong to the next, pipelined request. The size of hyper's read buffer bounds their
            // number.
            ConnectionPhase::Working => {}
        }
        true
    }

    /// Records bytes accepted by the client.
    pub(super) fn record_accepted(&self, count: usize) {
        let mut progress = self.progress.lock();
        if let Some(blocked) = &mut progress.blocked {
            blocked.accepted_bytes += count;
            if blocked.accepted_bytes >= MIN_ACCEPTED_BYTES {
                progress.blocked = None;
            }
        }
    }

    /// Records that a write is blocked, because the client currently accepts no bytes.
    pub(super) fn record_blocked(&self) {
        self.progress
            .lock()
            .blocked
            .get_or_insert_with(|| BlockedWrite { since: Instant::now(), accepted_bytes: 0 });
    }

    /// Records that the client has accepted all bytes.
    pub(super) fn record_drained(&self) {
        let mut progress = self.progress.lock();
        if progress.blocked.take().is_some() {
            progress.phase_started_at = Instant::now();
        }
    }

    /// True if the client has exceeded a timeout.
    pub(super) fn is_overdue(&self, now: Instant, timeouts: &ClientTimeouts) -> bool {
        let progress = self.progress.lock();
        let beyond = |since: Instant, limit| now.saturating_duration_since(since) > limit;
        let is_late = match progress.phase {
            ConnectionPhase::Idle => beyond(progress.phase_started_at, timeouts.idle),
            ConnectionPhase::Head { .. } => beyond(progress.phase_started_at, timeouts.head),
            // The deadline of the request applies instead of a connection timeout.
            ConnectionPhase::Working => false,
        };
        is_late || progress.blocked.as_ref().is_some_and(|blocked| beyond(blocked.since, timeouts.write))
    }

    /// Eviction rank; `None` during a request, or while a client with a valid key receives a response.
    pub(super) fn eviction_rank(&self) -> Option<EvictionRank> {
        let progress = self.progress.lock();
        let is_sending = matches!(progress.phase, ConnectionPhase::Head { .. });
        // A blocked write prevents eviction only for a client that has sent a valid key. Other clients receive no API
        // data.
        let is_accepting = progress.blocked.is_some() && progress.has_shown_key;
        let rank = EvictionRank {
            has_shown_key: progress.has_shown_key,
            is_sending,
            phase_started_at: progress.phase_started_at,
        };
        (!matches!(progress.phase, ConnectionPhase::Working) && !is_accepting).then_some(rank)
    }
}

impl ConnectionProgress {
    fn enter(&mut self, phase: ConnectionPhase) {
        (self.phase, self.phase_started_at) = (phase, Instant::now());
    }
}

/// Guard of a request in progress. The request ends when the guard is dropped.
#[derive(Debug)]
pub(crate) struct RequestGuard(Arc<ClientConnection>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.progress.lock().enter(ConnectionPhase::Idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: ClientTimeouts = ClientTimeouts {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(75),
        write: Duration::from_secs(30),
    };

    fn new(large_heads: Arc<Semaphore>) -> Arc<ClientConnection> {
        let (closing, _) = AbortHandle::new_pair();
        Arc::new(ClientConnection::new(closing, large_heads))
    }

    fn connection() -> Arc<ClientConnection> {
        new(Arc::new(Semaphore::new(1)))
    }

    fn is_overdue_after(connection: &ClientConnection, seconds: u64) -> bool {
        connection.is_overdue(Instant::now() + Duration::from_secs(seconds), &TIMEOUTS)
    }

    #[test]
    fn each_phase_has_its_own_time() {
        let connection = connection();
        assert!(!is_overdue_after(&connection, 70) && is_overdue_after(&connection, 76));
        assert!(connection.record_received(1) && is_overdue_after(&connection, 11));
        let working = connection.begin_request();
        assert!(!is_overdue_after(&connection, 1_000));
        drop(working);
        assert!(!is_overdue_after(&connection, 70) && is_overdue_after(&connection, 76));
    }

    #[test]
    fn an_answer_is_taken_in_time_or_in_large_parts() {
        let connection = connection();
        let _working = connection.begin_request();
        connection.record_blocked();
        assert!(!is_overdue_after(&connection, 29) && is_overdue_after(&connection, 31));
        connection.record_accepted(MIN_ACCEPTED_BYTES - 1);
        assert!(is_overdue_after(&connection, 31));
        connection.record_accepted(1);
        assert!(!is_overdue_after(&connection, 31));
        connection.record_blocked();
        connection.record_drained();
        assert!(!is_overdue_after(&connection, 31));
    }

    #[test]
    fn large_heads_of_strangers_take_turns() {
        let permits = Arc::new(Semaphore::new(1));
        let [one, two] = [(); 2].map(|()| new(Arc::clone(&permits)));
        assert!(one.record_received(1) && one.record_received(SMALL_HEAD));
        assert!(two.record_received(1) && !two.record_received(SMALL_HEAD));
        drop(one.begin_request());
        assert!(two.record_received(1));
        let keyed = new(permits);
        keyed.record_valid_key();
        assert!(keyed.record_received(1) && keyed.record_received(SMALL_HEAD));
    }
}
