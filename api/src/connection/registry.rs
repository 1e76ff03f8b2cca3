//! Registry of open connections by client network, with caps and eviction.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{AbortHandle, AbortRegistration};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::client_connection::{ClientConnection, ClientTimeouts, PHASES};
use crate::auth::client_address::ClientNetwork;

/// Maximum number of concurrent request heads above 16 KiB from clients without a valid key.
const LARGE_HEADS: usize = 512;
/// Maximum interval between two checks for connections that exceed a timeout.
const SWEEP: Duration = Duration::from_secs(1);

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
    timeouts: ClientTimeouts,
    large_heads: Arc<Semaphore>,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    total: usize,
    next: u64,
    networks: HashMap<ClientNetwork, HashMap<u64, Arc<ClientConnection>>>,
}

/// Connection with its entry in the registry. The entry is removed on drop.
#[derive(Debug)]
pub(crate) struct RegisteredConnection {
    registry: Arc<ConnectionRegistry>,
    network: ClientNetwork,
    number: u64,
    pub(crate) connection: Arc<ClientConnection>,
}

impl ConnectionRegistry {
    pub(crate) fn new(caps: ConnectionCaps, timeouts: ClientTimeouts) -> Arc<Self> {
        let large_heads = Arc::new(Semaphore::new(LARGE_HEADS));
        Arc::new(Self { caps, timeouts, large_heads, open: Mutex::default() })
    }

    /// Registers a connection, and evicts another one if a cap is reached. Returns `None` if no connection can be
    /// evicted. The caller must run the connection under the returned abort registration.
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
        if open.total >= self.caps.total && !open.evict_anywhere() {
            return None;
        }
        let (closing, ended) = AbortHandle::new_pair();
        let connection = Arc::new(ClientConnection::new(closing, Arc::clone(&self.large_heads)));
        let number = open.insert(network, Arc::clone(&connection));
        Some((RegisteredConnection { registry: Arc::clone(self), network, number, connection }, ended))
    }

    /// Aborts connections that exceed a timeout, in an endless loop.
    pub(crate) async fn abort_overdue(self: Arc<Self>) {
        let shortest = self.timeouts.head.min(self.timeouts.idle).min(self.timeouts.write);
        let mut ticks = tokio::time::interval(SWEEP.min(shortest / 4).max(Duration::from_millis(10)));
        loop {
            ticks.tick().await;
            let now = Instant::now();
            for connection in self.open.lock().networks.values().flat_map(HashMap::values) {
                if connection.is_overdue(now, &self.timeouts) {
                    connection.closing.abort();
                }
            }
        }
    }

    pub(crate) fn abort_all(&self) {
        self.open.lock().networks.values().flat_map(HashMap::values).for_each(|one| one.closing.abort());
    }

    /// Number of open connections by phase.
    pub(crate) fn count_by_phase(&self) -> HashMap<&'static str, i64> {
        let mut counts = HashMap::from(PHASES.map(|phase| (phase, 0)));
        for connection in self.open.lock().networks.values().flat_map(HashMap::values) {
            *counts.entry(connection.phase_name()).or_default() += 1;
        }
        counts
    }
}

impl OpenConnections {
    /// Makes room for one more connection of a client network. Returns `false` if a cap is reached and no connection
    /// can be evicted.
    fn make_room_at(&mut self, network: ClientNetwork, caps: &ConnectionCaps) -> bool {
        let Some(here) = self.networks.get(&network) else { return true };
        let by_address_without_key =
            || here.values().filter(|connection| !connection.has_shown_key()).count();
        if here.len() >= caps.by_address {
            self.evict_at(network, |_| true)
        } else if here.len() >= caps.by_address_without_key
            && by_address_without_key() >= caps.by_address_without_key
        {
            self.evict_at(network, |connection| !connection.has_shown_key())
        } else {
            true
        }
    }

    fn insert(&mut self, network: ClientNetwork, connection: Arc<ClientConnection>) -> u64 {
        self.next += 1;
        self.total += 1;
        self.networks.entry(network).or_default().insert(self.next, connection);
        self.next
    }

    fn remove(&mut self, network: ClientNetwork, number: u64) {
        let Some(here) = self.networks.get_mut(&network) else { return };
        if here.remove(&number).is_some() {
            self.total -= 1;
        }
        if here.is_empty() {
            self.networks.remove(&network);
        }
    }

    /// Evicts one connection of a client network: the one with the lowest rank among the connections that `may_go`
    /// accepts. Returns `false` if no connection can be evicted.
    fn evict_at(&mut self, network: ClientNetwork, may_go: impl Fn(&ClientConnection) -> bool) -> bool {
        let here = self.networks.get(&network).into_iter().flatten();
        let candidates = here
            .filter(|(_, connection)| may_go(connection))
            .filter_map(|(number, connection)| Some((connection.eviction_rank()?, *number)));
        let Some((_, number)) = candidates.min() else { return false };
        self.end(network, number);
        true
    }

    /// Evicts one connection: the one with the lowest rank among the connections of all networks. Returns `false` if no
    /// connection can be evicted.
    fn evict_anywhere(&mut self) -> bool {
        let all =
            self.networks.iter().flat_map(|(network, here)| here.iter().map(move |entry| (network, entry)));
        let candidates = all.filter_map(|(network, (number, connection))| {
            Some((connection.eviction_rank()?, *number, *network))
        });
        let Some((_, number, network)) = candidates.min_by_key(|(rank, number, _)| (*rank, *number)) else {
            return false;
        };
        self.end(network, number);
        true
    }

    fn end(&mut self, network: ClientNetwork, number: u64) {
        if let Some(connection) = self.networks.get(&network).and_then(|here| here.get(&number)) {
            connection.closing.abort();
        }
        self.remove(network, number);
    }
}

impl Drop for RegisteredConnection {
    fn drop(&mut self) {
        self.registry.open.lock().remove(self.network, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: ConnectionCaps = ConnectionCaps { total: 5, by_address_without_key: 2, by_address: 3 };

    fn registry() -> Arc<ConnectionRegistry> {
        let long = Duration::from_secs(60);
        ConnectionRegistry::new(CAPS, ClientTimeouts { head: long, idle: long, write: long })
    }

    fn from(registry: &Arc<ConnectionRegistry>, last: u8) -> Option<RegisteredConnection> {
        registry.register(IpAddr::from([10, 0, 0, last]), false).map(|(registered, _)| registered)
    }

    fn is_ended(registered: &RegisteredConnection) -> bool {
        registered.connection.closing.is_aborted()
    }

    #[test]
    fn the_oldest_idle_stranger_of_the_address_goes_first() {
        let registry = registry();
        let (one, two) = (from(&registry, 1).expect("room"), from(&registry, 1).expect("room"));
        let elsewhere = from(&registry, 2).expect("room");
        let three = from(&registry, 1).expect("room made");
        assert!(is_ended(&one) && !is_ended(&two) && !is_ended(&elsewhere));
        let at_work = [two.connection.begin_request(), three.connection.begin_request()];
        assert!(from(&registry, 1).is_none(), "all are at work");
        drop(at_work);
        two.connection.record_valid_key();
        let four = from(&registry, 1).expect("a key makes room");
        assert!(!is_ended(&two) && !is_ended(&three) && !is_ended(&four));
    }

    #[test]
    fn nobody_is_locked_out_by_many_addresses() {
        let registry = registry();
        let mut all: Vec<RegisteredConnection> = (1..=5).filter_map(|last| from(&registry, last)).collect();
        let late = from(&registry, 9).expect("room made");
        assert!(is_ended(&all[0]) && !is_ended(&all[1]) && !is_ended(&late));
        all.truncate(2);
        assert_eq!(registry.open.lock().total, 2);
    }

    #[test]
    fn a_trusted_address_has_no_cap_of_its_own() {
        let registry = registry();
        let proxy = || registry.register(IpAddr::from([10, 0, 0, 1]), true);
        let all: Vec<RegisteredConnection> =
            (0..5).filter_map(|_| proxy()).map(|(registered, _)| registered).collect();
        assert!(all.len() == 5 && !all.iter().any(is_ended));
    }
}
