//! Accounts: create, show, rename, disable and delete, and changes of the plan.
//!
//! Invariant: a holder's upgrade applies from the next call on, a downgrade after the paid period.

use std::cmp::Ordering;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use store::{FromRow, find_rows, sql_row};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Transaction};

use super::audit::{AccountActor, AccountError, LockedAccount, Result, Subscription, find_row};
use super::sessions;
use crate::auth::{AccountId, Tier};

const CREATE: &str = include_str!("../../queries/accounts/create_account.sql");
const SHOW: &str = include_str!("../../queries/accounts/show_account.sql");
const LIST: &str = include_str!("../../queries/accounts/list_accounts.sql");
const DISABLE: &str = include_str!("../../queries/accounts/disable_account.sql");
const RENAME: &str = include_str!("../../queries/accounts/set_email.sql");
const DELETE: &str = include_str!("../../queries/accounts/delete_account.sql");

sql_row! {
    /// Account with its plan and usage.
    #[derive(Debug, Clone, Serialize)]
    pub(crate) struct AccountDetails {
        pub(crate) id: AccountId,
        pub(crate) email: String,
        pub(crate) tier: Tier,
        /// Tier that applies now: `tier` until `paid_until`, then `next_tier`.
        pub(crate) effective_tier: Tier,
        pub(crate) paid_until: Option<DateTime<Utc>>,
        /// Tier that applies after `paid_until`.
        pub(crate) next_tier: Tier,
        /// End of the current paid month; `None` if the account does not pay by the month.
        pub(crate) period_end: Option<DateTime<Utc>>,
        /// Tier that the holder requested from the operator; `None` without a request.
        pub(crate) wanted_tier: Option<Tier>,
        pub(crate) disabled_at: Option<DateTime<Utc>>,
        pub(crate) active_keys: i64,
        pub(crate) used_this_month: i64,
        pub(crate) monthly_quota: i64,
        pub(crate) created_at: DateTime<Utc>,
    }
}

/// Creates an account in the caller's transaction, and locks the account's row. `holder` is true if the account holder
/// signs up, and false if the operator creates the account.
pub(crate) async fn create_account<'t>(
    transaction: Transaction<'t>,
    email: &str,
    tier: Tier,
    paid_until: Option<DateTime<Utc>>,
    holder: bool,
) -> Result<LockedAccount<'t>> {
    let created = transaction.query_one(CREATE, &[&email, &tier, &paid_until]).await;
    let row = created.map_err(|error| taken_or(error, email))?;
    let actor = if holder { AccountActor::Holder(row.try_get("id")?) } else { AccountActor::Operator(email) };
    let account = actor.lock(transaction).await?;
    let details = json!({ "email": email, "tier": tier, "paid_until": paid_until });
    account.record("account.create", details).await?;
    Ok(account)
}

/// Converts a database error. A unique violation becomes [`AccountError::Taken`], because an account with this email
/// address already exists.
fn taken_or(error: Error, email: &str) -> AccountError {
    match error.code() {
        Some(&SqlState::UNIQUE_VIOLATION) => AccountError::Taken(email.to_owned()),
        _ => error.into(),
    }
}

/// Finds the account of an email address, which must be in lower case.
pub(crate) async fn find_account(client: &Client, email: &str) -> Result<AccountDetails> {
    find_row(client, SHOW, &[&email]).await?.ok_or_else(|| AccountError::NoAccount(email.to_owned()))
}

/// Lists all accounts, ordered by email address.
pub(crate) async fn list_accounts(client: &Client) -> Result<Vec<AccountDetails>> {
    Ok(find_rows(client, LIST, &[]).await?)
}

/// Disables or enables an account. The change applies from the next request on. Disabling also ends the account's
/// sessions and one-time links, and deletes its known devices.
pub(crate) async fn set_disabled(client: &mut Client, actor: AccountActor<'_>, disabled: bool) -> Result<()> {
    let account = actor.begin(client).await?;
    let changed = account.transaction.execute(DISABLE, &[&account.id, &disabled]).await?;
    let ended = if disabled { sessions::end_links_and_sessions(&account).await? } else { 0 };
    let action = if disabled { "account.disable" } else { "account.enable" };
    if changed + ended > 0 {
        account.record(action, json!({ "sessions": ended })).await?;
    }
    account.commit().await
}

/// Changes an account's email address in the caller's transaction. `email` must be in lower case. One-time links that
/// were sent to the old email address are revoked.
pub(crate) async fn change_address(account: &LockedAccount<'_>, email: &str) -> Result<()> {
    if account.email == email {
        return Ok(());
    }
    let renamed = account.transaction.execute(RENAME, &[&account.id, &email]).await;
    renamed.map_err(|error| taken_or(error, email))?;
    sessions::end_links(account).await?;
    account.record("account.address", json!({ "before": account.email, "after": email })).await
}

/// Deletes an account, from the next request on. A new account with the same email address starts with the calls used
/// this month.
pub(crate) async fn delete_account(client: &mut Client, actor: AccountActor<'_>) -> Result<()> {
    let account = actor.begin(client).await?;
    let keys = account.count_active_keys().await?;
    account.transaction.execute(DELETE, &[&account.id]).await?;
    account.record("account.delete", json!({ "keys": keys })).await?;
    account.commit().await
}

const SET: &str = include_str!("../../queries/accounts/set_tier.sql");
const CANCEL: &str = include_str!("../../queries/accounts/cancel.sql");
const SETTLE: &str = include_str!("../../queries/accounts/settle.sql");
const CHOOSE: &str = include_str!("../../queries/accounts/choose_tier.sql");
const CHOOSE_NEXT: &str = include_str!("../../queries/accounts/choose_next_tier.sql");
const ASK: &str = include_str!("../../queries/accounts/ask_for_tier.sql");

/// Sets an account's tier from the next request on. The tier applies until `paid_until`, or without an end if
/// `paid_until` is `None`.
pub(crate) async fn set_tier(
    client: &mut Client,
    actor: AccountActor<'_>,
    tier: Tier,
    paid_until: Option<DateTime<Utc>>,
) -> Result<()> {
    let account = actor.begin(client).await?;
    apply(account, "account.set_tier", SET, &[&tier, &paid_until]).await
}

/// Cancels a subscription. The current tier applies until the end of the paid period, and Free applies afterwards. If
/// `paid_until` is given, it becomes the end of the paid period.
pub(crate) async fn cancel_subscription(
    client: &mut Client,
    actor: AccountActor<'_>,
    paid_until: Option<DateTime<Utc>>,
) -> Result<()> {
    let account = begin_settled(client, actor).await?;
    if account.subscription.tier == Tier::Free {
        return Err(AccountError::Refused("the account has no paid plan to cancel".to_owned()));
    }
    apply(account, "account.cancel", CANCEL, &[&paid_until]).await
}

/// Sets the tier that applies after the paid period.
pub(crate) async fn set_next_tier(client: &mut Client, actor: AccountActor<'_>, tier: Tier) -> Result<()> {
    let account = begin_settled(client, actor).await?;
    apply(account, "account.next_tier", CHOOSE_NEXT, &[&tier]).await
}

/// Selects a tier that is paid by the month. A higher tier applies from the next request on. A lower tier applies after
/// the paid month. Selecting the current tier cancels a scheduled change of tier.
pub(crate) async fn choose_tier(client: &mut Client, actor: AccountActor<'_>, tier: Tier) -> Result<()> {
    let account = begin_settled(client, actor).await?;
    let (action, statement) = match tier.cmp(&account.subscription.tier) {
        Ordering::Greater => ("account.upgrade", CHOOSE),
        Ordering::Equal => ("account.resume", CHOOSE),
        Ordering::Less => ("account.next_tier", CHOOSE_NEXT),
    };
    apply(account, action, statement, &[&tier]).await
}

/// Records the tier that the holder requests from the operator. A request for Free is a request to cancel the paid
/// plan.
pub(crate) async fn request_tier(client: &mut Client, actor: AccountActor<'_>, tier: Tier) -> Result<()> {
    let account = begin_settled(client, actor).await?;
    if tier == account.subscription.tier {
        return Err(AccountError::Refused("this is already your plan".to_owned()));
    }
    if account.transaction.execute(ASK, &[&account.id, &tier]).await? > 0 {
        account.record("account.ask", json!({ "tier": tier })).await?;
    }
    account.commit().await
}

/// Begins a transaction and locks the account. If its paid period has ended, stores `next_tier` as the current tier.
async fn begin_settled<'t>(client: &'t mut Client, actor: AccountActor<'_>) -> Result<LockedAccount<'t>> {
    let account = actor.begin(client).await?;
    match account.transaction.execute(SETTLE, &[&account.id]).await? {
        0 => Ok(account),
        _ => actor.lock(account.transaction).await,
    }
}

/// Runs a statement that changes the account's subscription, and commits. The first parameter of the statement is the
/// account's id; `parameters` contains all further parameters. If the subscription changed, appends its old and new
/// values to the audit log.
async fn apply(
    account: LockedAccount<'_>,
    action: &str,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<()> {
    let mut all: Vec<&(dyn ToSql + Sync)> = vec![&account.id];
    all.extend(parameters);
    if let Some(changed) = account.transaction.query_opt(statement, &all).await? {
        let after = Subscription::from_row(&changed)?;
        account.record(action, json!({ "before": account.subscription, "after": after })).await?;
    }
    account.commit().await
}
