//! `api account …`

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use store::db::DatabaseSettings;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Transaction};

use super::audit::record;
use super::email::email;
use super::error::AccountError;
use super::owner::owner;
use super::report;
use crate::tier::Tier;

const CREATE: &str = include_str!("../../queries/accounts/create_account.sql");
const SHOW: &str = include_str!("../../queries/accounts/show_account.sql");
const LIST: &str = include_str!("../../queries/accounts/list_accounts.sql");
const SET_TIER: &str = include_str!("../../queries/accounts/set_tier.sql");
const CANCEL: &str = include_str!("../../queries/accounts/cancel.sql");
const LOCK: &str = include_str!("../../queries/accounts/lock_account.sql");
const DELETE: &str = include_str!("../../queries/accounts/delete_account.sql");

/// Accounts: who may use the service, on which tier.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Makes an account
    Create(Create),
    /// Shows an account: tier, keys, use of the month
    Show(Named),
    /// Changes the tier from the next request on; what is used stays used
    SetTier(SetTier),
    /// Ends the subscription: the paid tier holds until the end of the period, then free
    Cancel(Cancel),
    /// Deletes an account with all its keys, from the next request on
    Delete(Named),
    /// Lists all accounts
    List(Listing),
}

/// One account.
#[derive(Debug, Args)]
pub struct Named {
    /// Email address of the account
    email: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A new account.
#[derive(Debug, Args)]
pub struct Create {
    /// Email address of the account
    email: String,
    /// free, starter, premium or professional (or pro)
    #[arg(long, default_value = "free", value_parser = tier)]
    tier: Tier,
    /// End of the paid period: a day (its end, UTC) or an instant; without it until changed
    #[arg(long, value_parser = instant)]
    paid_until: Option<DateTime<Utc>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A change of tier.
#[derive(Debug, Args)]
pub struct SetTier {
    /// Email address of the account
    email: String,
    /// free, starter, premium or professional (or pro)
    #[arg(value_parser = tier)]
    tier: Tier,
    /// End of the paid period: a day (its end, UTC) or an instant; without it until changed
    #[arg(long, value_parser = instant)]
    paid_until: Option<DateTime<Utc>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The end of a subscription.
#[derive(Debug, Args)]
pub struct Cancel {
    /// Email address of the account
    email: String,
    /// End of the paid period, when it is not known: default the end of the month, UTC
    #[arg(long, value_parser = instant)]
    paid_until: Option<DateTime<Utc>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A listing.
#[derive(Debug, Args)]
pub struct Listing {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A tier by its name, or by the short one people use.
fn tier(text: &str) -> Result<Tier, String> {
    if text == "pro" { Ok(Tier::Professional) } else { text.parse() }
}

/// A day stands for its end, UTC; an instant for itself.
pub(super) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Ok(instant.to_utc());
    }
    let day: chrono::NaiveDate =
        text.parse().map_err(|_| "is neither YYYY-MM-DD nor an RFC 3339 instant".to_owned())?;
    let next = day.succ_opt().and_then(|next| next.and_hms_opt(0, 0, 0)).ok_or("is out of range")?;
    Ok(next.and_utc())
}

/// Runs an account command.
pub async fn run_account(command: AccountCommand, database: &DatabaseSettings) -> anyhow::Result<()> {
    let mut client = owner(database).await?;
    match command {
        AccountCommand::Create(it) => create(&mut client, &it).await,
        AccountCommand::Show(it) => show(&client, &it.email, it.json).await,
        AccountCommand::SetTier(it) => {
            let change = Change { action: "account.set_tier", statement: SET_TIER };
            change.make(&mut client, &it.email, &[&it.tier, &it.paid_until], it.json).await
        }
        AccountCommand::Cancel(it) => {
            let change = Change { action: "account.cancel", statement: CANCEL };
            change.make(&mut client, &it.email, &[&it.paid_until], it.json).await
        }
        AccountCommand::Delete(it) => delete(&mut client, &it).await,
        AccountCommand::List(it) => list(&client, it.json).await,
    }
}

async fn create(client: &mut Client, it: &Create) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let transaction = client.transaction().await?;
    let created = match transaction.query_one(CREATE, &[&email, &it.tier, &it.paid_until]).await {
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
            return Err(AccountError::Taken(email).into());
        }
        created => created?,
    };
    let details = json!({ "email": email, "tier": it.tier, "paid_until": it.paid_until });
    record(&transaction, created.try_get("id")?, "account.create", details).await?;
    transaction.commit().await?;
    show(client, &email, it.json).await
}

/// A change of an account's subscription.
struct Change {
    action: &'static str,
    /// Takes the account's id first; gives the tier and the end of the paid period.
    statement: &'static str,
}

impl Change {
    async fn make(
        &self,
        client: &mut Client,
        address: &str,
        parameters: &[&(dyn ToSql + Sync)],
        json: bool,
    ) -> anyhow::Result<()> {
        let address = email(address)?;
        let transaction = client.transaction().await?;
        let account = lock(&transaction, &address).await?;
        let mut all: Vec<&(dyn ToSql + Sync)> = vec![&account.id];
        all.extend(parameters);
        let after = subscription(&transaction.query_one(self.statement, &all).await?)?;
        let details = json!({ "before": account.subscription, "after": after });
        record(&transaction, account.id, self.action, details).await?;
        transaction.commit().await?;
        show(client, &address, json).await
    }
}

async fn delete(client: &mut Client, it: &Named) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let transaction = client.transaction().await?;
    let account = lock(&transaction, &email).await?;
    transaction.execute(DELETE, &[&account.id]).await?;
    record(&transaction, account.id, "account.delete", json!({ "keys": account.active_keys })).await?;
    transaction.commit().await?;
    report::object(&json!({ "email": email, "deleted": true }), it.json);
    Ok(())
}

/// An account whose row is locked until the transaction ends, so that changes of it follow each other.
pub(super) struct Locked {
    pub(super) id: i64,
    pub(super) active_keys: i64,
    subscription: Value,
}

pub(super) async fn lock(transaction: &Transaction<'_>, email: &str) -> anyhow::Result<Locked> {
    let row = transaction.query_opt(LOCK, &[&email]).await?;
    let row = row.ok_or_else(|| AccountError::NoAccount(email.to_owned()))?;
    Ok(Locked {
        id: row.try_get("id")?,
        active_keys: row.try_get("active_keys")?,
        subscription: subscription(&row)?,
    })
}

fn subscription(row: &Row) -> Result<Value, tokio_postgres::Error> {
    Ok(json!({
        "tier": row.try_get::<_, Tier>("tier")?,
        "paid_until": row.try_get::<_, Option<DateTime<Utc>>>("paid_until")?,
    }))
}

async fn show(client: &Client, address: &str, json: bool) -> anyhow::Result<()> {
    let address = email(address)?;
    let row = client.query_opt(SHOW, &[&address]).await?.ok_or(AccountError::NoAccount(address))?;
    report::object(&object(&row)?, json);
    Ok(())
}

async fn list(client: &Client, json: bool) -> anyhow::Result<()> {
    let rows = client.query(LIST, &[]).await?;
    let rows = rows.iter().map(object).collect::<Result<Vec<_>, _>>()?;
    report::rows(
        &rows,
        &["email", "tier", "effective_tier", "paid_until", "active_keys", "used_this_month", "created_at"],
        json,
    );
    Ok(())
}

fn object(row: &Row) -> Result<Value, tokio_postgres::Error> {
    Ok(json!({
        "id": row.try_get::<_, i64>("id")?,
        "email": row.try_get::<_, String>("email")?,
        "tier": row.try_get::<_, Tier>("tier")?,
        "effective_tier": row.try_get::<_, Tier>("effective_tier")?,
        "paid_until": row.try_get::<_, Option<DateTime<Utc>>>("paid_until")?,
        "active_keys": row.try_get::<_, i64>("active_keys")?,
        "used_this_month": row.try_get::<_, i64>("used_this_month")?,
        "monthly_quota": row.try_get::<_, i64>("monthly_quota")?,
        "created_at": row.try_get::<_, DateTime<Utc>>("created_at")?,
    }))
}
