//! Concurrency limiter of expensive work: a semaphore per key (for example per account), and one for all keys.
//!
//! Invariant: a key with many requests delays requests of other keys by at most its `max_in_progress_per_key` requests.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Threshold for the number of semaphores of keys. If there are more, the unused ones are removed.
const CLEANUP_THRESHOLD: usize = 256;

/// Errors of a request for a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LimiterError {
    #[error("too many expensive requests are waiting")]
    Full,
    #[error("the wait for a permit timed out")]
    Timeout,
}

/// Limits of a concurrency limiter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConcurrencyLimits {
    /// Maximum number of results of all keys that are computed at the same time.
    pub(crate) max_working: usize,
    /// Maximum number of results per key that are computed or delivered at the same time.
    pub(crate) max_in_progress_per_key: usize,
    /// Maximum number of requests per key that wait or are in progress.
    pub(crate) max_requests_per_key: usize,
    /// Maximum number of requests of all keys that wait or are in progress.
    pub(crate) max_requests: usize,
    /// Maximum wait for a permit.
    pub(crate) timeout: Duration,
}

/// Limiter of the number of concurrent requests for expensive work.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimiter<K> {
    limits: ConcurrencyLimits,
    /// Each request in the limiter has a clone of this handle.
    requests: Arc<()>,
    working: Arc<Semaphore>,
    /// Each request of a key has a clone of the key's handle.
    keys: Mutex<HashMap<K, Arc<Semaphore>>>,
}

/// Permit for expensive work. `work` must be kept while the result is computed, and `slot` until it is delivered.
#[derive(Debug)]
pub(crate) struct Permit {
    pub(crate) work: OwnedSemaphorePermit,
    pub(crate) slot: KeySlot,
}

/// Slot of a key for one result.
#[derive(Debug)]
pub(crate) struct KeySlot {
    _in_progress: OwnedSemaphorePermit,
    _request: Arc<()>,
}

impl<K: Eq + Hash> ConcurrencyLimiter<K> {
    pub(crate) fn new(limits: ConcurrencyLimits) -> Self {
        let working = Arc::new(Semaphore::new(limits.max_working.max(1)));
        Self { limits, requests: Arc::new(()), working, keys: Mutex::default() }
    }

    /// Waits for a permit for this key.
    pub(crate) async fn acquire(&self, key: K) -> Result<Permit, LimiterError> {
        let (request, of_key) = self.enter(key)?;
        // The slot comes first, so that a key has few requests in the line for `working`, which is common to all keys.
        let waiting = async {
            let in_progress = of_key.acquire_owned().await?;
            Ok((Arc::clone(&self.working).acquire_owned().await?, in_progress))
        };
        match tokio::time::timeout(self.limits.timeout, waiting).await {
            Ok(Ok((work, in_progress))) => {
                Ok(Permit { work, slot: KeySlot { _in_progress: in_progress, _request: request } })
            }
            // The semaphores are never closed.
            Ok(Err::<_, tokio::sync::AcquireError>(_)) | Err(_) => Err(LimiterError::Timeout),
        }
    }

    /// Counts a request, and returns the semaphore of its key.
    fn enter(&self, key: K) -> Result<(Arc<()>, Arc<Semaphore>), LimiterError> {
        let mut keys = self.keys.lock();
        if keys.len() >= CLEANUP_THRESHOLD {
            keys.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        let new = || Arc::new(Semaphore::new(self.limits.max_in_progress_per_key));
        let of_key = keys.entry(key).or_insert_with(new);
        // One handle of each kind belongs to the limiter itself.
        let is_full = Arc::strong_count(of_key) > self.limits.max_requests_per_key
            || Arc::strong_count(&self.requests) > self.limits.max_requests;
        if is_full { Err(LimiterError::Full) } else { Ok((Arc::clone(&self.requests), Arc::clone(of_key))) }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::join_all;

    use super::*;

    const LIMITS: ConcurrencyLimits = ConcurrencyLimits {
        max_working: 1,
        max_in_progress_per_key: 4,
        max_requests_per_key: 64,
        max_requests: usize::MAX,
        timeout: Duration::from_secs(20),
    };

    #[tokio::test]
    async fn a_greedy_account_delays_others_by_few_requests() {
        let limiter = ConcurrencyLimiter::new(LIMITS);
        let Permit { work, slot } = limiter.acquire(1).await.expect("an empty limiter");
        let mut greedy: Vec<_> = (0..10).map(|_| Box::pin(limiter.acquire(1))).collect();
        assert!(greedy.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
        let mut other = Box::pin(limiter.acquire(2));
        assert!((&mut other).now_or_never().is_none());
        drop((work, slot));
        for waiting in &mut greedy[..3] {
            drop(waiting.now_or_never().expect("its turn").expect("a permit"));
        }
        drop(other.now_or_never().expect("its turn").expect("a permit"));
    }

    #[tokio::test]
    async fn an_account_has_four_in_progress_until_they_are_delivered() {
        let limiter = ConcurrencyLimiter::new(ConcurrencyLimits { max_working: 100, ..LIMITS });
        let mut slots = Vec::new();
        for _ in 0..4 {
            slots.push(limiter.acquire(1).await.expect("a permit").slot);
        }
        let mut fifth = Box::pin(limiter.acquire(1));
        assert!((&mut fifth).now_or_never().is_none());
        assert!(limiter.acquire(2).now_or_never().is_some(), "other accounts are not delayed");
        slots.pop();
        assert!((&mut fifth).now_or_never().is_some());
    }

    #[tokio::test]
    async fn requests_are_bounded_in_number_and_time() {
        let short = ConcurrencyLimits { timeout: Duration::from_millis(10), ..LIMITS };
        let limiter = ConcurrencyLimiter::new(short);
        let permit = limiter.acquire(1).await.expect("a permit");
        let outcomes = join_all((0..68).map(|_| limiter.acquire(1))).await;
        let full = outcomes.iter().filter(|outcome| matches!(outcome, Err(LimiterError::Full))).count();
        let late = outcomes.iter().filter(|outcome| matches!(outcome, Err(LimiterError::Timeout))).count();
        assert_eq!((full, late), (5, 63));
        drop(permit);
        drop(limiter.acquire(1).await.expect("late requests take no capacity"));
        let limiter = ConcurrencyLimiter::new(ConcurrencyLimits { max_requests: 2, ..LIMITS });
        let _permit = limiter.acquire(1).await.expect("a permit");
        let mut second = Box::pin(limiter.acquire(2));
        assert!((&mut second).now_or_never().is_none());
        assert!(matches!(limiter.acquire(3).now_or_never(), Some(Err(LimiterError::Full))));
    }

    #[tokio::test]
    async fn keys_without_requests_are_removed() {
        let limiter = ConcurrencyLimiter::new(LIMITS);
        for key in 0..10_000 {
            drop(limiter.acquire(key).await.expect("a permit"));
        }
        assert!(limiter.keys.lock().len() <= CLEANUP_THRESHOLD);
    }
}
