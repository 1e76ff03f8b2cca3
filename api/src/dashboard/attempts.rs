//! The throttle of sign-ins: whoever tries often waits longer, and nobody is locked out for good.
//!
//! Invariants: at most 5 a minute are tried of an account and address, 30 of an address, 20 of an account; memory is
//! bounded; whoever would wait too long is told so at once, and that attempt costs nothing.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::address::Place;
use crate::moments::Moments;

/// In the throttle's unit of time, microseconds.
const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
/// The longest delay.
const LONGEST: u64 = 20 * SECOND;
/// Attempts that may wait at once.
const WAITING: usize = 256;

/// Attempts a minute, which may come at once too.
const OF_BOTH: u64 = 5;
const OF_ADDRESS: u64 = 30;
const OF_ACCOUNT: u64 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    Both([u8; 32], Place),
    Address(Place),
    Account([u8; 32]),
}

/// Too many attempts; seconds until another is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany(pub(crate) u64);

/// What is remembered of attempts.
#[derive(Debug)]
pub(crate) struct Attempts {
    start: Instant,
    moments: Moments<Subject>,
    waiting: Arc<Semaphore>,
}

impl Attempts {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), moments: Moments::new(), waiting: Arc::new(Semaphore::new(WAITING)) }
    }

    /// Waits until this address may try a password of the account with this name.
    pub(crate) async fn of_account(&self, email: &str, client: IpAddr) -> Result<(), TooMany> {
        let (account, place) = (Sha256::digest(email.to_lowercase()).into(), Place::of(client).0);
        self.wait(&[
            (Subject::Both(account, place), OF_BOTH),
            (Subject::Address(place), OF_ADDRESS),
            (Subject::Account(account), OF_ACCOUNT),
        ])
        .await
    }

    /// Waits until this address may have another password hashed.
    pub(crate) async fn of_address(&self, client: IpAddr) -> Result<(), TooMany> {
        self.wait(&[(Subject::Address(Place::of(client).0), OF_ADDRESS)]).await
    }

    async fn wait(&self, subjects: &[(Subject, u64)]) -> Result<(), TooMany> {
        let now = self.start.elapsed();
        let delay = self.delay(subjects, now.as_secs() * SECOND + u64::from(now.subsec_micros()))?;
        if delay > 0 {
            let _place = self.waiting.try_acquire().map_err(|_| TooMany(LONGEST / SECOND))?;
            tokio::time::sleep(Duration::from_micros(delay)).await;
        }
        Ok(())
    }

    /// How long an attempt has to wait, in microseconds. The narrowest subject is charged first, so that an address that
    /// tries too much does not use up what others have for the account.
    fn delay(&self, subjects: &[(Subject, u64)], now: u64) -> Result<u64, TooMany> {
        let mut longest = 0;
        for (subject, per_minute) in subjects {
            let interval = MINUTE / per_minute;
            let burst = (per_minute - 1) * interval;
            longest = self.moments.update(*subject, now, |full_at| {
                let full_at = full_at.max(now);
                let delay = (full_at - now).saturating_sub(burst);
                match delay > LONGEST {
                    true => (full_at, Err(TooMany((delay - LONGEST).div_ceil(SECOND)))),
                    false => (full_at + interval, Ok(delay.max(longest))),
                }
            })?;
        }
        Ok(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(account: u8, address: u8) -> [(Subject, u64); 3] {
        let (account, place) = ([account; 32], Place::V4([address; 4]));
        [
            (Subject::Both(account, place), OF_BOTH),
            (Subject::Address(place), OF_ADDRESS),
            (Subject::Account(account), OF_ACCOUNT),
        ]
    }

    #[test]
    fn an_address_waits_ever_longer_for_one_account() {
        let attempts = Attempts::new();
        let delays = || attempts.delay(&both(1, 1), 0).map(|delay| delay / SECOND);
        for expected in [Ok(0), Ok(0), Ok(0), Ok(0), Ok(0), Ok(12), Err(TooMany(4)), Err(TooMany(4))] {
            assert_eq!(delays(), expected);
        }
        // Nobody else waits for that.
        assert_eq!(attempts.delay(&both(2, 1), 0), Ok(0));
        assert_eq!(attempts.delay(&both(1, 2), 0), Ok(0));
        // And it ends by itself.
        assert_eq!(attempts.delay(&both(1, 1), 2 * MINUTE), Ok(0));
    }

    #[test]
    fn many_addresses_cannot_guess_faster_than_one_account_allows() {
        let attempts = Attempts::new();
        let passed = (0..200u8).filter(|address| attempts.delay(&both(1, *address), 0).is_ok()).count();
        // Twenty at once, and those whose turn comes within the longest delay.
        assert_eq!(passed, 26);
    }

    #[test]
    fn one_address_cannot_try_many_accounts() {
        let attempts = Attempts::new();
        let passed = (0..200u8).filter(|account| attempts.delay(&both(*account, 1), 0).is_ok()).count();
        assert_eq!(passed, 40);
    }
}
