//! Open streams of an instance: their limit per account, and the end of streams whose key is no longer valid.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::admission::admission_queue::AdmissionQueue;
use crate::auth::credential::PresentedKey;
use crate::auth::ids::AccountId;
use crate::auth::tier::Tier;

/// Interval between two checks of the keys of open streams.
const KEY_CHECK: Duration = Duration::from_secs(1);

/// Maximum number of open streams of an account per instance, by tier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamLimits(pub(crate) [usize; 4]);

impl StreamLimits {
    fn of_tier(self, tier: Tier) -> usize {
        let [free, starter, premium, professional] = self.0;
        match tier {
            Tier::Free => free,
            Tier::Starter => starter,
            Tier::Premium => premium,
            Tier::Professional => professional,
        }
    }
}

/// Open streams of an instance.
#[derive(Debug)]
pub(crate) struct OpenStreams {
    limits: StreamLimits,
    state: Mutex<OpenState>,
    /// Cancelled when the instance stops.
    stopping: CancellationToken,
}

#[derive(Debug, Default)]
struct OpenState {
    accounts: HashMap<AccountId, usize>,
    keys: HashMap<u128, OpenKey>,
}

/// Key with open streams, and the number of these streams.
#[derive(Debug)]
struct OpenKey {
    key: PresentedKey,
    streams: usize,
    revoked: CancellationToken,
}

/// Permit for one open stream. Dropping it allows the account to open another stream.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: Arc<OpenStreams>,
    account: AccountId,
    key: u128,
    /// Cancelled when the key is no longer valid.
    pub(crate) revoked: CancellationToken,
}

impl OpenStreams {
    pub(crate) fn new(limits: StreamLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default(), stopping: CancellationToken::new() })
    }

    /// Opens a stream of an account.
    ///
    /// # Errors
    /// Fails with the limit of the tier if the account has reached it.
    pub(crate) fn open(
        self: &Arc<Self>,
        account: AccountId,
        tier: Tier,
        key: PresentedKey,
    ) -> Result<StreamPermit, usize> {
        let (mut state, limit) = (self.state(), self.limits.of_tier(tier));
        if state.accounts.get(&account).is_some_and(|open| *open >= limit) || limit == 0 {
            return Err(limit);
        }
        *state.accounts.entry(account).or_default() += 1;
        let new = || OpenKey { key, streams: 0, revoked: CancellationToken::new() };
        let of_key = state.keys.entry(key.tag).or_insert_with(new);
        of_key.streams += 1;
        let revoked = of_key.revoked.clone();
        Ok(StreamPermit { streams: Arc::clone(self), account, key: key.tag, revoked })
    }

    /// Number of open streams of the instance.
    pub(crate) fn count(&self) -> usize {
        self.state().accounts.values().sum()
    }

    /// Ends all streams, because the instance stops.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Checks the keys of open streams until the process ends. A stream of an invalid key ends.
    pub(crate) async fn check_keys(self: Arc<Self>, admission: AdmissionQueue) {
        loop {
            tokio::time::sleep(KEY_CHECK).await;
            let keys: Vec<PresentedKey> = self.state().keys.values().map(|open| open.key).collect();
            if keys.is_empty() {
                continue;
            }
            // Without a reply of the database, the streams stay open until the next check. Admission decides again
            // before each batch of changes.
            let Ok(valid) = admission.find_valid_keys(keys.clone()).await else { continue };
            let state = self.state();
            for key in keys.iter().filter(|key| !valid.contains(&key.tag)) {
                if let Some(open) = state.keys.get(&key.tag) {
                    open.revoked.cancel();
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, OpenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamPermit {
    /// True if the instance stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.streams.stopping.is_cancelled()
    }

    /// Returns when the instance stops.
    pub(crate) async fn stopped(&self) {
        self.streams.stopping.cancelled().await;
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut state = self.streams.state();
        if let Some(count) = state.accounts.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                state.accounts.remove(&self.account);
            }
        }
        if let Some(open) = state.keys.get_mut(&self.key) {
            open.streams -= 1;
            if open.streams == 0 {
                state.keys.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_opens_as_many_streams_as_its_tier_has() {
        let streams = OpenStreams::new(StreamLimits([1, 2, 3, 4]));
        let (one, other) = (PresentedKey::with_tag(1), PresentedKey::with_tag(2));
        let first = streams.open(AccountId(1), Tier::Starter, one).expect("below the limit");
        let second = streams.open(AccountId(1), Tier::Starter, other).expect("below the limit");
        assert_eq!(streams.open(AccountId(1), Tier::Starter, one).map(drop), Err(2));
        assert!(streams.open(AccountId(2), Tier::Free, one).is_ok());
        drop(first);
        assert!(streams.open(AccountId(1), Tier::Starter, one).is_ok());
        drop(second);
        assert_eq!((streams.count(), streams.state().keys.len()), (0, 0));
    }
}
