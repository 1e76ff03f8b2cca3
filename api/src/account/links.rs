//! One-time links: invitations to sign up, and password resets.
//!
//! Invariant: a link is used up only when its form is submitted. A mail scanner may open the link without using it up.

use chrono::{DateTime, Utc};
use market::text_enum;
use secrecy::SecretString;
use serde_json::json;
use store::{FromRow, sql_row};
use tokio_postgres::{Client, Transaction};

use super::audit::{AccountActor, AccountError, LockedAccount, Result, find_row};
use super::sessions::{self, Token};
use super::{accounts, password};
use crate::auth::{AccountId, Tier};

const CREATE: &str = include_str!("../../queries/accounts/create_link.sql");
const LOCK: &str = include_str!("../../queries/accounts/lock_invitations.sql");
const FIND: &str = include_str!("../../queries/accounts/find_link.sql");
const USE: &str = include_str!("../../queries/accounts/use_link.sql");

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
    transaction.execute(LOCK, &[&email]).await?;
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
    let row = transaction.query_one(CREATE, &[&&hash[..], &purpose, &email, &account, &tier, &hours]).await?;
    Ok(CreatedLink { secret: text, expires_at: row.try_get("expires_at")? })
}

/// Finds the link with this secret; `None` if it does not exist, was used or has expired.
pub(crate) async fn find_link(client: &Client, secret: &str) -> Result<Option<OneTimeLink>> {
    find_row(client, FIND, &[&&Token::hash(secret)[..]]).await
}

/// Redeems a one-time link and sets the account's password. An invitation first creates the account. The account's
/// sessions and other one-time links end. Returns `None` if the link does not exist, was used or has expired.
pub(crate) async fn redeem_link<'t>(
    client: &'t mut Client,
    secret: &str,
    password_hash: &str,
) -> Result<Option<LockedAccount<'t>>> {
    let transaction = client.transaction().await?;
    let row = transaction.query_opt(USE, &[&&Token::hash(secret)[..]]).await?;
    let Some(row) = row else { return Ok(None) };
    let link = OneTimeLink::from_row(&row)?;
    let account = match link.account_id {
        Some(id) => AccountActor::Holder(id).lock(transaction).await?,
        None => accounts::create_account(transaction, &link.email, link.tier, None, true).await?,
    };
    password::store_hash(&account, password_hash).await?;
    let ended = sessions::end_links_and_sessions(&account).await?;
    account.record("password.set", json!({ "sessions": ended })).await?;
    Ok(Some(account))
}
