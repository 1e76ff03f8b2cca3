//! Account operations: creation, display, change of the email address, disabling and deletion.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use store::{FromRow, sql_row};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Transaction};

use super::actor::{AccountActor, LockedAccount};
use super::error::AccountError;
use super::revocation;
use crate::auth::ids::AccountId;
use crate::auth::tier::Tier;

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
        /// Tier that applies now: `next_tier` after `paid_until`, otherwise `tier`.
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

/// Creates an account in the caller's transaction, and locks its row. `holder` is true if the holder creates the
/// account, and false if the operator creates it.
pub(crate) async fn create_account(
    transaction: &Transaction<'_>,
    email: &str,
    tier: Tier,
    paid_until: Option<DateTime<Utc>>,
    holder: bool,
) -> Result<LockedAccount, AccountError> {
    let row = match transaction.query_one(CREATE, &[&email, &tier, &paid_until]).await {
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
            return Err(AccountError::Taken(email.to_owned()));
        }
        created => created?,
    };
    let actor = if holder { AccountActor::Holder(row.try_get("id")?) } else { AccountActor::Operator(email) };
    let account = actor.lock(transaction).await?;
    let details = json!({ "email": email, "tier": tier, "paid_until": paid_until });
    account.record(transaction, "account.create", details).await?;
    Ok(account)
}

/// Finds the account of an email address, which must be in lower case.
pub(crate) async fn find_account(client: &Client, email: &str) -> Result<AccountDetails, AccountError> {
    let row = client.query_opt(SHOW, &[&email]).await?;
    Ok(AccountDetails::from_row(&row.ok_or_else(|| AccountError::NoAccount(email.to_owned()))?)?)
}

/// Lists all accounts, ordered by email address.
pub(crate) async fn list_accounts(client: &Client) -> Result<Vec<AccountDetails>, AccountError> {
    let rows = client.query(LIST, &[]).await?;
    Ok(rows.iter().map(AccountDetails::from_row).collect::<Result<_, _>>()?)
}

/// Disables or enables an account, from the next request on. Disabling also ends the account's sessions and one-time
/// links, and deletes its known devices.
pub(crate) async fn set_disabled(
    client: &mut Client,
    actor: AccountActor<'_>,
    disabled: bool,
) -> Result<(), AccountError> {
    let transaction = client.transaction().await?;
    let account = actor.lock(&transaction).await?;
    let changed = transaction.execute(DISABLE, &[&account.id, &disabled]).await?;
    let ended =
        if disabled { revocation::end_links_and_sessions(&transaction, account.id).await? } else { 0 };
    let action = if disabled { "account.disable" } else { "account.enable" };
    if changed + ended > 0 {
        account.record(&transaction, action, json!({ "sessions": ended })).await?;
    }
    Ok(transaction.commit().await?)
}

/// Changes an account's email address in the caller's transaction. `email` must be in lower case. One-time links that
/// were sent to the old email address are revoked.
pub(crate) async fn change_address(
    transaction: &Transaction<'_>,
    account: &LockedAccount,
    email: &str,
) -> Result<(), AccountError> {
    if account.email == email {
        return Ok(());
    }
    match transaction.execute(RENAME, &[&account.id, &email]).await {
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
            return Err(AccountError::Taken(email.to_owned()));
        }
        renamed => renamed?,
    };
    revocation::end_links(transaction, account.id).await?;
    let details = json!({ "before": account.email, "after": email });
    account.record(transaction, "account.address", details).await
}

/// Deletes an account with its keys, sessions, one-time links, portfolios and password, from the next request on. A new
/// account with the same email address takes over the number of calls used in the current month.
pub(crate) async fn delete_account(client: &mut Client, actor: AccountActor<'_>) -> Result<(), AccountError> {
    let transaction = client.transaction().await?;
    let account = actor.lock(&transaction).await?;
    account.lock_limiter(&transaction).await?;
    let keys = account.count_active_keys(&transaction).await?;
    transaction.execute(DELETE, &[&account.id]).await?;
    account.record(&transaction, "account.delete", json!({ "keys": keys })).await?;
    Ok(transaction.commit().await?)
}
