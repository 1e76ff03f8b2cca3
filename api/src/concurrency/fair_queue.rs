//! Fair queue for expensive work. It grants permits to its keys (for example accounts) in turn, to urgent keys first.
//!
//! Invariant: at most `max_permits` permits are in use.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Maximum number of expensive responses of one account that are rendered or sent at the same time.
const MAX_IN_PROGRESS_PER_ACCOUNT: usize = 4;
/// Maximum number of waiting requests of one account.
const MAX_WAITERS_PER_ACCOUNT: usize = 60;

/// Errors of a request for a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueueError {
    #[error("too many expensive requests are waiting")]
    Full,
    #[error("the wait for a permit timed out")]
    Timeout,
}

/// Key of a fair queue, such as an account. The queue serves its keys round-robin.
pub(crate) trait QueueKey: Copy + Eq + Hash + Debug + Send + Sync + 'static {
    /// True if the key is served before all keys that are not urgent.
    fn is_urgent(self) -> bool {
        false
    }
}

/// Limits of a fair queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueLimits {
    /// Maximum number of work permits in use.
    pub(crate) max_permits: usize,
    /// Limit that replaces `max_permits` while an ordinary (not expensive) request is in progress. Permits granted
    /// earlier stay valid.
    pub(crate) max_permits_beside_others: usize,
    /// Maximum number of expensive results per key that are computed or delivered at the same time.
    pub(crate) max_in_progress_per_key: usize,
    /// Maximum number of waiters per key.
    pub(crate) max_waiters_per_key: usize,
    /// Maximum number of waiters of all keys together.
    pub(crate) max_waiters: usize,
    /// Maximum wait for a permit.
    pub(crate) timeout: Duration,
}

impl QueueLimits {
    /// Limits for expensive responses. `renderers` is the maximum number rendered at the same time.
    pub(crate) fn of_responses(renderers: usize, timeout: Duration) -> Self {
        Self {
            max_permits: renderers.max(1),
            max_permits_beside_others: (renderers / 2).max(1),
            max_in_progress_per_key: MAX_IN_PROGRESS_PER_ACCOUNT,
            max_waiters_per_key: MAX_WAITERS_PER_ACCOUNT,
            max_waiters: usize::MAX,
            timeout,
        }
    }
}

/// Queue that grants permits for expensive work to its keys, round-robin.
#[derive(Debug)]
pub(crate) struct FairQueue<K: QueueKey> {
    limits: QueueLimits,
    /// Number of ordinary (not expensive) requests in progress.
    ordinary_requests: AtomicUsize,
    state: Mutex<QueueState<K>>,
}

/// Guard of an ordinary (not expensive) request in progress. Until the guard is dropped, the queue grants fewer
/// permits.
#[derive(Debug)]
pub(crate) struct OrdinaryRequest<K: QueueKey>(Arc<FairQueue<K>>);

#[derive(Debug)]
struct QueueState<K: QueueKey> {
    limits: QueueLimits,
    permits_in_use: usize,
    /// Number of waiters of all keys. A waiter that timed out is counted until it is removed.
    waiting: usize,
    keys: HashMap<K, KeyQueue<K>>,
    /// Keys with waiters, each key once, in the order in which the queue serves them. The first list contains the
    /// urgent keys, the second list all other keys.
    orders: [VecDeque<K>; 2],
}

#[derive(Debug)]
struct KeyQueue<K: QueueKey> {
    in_progress: usize,
    waiters: VecDeque<oneshot::Sender<Reservation<K>>>,
}

/// Permit for expensive work. `work` must be kept while the result is computed, and `slot` until the result is
/// delivered.
#[derive(Debug)]
pub(crate) struct Permit<K: QueueKey> {
    pub(crate) work: WorkPermit<K>,
    pub(crate) slot: Arc<KeySlot<K>>,
}

/// One of the `max_permits` permits of the queue. Dropping the permit returns it to the queue.
#[derive(Debug)]
pub(crate) struct WorkPermit<K: QueueKey>(Arc<FairQueue<K>>);

/// Slot of a key for one result, kept until the result is delivered. Dropping the slot returns it to the queue.
#[derive(Debug)]
pub(crate) struct KeySlot<K: QueueKey> {
    queue: Arc<FairQueue<K>>,
    key: K,
}

/// Permit that was sent to a waiter. If the reservation is dropped before `claim`, the permit returns to the queue.
#[derive(Debug)]
struct Reservation<K: QueueKey> {
    queue: Option<Arc<FairQueue<K>>>,
    key: K,
}

impl<K: QueueKey> FairQueue<K> {
    pub(crate) fn new(limits: QueueLimits) -> Arc<Self> {
        let state = QueueState {
            limits,
            permits_in_use: 0,
            waiting: 0,
            keys: HashMap::new(),
            orders: [VecDeque::new(), VecDeque::new()],
        };
        Arc::new(Self { limits, ordinary_requests: AtomicUsize::new(0), state: Mutex::new(state) })
    }

    /// Counts an ordinary request as in progress.
    pub(crate) fn begin_ordinary_request(self: &Arc<Self>) -> OrdinaryRequest<K> {
        self.ordinary_requests.fetch_add(1, Ordering::Relaxed);
        OrdinaryRequest(Arc::clone(self))
    }

    /// True if an ordinary request is in progress.
    pub(crate) fn has_ordinary_requests(&self) -> bool {
        self.ordinary_requests.load(Ordering::Relaxed) > 0
    }

    /// Waits for a permit for this key.
    pub(crate) async fn acquire(self: &Arc<Self>, key: K) -> Result<Permit<K>, QueueError> {
        let (sender, reservation) = oneshot::channel();
        self.state.lock().push(key, sender)?;
        self.dispatch();
        match tokio::time::timeout(self.limits.timeout, reservation).await {
            Ok(Ok(reservation)) => reservation.claim().ok_or(QueueError::Timeout),
            // A new waiter of another key displaced this waiter, because the queue was full.
            Ok(Err(_)) => Err(QueueError::Full),
            Err(_) => Err(QueueError::Timeout),
        }
    }

    fn capacity(&self) -> usize {
        match self.has_ordinary_requests() {
            false => self.limits.max_permits,
            true => self.limits.max_permits_beside_others,
        }
    }

    /// Grants permits to waiters, up to the current limit. Runs for each new waiter, and for each returned permit or
    /// slot.
    fn dispatch(self: &Arc<Self>) {
        let mut state = self.state.lock();
        while state.permits_in_use < self.capacity() {
            let Some((key, waiter)) = state.next_waiter() else { break };
            let reservation = Reservation { queue: Some(Arc::clone(self)), key };
            if let Err(mut undelivered) = waiter.send(reservation) {
                // The waiter has just stopped waiting. Dropping the reservation would lock the queue again and dispatch
                // recursively.
                undelivered.queue = None;
                state.release_permit();
                state.release_slot(key);
            }
        }
    }
}

impl<K: QueueKey> QueueState<K> {
    fn push(&mut self, key: K, waiter: oneshot::Sender<Reservation<K>>) -> Result<(), QueueError> {
        if self.waiting_of(key) >= self.limits.max_waiters_per_key {
            self.remove_expired(key);
        }
        if self.waiting_of(key) >= self.limits.max_waiters_per_key
            || (self.waiting >= self.limits.max_waiters && !self.make_room(key))
        {
            return Err(QueueError::Full);
        }
        let queue =
            self.keys.entry(key).or_insert_with(|| KeyQueue { in_progress: 0, waiters: VecDeque::new() });
        queue.waiters.push_back(waiter);
        self.waiting += 1;
        if queue.waiters.len() == 1 {
            self.orders[usize::from(!key.is_urgent())].push_back(key);
        }
        Ok(())
    }

    fn waiting_of(&self, key: K) -> usize {
        self.keys.get(&key).map_or(0, |queue| queue.waiters.len())
    }

    fn remove_expired(&mut self, key: K) {
        let Some(queue) = self.keys.get_mut(&key) else { return };
        let before = queue.waiters.len();
        queue.waiters.retain(|waiter| !waiter.is_closed());
        let after = queue.waiters.len();
        self.waiting -= before - after;
        if before > 0 && after == 0 {
            self.orders[usize::from(!key.is_urgent())].retain(|other| *other != key);
            self.remove_if_idle(key);
        }
    }

    /// Makes room for one new waiter of `key` in a full queue. Removes expired waiters, or else the newest waiter of
    /// the non-urgent key with the most waiters. Returns `false` if no waiter can be removed.
    fn make_room(&mut self, key: K) -> bool {
        for known in self.keys.keys().copied().collect::<Vec<_>>() {
            self.remove_expired(known);
        }
        if self.waiting < self.limits.max_waiters {
            return true;
        }
        // A non-urgent key displaces only a waiter of a key that keeps at least as many waiters.
        let own = if key.is_urgent() { 0 } else { self.waiting_of(key) + 1 };
        let others = self.keys.iter().filter(|(known, _)| !known.is_urgent());
        let Some((most, count)) =
            others.map(|(known, queue)| (*known, queue.waiters.len())).max_by_key(|(_, count)| *count)
        else {
            return false;
        };
        if count <= own {
            return false;
        }
        if let Some(queue) = self.keys.get_mut(&most) {
            // The dropped sender ends the wait with `QueueError::Full`.
            queue.waiters.pop_back();
            self.waiting -= 1;
        }
        if count == 1 {
            self.orders[1].retain(|other| *other != most);
            self.remove_if_idle(most);
        }
        true
    }

    /// Finds the next key that has waiters and has not reached its limit of work in progress. Takes the first waiter of
    /// this key, and counts its work as in progress. Waiters that timed out are removed.
    fn next_waiter(&mut self) -> Option<(K, oneshot::Sender<Reservation<K>>)> {
        loop {
            let (keys, max) = (&self.keys, self.limits.max_in_progress_per_key);
            let has_capacity = |key: &K| keys.get(key).is_some_and(|queue| queue.in_progress < max);
            let find = |order: &VecDeque<K>| order.iter().position(has_capacity);
            let (lane, position) =
                self.orders.iter().enumerate().find_map(|(lane, order)| Some((lane, find(order)?)))?;
            let key = self.orders[lane].remove(position)?;
            let queue = self.keys.get_mut(&key)?;
            while queue.waiters.front().is_some_and(oneshot::Sender::is_closed) {
                queue.waiters.pop_front();
                self.waiting -= 1;
            }
            let waiter = queue.waiters.pop_front();
            self.waiting -= usize::from(waiter.is_some());
            if !queue.waiters.is_empty() {
                self.orders[lane].push_back(key);
            }
            match waiter {
                Some(waiter) => {
                    queue.in_progress += 1;
                    self.permits_in_use += 1;
                    return Some((key, waiter));
                }
                None => self.remove_if_idle(key),
            }
        }
    }

    fn release_permit(&mut self) {
        debug_assert!(self.permits_in_use > 0, "a permit is returned once");
        self.permits_in_use -= 1;
    }

    fn release_slot(&mut self, key: K) {
        if let Some(queue) = self.keys.get_mut(&key) {
            debug_assert!(queue.in_progress > 0, "a slot is returned once");
            queue.in_progress -= 1;
            self.remove_if_idle(key);
        }
    }

    fn remove_if_idle(&mut self, key: K) {
        let is_idle = |queue: &KeyQueue<K>| queue.in_progress == 0 && queue.waiters.is_empty();
        if self.keys.get(&key).is_some_and(is_idle) {
            self.keys.remove(&key);
        }
    }
}

impl<K: QueueKey> Reservation<K> {
    fn claim(mut self) -> Option<Permit<K>> {
        let queue = self.queue.take()?;
        let slot = Arc::new(KeySlot { queue: Arc::clone(&queue), key: self.key });
        Some(Permit { work: WorkPermit(queue), slot })
    }
}

impl<K: QueueKey> Drop for Reservation<K> {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            let mut state = queue.state.lock();
            state.release_permit();
            state.release_slot(self.key);
            drop(state);
            queue.dispatch();
        }
    }
}

impl<K: QueueKey> Drop for OrdinaryRequest<K> {
    fn drop(&mut self) {
        self.0.ordinary_requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<K: QueueKey> Drop for WorkPermit<K> {
    fn drop(&mut self) {
        self.0.state.lock().release_permit();
        self.0.dispatch();
    }
}

impl<K: QueueKey> Drop for KeySlot<K> {
    fn drop(&mut self) {
        self.queue.state.lock().release_slot(self.key);
        self.queue.dispatch();
    }
}

#[cfg(test)]
mod tests;
