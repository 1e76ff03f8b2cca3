//! Cache of accounts and keys for admission.
//!
//! Invariant: a cached account may be outdated, so every charge checks the account's row in the database.

use std::time::Instant;

use chrono::{DateTime, Utc};
use foldhash::fast::RandomState;
use quick_cache::UnitWeighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};

use crate::admission::admission_batch::{AdmissionBatch, BatchDemand, CachedAccount, CachedKey};
use crate::admission::store_clock::StoreClock;
use crate::auth::credential::PresentedKey;
use crate::auth::ids::AccountId;

/// Maximum number of cached keys, and of cached accounts.
const CAPACITY: usize = 65_536;

/// Cache of accounts and keys, with the values of their rows at the last read or write.
#[derive(Debug)]
pub(crate) struct AccountCache {
    pub(crate) clock: StoreClock,
    keys: EntryCache<u128, CachedKey>,
    accounts: EntryCache<AccountId, CachedAccount>,
}

type EntryCache<K, V> = Cache<K, V, UnitWeighter, RandomState, DefaultLifecycle<K, V>>;

fn map<K: Eq + std::hash::Hash, V>(capacity: usize) -> EntryCache<K, V> {
    // A `usize` has at most 64 bits on every target, so the conversion cannot fail.
    let weight = u64::try_from(capacity).unwrap_or(u64::MAX);
    Cache::with(capacity, weight, UnitWeighter, RandomState::default(), DefaultLifecycle::default())
}

impl AccountCache {
    pub(crate) fn new() -> Self {
        Self::with_capacity(CAPACITY)
    }

    fn with_capacity(capacity: usize) -> Self {
        Self { clock: StoreClock::new(), keys: map(capacity), accounts: map(capacity) }
    }

    /// Takes the accounts of these keys out of the cache, with refilled rate-limit buckets.
    pub(crate) fn checkout(&mut self, presented: &[PresentedKey]) -> AdmissionBatch {
        let Some(now) = self.clock.estimate_at(Instant::now()) else {
            return AdmissionBatch { list: vec![], keys: vec![None; presented.len()] };
        };
        let keys: Vec<Option<CachedKey>> = presented.iter().map(|key| self.key(key.tag, now)).collect();
        let mut ids: Vec<AccountId> = keys.iter().flatten().map(|key| key.account).collect();
        ids.sort_unstable();
        ids.dedup();
        let list: Vec<CachedAccount> = ids.into_iter().filter_map(|id| self.account(id, now)).collect();
        let with_position = |key: CachedKey| {
            let position = list.binary_search_by_key(&key.account, |account| account.limiter.account).ok()?;
            Some((position, key))
        };
        let keys = keys.into_iter().map(|key| key.and_then(with_position)).collect();
        AdmissionBatch { list, keys }
    }

    fn key(&self, tag: u128, now: DateTime<Utc>) -> Option<CachedKey> {
        let valid = |key: &&CachedKey| {
            let account = self.accounts.peek(&key.account);
            let is_current = |account: &CachedAccount| {
                key.plan_version == account.plan_version
                    && key.key_bucket.as_ref().is_none_or(|key_bucket| key_bucket.version == account.version)
            };
            account.is_some_and(is_current) && key.expires_at.is_none_or(|end| end > now)
        };
        let mut key = self.keys.get(&tag).filter(valid)?.clone();
        if let Some(key_bucket) = &mut key.key_bucket {
            key_bucket.limiter.advance(now);
        }
        Some(key)
    }

    fn account(&mut self, id: AccountId, now: DateTime<Utc>) -> Option<CachedAccount> {
        let paid = |account: &CachedAccount| account.paid_until.is_none_or(|end| end > now);
        let (_, account) = self.accounts.remove(&id)?;
        let mut account = Some(account).filter(paid)?;
        let (month, at) = (account.limiter.month, account.limiter.at);
        account.limiter.advance(now);
        account.is_settled &= account.limiter.month == month && account.limiter.at >= at;
        (account.demand, account.written) = (BatchDemand::default(), None);
        Some(account)
    }

    /// Returns the accounts that a batch wrote to the cache. The other accounts are dropped, because another instance
    /// may have changed their rows.
    pub(crate) fn checkin(&mut self, presented: &[PresentedKey], accounts: AdmissionBatch) {
        let AdmissionBatch { list, keys } = accounts;
        debug_assert_eq!(presented.len(), keys.len(), "a key per presented key");
        for (presented, key) in presented.iter().zip(keys) {
            let Some((account, mut key)) = key else { continue };
            if let (Some(key_bucket), Some(version)) = (&mut key.key_bucket, list[account].written) {
                key_bucket.version = version;
                self.keys.insert(presented.tag, key);
            }
        }
        for mut account in list {
            let Some(version) = account.written else { continue };
            (account.version, account.is_settled) = (version, true);
            self.accounts.insert(account.limiter.account, account);
        }
    }

    /// Inserts a key and its account that were just read from the database.
    pub(crate) fn insert(&mut self, presented: &PresentedKey, key: CachedKey, account: CachedAccount) {
        debug_assert_eq!(key.account, account.limiter.account, "the account of the key");
        self.keys.insert(presented.tag, key);
        self.accounts.insert(account.limiter.account, account);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::account_limiter::AccountLimiter;
    use crate::admission::admission_batch::WriteMode;
    use crate::admission::row_version::RowVersion;
    use crate::admission::token_bucket::Bucket;
    use crate::auth::ids::KeyId;
    use crate::auth::tier::Tier;

    fn read(id: i64) -> (CachedKey, CachedAccount) {
        let (now, account) = (Utc::now(), AccountId(id));
        let limiter = AccountLimiter {
            account,
            tier: Tier::Free,
            bucket: Bucket { rate_per_minute: 60, capacity: 60, tokens: 60.0 },
            at: now,
            monthly_quota: 1_000,
            month: now.date_naive(),
            used: 0,
        };
        let cached = CachedAccount {
            limiter,
            version: RowVersion(1),
            plan_version: 1,
            paid_until: None,
            is_settled: true,
            demand: BatchDemand::default(),
            write_mode: WriteMode::default(),
            written: None,
        };
        (CachedKey { id: KeyId(id), account, plan_version: 1, expires_at: None, key_bucket: None }, cached)
    }

    fn presented(id: i64) -> PresentedKey {
        PresentedKey::with_tag(u128::try_from(id).expect("a positive id"))
    }

    /// Takes one account out of the cache and puts it back, as a charged call does. The result is true if the account
    /// was cached.
    fn charge(cache: &mut AccountCache, id: i64) -> bool {
        let key = [presented(id)];
        let mut accounts = cache.checkout(&key);
        for account in &mut accounts.list {
            account.written = Some(RowVersion(2));
        }
        let was_cached = !accounts.list.is_empty();
        cache.checkin(&key, accounts);
        was_cached
    }

    #[test]
    fn a_full_cache_evicts_one_entry_at_a_time() {
        let capacity = 1_000;
        let mut cache = AccountCache::with_capacity(capacity);
        let instant = Instant::now();
        cache.clock.update(Utc::now(), instant, instant);
        for id in 1..=5_000 {
            let (key, account) = read(id);
            cache.insert(&presented(id), key, account);
            assert!(charge(&mut cache, id), "an entry just inserted");
            let expected = capacity.min(usize::try_from(id).expect("a positive id"));
            // During an eviction, the cache may lack a few entries. It is never empty.
            assert!(cache.accounts.len() + 8 >= expected, "{} of {expected}", cache.accounts.len());
            assert!(cache.keys.len() <= capacity && cache.accounts.len() <= capacity);
        }
    }

    #[test]
    fn a_key_of_another_plan_or_an_account_that_was_not_written_is_not_cached() {
        let mut cache = AccountCache::with_capacity(10);
        let instant = Instant::now();
        cache.clock.update(Utc::now(), instant, instant);
        let (key, account) = read(1);
        cache.insert(&presented(1), key, account);
        assert!(charge(&mut cache, 1) && charge(&mut cache, 1));
        let accounts = cache.checkout(&[presented(1)]);
        cache.checkin(&[presented(1)], accounts);
        assert!(!charge(&mut cache, 1), "its row was not written");
        let (key, account) = read(1);
        cache.insert(&presented(1), key, CachedAccount { plan_version: 2, ..account });
        assert!(!charge(&mut cache, 1), "its plan changed");
    }
}
