//! Registry of open connections by address: caps and eviction.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{AbortHandle, AbortRegistration};
use tokio::sync::Semaphore;

use super::progress::{Connection, Patience};
use crate::auth::client_address::Place;
use crate::metrics::Connections;

/// Maximum number of concurrent large heads of clients without a key.
const LARGE_HEADS: usize = 512;
/// Maximum interval between two timeout sweeps.
const SWEEP: Duration = Duration::from_secs(1);

/// Maximum numbers of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caps {
    /// In total.
    pub(crate) total: usize,
    /// Per address, before the connections have sent a valid key.
    pub(crate) strangers: usize,
    /// Per address.
    pub(crate) by_address: usize,
}

/// Registry of open connections.
#[derive(Debug)]
pub(crate) struct Registry {
    caps: Caps,
    patience: Patience,
    large_heads: Arc<Semaphore>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    next: u64,
    places: HashMap<Place, HashMap<u64, Arc<Connection>>>,
}

/// Entry of a connection in the registry, removed on drop.
#[derive(Debug)]
pub(crate) struct Registered {
    registry: Arc<Registry>,
    place: Place,
    number: u64,
    pub(crate) connection: Arc<Connection>,
}

impl Registry {
    pub(crate) fn new(caps: Caps, patience: Patience) -> Arc<Self> {
        let large_heads = Arc::new(Semaphore::new(LARGE_HEADS));
        Arc::new(Self { caps, patience, large_heads, open: Mutex::default() })
    }

    /// Registers a connection, and evicts another one if a cap is reached. Returns `None` if none can be evicted. The
    /// registration aborts the connection's future. Trusted addresses have no cap per address.
    pub(crate) fn register(
        self: &Arc<Self>,
        peer: IpAddr,
        is_trusted: bool,
    ) -> Option<(Registered, AbortRegistration)> {
        let (place, _) = Place::of(peer);
        let mut open = self.open();
        if !is_trusted && !open.make_room_at(place, &self.caps) {
            return None;
        }
        if open.total >= self.caps.total && !open.evict_anywhere() {
            return None;
        }
        let (closing, ended) = AbortHandle::new_pair();
        let connection = Arc::new(Connection::new(closing, Arc::clone(&self.large_heads)));
        let number = open.insert(place, Arc::clone(&connection));
        Some((Registered { registry: Arc::clone(self), place, number, connection }, ended))
    }

    /// Aborts overdue connections, in an endless loop.
    pub(crate) async fn sweep(self: Arc<Self>) {
        let shortest = self.patience.head.min(self.patience.idle).min(self.patience.write);
        let mut ticks = tokio::time::interval(SWEEP.min(shortest / 4).max(Duration::from_millis(10)));
        loop {
            ticks.tick().await;
            let now = Instant::now();
            for connection in self.open().places.values().flat_map(HashMap::values) {
                if connection.is_overdue(now, &self.patience) {
                    connection.closing.abort();
                }
            }
        }
    }

    pub(crate) fn end_all(&self) {
        self.open().places.values().flat_map(HashMap::values).for_each(|one| one.closing.abort());
    }

    /// Open connections by phase.
    pub(crate) fn count(&self) -> Connections {
        let mut connections = Connections::default();
        let open = self.open();
        open.places.values().flat_map(HashMap::values).for_each(|one| one.count(&mut connections));
        connections
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Makes room for one more connection of an address. Returns `false` if none can be evicted.
    fn make_room_at(&mut self, place: Place, caps: &Caps) -> bool {
        let Some(here) = self.places.get(&place) else { return true };
        let strangers = || here.values().filter(|connection| !connection.has_shown_key()).count();
        if here.len() >= caps.by_address {
            self.evict_at(place, |_| true)
        } else if here.len() >= caps.strangers && strangers() >= caps.strangers {
            self.evict_at(place, |connection| !connection.has_shown_key())
        } else {
            true
        }
    }

    fn insert(&mut self, place: Place, connection: Arc<Connection>) -> u64 {
        self.next += 1;
        self.total += 1;
        self.places.entry(place).or_default().insert(self.next, connection);
        self.next
    }

    fn remove(&mut self, place: Place, number: u64) {
        let Some(here) = self.places.get_mut(&place) else { return };
        if here.remove(&number).is_some() {
            self.total -= 1;
        }
        if here.is_empty() {
            self.places.remove(&place);
        }
    }

    /// Evicts the connection with the lowest priority at an address, among those that match. Returns `false` if none
    /// can be evicted.
    fn evict_at(&mut self, place: Place, may_go: impl Fn(&Connection) -> bool) -> bool {
        let here = self.places.get(&place).into_iter().flatten();
        let worthy = here
            .filter(|(_, connection)| may_go(connection))
            .filter_map(|(number, connection)| Some((connection.worth()?, *number)));
        let Some((_, number)) = worthy.min() else { return false };
        self.end(place, number);
        true
    }

    /// Evicts the connection with the lowest priority of all. Returns `false` if none can be evicted.
    fn evict_anywhere(&mut self) -> bool {
        let all = self.places.iter().flat_map(|(place, here)| here.iter().map(move |entry| (place, entry)));
        let worthy =
            all.filter_map(|(place, (number, connection))| Some((connection.worth()?, *number, *place)));
        let Some((_, number, place)) = worthy.min_by_key(|(worth, number, _)| (*worth, *number)) else {
            return false;
        };
        self.end(place, number);
        true
    }

    fn end(&mut self, place: Place, number: u64) {
        if let Some(connection) = self.places.get(&place).and_then(|here| here.get(&number)) {
            connection.closing.abort();
        }
        self.remove(place, number);
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.registry.open().remove(self.place, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: Caps = Caps { total: 5, strangers: 2, by_address: 3 };

    fn registry() -> Arc<Registry> {
        let long = Duration::from_secs(60);
        Registry::new(CAPS, Patience { head: long, idle: long, write: long })
    }

    fn from(registry: &Arc<Registry>, last: u8) -> Option<Registered> {
        registry.register(IpAddr::from([10, 0, 0, last]), false).map(|(registered, _)| registered)
    }

    fn is_ended(registered: &Registered) -> bool {
        registered.connection.closing.is_aborted()
    }

    #[test]
    fn the_oldest_idle_stranger_of_the_address_goes_first() {
        let registry = registry();
        let (one, two) = (from(&registry, 1).expect("room"), from(&registry, 1).expect("room"));
        let elsewhere = from(&registry, 2).expect("room");
        let three = from(&registry, 1).expect("room made");
        assert!(is_ended(&one) && !is_ended(&two) && !is_ended(&elsewhere));
        let at_work = [two.connection.working(), three.connection.working()];
        assert!(from(&registry, 1).is_none(), "all are at work");
        drop(at_work);
        two.connection.show_key();
        let four = from(&registry, 1).expect("a key makes room");
        assert!(!is_ended(&two) && !is_ended(&three) && !is_ended(&four));
    }

    #[test]
    fn nobody_is_locked_out_by_many_addresses() {
        let registry = registry();
        let mut all: Vec<Registered> = (1..=5).filter_map(|last| from(&registry, last)).collect();
        let late = from(&registry, 9).expect("room made");
        assert!(is_ended(&all[0]) && !is_ended(&all[1]) && !is_ended(&late));
        all.truncate(2);
        assert_eq!(registry.open().total, 2);
    }

    #[test]
    fn a_trusted_address_has_no_cap_of_its_own() {
        let registry = registry();
        let proxy = || registry.register(IpAddr::from([10, 0, 0, 1]), true);
        let all: Vec<Registered> = (0..5).filter_map(|_| proxy()).map(|(registered, _)| registered).collect();
        assert!(all.len() == 5 && !all.iter().any(is_ended));
    }
}
