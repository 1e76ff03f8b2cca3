//! Subscription: current tier, paid period and the tier after it.
//!
//! Invariants: more holds from the next call on, less after the paid period; no job has to run for either. A payment
//! provider's messages would call these functions too.

use chrono::{DateTime, Utc};
use serde_json::json;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};

use super::error::AccountError;
use super::party::{Locked, Party, Subscription};
use crate::auth::tier::Tier;

const SET: &str = include_str!("../../queries/accounts/set_tier.sql");
const CANCEL: &str = include_str!("../../queries/accounts/cancel.sql");
const SETTLE: &str = include_str!("../../queries/accounts/settle.sql");
const CHOOSE: &str = include_str!("../../queries/accounts/choose_tier.sql");
const CHOOSE_NEXT: &str = include_str!("../../queries/accounts/choose_next_tier.sql");
const ASK: &str = include_str!("../../queries/accounts/ask_for_tier.sql");

/// Gives an account a tier from the next request on, until `paid_until` or until changed.
pub(crate) async fn set_tier(
    client: &mut Client,
    party: Party<'_>,
    tier: Tier,
    paid_until: Option<DateTime<Utc>>,
) -> Result<(), AccountError> {
    let transaction = client.transaction().await?;
    let account = party.lock(&transaction).await?;
    change(&transaction, &account, "account.set_tier", SET, &[&tier, &paid_until]).await?;
    Ok(transaction.commit().await?)
}

/// Ends a subscription: the tier holds to the end of the paid period (`paid_until` where nobody knows it), then free.
pub(crate) async fn cancel(
    client: &mut Client,
    party: Party<'_>,
    paid_until: Option<DateTime<Utc>>,
) -> Result<(), AccountError> {
    let transaction = client.transaction().await?;
    let account = settled(&transaction, party).await?;
    if account.subscription.tier == Tier::Free {
        return Err(AccountError::Refused("there is no paid plan to cancel".to_owned()));
    }
    change(&transaction, &account, "account.cancel", CANCEL, &[&paid_until]).await?;
    Ok(transaction.commit().await?)
}

/// Notes which tier follows when the paid period ends.
pub(crate) async fn follow_with(
    client: &mut Client,
    party: Party<'_>,
    tier: Tier,
) -> Result<(), AccountError> {
    let transaction = client.transaction().await?;
    let account = settled(&transaction, party).await?;
    change(&transaction, &account, "account.next_tier", CHOOSE_NEXT, &[&tier]).await?;
    Ok(transaction.commit().await?)
}

/// Takes a tier by the month: a higher one, or the present one again, from the next request on; a lower one when the
/// paid month ends.
pub(crate) async fn choose(client: &mut Client, party: Party<'_>, tier: Tier) -> Result<(), AccountError> {
    let transaction = client.transaction().await?;
    let account = settled(&transaction, party).await?;
    let present = account.subscription.tier;
    let (action, statement) = match () {
        () if tier > present => ("account.upgrade", CHOOSE),
        () if tier == present => ("account.resume", CHOOSE),
        () => ("account.next_tier", CHOOSE_NEXT),
    };
    change(&transaction, &account, action, statement, &[&tier]).await?;
    Ok(transaction.commit().await?)
}

/// Notes which tier an account's holder asks the operator for; free is asked for by cancelling.
pub(crate) async fn ask(client: &mut Client, party: Party<'_>, tier: Tier) -> Result<(), AccountError> {
    let transaction = client.transaction().await?;
    let account = settled(&transaction, party).await?;
    if tier == account.subscription.tier {
        return Err(AccountError::Refused("that is the present plan already".to_owned()));
    }
    transaction.execute(ASK, &[&account.id, &tier]).await?;
    account.record(&transaction, "account.ask", json!({ "tier": tier })).await?;
    Ok(transaction.commit().await?)
}

/// The locked account as it is now: what a paid period ended has taken effect in its row.
async fn settled(transaction: &Transaction<'_>, party: Party<'_>) -> Result<Locked, AccountError> {
    let account = party.lock(transaction).await?;
    match transaction.execute(SETTLE, &[&account.id]).await? {
        0 => Ok(account),
        _ => party.lock(transaction).await,
    }
}

/// Runs a statement that takes the account's id first and gives its subscription, and records what it changed.
async fn change(
    transaction: &Transaction<'_>,
    account: &Locked,
    action: &str,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<(), AccountError> {
    let mut all: Vec<&(dyn ToSql + Sync)> = vec![&account.id];
    all.extend(parameters);
    let after = Subscription::read(&transaction.query_one(statement, &all).await?)?;
    account.record(transaction, action, json!({ "before": account.subscription, "after": after })).await
}
