//! Registry of open client connections, with caps. If a cap is reached, the connection that is idle for the longest time
//! is closed.
//!
//! Stream wrapper with a write timeout: a client must accept the next 64 KiB, or all remaining bytes, in time.
//!
//! Invariant: idle connections, and connections without a complete request, exclude no new client.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::{AbortHandle, AbortRegistration};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::auth::client_address::ClientNetwork;

/// Maximum numbers of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionCaps {
    /// Maximum number of connections of the instance.
    pub(crate) total: usize,
    /// Maximum number of connections without a valid key per client network.
    pub(crate) by_address_without_key: usize,
    /// Maximum number of connections per client network, with or without a valid key.
    pub(crate) by_address: usize,
}

/// Registry of open connections.
#[derive(Debug)]
pub(crate) struct ConnectionRegistry {
    caps: ConnectionCaps,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    total: usize,
    networks: HashMap<ClientNetwork, Vec<Arc<ClientConnection>>>,
}

/// One client connection.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    network: ClientNetwork,
    /// Abort handle of the task that serves the connection.
    abort: AbortHandle,
    state: Mutex<ConnectionState>,
}

#[derive(Debug)]
struct ConnectionState {
    /// True after a request with a valid key.
    has_shown_key: bool,
    is_working: bool,
    /// Time of the end of the last request, or of the start of the connection.
    idle_since: Instant,
}

/// Connection with its entry in the registry. The entry is removed on drop.
#[derive(Debug)]
pub(crate) struct RegisteredConnection {
    registry: Arc<ConnectionRegistry>,
    pub(crate) connection: Arc<ClientConnection>,
}

/// Guard of a request in progress. The request ends when the guard is dropped.
#[derive(Debug)]
pub(crate) struct RequestGuard(Arc<ClientConnection>);

impl ConnectionRegistry {
    pub(crate) fn new(caps: ConnectionCaps) -> Arc<Self> {
        Arc::new(Self { caps, open: Mutex::default() })
    }

    /// Registers a connection, and closes another one if a cap is reached. Returns `None` if no connection can be
    /// closed. The caller must run the connection under the returned abort registration.
    pub(crate) fn register(
        self: &Arc<Self>,
        peer: IpAddr,
        is_trusted: bool,
    ) -> Option<(RegisteredConnection, AbortRegistration)> {
        let (network, _) = ClientNetwork::containing(peer);
        let mut open = self.open.lock();
        if !is_trusted && !open.make_room_at(network, &self.caps) {
            return None;
        }
        if open.total >= self.caps.total && !open.evict(|_| true) {
            return None;
        }
        let (abort, aborted) = AbortHandle::new_pair();
        let state = ConnectionState { has_shown_key: false, is_working: false, idle_since: Instant::now() };
        let connection = Arc::new(ClientConnection { network, abort, state: Mutex::new(state) });
        open.total += 1;
        open.networks.entry(network).or_default().push(Arc::clone(&connection));
        Some((RegisteredConnection { registry: Arc::clone(self), connection }, aborted))
    }

    /// Number of connections with a request in progress, and of all other connections.
    pub(crate) fn count_working_and_idle(&self) -> [usize; 2] {
        let open = self.open.lock();
        let working = open.connections().filter(|connection| connection.state.lock().is_working).count();
        [working, open.total - working]
    }
}

impl OpenConnections {
    fn connections(&self) -> impl Iterator<Item = &Arc<ClientConnection>> {
        self.networks.values().flatten()
    }

    /// Makes room for one more connection of a client network. Returns `false` if a cap is reached and no connection
    /// can be closed.
    fn make_room_at(&mut self, network: ClientNetwork, caps: &ConnectionCaps) -> bool {
        let Some(here) = self.networks.get(&network) else { return true };
        let is_full = here.len() >= caps.by_address;
        let without_key = here.iter().filter(|connection| !connection.has_shown_key()).count();
        if !is_full && without_key < caps.by_address_without_key {
            return true;
        }
        self.evict(|one| one.network == network && (is_full || !one.has_shown_key()))
    }

    /// Closes the connection that is idle for the longest time among those that `may_go` accepts. A connection with a
    /// valid key is closed last. Returns `false` if no connection can be closed.
    fn evict(&mut self, may_go: impl Fn(&ClientConnection) -> bool) -> bool {
        let candidates = self.connections().filter(|connection| may_go(connection));
        let idle = candidates.filter_map(|connection| Some((connection.eviction_rank()?, connection)));
        let Some((_, oldest)) = idle.min_by_key(|(rank, _)| *rank) else { return false };
        let oldest = Arc::clone(oldest);
        oldest.abort.abort();
        self.remove(&oldest);
        true
    }

    fn remove(&mut self, connection: &Arc<ClientConnection>) {
        let Some(here) = self.networks.get_mut(&connection.network) else { return };
        if let Some(index) = here.iter().position(|other| Arc::ptr_eq(other, connection)) {
            here.swap_remove(index);
            self.total -= 1;
        }
        if here.is_empty() {
            self.networks.remove(&connection.network);
        }
    }
}

impl ClientConnection {
    /// Records a request with a valid key.
    pub(crate) fn record_valid_key(&self) {
        self.state.lock().has_shown_key = true;
    }

    /// Begins a request, after its head was received.
    pub(crate) fn begin_request(self: &Arc<Self>) -> RequestGuard {
        self.state.lock().is_working = true;
        RequestGuard(Arc::clone(self))
    }

    fn has_shown_key(&self) -> bool {
        self.state.lock().has_shown_key
    }

    /// The connection with the lowest rank is closed first. `None` during a request.
    fn eviction_rank(&self) -> Option<(bool, Instant)> {
        let state = self.state.lock();
        (!state.is_working).then_some((state.has_shown_key, state.idle_since))
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        (state.is_working, state.idle_since) = (false, Instant::now());
    }
}

impl Drop for RegisteredConnection {
    fn drop(&mut self) {
        self.registry.open.lock().remove(&self.connection);
    }
}

/// Number of bytes that a client must accept within the timeout, unless fewer bytes remain.
const MIN_ACCEPTED_BYTES: usize = 64 * 1024;

/// Stream with a write timeout.
pub(crate) struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    /// Set when a write blocks. Cleared when the client has accepted [`MIN_ACCEPTED_BYTES`] or all bytes.
    blocked: Option<BlockedWrite>,
}

struct BlockedWrite {
    deadline: Pin<Box<Sleep>>,
    accepted: usize,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, blocked: None }
    }

    /// Records the result of a write. Replaces it by an error after the deadline.
    fn check(&mut self, cx: &mut Context<'_>, written: Poll<Result<usize>>) -> Poll<Result<usize>> {
        match (&written, &mut self.blocked) {
            (Poll::Ready(Ok(count)), Some(blocked)) => {
                blocked.accepted += count;
                if blocked.accepted >= MIN_ACCEPTED_BYTES {
                    self.blocked = None;
                }
            }
            (Poll::Ready(_), _) => {}
            (Poll::Pending, blocked) => {
                let new = || BlockedWrite { deadline: Box::pin(sleep(self.timeout)), accepted: 0 };
                if blocked.get_or_insert_with(new).deadline.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client reads too slowly")));
                }
            }
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.check(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        // hyper flushes only when it has written all bytes, so no write is blocked any more.
        self.blocked = None;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::Instant;

    use super::*;

    const CAPS: ConnectionCaps = ConnectionCaps { total: 5, by_address_without_key: 2, by_address: 3 };

    fn from(registry: &Arc<ConnectionRegistry>, last: u8) -> Option<RegisteredConnection> {
        registry.register(IpAddr::from([10, 0, 0, last]), false).map(|(registered, _)| registered)
    }

    fn is_ended(registered: &RegisteredConnection) -> bool {
        registered.connection.abort.is_aborted()
    }

    #[test]
    fn the_oldest_idle_stranger_of_the_address_goes_first() {
        let registry = ConnectionRegistry::new(CAPS);
        let (one, two) = (from(&registry, 1).expect("room"), from(&registry, 1).expect("room"));
        let elsewhere = from(&registry, 2).expect("room");
        let three = from(&registry, 1).expect("room made");
        assert!(is_ended(&one) && !is_ended(&two) && !is_ended(&elsewhere));
        let at_work = [two.connection.begin_request(), three.connection.begin_request()];
        assert!(from(&registry, 1).is_none(), "all are at work");
        assert_eq!(registry.count_working_and_idle(), [2, 1]);
        drop(at_work);
        two.connection.record_valid_key();
        let four = from(&registry, 1).expect("a key makes room");
        assert!(!is_ended(&two) && !is_ended(&three) && !is_ended(&four));
    }

    #[test]
    fn nobody_is_locked_out_by_many_addresses() {
        let registry = ConnectionRegistry::new(CAPS);
        let mut all: Vec<RegisteredConnection> = (1..=5).filter_map(|last| from(&registry, last)).collect();
        let late = from(&registry, 9).expect("room made");
        assert!(is_ended(&all[0]) && !is_ended(&all[1]) && !is_ended(&late));
        all.truncate(2);
        assert_eq!(registry.open.lock().total, 2);
    }

    #[test]
    fn a_trusted_address_has_no_cap_of_its_own() {
        let registry = ConnectionRegistry::new(CAPS);
        let proxy = || registry.register(IpAddr::from([10, 0, 0, 1]), true);
        let all: Vec<RegisteredConnection> =
            (0..5).filter_map(|_| proxy()).map(|(registered, _)| registered).collect();
        assert!(all.len() == 5 && !all.iter().any(is_ended));
    }

    const TIMEOUT: Duration = Duration::from_secs(30);

    /// Writes 1 MiB to a client that reads `part` bytes each second. Returns the result and the duration.
    async fn write_to(part: usize) -> (Result<()>, Duration) {
        let (stream, mut client) = duplex(1024);
        let read = async |client: &mut DuplexStream| {
            let mut bytes = vec![0; part];
            while client.read_exact(&mut bytes).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let started = Instant::now();
        let mut stream = WriteTimeout::new(stream, TIMEOUT);
        let text = vec![b'a'; 1024 * 1024];
        let written = tokio::select! {
            written = stream.write_all(&text) => written,
            () = read(&mut client) => Ok(()),
        };
        (written, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_has_time_and_a_trickling_one_has_not() {
        let (written, took) = write_to(4 * 1024).await;
        assert!(written.is_ok() && took > 2 * TIMEOUT, "{written:?} {took:?}");
        let (written, took) = write_to(1).await;
        assert_eq!(written.map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
        assert!(took >= TIMEOUT && took < TIMEOUT + Duration::from_secs(2), "{took:?}");
    }
}
