//! Passwords: rules, hashing and comparison. One-time links with which a person chooses a password: invitations to sign
//! up, and password resets.
//!
//! Invariants: a sign-in costs the same work for known and unknown email addresses. The number of concurrent hashes is
//! limited.
//!
//! Invariant: a link is used up only when its form is submitted. A mail scanner may open the link without using it up.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use chrono::{DateTime, Utc};
use market::text_enum;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use store::{FromRow, sql_row};
use tokio_postgres::{Client, Transaction};

use super::accounts;
use super::audit::{AccountActor, AccountError, LockedAccount, Result, find_row};
use super::sessions::{self, ClientDevices, Token};
use crate::auth::client_address::ClientNetwork;
use crate::auth::{AccountId, Tier};
use crate::concurrency::limiter::{ConcurrencyLimiter, ConcurrencyLimits, LimiterError, Permit};
use crate::concurrency::{LowPriorityError, run_low_priority};

const FIND: &str = include_str!("../../queries/accounts/find_password.sql");
const HOLDS: &str = include_str!("../../queries/accounts/is_password.sql");
const SET: &str = include_str!("../../queries/accounts/set_password.sql");
/// Argon2 parameters: memory in KiB, passes and lanes.
const COST: (u32, u32, u32) = (19 * 1024, 2, 1);
/// Allowed length of a password, in characters.
const LENGTH: std::ops::RangeInclusive<usize> = 12..=128;
/// Common passwords of an allowed length. Attackers try these first.
const COMMON: &str = include_str!("common_passwords.txt");
/// Maximum wait for a hashing permit. The number of permits limits the number of concurrent hashes.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of passwords that are hashed or wait for a hashing permit.
const MAX_PASSWORDS: usize = 512;
/// Maximum number of passwords that are hashed or wait for a hashing permit, per network or account.
const MAX_PASSWORDS_PER_KEY: usize = 40;
/// Placeholder hash for sign-ins with an unknown email address. The verification of this hash takes as long as the
/// verification of a real hash. The response time therefore does not reveal whether the account exists.
static PLACEHOLDER: LazyLock<Result<String, PasswordError>> = LazyLock::new(|| hash_now("no one's password"));

/// Errors of password hashing and verification.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PasswordError {
    #[error("cannot check the password: too many checks are in progress; try again in a few seconds")]
    Busy,
    #[error("cannot hash a password: {0}")]
    Parameters(#[source] argon2::Error),
    #[error("cannot hash a password: {0}")]
    Hash(#[source] argon2::password_hash::Error),
    #[error("cannot hash a password: {0}")]
    Pool(#[from] LowPriorityError),
    #[error("cannot hash the placeholder password: {0}")]
    Placeholder(#[source] &'static PasswordError),
}

/// Client whose password is hashed. A client has at most one permit at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum HashingClient {
    /// Account of a client that is signed in or uses a known device.
    Known(AccountId),
    /// Network of a client that is neither signed in nor uses a known device.
    Network(ClientNetwork),
}

/// Argon2 hasher with a limit of concurrent hashes. Known clients have their own limit, so that many sign-ins of
/// unknown clients do not delay them.
#[derive(Debug)]
pub(crate) struct PasswordHashing {
    known: ConcurrencyLimiter<AccountId>,
    networks: ConcurrencyLimiter<ClientNetwork>,
}

sql_row! {
    /// Account of a sign-in attempt, with the password hash of the account. Two flags are true if the attempt came from
    /// a known browser or from a known network.
    #[derive(Debug)]
    pub(crate) struct StoredPassword {
        pub(crate) account_id: AccountId,
        hash: String,
        /// True if the attempt came from a known browser of the account.
        pub(crate) knows_browser: bool,
        /// True if the attempt came from a known network of the account.
        pub(crate) knows_network: bool,
    }
}

impl PasswordHashing {
    pub(crate) fn new(max_concurrent: usize) -> Self {
        let limits = ConcurrencyLimits {
            max_working: max_concurrent,
            max_in_progress_per_key: 1,
            max_requests_per_key: MAX_PASSWORDS_PER_KEY,
            max_requests: MAX_PASSWORDS,
            timeout: PERMIT_TIMEOUT,
        };
        Self { known: ConcurrencyLimiter::new(limits), networks: ConcurrencyLimiter::new(limits) }
    }

    async fn acquire(&self, client: HashingClient) -> Result<Permit, LimiterError> {
        match client {
            HashingClient::Known(account_id) => self.known.acquire(account_id).await,
            HashingClient::Network(network) => self.networks.acquire(network).await,
        }
    }

    pub(crate) async fn hash(
        &self,
        password: SecretString,
        client: HashingClient,
    ) -> Result<String, PasswordError> {
        self.work(client, move || hash_now(password.expose_secret())).await?
    }

    /// Compares a password with the stored hash. If `stored` is `None`, the comparison takes equally long and returns
    /// `false`.
    pub(crate) async fn verify(
        &self,
        password: SecretString,
        stored: Option<&StoredPassword>,
        client: HashingClient,
    ) -> Result<bool, PasswordError> {
        let hash = stored.map(|stored| stored.hash.clone());
        self.work(client, move || {
            let placeholder = PLACEHOLDER.as_ref().map_err(PasswordError::Placeholder)?;
            let right = compare(password.expose_secret(), hash.as_deref().unwrap_or(placeholder));
            Ok(right && hash.is_some())
        })
        .await?
    }

    async fn work<T: Send + 'static>(
        &self,
        client: HashingClient,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let permit = self.acquire(client).await.map_err(|_| PasswordError::Busy)?;
        let worked = run_low_priority(move || {
            // The permit is released when the hashing ends, even if the caller's future was dropped before.
            let _permit = permit;
            work()
        });
        Ok(worked.await?)
    }
}

/// Finds the account with the email address `email`, which must be in lower case. `None` if the account does not exist,
/// is disabled or has no password. `devices` are the browser and network of the sign-in attempt.
pub(crate) async fn find_password(
    client: &Client,
    email: &str,
    devices: &ClientDevices,
) -> Result<Option<StoredPassword>> {
    let browser = devices.browser.as_ref().map(|browser| &browser[..]);
    find_row(client, FIND, &[&email, &browser, &&devices.network[..]]).await
}

/// Stores the hash of an account's password, in the caller's transaction.
pub(crate) async fn store_hash(account: &LockedAccount<'_>, hash: &str) -> Result<()> {
    account.transaction.execute(SET, &[&account.id, &hash]).await?;
    Ok(())
}

/// Begins a transaction and locks the account. The caller must already have verified the password. Returns `None` if
/// the password has changed since the verification, or if the account is now disabled or deleted.
pub(crate) async fn begin_verified<'t>(
    client: &'t mut Client,
    stored: &StoredPassword,
) -> Result<Option<LockedAccount<'t>>> {
    let account = match AccountActor::Holder(stored.account_id).begin(client).await {
        Err(AccountError::NoAccount(_)) => return Ok(None),
        locked => locked?,
    };
    let row = account.transaction.query_one(HOLDS, &[&stored.account_id, &stored.hash]).await?;
    let holds = row.try_get("holds")?;
    Ok(Some(account).filter(|_| holds))
}

/// Changes an account's password in the caller's transaction. Ends the account's sessions and one-time links, and
/// deletes its known devices.
pub(crate) async fn change_password(account: &LockedAccount<'_>, hash: &str) -> Result<()> {
    store_hash(account, hash).await?;
    let ended = sessions::end_links_and_sessions(account).await?;
    account.record("password.change", json!({ "sessions": ended })).await
}

/// Refuses a password that is easy to guess. A password may contain any character.
pub(crate) fn check_strength(password: &SecretString, email: &str) -> Result<()> {
    let refused = |message: &str| Err(AccountError::Refused(message.to_owned()));
    let text = password.expose_secret();
    if !LENGTH.contains(&text.chars().count()) {
        return refused(
            "a password must have 12 to 128 characters; several words in a row are a good choice",
        );
    }
    let lower = text.to_lowercase();
    let name = email.split('@').next().unwrap_or_default();
    if lower.contains(email) || (name.len() > 3 && lower.contains(name)) {
        return refused("the password contains your address; choose another one");
    }
    let plain: String = lower.chars().filter(|c| c.is_alphanumeric()).collect();
    let kinds: HashSet<char> = lower.chars().collect();
    if kinds.len() < 5 || COMMON.lines().any(|common| common == lower || common == plain) {
        return refused("this password is too common; choose another one");
    }
    Ok(())
}

fn argon2() -> Result<Argon2<'static>, argon2::Error> {
    let (memory, passes, lanes) = COST;
    let parameters = Params::new(memory, passes, lanes, None)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters))
}

fn hash_now(password: &str) -> Result<String, PasswordError> {
    let hasher = argon2().map_err(PasswordError::Parameters)?;
    let hash = hasher.hash_password(password.as_bytes());
    Ok(hash.map_err(PasswordError::Hash)?.to_string())
}

fn compare(password: &str, hash: &str) -> bool {
    argon2().is_ok_and(|hasher| hasher.verify_password(password.as_bytes(), hash).is_ok())
}

const CREATE_LINK: &str = include_str!("../../queries/accounts/create_link.sql");
const LOCK_INVITATIONS: &str = include_str!("../../queries/accounts/lock_invitations.sql");
const FIND_LINK: &str = include_str!("../../queries/accounts/find_link.sql");
const USE_LINK: &str = include_str!("../../queries/accounts/use_link.sql");

text_enum! {
    /// Purpose of a one-time link.
    pub enum LinkPurpose { Invitation = "invitation", Reset = "reset" }
}

/// New one-time link. Only a hash of its secret is stored, so the secret cannot be read again.
#[derive(Debug)]
pub(crate) struct CreatedLink {
    pub(crate) secret: SecretString,
    pub(crate) expires_at: DateTime<Utc>,
}

sql_row! {
    /// One-time link that is neither used nor expired.
    #[derive(Debug, Clone)]
    pub(crate) struct OneTimeLink {
        pub(crate) purpose: LinkPurpose,
        pub(crate) email: String,
        account_id: Option<AccountId>,
        tier: Tier,
    }
}

/// Creates an invitation link for an email address that has no account yet. Redeeming the link creates an account of
/// tier `tier`. The link expires after `hours` hours.
pub(crate) async fn create_invitation(
    client: &mut Client,
    email: &str,
    tier: Tier,
    hours: i32,
) -> Result<CreatedLink> {
    if accounts::find_account(client, email).await.is_ok() {
        return Err(AccountError::Taken(email.to_owned()));
    }
    let transaction = client.transaction().await?;
    transaction.execute(LOCK_INVITATIONS, &[&email]).await?;
    let link = create_link(&transaction, LinkPurpose::Invitation, (email, None, tier), hours).await?;
    transaction.commit().await?;
    Ok(link)
}

/// Creates a password reset link for an account. The link expires after `hours` hours.
pub(crate) async fn create_reset_link(
    client: &mut Client,
    actor: AccountActor<'_>,
    hours: i32,
) -> Result<CreatedLink> {
    let account = actor.begin(client).await?;
    let holder = (account.email.as_str(), Some(account.id), account.subscription.tier);
    let link = create_link(&account.transaction, LinkPurpose::Reset, holder, hours).await?;
    account.record("password.reset_link", json!({ "hours": hours })).await?;
    account.commit().await?;
    Ok(link)
}

async fn create_link(
    transaction: &Transaction<'_>,
    purpose: LinkPurpose,
    (email, account, tier): (&str, Option<AccountId>, Tier),
    hours: i32,
) -> Result<CreatedLink> {
    let Token { text, hash } = Token::generate();
    let row =
        transaction.query_one(CREATE_LINK, &[&&hash[..], &purpose, &email, &account, &tier, &hours]).await?;
    Ok(CreatedLink { secret: text, expires_at: row.try_get("expires_at")? })
}

/// Finds the link with this secret; `None` if it does not exist, was used or has expired.
pub(crate) async fn find_link(client: &Client, secret: &str) -> Result<Option<OneTimeLink>> {
    find_row(client, FIND_LINK, &[&&Token::hash(secret)[..]]).await
}

/// Redeems a one-time link and sets the account's password. An invitation first creates the account. The account's
/// sessions and other one-time links end. Returns `None` if the link does not exist, was used or has expired.
pub(crate) async fn redeem_link<'t>(
    client: &'t mut Client,
    secret: &str,
    password_hash: &str,
) -> Result<Option<LockedAccount<'t>>> {
    let transaction = client.transaction().await?;
    let row = transaction.query_opt(USE_LINK, &[&&Token::hash(secret)[..]]).await?;
    let Some(row) = row else { return Ok(None) };
    let link = OneTimeLink::from_row(&row)?;
    let account = match link.account_id {
        Some(id) => AccountActor::Holder(id).lock(transaction).await?,
        None => accounts::create_account(transaction, &link.email, link.tier, None, true).await?,
    };
    store_hash(&account, password_hash).await?;
    let ended = sessions::end_links_and_sessions(&account).await?;
    account.record("password.set", json!({ "sessions": ended })).await?;
    Ok(Some(account))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn passwords_that_are_guessed_soon_are_refused() {
        let check = |text: &str| check_strength(&SecretString::from(text), "someone@example.com").is_ok();
        for bad in
            ["short", "elevenchars", "aaaaaaaaaaaaaaa", "password1234", "Password-1234", "someone-2026!"]
        {
            assert!(!check(bad), "{bad}");
        }
        for good in ["correct horse battery", "ütf-8 ist auch gut", "7fa0-11cd-93be"] {
            assert!(check(good), "{good}");
        }
        assert!(!check(&"ab1c2".repeat(26)), "130 characters");
    }

    const STRANGER: HashingClient = HashingClient::Network(ClientNetwork::V4([192, 0, 2, 1]));

    #[tokio::test]
    async fn a_greedy_network_is_refused_at_once_and_no_known_holder() {
        let hashing = PasswordHashing::new(1);
        let _first = hashing.acquire(STRANGER).await.unwrap();
        let mut waiting: Vec<_> =
            (1..MAX_PASSWORDS_PER_KEY).map(|_| Box::pin(hashing.acquire(STRANGER))).collect();
        assert!(waiting.iter_mut().all(|waiter| waiter.now_or_never().is_none()));
        let refused = hashing.hash("correct horse battery".into(), STRANGER).await;
        assert!(matches!(refused, Err(PasswordError::Busy)), "{refused:?}");
        let holder = hashing.acquire(HashingClient::Known(AccountId(1))).now_or_never();
        assert!(holder.is_some_and(|permit| permit.is_ok()), "before the waiting network");
    }

    #[tokio::test]
    async fn a_password_is_told_from_another_and_from_none() {
        let hashing = PasswordHashing::new(1);
        let hash = hashing.hash("correct horse battery".into(), STRANGER).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let stored =
            StoredPassword { account_id: AccountId(1), hash, knows_browser: false, knows_network: false };
        assert!(hashing.verify("correct horse battery".into(), Some(&stored), STRANGER).await.unwrap());
        assert!(!hashing.verify("correct horse".into(), Some(&stored), STRANGER).await.unwrap());
        assert!(!hashing.verify("no one's password".into(), None, STRANGER).await.unwrap());
    }
}
