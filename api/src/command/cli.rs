//! Command line of the API: arguments, logging and exit codes.
//!
//! The code is in the library and not in the binary, so that it is compiled only once.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use store::db::{self, DatabaseSettings, error_chain};
use telemetry::LogArgs;
use telemetry::command_line::HiddenOptions;

use super::accounts::{AccountCommand, AuditArguments, UsageArguments, run_account, run_audit, run_usage};
use super::keys::{KeyCommand, run_key};
use super::maintenance::{MaintenanceCommand, run_maintenance};
use crate::app::settings::ServeSettings;
use crate::server::serve::serve;

/// Serves dividend data over HTTP, and administers accounts and keys.
#[derive(Debug, Parser)]
#[command(name = "api", version)]
struct ApiArguments {
    #[command(flatten)]
    database: DatabaseSettings,
    #[command(flatten)]
    log: LogArgs,
    #[command(subcommand)]
    command: ApiCommand,
}

#[derive(Debug, Subcommand)]
enum ApiCommand {
    /// Run the server until a stop signal
    Serve(Box<ServeSettings>),
    /// Check the health of the local server, for the health check of a container
    ///
    /// Exit code 0: the server can answer data requests. 1: the server cannot. 3: no server replies.
    Health {
        /// Address on which the server listens
        #[arg(long, env = "API_LISTEN", default_value = "127.0.0.1:8080")]
        listen: SocketAddr,
    },
    /// Accounts: create, change, disable and delete
    #[command(subcommand)]
    Account(AccountCommand),
    /// API keys: create, list, replace and delete
    #[command(subcommand)]
    Key(KeyCommand),
    /// Show the usage of an account: monthly quota and rate limit
    Usage(UsageArguments),
    /// Show the audit log of an account: changes and their actors
    Audit(AuditArguments),
    /// Planned work on the status page: announce, list and remove
    #[command(subcommand)]
    Maintenance(MaintenanceCommand),
}

/// Options that have no effect on some commands, and are hidden from the help of these commands.
const HIDDEN: [HiddenOptions; 1] =
    [HiddenOptions { commands: &["health"], options: &["database_url", "accounts_database_url"] }];

/// Runs the program.
pub fn main() -> ExitCode {
    let arguments: ApiArguments = telemetry::command_line::parse(&HIDDEN);
    let is_service = matches!(arguments.command, ApiCommand::Serve(_));
    let _telemetry = telemetry::init("api", "info", (!is_service).then_some(arguments.log));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let ApiCommand::Serve(settings) = &arguments.command {
        runtime.worker_threads(settings.workers);
    }
    let outcome = runtime
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(arguments)));
    outcome.unwrap_or_else(|error| {
        tracing::error!("{}", error_chain(error.as_ref()));
        ExitCode::FAILURE
    })
}

/// Runs a command. While a command runs as the owner of the database, a second connection checks that Postgres still
/// responds. If Postgres does not respond, the command fails. Without the check, the command could wait forever.
async fn run(arguments: ApiArguments) -> anyhow::Result<ExitCode> {
    let uses_owner = !matches!(arguments.command, ApiCommand::Serve(_) | ApiCommand::Health { .. });
    match db::accounts_config(&arguments.database) {
        Ok(config) if uses_owner => tokio::select! {
            ended = Box::pin(execute(arguments)) => ended,
            error = db::watch_server(&config) => Err(error.into()),
        },
        _ => execute(arguments).await,
    }
}

async fn execute(arguments: ApiArguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        ApiCommand::Serve(settings) => {
            serve(*settings, &arguments.database, telemetry::Shutdown::listen()?).await?
        }
        ApiCommand::Health { listen } => {
            return Ok(ExitCode::from(telemetry::listener::check_health(listen, "/v1/health").await));
        }
        ApiCommand::Account(command) => run_account(command, &arguments.database).await?,
        ApiCommand::Key(command) => run_key(command, &arguments.database).await?,
        ApiCommand::Usage(usage) => run_usage(usage, &arguments.database).await?,
        ApiCommand::Audit(audit) => run_audit(audit, &arguments.database).await?,
        ApiCommand::Maintenance(command) => run_maintenance(command, &arguments.database).await?,
    }
    Ok(ExitCode::SUCCESS)
}
