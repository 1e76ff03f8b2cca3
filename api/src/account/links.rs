//! One-time links: invitations to sign up, and password resets.
//!
//! Invariant: only the submitted form uses up a link. A mail scanner that opens the link does not.

use chrono::{DateTime, Utc};
use market::text_enum;
use secrecy::SecretString;
use serde_json::json;
use tokio_postgres::{Client, Row, Transaction};

use super::actor::{AccountActor, LockedAccount};
use super::error::AccountError;
use super::secret_token::Token;
use super::{accounts, revocation};
use crate::auth::ids::AccountId;
use crate::auth::tier::Tier;

const CREATE: &str = include_str!("../../queries/accounts/create_link.sql");
const LOCK: &str = include_str!("../../queries/accounts/lock_invitations.sql");
const FIND: &str = include_str!("../../queries/accounts/find_link.sql");
const USE: &str = include_str!("../../queries/accounts/use_link.sql");
const SET_PASSWORD: &str = include_str!("../../queries/accounts/set_password.sql");

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

/// One-time link that is neither used nor expired.
#[derive(Debug, Clone)]
pub(crate) struct OneTimeLink {
    pub(crate) purpose: LinkPurpose,
    pub(crate) email: String,
    account: Option<AccountId>,
    tier: Tier,
}

impl OneTimeLink {
    fn from_row(row: &Row) -> Result<Self, AccountError> {
        let purpose: &str = row.try_get("purpose")?;
        Ok(Self {
            purpose: purpose.parse().map_err(AccountError::Refused)?,
            email: row.try_get("email")?,
            account: row.try_get("account_id")?,
            tier: row.try_get("tier")?,
        })
    }
}

/// Creates an invitation link for an email address without an account. Redeeming the link creates an account of tier
/// `tier`. The link expires after `hours` hours.
pub(crate) async fn create_invitation(
    client: &mut Client,
    email: &str,
    tier: Tier,
    hours: i32,
) -> Result<CreatedLink, AccountError> {
    if accounts::find_account(client, email).await.is_ok() {
        return Err(AccountError::Taken(email.to_owned()));
    }
    let token = Token::generate();
    let purpose = LinkPurpose::Invitation.as_str();
    let (hash, account) = (&token.hash[..], None::<AccountId>);
    let transaction = client.transaction().await?;
    transaction.execute(LOCK, &[&email]).await?;
    let row = transaction.query_one(CREATE, &[&hash, &purpose, &email, &account, &tier, &hours]).await?;
    transaction.commit().await?;
    Ok(CreatedLink { secret: token.text, expires_at: row.try_get("expires_at")? })
}

/// Creates a password reset link for an account. The link expires after `hours` hours.
pub(crate) async fn create_reset_link(
    client: &mut Client,
    actor: AccountActor<'_>,
    hours: i32,
) -> Result<CreatedLink, AccountError> {
    let transaction = client.transaction().await?;
    let account = actor.lock(&transaction).await?;
    let token = Token::generate();
    let purpose = LinkPurpose::Reset.as_str();
    let (hash, tier) = (&token.hash[..], account.subscription.tier);
    let row = transaction
        .query_one(CREATE, &[&hash, &purpose, &account.email, &Some(account.id), &tier, &hours])
        .await?;
    account.record(&transaction, "password.reset_link", json!({ "hours": hours })).await?;
    transaction.commit().await?;
    Ok(CreatedLink { secret: token.text, expires_at: row.try_get("expires_at")? })
}

/// Finds the link with this secret; `None` if it does not exist, was used or has expired.
pub(crate) async fn find_link(client: &Client, secret: &str) -> Result<Option<OneTimeLink>, AccountError> {
    let row = client.query_opt(FIND, &[&&Token::hash(secret)[..]]).await?;
    row.as_ref().map(OneTimeLink::from_row).transpose()
}

/// Redeems a one-time link: an invitation creates its account, and both kinds of link set the account's password. Ends
/// the account's sessions and other one-time links. `None` if the link does not exist, was used or has expired.
pub(crate) async fn redeem_link(
    transaction: &Transaction<'_>,
    secret: &str,
    password_hash: &str,
) -> Result<Option<LockedAccount>, AccountError> {
    let Some(row) = transaction.query_opt(USE, &[&&Token::hash(secret)[..]]).await? else { return Ok(None) };
    let link = OneTimeLink::from_row(&row)?;
    let account = match link.account {
        Some(id) => AccountActor::Holder(id).lock(transaction).await?,
        None => accounts::create_account(transaction, &link.email, link.tier, None, true).await?,
    };
    transaction.execute(SET_PASSWORD, &[&account.id, &password_hash]).await?;
    let ended = revocation::end_links_and_sessions(transaction, account.id).await?;
    account.record(transaction, "password.set", json!({ "sessions": ended })).await?;
    Ok(Some(account))
}
