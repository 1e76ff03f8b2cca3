//! `api account …`: administration of accounts.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde_json::json;
use store::db::DatabaseSettings;
use tokio_postgres::Client;

use super::instant::instant;
use super::links::{self, Linking};
use super::owner::owner;
use super::report;
use super::sessions::{self, Sessions};
use crate::account::{Party, accounts, email, plan};
use crate::auth::tier::Tier;

/// Accounts: who may use the service, on which tier.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Makes an account
    Create(Create),
    /// Makes a one-time link by which a person gets an account, and prints it
    Invite(Invite),
    /// Makes a one-time link by which an account's holder sets a new password, and prints it
    Reset(Linking),
    /// Shows an account: tier, keys, use of the month, which tier its holder asks for
    Show(Named),
    /// Changes the tier from the next request on, or after the paid period; what is used stays used
    SetTier(SetTier),
    /// Ends the subscription: the paid tier holds until the end of the period, then free
    Cancel(Cancel),
    /// Gives an account another address
    Rename(Rename),
    /// Takes an account out of use from the next request on: its keys, its password, its sessions
    Disable(Named),
    /// Gives a disabled account back
    Enable(Named),
    /// Lists the sessions of an account's holder, and ends them
    Sessions(Sessions),
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

/// An account that a person is to make.
#[derive(Debug, Args)]
pub struct Invite {
    #[command(flatten)]
    link: Linking,
    /// Tier of the account: free, starter, premium or professional (or pro)
    #[arg(long, default_value = "free", value_parser = tier)]
    tier: Tier,
}

/// A change of tier.
#[derive(Debug, Args)]
pub struct SetTier {
    /// When the paid period ends, instead of now
    #[arg(long, conflicts_with = "paid_until")]
    after_period: bool,
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
    /// End of the paid period, when it is not known: default the end of the paid month, else of the calendar's, UTC
    #[arg(long, value_parser = instant)]
    paid_until: Option<DateTime<Utc>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A change of address.
#[derive(Debug, Args)]
pub struct Rename {
    /// Email address of the account
    email: String,
    /// Its new address
    to: String,
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

/// Tier with this name; `pro` is short for professional.
fn tier(text: &str) -> Result<Tier, String> {
    if text == "pro" { Ok(Tier::Professional) } else { text.parse() }
}

/// Runs an account command.
pub async fn run_account(command: AccountCommand, database: &DatabaseSettings) -> anyhow::Result<()> {
    let mut client = owner(database).await?;
    match command {
        AccountCommand::Create(it) => create(&mut client, &it).await,
        AccountCommand::Invite(it) => links::invite(&client, &it.link, it.tier).await,
        AccountCommand::Reset(it) => links::reset(&mut client, &it).await,
        AccountCommand::Show(it) => show(&client, &it.email, it.json).await,
        AccountCommand::SetTier(it) => {
            let email = email(&it.email)?;
            let party = Party::Operator(&email);
            match it.after_period {
                true => plan::follow_with(&mut client, party, it.tier).await?,
                false => plan::set_tier(&mut client, party, it.tier, it.paid_until).await?,
            }
            show(&client, &email, it.json).await
        }
        AccountCommand::Cancel(it) => {
            let email = email(&it.email)?;
            plan::cancel(&mut client, Party::Operator(&email), it.paid_until).await?;
            show(&client, &email, it.json).await
        }
        AccountCommand::Rename(it) => {
            let (before, after) = (email(&it.email)?, email(&it.to)?);
            let transaction = client.transaction().await?;
            let account = Party::Operator(&before).lock(&transaction).await?;
            accounts::rename(&transaction, &account, &after).await?;
            transaction.commit().await?;
            show(&client, &after, it.json).await
        }
        AccountCommand::Disable(it) => disable(&mut client, &it, true).await,
        AccountCommand::Enable(it) => disable(&mut client, &it, false).await,
        AccountCommand::Sessions(it) => sessions::run(&mut client, &it).await,
        AccountCommand::Delete(it) => delete(&mut client, &it).await,
        AccountCommand::List(it) => list(&client, it.json).await,
    }
}

async fn create(client: &mut Client, it: &Create) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    let transaction = client.transaction().await?;
    accounts::create(&transaction, &email, it.tier, it.paid_until, false).await?;
    transaction.commit().await?;
    show(client, &email, it.json).await
}

async fn disable(client: &mut Client, it: &Named, disabled: bool) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    accounts::disable(client, Party::Operator(&email), disabled).await?;
    show(client, &email, it.json).await
}

async fn delete(client: &mut Client, it: &Named) -> anyhow::Result<()> {
    let email = email(&it.email)?;
    accounts::delete(client, Party::Operator(&email)).await?;
    report::object(&json!({ "email": email, "deleted": true }), it.json);
    Ok(())
}

async fn show(client: &Client, address: &str, json: bool) -> anyhow::Result<()> {
    report::object(&json!(accounts::show(client, &email(address)?).await?), json);
    Ok(())
}

async fn list(client: &Client, json: bool) -> anyhow::Result<()> {
    let rows: Vec<_> = accounts::list(client).await?.iter().map(|account| json!(account)).collect();
    let columns = [
        "email",
        "tier",
        "effective_tier",
        "paid_until",
        "wanted_tier",
        "disabled_at",
        "active_keys",
        "used_this_month",
        "created_at",
    ];
    report::rows(&rows, &columns, json);
    Ok(())
}
