//! Login throttle per account, device and client network. It delays or refuses attempts, and never locks an account.
//!
//! Invariant: attempts from unknown devices never delay a sign-in with a known browser.

use std::net::IpAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::{Pool, PoolError};
use futures::poll;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use crate::account::sessions::DeviceHash;
use crate::auth::client_address::ClientNetwork;
use crate::concurrency::limiter::{ConcurrencyLimiter, ConcurrencyLimits, LimiterError};

const CHARGE: &str = include_str!("../../queries/accounts/charge_attempt.sql");
const REFUND: &str = include_str!("../../queries/accounts/refund_attempt.sql");
/// Maximum delay of an attempt. An attempt that would have to wait longer is refused.
const MAX_DELAY: Duration = Duration::from_secs(20);
const REPLY_TIMEOUT: Duration = Duration::from_secs(4);
/// Maximum number of waiting attempts. Further attempts are refused if they would have to wait.
const MAX_WAITING: usize = 512;
/// Maximum number of waiting attempts per client network (IPv4 address or IPv6 /64).
const MAX_WAITING_PER_ADDRESS: usize = 8;

/// Maximum number of attempts per minute for an account from one device. The burst is the same number.
const PER_ACCOUNT_AND_DEVICE: i32 = 5;
const PER_ADDRESS: i32 = 30;
const PER_NET_48: i32 = 10 * PER_ADDRESS;
const PER_ACCOUNT: i32 = 20;

/// Refusal of an attempt, or failure to charge the attempt.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    /// The value is the number of seconds until the next attempt is accepted.
    #[error("too many attempts")]
    TooMany(u64),
    #[error("{}", store::db::error_chain(.0))]
    Pool(#[from] PoolError),
    #[error("{}", store::db::error_chain(.0))]
    Database(#[from] tokio_postgres::Error),
    #[error("the database did not reply within {} ms", REPLY_TIMEOUT.as_millis())]
    Timeout,
}

/// Reason to trust the device of a sign-in attempt. `Unknown` is the absence of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceTrust {
    /// Known browser: the holder signed in with it recently. The network does not matter.
    Browser(DeviceHash),
    /// Known network: the holder signed in from it recently.
    Network,
    Unknown,
}

/// Rate limit of attempts for one subject, such as an account and a device together. `subject` is the subject's hash.
#[derive(Debug)]
struct AttemptLimit {
    subject: [u8; 32],
    per_minute: i32,
    /// True if all unknown devices of an account share the limit. The attempts under a shared limit are served one at a
    /// time.
    is_shared: bool,
}

/// Limits that were charged for an attempt. The caller must refund them if it does not check the password.
#[derive(Debug)]
pub(crate) struct AttemptCharge(Vec<AttemptLimit>);

/// Reply of the database to a charge.
enum ChargeOutcome {
    /// The attempt is charged. The caller must wait for this duration before it checks the password.
    Charged(Duration),
    /// A limit refuses the attempt. The number is the index of this limit in the list of the attempt's limits. The
    /// duration is the wait until the next attempt is accepted.
    Refused(usize, Duration),
}

/// Throttle of password attempts, per account, device and client network.
#[derive(Debug)]
pub(crate) struct LoginThrottle {
    pool: Pool,
    /// Turns of the attempts with a shared limit, one at a time per limit, in order of arrival.
    turns: ConcurrencyLimiter<[u8; 32]>,
    /// Waiting attempts, per client network and in total.
    waiting: ConcurrencyLimiter<ClientNetwork>,
}

impl AttemptLimit {
    fn new(kind: &str, parts: &[&[u8]], per_minute: i32) -> Self {
        let hash = parts.iter().fold(Sha256::new().chain_update(kind), |hash, part| hash.chain_update(part));
        Self { subject: hash.finalize().into(), per_minute, is_shared: false }
    }

    /// Limit of attempts for an account from one device.
    fn of_account_and_device(account: &[u8; 32], device: &[u8]) -> Self {
        Self::new("both ", &[account, device], PER_ACCOUNT_AND_DEVICE)
    }

    /// Limit of attempts for an account from all unknown devices together.
    fn of_account(account: &[u8; 32]) -> Self {
        Self { is_shared: true, ..Self::new("account ", &[account], PER_ACCOUNT) }
    }

    fn of_address(client: IpAddr) -> impl Iterator<Item = Self> {
        let (network, wide) = ClientNetwork::containing(client);
        let limit =
            |network: ClientNetwork, per_minute| Self::new("address ", &[network.octets()], per_minute);
        [limit(network, PER_ADDRESS)].into_iter().chain(wide.map(|wide| limit(wide, PER_NET_48)))
    }

    /// Interval between two allowed attempts, in seconds.
    fn interval(&self) -> f64 {
        60.0 / f64::from(self.per_minute)
    }

    /// Maximum delay that the database may assign, in seconds. It is 0 for shared limits, for which `wait` repeats the
    /// charge.
    fn max_delay_seconds(&self) -> f64 {
        if self.is_shared { 0.0 } else { MAX_DELAY.as_secs_f64() }
    }
}

impl LoginThrottle {
    pub(crate) fn new(pool: Pool) -> Self {
        let turns = ConcurrencyLimits {
            max_working: Semaphore::MAX_PERMITS,
            max_in_progress_per_key: 1,
            max_requests_per_key: usize::MAX,
            max_requests: usize::MAX,
            timeout: MAX_DELAY,
        };
        // An attempt that is not refused gets its place at once.
        let waiting = ConcurrencyLimits {
            max_working: MAX_WAITING,
            max_in_progress_per_key: MAX_WAITING_PER_ADDRESS,
            max_requests_per_key: MAX_WAITING_PER_ADDRESS,
            max_requests: MAX_WAITING,
            timeout: MAX_DELAY,
        };
        Self { pool, turns: ConcurrencyLimiter::new(turns), waiting: ConcurrencyLimiter::new(waiting) }
    }

    /// Waits until this client may try a password for the account with the email address `email`.
    pub(crate) async fn wait_for_sign_in(
        &self,
        email: &str,
        client: IpAddr,
        trust: DeviceTrust,
    ) -> Result<AttemptCharge, AttemptError> {
        let account = account(email);
        let network = ClientNetwork::containing(client).0;
        if let DeviceTrust::Browser(device) = trust {
            let limit = AttemptLimit::of_account_and_device(&account, &device);
            return self.wait(network, vec![limit]).await;
        }
        let mut limits = vec![AttemptLimit::of_account_and_device(&account, network.octets())];
        limits.extend(AttemptLimit::of_address(client));
        if trust == DeviceTrust::Unknown {
            limits.push(AttemptLimit::of_account(&account));
        }
        self.wait(network, limits).await
    }

    /// Waits until this client may submit a new password for hashing.
    pub(crate) async fn wait_for_hashing(&self, client: IpAddr) -> Result<AttemptCharge, AttemptError> {
        self.wait(ClientNetwork::containing(client).0, AttemptLimit::of_address(client).collect()).await
    }

    /// Refunds an attempt whose password was not checked. If the refund fails, it is not repeated.
    pub(crate) async fn refund(&self, AttemptCharge(limits): &AttemptCharge) {
        let (subjects, intervals) = (subjects(limits), intervals(limits));
        let refunding = async {
            let client = self.pool.get().await?;
            client.execute(REFUND, &[&subjects, &intervals]).await?;
            Ok::<_, AttemptError>(())
        };
        if let Err(error) = timeout(REPLY_TIMEOUT, refunding).await.unwrap_or(Err(AttemptError::Timeout)) {
            tracing::warn!(%error, "cannot refund a sign-in");
        }
    }

    /// Charges an attempt to its limits, and waits for the assigned delay. On one instance, attempts with the same
    /// shared limit are charged one after another.
    async fn wait(
        &self,
        network: ClientNetwork,
        limits: Vec<AttemptLimit>,
    ) -> Result<AttemptCharge, AttemptError> {
        let until = Instant::now() + MAX_DELAY;
        let too_many = |_: LimiterError| AttemptError::TooMany(MAX_DELAY.as_secs());
        let start_waiting = async || self.waiting.acquire(network).await.map_err(too_many);
        let mut waiting = None;
        let turn = match limits.iter().find(|limit| limit.is_shared) {
            None => None,
            Some(limit) => {
                let mut turn = pin!(self.turns.acquire(limit.subject));
                if let Poll::Ready(turn) = poll!(turn.as_mut()) {
                    Some(turn.map_err(too_many)?)
                } else {
                    waiting = Some(start_waiting().await?);
                    Some(turn.await.map_err(too_many)?)
                }
            }
        };
        loop {
            match self.charge(&limits).await? {
                ChargeOutcome::Charged(delay) => {
                    drop(turn);
                    let charge = AttemptCharge(limits);
                    if delay > Duration::ZERO {
                        let place = match waiting {
                            Some(place) => Ok(place),
                            None => start_waiting().await,
                        };
                        let Ok(_waiting) = place else {
                            self.refund(&charge).await;
                            return Err(too_many(LimiterError::Full));
                        };
                        sleep(delay).await;
                    }
                    return Ok(charge);
                }
                ChargeOutcome::Refused(position, pause)
                    if limits.get(position).is_some_and(|limit| limit.is_shared)
                        && Instant::now() + pause <= until =>
                {
                    if waiting.is_none() {
                        waiting = Some(start_waiting().await?);
                    }
                    sleep(pause).await;
                }
                ChargeOutcome::Refused(_, pause) => {
                    let seconds = pause.as_millis().div_ceil(1_000);
                    return Err(AttemptError::TooMany(seconds.try_into().unwrap_or(60)));
                }
            }
        }
    }

    /// Charges an attempt to all its limits, or to none if a limit refuses it.
    async fn charge(&self, limits: &[AttemptLimit]) -> Result<ChargeOutcome, AttemptError> {
        let bursts: Vec<i32> = limits.iter().map(|limit| limit.per_minute).collect();
        let max_delays: Vec<f64> = limits.iter().map(AttemptLimit::max_delay_seconds).collect();
        let (subjects, intervals) = (subjects(limits), intervals(limits));
        let charging = async {
            let client = self.pool.get().await?;
            Ok::<_, AttemptError>(
                client.query_one(CHARGE, &[&subjects, &intervals, &bursts, &max_delays]).await?,
            )
        };
        let row = timeout(REPLY_TIMEOUT, charging).await.map_err(|_| AttemptError::Timeout)??;
        let (refused_by, seconds): (i32, f64) = (row.try_get("refused_by")?, row.try_get("seconds")?);
        let pause = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(MAX_DELAY);
        Ok(match usize::try_from(refused_by).ok().and_then(|position| position.checked_sub(1)) {
            Some(position) => ChargeOutcome::Refused(position, pause),
            None => ChargeOutcome::Charged(pause),
        })
    }
}

fn account(email: &str) -> [u8; 32] {
    Sha256::digest(email.trim().to_lowercase()).into()
}

fn subjects(limits: &[AttemptLimit]) -> Vec<&[u8]> {
    limits.iter().map(|limit| &limit.subject[..]).collect()
}

fn intervals(limits: &[AttemptLimit]) -> Vec<f64> {
    limits.iter().map(AttemptLimit::interval).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadpool_postgres::{Manager, Runtime};

    fn new() -> LoginThrottle {
        let manager = Manager::new(tokio_postgres::Config::new(), tokio_postgres::NoTls);
        LoginThrottle::new(Pool::builder(manager).runtime(Runtime::Tokio1).build().unwrap())
    }

    #[tokio::test]
    async fn one_address_takes_few_of_the_places_to_wait() {
        let login_throttle = new();
        let (one, two) = (ClientNetwork::V4([1; 4]), ClientNetwork::V4([2; 4]));
        let mut waiting = Vec::new();
        for _ in 0..MAX_WAITING_PER_ADDRESS {
            waiting.push(login_throttle.waiting.acquire(one).await.unwrap());
        }
        assert!(login_throttle.waiting.acquire(one).await.is_err());
        assert!(login_throttle.waiting.acquire(two).await.is_ok());
        waiting.pop();
        assert!(login_throttle.waiting.acquire(one).await.is_ok());
    }

    #[test]
    fn subjects_are_distinct() {
        let (account, network) = (account("who@example.com"), ClientNetwork::V4([1, 2, 3, 4]));
        let limits = [
            AttemptLimit::of_account_and_device(&account, network.octets()),
            AttemptLimit::of_account_and_device(&account, &[7; 32]),
            AttemptLimit::of_account(&account),
        ];
        let client = IpAddr::from([0x2001, 0xdb8, 1, 2, 0, 0, 0, 1]);
        let all: Vec<_> = limits.into_iter().chain(AttemptLimit::of_address(client)).collect();
        let mut subjects = subjects(&all);
        subjects.sort_unstable();
        subjects.dedup();
        assert_eq!(subjects.len(), 5);
    }
}
