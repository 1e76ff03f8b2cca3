//! One-time links: invitations to sign up, and password resets.
//!
//! Invariant: viewing a link does not use it up, so mail scanners cannot spoil it.

use chrono::{DateTime, Utc};
use market::text_enum;
use secrecy::SecretString;
use serde_json::json;
use tokio_postgres::{Client, Row, Transaction};

use super::accounts;
use super::error::AccountError;
use super::party::{Locked, Party};
use super::token::Token;
use super::ways_in;
use crate::auth::tier::Tier;

const CREATE: &str = include_str!("../../queries/accounts/create_link.sql");
const FIND: &str = include_str!("../../queries/accounts/find_link.sql");
const USE: &str = include_str!("../../queries/accounts/use_link.sql");
const SET_PASSWORD: &str = include_str!("../../queries/accounts/set_password.sql");

text_enum! {
    /// What a link is for.
    pub enum Purpose { Invitation = "invitation", Reset = "reset" }
}

/// New link; its secret cannot be read again.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) secret: SecretString,
    pub(crate) expires_at: DateTime<Utc>,
}

/// Usable link.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) purpose: Purpose,
    pub(crate) email: String,
    account: Option<i64>,
    tier: Tier,
}

impl Link {
    fn read(row: &Row) -> Result<Self, AccountError> {
        let purpose: &str = row.try_get("purpose")?;
        Ok(Self {
            purpose: purpose.parse().map_err(AccountError::Refused)?,
            email: row.try_get("email")?,
            account: row.try_get("account_id")?,
            tier: row.try_get("tier")?,
        })
    }
}

/// Creates an invitation: an address without an account gets one with this tier.
pub(crate) async fn invite(
    client: &Client,
    email: &str,
    tier: Tier,
    hours: i32,
) -> Result<Made, AccountError> {
    if accounts::show(client, email).await.is_ok() {
        return Err(AccountError::Taken(email.to_owned()));
    }
    let token = Token::draw();
    let purpose = Purpose::Invitation.as_str();
    let row =
        client.query_one(CREATE, &[&&token.hash[..], &purpose, &email, &None::<i64>, &tier, &hours]).await?;
    Ok(Made { secret: token.text, expires_at: row.try_get("expires_at")? })
}

/// Creates a password reset link for an account's holder.
pub(crate) async fn reset(client: &mut Client, party: Party<'_>, hours: i32) -> Result<Made, AccountError> {
    let transaction = client.transaction().await?;
    let account = party.lock(&transaction).await?;
    let token = Token::draw();
    let purpose = Purpose::Reset.as_str();
    let (hash, tier) = (&token.hash[..], account.subscription.tier);
    let row = transaction
        .query_one(CREATE, &[&hash, &purpose, &account.email, &Some(account.id), &tier, &hours])
        .await?;
    account.record(&transaction, "password.reset_link", json!({ "hours": hours })).await?;
    transaction.commit().await?;
    Ok(Made { secret: token.text, expires_at: row.try_get("expires_at")? })
}

/// Usable link with this secret.
pub(crate) async fn find(client: &Client, secret: &str) -> Result<Option<Link>, AccountError> {
    let row = client.query_opt(FIND, &[&&Token::hash(secret)[..]]).await?;
    row.as_ref().map(Link::read).transpose()
}

/// Uses up a link: its address gets an account with this password. Open sessions and other links end. `None` for an
/// unusable link.
pub(crate) async fn spend(
    transaction: &Transaction<'_>,
    secret: &str,
    password_hash: &str,
) -> Result<Option<Locked>, AccountError> {
    let Some(row) = transaction.query_opt(USE, &[&&Token::hash(secret)[..]]).await? else { return Ok(None) };
    let link = Link::read(&row)?;
    let account = match link.account {
        Some(id) => Party::Holder(id).lock(transaction).await?,
        None => accounts::create(transaction, &link.email, link.tier, None, true).await?,
    };
    transaction.execute(SET_PASSWORD, &[&account.id, &password_hash]).await?;
    let ended = ways_in::close(transaction, account.id).await?;
    account.record(transaction, "password.set", json!({ "sessions": ended })).await?;
    Ok(Some(account))
}
