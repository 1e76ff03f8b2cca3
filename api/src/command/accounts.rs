//! `api account …`, `api usage` and `api audit`: administration of accounts, their one-time links and their sessions;
//! quota, calls and audit log of an account.

use chrono::{DateTime, TimeDelta, Utc};
use clap::{Args, Subcommand};
use secrecy::ExposeSecret;
use serde_json::json;
use store::db::{DatabaseSettings, connect_accounts};
use telemetry::outln;
use telemetry::table::ListArgs;
use tokio_postgres::Client;

use super::{RowList, parse_instant, print_changes, print_object, print_rows};
use crate::account::accounts::{self, AccountDetails};
use crate::account::audit::list_email_history;
use crate::account::statistics::{count_by_endpoint, find_usage};
use crate::account::{AccountActor, parse_email, password, sessions};
use crate::auth::{SessionId, Tier};
use crate::error::quota_percentage;

/// Accounts: create, change, disable and delete.
#[derive(Debug, Subcommand)]
pub(super) enum AccountCommand {
    /// Create an account
    Create {
        /// Tier: free, starter, premium or professional (or pro)
        #[arg(long, default_value = "free", value_parser = tier)]
        tier: Tier,
        /// End of the paid period: its last day (inclusive, UTC), or an RFC 3339 time. Default: no end
        #[arg(long, value_parser = parse_instant)]
        paid_until: Option<DateTime<Utc>>,
        #[command(flatten)]
        account: AccountArguments,
    },
    /// Print a one-time link with which a person can create an account
    Invite {
        #[command(flatten)]
        link: LinkArguments,
        /// Tier of the account: free, starter, premium or professional (or pro)
        #[arg(long, default_value = "free", value_parser = tier)]
        tier: Tier,
    },
    /// Print a one-time link with which the holder of an account can set a new password
    Reset(LinkArguments),
    /// Show an account: tier, keys, usage of the month and requested tier
    Show(AccountArguments),
    /// Change the tier of an account: from the next request on, or after the paid period (--after-period). Calls
    /// already used still count against the quota
    SetTier {
        /// Change the tier at the end of the paid period instead of now
        #[arg(long, conflicts_with = "paid_until")]
        after_period: bool,
        /// Email address of the account
        email: String,
        /// Tier: free, starter, premium or professional (or pro)
        #[arg(value_parser = tier)]
        tier: Tier,
        /// End of the paid period: its last day (inclusive, UTC), or an RFC 3339 time. Default: no end
        #[arg(long, value_parser = parse_instant)]
        paid_until: Option<DateTime<Utc>>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Cancel the subscription. The paid tier applies until the end of the paid period. Afterwards the account is on
    /// the free tier
    Cancel {
        /// New end of the paid period. Default: the current end, else the end of the current paid month, else the end
        /// of the calendar month (UTC)
        #[arg(long, value_parser = parse_instant)]
        paid_until: Option<DateTime<Utc>>,
        #[command(flatten)]
        account: AccountArguments,
    },
    /// Change the email address of an account
    Rename {
        #[command(flatten)]
        account: AccountArguments,
        /// New email address
        to: String,
    },
    /// Disable an account with its keys, password and sessions, from the next request on
    Disable(AccountArguments),
    /// Enable a disabled account
    Enable(AccountArguments),
    /// List the dashboard sessions of an account, or end them
    Sessions(SessionArguments),
    /// Delete an account with all its keys, from the next request on
    Delete(AccountArguments),
    /// List all accounts
    List(ListArgs),
}

/// Arguments of a command for one account: email address and output format.
#[derive(Debug, Args)]
pub(super) struct AccountArguments {
    /// Email address of the account
    email: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Parses the name of a tier; `pro` is short for professional.
fn tier(text: &str) -> Result<Tier, String> {
    if text == "pro" { Ok(Tier::Professional) } else { text.parse() }
}

/// Runs an account command.
pub(super) async fn run_account(command: AccountCommand, database: &DatabaseSettings) -> anyhow::Result<()> {
    let client = &mut connect_accounts(database).await?;
    match command {
        AccountCommand::Create { tier, paid_until, account } => {
            let email = parse_email(&account.email)?;
            let transaction = client.transaction().await?;
            let created = accounts::create_account(transaction, &email, tier, paid_until, false).await?;
            created.commit().await?;
            show(client, &email, account.json).await
        }
        AccountCommand::Invite { link, tier } => print_link(client, &link, Some(tier)).await,
        AccountCommand::Reset(link) => print_link(client, &link, None).await,
        AccountCommand::Show(account) => show(client, &account.email, account.json).await,
        AccountCommand::SetTier { after_period, email, tier, paid_until, json } => {
            let email = parse_email(&email)?;
            let actor = AccountActor::Operator(&email);
            let before = accounts::find_account(client, &email).await?;
            match after_period {
                true => accounts::set_next_tier(client, actor, tier).await?,
                false => accounts::set_tier(client, actor, tier, paid_until).await?,
            }
            show_changes(client, &before, &email, json).await
        }
        AccountCommand::Cancel { paid_until, account } => {
            let email = parse_email(&account.email)?;
            let before = accounts::find_account(client, &email).await?;
            let actor = AccountActor::Operator(&email);
            accounts::cancel_subscription(client, actor, paid_until).await?;
            show_changes(client, &before, &email, account.json).await
        }
        AccountCommand::Rename { account, to } => {
            let (before, after) = (parse_email(&account.email)?, parse_email(&to)?);
            let renamed = accounts::find_account(client, &before).await?;
            let changed = AccountActor::Operator(&before).begin(client).await?;
            accounts::change_address(&changed, &after).await?;
            changed.commit().await?;
            show_changes(client, &renamed, &after, account.json).await
        }
        AccountCommand::Disable(account) => set_disabled(client, &account, true).await,
        AccountCommand::Enable(account) => set_disabled(client, &account, false).await,
        AccountCommand::Sessions(arguments) => run_sessions(client, &arguments).await,
        AccountCommand::Delete(account) => {
            let email = parse_email(&account.email)?;
            accounts::delete_account(client, AccountActor::Operator(&email)).await?;
            print_object(&json!({ "email": email, "deleted": true }), account.json);
            Ok(())
        }
        AccountCommand::List(output) => list(client, &output).await,
    }
}

async fn set_disabled(client: &mut Client, account: &AccountArguments, disabled: bool) -> anyhow::Result<()> {
    let email = parse_email(&account.email)?;
    let before = accounts::find_account(client, &email).await?;
    accounts::set_disabled(client, AccountActor::Operator(&email), disabled).await?;
    show_changes(client, &before, &email, account.json).await
}

/// Prints the fields of an account that a command changed. As JSON, prints the whole account.
async fn show_changes(
    client: &Client,
    before: &AccountDetails,
    address: &str,
    json: bool,
) -> anyhow::Result<()> {
    let after = json!(accounts::find_account(client, address).await?);
    if json {
        print_object(&after, true);
    } else {
        outln!("account {address}:");
        print_changes(&json!(before), &after);
    }
    Ok(())
}

async fn show(client: &Client, address: &str, json: bool) -> anyhow::Result<()> {
    print_object(&json!(accounts::find_account(client, &parse_email(address)?).await?), json);
    Ok(())
}

async fn list(client: &Client, output: &ListArgs) -> anyhow::Result<()> {
    let accounts = accounts::list_accounts(client).await?;
    let mut rows: Vec<_> = accounts.iter().map(|account| json!(account)).collect();
    if !output.json {
        for (row, account) in rows.iter_mut().zip(&accounts) {
            row["state"] = describe_state(account).into();
        }
    }
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
    print_rows(&rows, &list, output);
    Ok(())
}

/// State of an account in the list, such as `active, premium has ended, wants starter`.
fn describe_state(account: &AccountDetails) -> String {
    let is_disabled = account.disabled_at.is_some();
    let mut state = vec![if is_disabled { "disabled" } else { "active" }.to_owned()];
    if account.effective_tier != account.tier {
        state.push(format!("{} has ended", account.tier));
    } else if account.next_tier != account.tier {
        state.push(format!("then {}", account.next_tier));
    }
    state.extend(account.wanted_tier.map(|tier| format!("wants {tier}")));
    state.join(", ")
}

/// Arguments of `api account invite` and `api account reset`.
#[derive(Debug, Args)]
pub(super) struct LinkArguments {
    /// Email address of the person
    email: String,
    /// Lifetime of the link, in hours
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(i32).range(1..=336))]
    hours: i32,
    /// Public address of the service. The link begins with this address
    #[arg(long, env = "PUBLIC_URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Creates and prints a one-time link: an invitation to the tier `invited`, or else a password reset.
async fn print_link(
    client: &mut Client,
    arguments: &LinkArguments,
    invited: Option<Tier>,
) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let created = match invited {
        Some(tier) => password::create_invitation(client, &email, tier, arguments.hours).await?,
        None => password::create_reset_link(client, AccountActor::Operator(&email), arguments.hours).await?,
    };
    let (secret, expires_at) = (created.secret.expose_secret(), created.expires_at);
    let link = format!("{}/link/{secret}", arguments.url.trim_end_matches('/'));
    if arguments.json {
        print_object(&json!({ "email": email, "link": link, "expires_at": expires_at }), true);
        return Ok(());
    }
    outln!("{link}");
    tracing::info!(
        "link for {email}, usable once until {}; it cannot be shown again",
        expires_at.format("%F %R UTC")
    );
    Ok(())
}

/// Arguments of `api account sessions`.
#[derive(Debug, Args)]
pub(super) struct SessionArguments {
    /// Email address of the account
    email: String,
    /// Id of a session to end
    #[arg(long, value_name = "ID", conflicts_with = "end_all")]
    end: Option<SessionId>,
    /// End all sessions
    #[arg(long)]
    end_all: bool,
    #[command(flatten)]
    output: ListArgs,
}

/// Ends the selected sessions, then lists the remaining ones.
async fn run_sessions(client: &mut Client, arguments: &SessionArguments) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let actor = AccountActor::Operator(&email);
    if let Some(id) = arguments.end {
        sessions::end_session(client, actor, id).await?;
    }
    if arguments.end_all {
        sessions::end_all_sessions(client, actor).await?;
    }
    let account = accounts::find_account(client, &email).await?;
    let left = sessions::list_sessions(client, account.id).await?;
    let list = RowList {
        nouns: ["session", "sessions"],
        columns: &[
            ("id", "id"),
            ("address", "address"),
            ("created_at", "begun (UTC)"),
            ("seen_at", "seen (UTC)"),
            ("agent", "browser"),
        ],
        empty: "no sessions: the holder is not signed in to the dashboard",
    };
    print_rows(&left, &list, &arguments.output);
    Ok(())
}

/// Arguments of `api usage`.
#[derive(Debug, Args)]
pub(super) struct UsageArguments {
    /// Email address of the account
    email: String,
    /// List the calls of the last DAYS days by endpoint and key, instead of quota and rate limit
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i64).range(1..=400))]
    calls: Option<i64>,
    #[command(flatten)]
    output: ListArgs,
}

/// Runs `api usage`.
pub(super) async fn run_usage(arguments: UsageArguments, database: &DatabaseSettings) -> anyhow::Result<()> {
    let email = parse_email(&arguments.email)?;
    let client = connect_accounts(database).await?;
    if let Some(days) = arguments.calls {
        return calls(&client, &email, days, &arguments.output).await;
    }
    let used = find_usage(&client, &email).await?;
    let object = json!({
        "account": email,
        "tier": used.tier,
        "month": used.month.format("%Y-%m").to_string(),
        "current": used.used,
        "limit": used.monthly_quota,
        "percentage": quota_percentage(used.used, used.monthly_quota),
        "resets_at": used.resets_at,
        "rate_per_minute": used.rate_per_minute,
        "burst": used.burst,
        "available_now": used.available,
    });
    print_object(&object, arguments.output.json);
    Ok(())
}

async fn calls(client: &Client, email: &str, days: i64, output: &ListArgs) -> anyhow::Result<()> {
    let account = accounts::find_account(client, email).await?;
    let since = Utc::now().date_naive() - TimeDelta::days(days - 1);
    let rows = count_by_endpoint(client, account.id, since).await?;
    let empty = format!("no calls: no key of this account was used in the last {days} days");
    let list = RowList {
        nouns: ["endpoint and key", "endpoints and keys"],
        columns: &[
            ("endpoint", "endpoint"),
            ("key", "key"),
            ("last_four", "ends in"),
            ("calls", "calls"),
            ("answered", "answered"),
            ("last_at", "last (UTC)"),
        ],
        empty: &empty,
    };
    print_rows(&rows, &list, output);
    Ok(())
}

/// Arguments of `api audit`.
#[derive(Debug, Args)]
pub(super) struct AuditArguments {
    /// Email address of the account. The account may already be deleted
    email: String,
    #[command(flatten)]
    output: ListArgs,
}

/// Runs `api audit`.
pub(super) async fn run_audit(arguments: AuditArguments, database: &DatabaseSettings) -> anyhow::Result<()> {
    let entries =
        list_email_history(&connect_accounts(database).await?, &parse_email(&arguments.email)?).await?;
    let list = RowList {
        nouns: ["change", "changes"],
        columns: &[("at", "at (UTC)"), ("actor", "actor"), ("action", "action"), ("details", "details")],
        empty: "no changes: no account has or had this address",
    };
    print_rows(&entries, &list, &arguments.output);
    Ok(())
}
