//! Login throttle per account and address. It delays attempts and never locks an account.
//!
//! Invariants: attempts per minute are limited to 5 per account and address, 30 per address, and 20 per account. An
//! IPv6 /48 has 300. Guesses from other addresses delay neither confirmations by the account's user nor sign-ins from
//! recently used addresses. Memory is bounded. An attempt with a too long delay is refused at once, and the refusing
//! limit does not charge it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::auth::client_address::ClientNetwork;
use crate::auth::timestamp_map::BoundedTimestampMap;

/// One second in microseconds, the time unit of the throttle.
const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
/// Maximum delay.
const LONGEST: u64 = 20 * SECOND;
/// Maximum number of waiting attempts.
const WAITING: usize = 256;
/// Maximum number of waiting attempts per address.
const WAITING_OF_ADDRESS: usize = 8;
/// Duration for which a successful sign-in address is remembered.
const REMEMBERED: u64 = 30 * 24 * 60 * MINUTE;

/// Attempts per minute, which is also the burst.
const OF_BOTH: u64 = 5;
const OF_ADDRESS: u64 = 30;
const OF_NET_48: u64 = 10 * OF_ADDRESS;
const OF_ACCOUNT: u64 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ThrottledSubject {
    Both([u8; 32], ClientNetwork),
    Address(ClientNetwork),
    Account([u8; 32]),
}

/// Refusal after too many attempts, with the seconds until the next one is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyAttempts(pub(crate) u64);

/// Throttle of password attempts, per account and client address.
#[derive(Debug)]
pub(crate) struct LoginThrottle {
    start: Instant,
    buckets: BoundedTimestampMap<ThrottledSubject>,
    /// Expiry of remembered sign-in addresses, by account and address.
    places: BoundedTimestampMap<([u8; 32], ClientNetwork)>,
    waiting: Arc<Semaphore>,
    waiting_of: Mutex<HashMap<ClientNetwork, usize>>,
}

/// Waiting attempt, counted until it is dropped.
struct WaitingAttempt<'a> {
    login_throttle: &'a LoginThrottle,
    network: ClientNetwork,
}

impl Drop for WaitingAttempt<'_> {
    fn drop(&mut self) {
        let mut waiting = self.login_throttle.waiting_of.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.get_mut(&self.network) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                waiting.remove(&self.network);
            }
        }
    }
}

impl LoginThrottle {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            buckets: BoundedTimestampMap::new(),
            places: BoundedTimestampMap::new(),
            waiting: Arc::new(Semaphore::new(WAITING)),
            waiting_of: Mutex::default(),
        }
    }

    /// Waits until this address may try a password for the account of `email`.
    pub(crate) async fn wait_for_sign_in(&self, email: &str, client: IpAddr) -> Result<(), TooManyAttempts> {
        let (account, network) = (account(email), ClientNetwork::containing(client).0);
        let mut subjects = vec![(ThrottledSubject::Both(account, network), OF_BOTH)];
        subjects.extend(of_place(client));
        if !self.is_remembered(account, network, self.now()) {
            subjects.push((ThrottledSubject::Account(account), OF_ACCOUNT));
        }
        self.wait(network, &subjects).await
    }

    /// Waits until a signed-in user may confirm with the password. Guesses from other addresses do not count.
    pub(crate) async fn wait_for_confirmation(
        &self,
        email: &str,
        client: IpAddr,
    ) -> Result<(), TooManyAttempts> {
        let (account, network) = (account(email), ClientNetwork::containing(client).0);
        let mut subjects = vec![(ThrottledSubject::Both(account, network), OF_BOTH)];
        subjects.extend(of_place(client));
        self.wait(network, &subjects).await
    }

    /// Remembers a successful sign-in from this address.
    pub(crate) fn remember_address(&self, email: &str, client: IpAddr) {
        self.remember(account(email), ClientNetwork::containing(client).0, self.now());
    }

    fn remember(&self, account: [u8; 32], network: ClientNetwork, now: u64) {
        self.places.update((account, network), now, |_| (now + REMEMBERED, ()));
    }

    fn is_remembered(&self, account: [u8; 32], network: ClientNetwork, now: u64) -> bool {
        self.places.update((account, network), now, |until| (until, until > now))
    }

    /// Waits until this address may submit another new password, which costs a hash.
    pub(crate) async fn wait_for_hashing(&self, client: IpAddr) -> Result<(), TooManyAttempts> {
        self.wait(ClientNetwork::containing(client).0, &of_place(client).collect::<Vec<_>>()).await
    }

    fn now(&self) -> u64 {
        let now = self.start.elapsed();
        now.as_secs() * SECOND + u64::from(now.subsec_micros())
    }

    async fn wait(
        &self,
        network: ClientNetwork,
        subjects: &[(ThrottledSubject, u64)],
    ) -> Result<(), TooManyAttempts> {
        let delay = self.delay(subjects, self.now())?;
        if delay > 0 {
            let too_many = TooManyAttempts(LONGEST / SECOND);
            let _of_all = self.waiting.try_acquire().map_err(|_| too_many)?;
            let _of_place = self.queue(network).ok_or(too_many)?;
            tokio::time::sleep(Duration::from_micros(delay)).await;
        }
        Ok(())
    }

    fn queue(&self, network: ClientNetwork) -> Option<WaitingAttempt<'_>> {
        let mut waiting = self.waiting_of.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting.entry(network).or_default();
        if *count >= WAITING_OF_ADDRESS {
            return None;
        }
        *count += 1;
        Some(WaitingAttempt { login_throttle: self, network })
    }

    /// Delay of an attempt, in microseconds. The narrowest subject is charged first. An address with too many attempts
    /// therefore does not consume the account's allowance.
    fn delay(&self, subjects: &[(ThrottledSubject, u64)], now: u64) -> Result<u64, TooManyAttempts> {
        let mut longest = 0;
        for (subject, per_minute) in subjects {
            let interval = MINUTE / per_minute;
            let burst = (per_minute - 1) * interval;
            longest = self.buckets.update(*subject, now, |full_at| {
                let full_at = full_at.max(now);
                let delay = (full_at - now).saturating_sub(burst);
                match delay > LONGEST {
                    true => (full_at, Err(TooManyAttempts((delay - LONGEST).div_ceil(SECOND)))),
                    false => (full_at + interval, Ok(delay.max(longest))),
                }
            })?;
        }
        Ok(longest)
    }
}

fn account(email: &str) -> [u8; 32] {
    Sha256::digest(email.to_lowercase()).into()
}

/// Limits of an address, narrowest first.
fn of_place(client: IpAddr) -> impl Iterator<Item = (ThrottledSubject, u64)> {
    let (network, wide) = ClientNetwork::containing(client);
    let wide = wide.map(|wide| (ThrottledSubject::Address(wide), OF_NET_48));
    [(ThrottledSubject::Address(network), OF_ADDRESS)].into_iter().chain(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(account: u8, address: u8) -> [(ThrottledSubject, u64); 3] {
        both_of([account; 32], ClientNetwork::V4([address; 4]))
    }

    fn both_of(account: [u8; 32], network: ClientNetwork) -> [(ThrottledSubject, u64); 3] {
        [
            (ThrottledSubject::Both(account, network), OF_BOTH),
            (ThrottledSubject::Address(network), OF_ADDRESS),
            (ThrottledSubject::Account(account), OF_ACCOUNT),
        ]
    }

    #[test]
    fn an_address_waits_ever_longer_for_one_account() {
        let login_throttle = LoginThrottle::new();
        let delays = || login_throttle.delay(&both(1, 1), 0).map(|delay| delay / SECOND);
        for expected in
            [Ok(0), Ok(0), Ok(0), Ok(0), Ok(0), Ok(12), Err(TooManyAttempts(4)), Err(TooManyAttempts(4))]
        {
            assert_eq!(delays(), expected);
        }
        // Other accounts and other addresses are not delayed.
        assert_eq!(login_throttle.delay(&both(2, 1), 0), Ok(0));
        assert_eq!(login_throttle.delay(&both(1, 2), 0), Ok(0));
        // The delay expires.
        assert_eq!(login_throttle.delay(&both(1, 1), 2 * MINUTE), Ok(0));
    }

    #[test]
    fn many_addresses_cannot_guess_faster_than_one_account_allows() {
        let login_throttle = LoginThrottle::new();
        let passed = (0..200u8).filter(|address| login_throttle.delay(&both(1, *address), 0).is_ok()).count();
        // 20 at once, and those that pass within the maximum delay.
        assert_eq!(passed, 26);
    }

    #[test]
    fn one_address_cannot_try_many_accounts() {
        let login_throttle = LoginThrottle::new();
        let passed = (0..200u8).filter(|account| login_throttle.delay(&both(*account, 1), 0).is_ok()).count();
        assert_eq!(passed, 40);
    }

    #[tokio::test]
    async fn guesses_from_elsewhere_lock_no_holder_out() {
        let login_throttle = LoginThrottle::new();
        let (who, home) = ("who@example.com", IpAddr::from([1, 2, 3, 4]));
        for address in 0..30 {
            let _ = login_throttle
                .delay(&both_of(account(who), ClientNetwork::V4([9, 9, 9, address])), login_throttle.now());
        }
        assert!(login_throttle.wait_for_sign_in(who, home).await.is_err(), "from a place never seen");
        login_throttle.remember_address(who, home);
        assert_eq!(login_throttle.wait_for_sign_in(who, home).await, Ok(()));
        assert_eq!(login_throttle.wait_for_confirmation(who, IpAddr::from([1, 2, 3, 5])).await, Ok(()));
    }

    #[test]
    fn a_wide_net_has_ten_times_an_address() {
        let login_throttle = LoginThrottle::new();
        let heard = (0..1_000u16).filter(|net| {
            let client = IpAddr::from([0x2001, 0xdb8, 1, *net, 0, 0, 0, 1]);
            login_throttle.delay(&of_place(client).collect::<Vec<_>>(), 0) == Ok(0)
        });
        assert_eq!(heard.count(), 300);
    }

    #[test]
    fn one_address_takes_few_of_the_places_to_wait() {
        let login_throttle = LoginThrottle::new();
        let (one, two) = (ClientNetwork::V4([1; 4]), ClientNetwork::V4([2; 4]));
        let mut waiting: Vec<_> = (0..WAITING_OF_ADDRESS).filter_map(|_| login_throttle.queue(one)).collect();
        assert_eq!(waiting.len(), WAITING_OF_ADDRESS);
        assert!(login_throttle.queue(one).is_none() && login_throttle.queue(two).is_some());
        waiting.pop();
        assert!(login_throttle.queue(one).is_some());
        drop(waiting);
        assert!(login_throttle.waiting_of.lock().unwrap().is_empty());
    }
}
