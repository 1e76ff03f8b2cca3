//! Value that is refreshed in the background when a reader finds it outdated.
//!
//! Invariants: at most one refresh runs at a time, however many readers there are. A reader waits at most as long as it
//! asks for, and the refresh then continues.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::timeout;

/// Age after which a value is refreshed.
const FRESH: Duration = Duration::from_secs(60);
/// Pause after a refresh without a result.
const PAUSE: Duration = Duration::from_secs(2);
const MAX_REFRESH_TIME: Duration = Duration::from_secs(10);

/// Value that is at most a minute old when it is read, unless refreshes fail.
#[derive(Debug)]
pub(crate) struct RefreshedValue<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    latest: Mutex<Latest<T>>,
    /// Lock of the refresh in progress. Readers wait until the lock is free.
    refreshing: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
struct Latest<T> {
    value: Option<Arc<T>>,
    /// Time at which the next refresh is due; `None` before the first refresh.
    until: Option<Instant>,
}

impl<T> Default for RefreshedValue<T> {
    fn default() -> Self {
        let latest = Mutex::new(Latest { value: None, until: None });
        Self(Arc::new(Shared { latest, refreshing: Arc::default() }))
    }
}

impl<T> Clone for RefreshedValue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + Sync + 'static> RefreshedValue<T> {
    /// Latest value, without a refresh; `None` before the first success.
    pub(crate) fn latest(&self) -> Option<Arc<T>> {
        self.0.latest.lock().value.clone()
    }

    /// Latest value. An outdated value is refreshed first. If `refresh` has no result, or none within `max_wait`, the
    /// outdated value is returned. `None` before the first success.
    pub(crate) async fn refreshed<F>(&self, max_wait: Duration, refresh: impl FnOnce() -> F) -> Option<Arc<T>>
    where
        F: Future<Output = Option<T>> + Send + 'static,
    {
        let is_due = self.0.latest.lock().until.is_none_or(|until| until < Instant::now());
        if is_due {
            if let Ok(lock) = Arc::clone(&self.0.refreshing).try_lock_owned() {
                let (shared, found) = (Arc::clone(&self.0), refresh());
                tokio::spawn(async move {
                    shared.store(timeout(MAX_REFRESH_TIME, found).await.ok().flatten());
                    drop(lock);
                });
            }
            let _ = timeout(max_wait, self.0.refreshing.lock()).await;
        }
        self.latest()
    }
}

impl<T> Shared<T> {
    fn store(&self, found: Option<T>) {
        let mut latest = self.latest.lock();
        latest.until = Some(Instant::now() + if found.is_some() { FRESH } else { PAUSE });
        if let Some(found) = found {
            latest.value = Some(Arc::new(found));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_fresh_value_is_not_refreshed_and_a_failure_keeps_it() {
        let value = RefreshedValue::default();
        assert_eq!(value.refreshed(MAX_REFRESH_TIME, || ready(None)).await, None);
        value.0.latest.lock().until = None;
        assert_eq!(value.refreshed(MAX_REFRESH_TIME, || ready(Some(1))).await.as_deref(), Some(&1));
        assert_eq!(value.refreshed(MAX_REFRESH_TIME, || ready(Some(2))).await.as_deref(), Some(&1));
        value.0.latest.lock().until = None;
        assert_eq!(value.refreshed(MAX_REFRESH_TIME, || ready(None)).await.as_deref(), Some(&1));
    }

    #[tokio::test]
    async fn readers_of_a_slow_refresh_do_not_start_another() {
        let value: RefreshedValue<i32> = RefreshedValue::default();
        assert_eq!(value.refreshed(SHORT, pending::<Option<i32>>).await, None);
        assert_eq!(value.refreshed(SHORT, || ready(Some(2))).await, None);
    }
}
