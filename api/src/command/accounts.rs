//! `api account …`: administration of accounts.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde_json::json;
use store::db::DatabaseSettings;
use telemetry::table::ListArgs;
use tokio_postgres::Client;

use super::instant_argument::parse_instant;
use super::links::{self, LinkArguments};
use super::output::{self, RowList};
use super::owner_connection::connect_as_owner;
use super::sessions::{self, SessionArguments};
use crate::account::accounts::AccountDetails;
use crate::account::{AccountActor, accounts, parse_email, subscription_changes};
use crate::auth::tier::Tier;

/// Accounts: create, change, disable and delete.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Create an account
    Create(CreateAccount),
    /// Print a one-time link with which a person can create an account
    Invite(InviteAccount),
    /// Print a one-time link with which the holder of an account can set a new password
    Reset(LinkArguments),
    /// Show an account: tier, keys, usage of the month and requested tier
    Show(AccountArguments),
    /// Change the tier from the next request on, or after the paid period. Calls already used still count against the
    /// quota
    SetTier(SetAccountTier),
    /// Cancel the subscription. The paid tier applies until the end of the period, then free
    Cancel(CancelSubscription),
    /// Change the email address of an account
    Rename(RenameAccount),
    /// Disable an account with its keys, password and sessions, from the next request on
    Disable(AccountArguments),
    /// Enable a disabled account
    Enable(AccountArguments),
    /// List the dashboard sessions of an account, or end them
    Sessions(SessionArguments),
    /// Delete an account with all its keys, from the next request on
    Delete(AccountArguments),
    /// List all accounts
    List(ListAccounts),
}

/// Arguments of the commands that take only an account.
#[derive(Debug, Args)]
pub struct AccountArguments {
    /// Email address of the account
    email: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `api account create`.
#[derive(Debug, Args)]
pub struct CreateAccount {
    /// Email address of the account
    email: String,
    /// Tier: free, starter, premium or professional (or pro)
    #[arg(long, default_value = "free", value_parser = tier)]
    tier: Tier,
    /// Last day of the paid period (inclusive, UTC), or an RFC 3339 time. Default: no end
    #[arg(long, value_parser = parse_instant)]
    paid_until: Option<DateTime<Utc>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `api account invite`.
#[derive(Debug, Args)]
pub struct InviteAccount {
    #[command(flatten)]
    link: LinkArguments,
    /// Tier of the account: free, starter, premium or professional (or pro)
    #[arg(long, default_value = "free", value_parser = tier)]
    tier: Tier,
}

/// Arguments of `api account set-tier`.
#[derive(Debug, Args)]
pub struct SetAccountTier {
    /// Change the tier at the end of the paid period instead of now
    #[arg(long, conflicts_with = "paid_until")]
    after_period: bool,
    /// Email address of the account
    email: String,
    /// Tier: free, starter, premium or professional (or pro)
    #[arg(value_parser = tier)]
    tier: Tier,
    /// Last day of the paid period (inclusive, UTC), or an RFC 3339 time. Default: no end
    #[arg(long, value_parser = parse_instant)]
    paid_until: Option<DateTime<Utc>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `api account cancel`.
#[derive(Debug, Args)]
pub struct CancelSubscription {
    /// Email address of the account
    email: String,
    /// New end of the paid period. Default: its current end, else the end of the paid month, else the end of the
    /// calendar month, UTC
    #[arg(long, value_parser = parse_instant)]
    paid_until: Option<DateTime<Utc>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `api account rename`.
#[derive(Debug, Args)]
pub struct RenameAccount {
    /// Email address of the account
    email: String,
    /// New email address
    to: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `api account list`.
#[derive(Debug, Args)]
pub struct ListAccounts {
    #[command(flatten)]
    output: ListArgs,
}

/// Parses the name of a tier; `pro` is short for professional.
fn tier(text: &str) -> Result<Tier, String> {
    if text == "pro" { Ok(Tier::Professional) } else { text.parse() }
}

/// Runs an account command.
pub async fn run_account(command: AccountCommand, database: &DatabaseSettings) -> anyhow::Result<()> {
    let mut client = connect_as_owner(database).await?;
    match command {
        AccountCommand::Create(arguments) => create(&mut client, &arguments).await,
        AccountCommand::Invite(arguments) => {
            links::create_invitation(&mut client, &arguments.link, arguments.tier).await
        }
        AccountCommand::Reset(arguments) => links::create_reset_link(&mut client, &arguments).await,
        AccountCommand::Show(arguments) => show(&client, &arguments.email, arguments.json).await,
        AccountCommand::SetTier(arguments) => {
            let email = parse_email(&arguments.email)?;
            let actor = AccountActor::Operator(&email);
            match arguments.after_period {
                true => subscription_changes::set_next_tier(&mut client, actor, arguments.tier).await?,
                false => {
                    subscription_changes::set_tier(&mut client, actor, arguments.tier, arguments.paid_until)
                        .await?
                }
            }
            show(&client, &email, arguments.json).await
        }
        AccountCommand::Cancel(arguments) => {
            let email = parse_email(&arguments.email)?;
            subscription_changes::cancel_subscription(
                &mut client,
                AccountActor::Operator(&email),
                arguments.paid_until,
            )
            .await?;
            show(&client, &email, arguments.json).await
        }
        AccountCommand::Rename(arguments) => {
            let (before, after) = (parse_email(&arguments.email)?, parse_email(&arguments.to)?);
            let transaction = client.transaction().await?;
            let account = AccountActor::Operator(&before).lock(&transaction).await?;
            accounts::change_address(&transaction, &account, &after).await?;
            transaction.commit().await?;
            show(&client, &after, arguments.json).await
        }
        AccountCommand::Disable(arguments) => disable(&mut client, &arguments, true).await,
        AccountCommand::Enable(arguments) => disable(&mut client, &arguments, false).await,
        AccountCommand::Sessions(arguments) => sessions::run_sessions(&mut client, &arguments).await,
        AccountCommand::Delete(arguments) => delete(&mut client, &arguments).await,
        AccountCommand::List(arguments) => list(&client, &arguments.output).await,
    }
}

async fn create(client: &mut Client, arguments: &CreateAccount) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let transaction = client.transaction().await?;
    accounts::create_account(&transaction, &email, arguments.tier, arguments.paid_until, false).await?;
    transaction.commit().await?;
    show(client, &email, arguments.json).await
}

async fn disable(client: &mut Client, arguments: &AccountArguments, disabled: bool) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    accounts::set_disabled(client, AccountActor::Operator(&email), disabled).await?;
    show(client, &email, arguments.json).await
}

async fn delete(client: &mut Client, arguments: &AccountArguments) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    accounts::delete_account(client, AccountActor::Operator(&email)).await?;
    output::print_object(&json!({ "email": email, "deleted": true }), arguments.json);
    Ok(())
}

async fn show(client: &Client, address: &str, json: bool) -> anyhow::Result<()> {
    output::print_object(&json!(accounts::find_account(client, &parse_email(address)?).await?), json);
    Ok(())
}

async fn list(client: &Client, output: &ListArgs) -> anyhow::Result<()> {
    let accounts = accounts::list_accounts(client).await?;
    let rows: Vec<_> = accounts
        .iter()
        .map(|account| {
            let mut row = json!(account);
            if !output.json {
                row["state"] = describe_state(account).into();
            }
            row
        })
        .collect();
    let list = RowList {
        nouns: ["account", "accounts"],
        columns: &[
            ("email", "email"),
            ("effective_tier", "tier"),
            ("paid_until", "paid until (UTC)"),
            ("active_keys", "keys"),
            ("used_this_month", "calls"),
            ("state", "state"),
        ],
        empty: "no accounts: api account create EMAIL creates one",
    };
    output::print_rows(&rows, &list, output);
    Ok(())
}

/// State of an account in the list: active or disabled, an ended or scheduled tier, and the requested tier.
fn describe_state(account: &AccountDetails) -> String {
    let mut state = vec![match account.disabled_at {
        Some(_) => "disabled".to_owned(),
        None => "active".to_owned(),
    }];
    if account.effective_tier != account.tier {
        state.push(format!("{} has ended", account.tier));
    } else if account.next_tier != account.tier {
        state.push(format!("then {}", account.next_tier));
    }
    state.extend(account.wanted_tier.map(|tier| format!("wants {tier}")));
    state.join(", ")
}
