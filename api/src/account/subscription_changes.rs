//! Changes of a subscription: current tier, paid period and next tier.
//!
//! Invariant: a holder's upgrade applies from the next call on, a downgrade after the paid period.

use std::cmp::Ordering;

use chrono::{DateTime, Utc};
use serde_json::json;
use store::FromRow;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::audit::{AccountActor, LockedAccount, Subscription};
use super::query::{AccountError, Result};
use crate::auth::tier::Tier;

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
