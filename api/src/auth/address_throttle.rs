//! Limits per client address on calls, failed credentials and page views.
//!
//! Invariants: memory is bounded for any number of addresses. Failed credentials do not block a key that was valid
//! within a day.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::time::Instant;

use foldhash::fast::RandomState;
use parking_lot::Mutex;

use crate::auth::client_address::ClientNetwork;
use crate::auth::credential::PresentedKey;

/// Time after the last valid use of a key, in microseconds. During this time, the throttle accepts the key even if the
/// client has too many failed credentials.
const VALID_KEY_EXEMPTION: u64 = 24 * 60 * 60 * SECOND;
/// One second. All times of the throttle are in microseconds.
const SECOND: u64 = 1_000_000;

/// Allowance of a client: a rate per minute, and a burst.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressAllowance {
    pub(crate) per_minute: u64,
    pub(crate) burst: u64,
}

impl AddressAllowance {
    /// Interval after which one more call becomes available, in microseconds, at least 1.
    fn interval(self) -> u64 {
        (60_000_000 / self.per_minute.max(1)).max(1)
    }

    fn tenfold(self) -> Self {
        Self { per_minute: self.per_minute * 10, burst: self.burst * 10 }
    }
}

/// Remaining allowance of a client: the number of calls, page views or failed credentials that are still accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemainingCalls {
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    /// Time until the full allowance is available again, in microseconds.
    pub(crate) until_full_us: u64,
}

/// Refusal by the throttle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThrottleRefusal {
    pub(crate) left: RemainingCalls,
    /// Number of seconds until the next call is accepted.
    pub(crate) retry_after_seconds: u64,
}

/// Throttle of calls, failed credentials and views of market pages, by client network.
#[derive(Debug)]
pub(crate) struct AddressThrottle {
    start: Instant,
    calls: AddressAllowance,
    failures: AddressAllowance,
    pages: AddressAllowance,
    called: BoundedTimestampMap<ClientNetwork>,
    failed: BoundedTimestampMap<ClientNetwork>,
    viewed: BoundedTimestampMap<ClientNetwork>,
    /// For each network with too many failed credentials, the time from which it may try another key.
    next_lookup_at: BoundedTimestampMap<ClientNetwork>,
    /// Time until which failed credentials do not block a key.
    valid: BoundedTimestampMap<PresentedKey>,
}

impl AddressThrottle {
    pub(crate) fn new(calls: AddressAllowance, failures: AddressAllowance, pages: AddressAllowance) -> Self {
        Self {
            start: Instant::now(),
            calls,
            failures,
            pages,
            called: BoundedTimestampMap::new(),
            failed: BoundedTimestampMap::new(),
            viewed: BoundedTimestampMap::new(),
            next_lookup_at: BoundedTimestampMap::new(),
            valid: BoundedTimestampMap::new(),
        }
    }

    /// Charges a call to a client address. Returns the remaining calls of the client. If the IPv6 /48 network of the
    /// client has fewer remaining calls, returns those of the network.
    pub(crate) fn charge_call(&self, address: IpAddr) -> Result<RemainingCalls, ThrottleRefusal> {
        charge(&self.called, self.calls, address, self.now())
    }

    /// Charges one view of a market page to a client address.
    pub(crate) fn charge_page(&self, address: IpAddr) -> Result<RemainingCalls, ThrottleRefusal> {
        charge(&self.viewed, self.pages, address, self.now())
    }

    /// Returns a refusal if the client or its IPv6 /48 has too many failed credentials. Recently valid keys are exempt.
    /// A refused network may still try one key per second.
    pub(crate) fn find_refusal(&self, address: IpAddr, key: Option<PresentedKey>) -> Option<ThrottleRefusal> {
        let now = self.now();
        if key.is_some_and(|key| self.valid.update(key, now, |until| (until, until > now))) {
            return None;
        }
        let (network, wider) = ClientNetwork::containing(address);
        let find = |network, allowance| {
            let refusal = self
                .failed
                .update(network, now, |full_at| (full_at, charge_bucket(allowance, full_at, now).1.err()));
            refusal.map(|refusal| (network, refusal))
        };
        let in_wider = || wider.and_then(|wider| find(wider, self.failures.tenfold()));
        let (blocked, refused) = find(network, self.failures).or_else(in_wider)?;
        let try_lookup = |until| if until > now { (until, false) } else { (now + SECOND, true) };
        let may_look_up = key.is_some() && self.next_lookup_at.update(blocked, now, try_lookup);
        (!may_look_up).then_some(refused)
    }

    /// Records a failed credential of a client address. In the result, `remaining` is the number of further failures
    /// before a refusal.
    pub(crate) fn record_failure(&self, address: IpAddr) -> RemainingCalls {
        let charged = charge(&self.failed, self.failures, address, self.now());
        charged.unwrap_or_else(|refused| refused.left)
    }

    /// Records that a key is valid. The key is then exempt from the limit of failed credentials for a day.
    pub(crate) fn record_valid_key(&self, key: PresentedKey) {
        let now = self.now();
        self.valid.update(key, now, |_| (now + VALID_KEY_EXEMPTION, ()));
    }

    fn now(&self) -> u64 {
        let elapsed = self.start.elapsed();
        elapsed.as_secs() * SECOND + u64::from(elapsed.subsec_micros())
    }
}

fn charge(
    buckets: &BoundedTimestampMap<ClientNetwork>,
    allowance: AddressAllowance,
    address: IpAddr,
    now: u64,
) -> Result<RemainingCalls, ThrottleRefusal> {
    let (network, wider) = ClientNetwork::containing(address);
    let charge_network =
        |network, allowance| buckets.update(network, now, |full_at| charge_bucket(allowance, full_at, now));
    // The client is charged first: its refused calls cost its /48 nothing.
    let left = charge_network(network, allowance)?;
    let wider = wider.map(|wider| charge_network(wider, allowance.tenfold())).transpose()?;
    Ok(wider.filter(|wider| wider.remaining < left.remaining).unwrap_or(left))
}

/// Charges one call to a token bucket. The bucket is stored as one number: the time at which it will be full again, in
/// microseconds. Returns the number to store. A refusal does not change the number.
fn charge_bucket(
    allowance: AddressAllowance,
    stored: u64,
    now: u64,
) -> (u64, Result<RemainingCalls, ThrottleRefusal>) {
    let (interval, full_at) = (allowance.interval(), stored.max(now));
    let left = |full_at: u64| {
        let used = (full_at - now).div_ceil(interval);
        // The reported number is at most the calls per minute, even if the burst is larger. The limit headers of
        // accounts have the same maximum.
        let remaining = allowance.burst.min(allowance.per_minute).saturating_sub(used);
        RemainingCalls { limit: allowance.per_minute, remaining, until_full_us: full_at - now }
    };
    let room = allowance.burst.saturating_sub(1) * interval;
    match (full_at - now).checked_sub(room) {
        None | Some(0) => (full_at + interval, Ok(left(full_at + interval))),
        Some(wait) => {
            let retry_after_seconds = wait.div_ceil(1_000_000).max(1);
            (stored, Err(ThrottleRefusal { left: left(full_at), retry_after_seconds }))
        }
    }
}

const SHARDS: usize = 64;
/// Maximum number of entries per shard. An entry has about 64 bytes.
const MAX_SHARD_ENTRIES: usize = 2_048;

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

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: AddressAllowance = AddressAllowance { per_minute: 60, burst: 3 };

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_bucket_empties_and_fills() {
        let mut full_at = 0;
        for remaining in [2, 1, 0] {
            let (next, left) = charge_bucket(FEW, full_at, 0);
            assert_eq!(left.expect("there is room").remaining, remaining);
            full_at = next;
        }
        assert_eq!(
            charge_bucket(FEW, full_at, 0).1.err().map(|refused| refused.retry_after_seconds),
            Some(1)
        );
        assert!(charge_bucket(FEW, full_at, 1_000_000).1.is_ok());
    }

    #[test]
    fn addresses_of_one_network_share_a_bucket() {
        let throttle = AddressThrottle::new(FEW, FEW, FEW);
        for host in ["2001:db8::1", "2001:db8::2", "2001:db8::3"] {
            assert!(throttle.charge_call(address(host)).is_ok());
        }
        assert!(throttle.charge_call(address("2001:db8::4")).is_err());
        assert!(throttle.charge_call(address("2001:db8:0:1::1")).is_ok());
        assert!(throttle.charge_call(address("::ffff:1.2.3.4")).is_ok_and(|left| left.remaining == 2));
        assert!(throttle.charge_call(address("1.2.3.4")).is_ok_and(|left| left.remaining == 1));
    }

    #[test]
    fn guessing_does_not_block_a_valid_key() {
        let throttle = AddressThrottle::new(FEW, FEW, FEW);
        let (client, key, other) = (address("1.2.3.4"), PresentedKey([7; 32]), PresentedKey([8; 32]));
        throttle.record_valid_key(key);
        let left: Vec<u64> = (0..3).map(|_| throttle.record_failure(client).remaining).collect();
        assert_eq!(left, [2, 1, 0]);
        assert!(throttle.find_refusal(client, None).is_some());
        assert!(throttle.find_refusal(client, Some(other)).is_none(), "the address's first of this second");
        assert!(throttle.find_refusal(client, Some(other)).is_some());
        assert!(throttle.find_refusal(client, Some(key)).is_none());
        assert!(throttle.find_refusal(address("1.2.3.5"), None).is_none());
    }

    #[test]
    fn other_clients_of_a_network_that_guesses_are_blocked() {
        let throttle = AddressThrottle::new(FEW, FEW, FEW);
        for client in 0..10 {
            let guesser = address(&format!("2001:db8:0:{client}::1"));
            for _ in 0..3 {
                throttle.record_failure(guesser);
            }
        }
        let (fresh, other) = (address("2001:db8:0:77::1"), PresentedKey([8; 32]));
        assert!(throttle.find_refusal(fresh, None).is_some());
        assert!(throttle.find_refusal(address("2001:db8:1::1"), None).is_none());
        assert!(throttle.find_refusal(fresh, Some(other)).is_none(), "the network's first of this second");
        assert!(throttle.find_refusal(address("2001:db8:0:78::1"), Some(other)).is_some());
    }

    #[test]
    fn refused_calls_of_a_client_cost_its_network_nothing() {
        let throttle = AddressThrottle::new(FEW, FEW, FEW);
        let refused = (0..100).filter(|_| throttle.charge_call(address("2001:db8::1")).is_err()).count();
        assert!(refused >= 90, "{refused}");
        assert!(throttle.charge_call(address("2001:db8:0:1::1")).is_ok());
    }

    #[test]
    fn memory_is_bounded() {
        let throttle = AddressThrottle::new(FEW, FEW, FEW);
        for number in 0..400_000u32 {
            let _ = throttle.charge_call(IpAddr::from(number.to_be_bytes()));
        }
        let entries: usize = throttle.called.shards.iter().map(|shard| shard.lock().len()).sum();
        assert!(entries <= SHARDS * MAX_SHARD_ENTRIES, "{entries}");
    }
}
