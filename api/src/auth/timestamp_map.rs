//! Bounded, sharded map from keys to timestamps, used by the throttles.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use parking_lot::Mutex;

const SHARDS: usize = 64;
/// Maximum number of entries per shard. An entry has about 64 bytes.
const MAX_SHARD_ENTRIES: usize = 2_048;
/// Maximum number of entries.
#[cfg(test)]
pub(crate) const MAX_ENTRIES: usize = SHARDS * MAX_SHARD_ENTRIES;

type Shard<K> = HashMap<K, u64, RandomState>;

/// Bounded map from keys to timestamps. It evicts the earliest timestamps first.
#[derive(Debug)]
pub(crate) struct BoundedTimestampMap<K> {
    hasher: RandomState,
    shards: Vec<Mutex<Shard<K>>>,
}

impl<K: Hash + Eq + Copy> BoundedTimestampMap<K> {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::default(), shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// Updates the timestamp of a key. `change` maps the old timestamp (0 if absent) to the new timestamp and the
    /// result. An absent key is added only if its new timestamp is later than `now`.
    pub(crate) fn update<T>(&self, key: K, now: u64, change: impl FnOnce(u64) -> (u64, T)) -> T {
        #[expect(clippy::cast_possible_truncation, reason = "any part of a hash is one")]
        let index = self.hasher.hash_one(key) as usize % SHARDS;
        let mut shard = self.shards[index].lock();
        if let Some(known) = shard.get_mut(&key) {
            let (timestamp, outcome) = change(*known);
            *known = timestamp;
            return outcome;
        }
        let (timestamp, outcome) = change(0);
        if timestamp > now {
            make_room(&mut shard, now);
            shard.insert(key, timestamp);
        }
        outcome
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }
}

fn make_room<K: Hash + Eq + Copy>(shard: &mut Shard<K>, now: u64) {
    if shard.len() < MAX_SHARD_ENTRIES {
        return;
    }
    shard.retain(|_, timestamp| *timestamp > now);
    if shard.len() >= MAX_SHARD_ENTRIES {
        // Drop the earlier half of the timestamps. These entries would have expired first.
        let mut timestamps: Vec<u64> = shard.values().copied().collect();
        let middle = timestamps.len() / 2;
        let (_, median, _) = timestamps.select_nth_unstable(middle);
        let median = *median;
        shard.retain(|_, timestamp| *timestamp > median);
    }
}
