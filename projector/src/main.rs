//! `projector`: arguments, logging, shutdown and exit codes.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use projector::run::{RunError, run};
use projector::settings::ProjectorSettings;
use projector::status::status;
use schema::db::{self, DbError};
use schema::process::{Shutdown, init_logging};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Folds the market log into facts and read tables.
///
/// Exit codes: 0 done or asked to stop, 1 failed, 2 halted (a person is needed), 3 Postgres or NATS unreachable.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    settings: ProjectorSettings,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Bring the database to the newest schema, with its roles and first generation (needs DATABASE_URL)
    Migrate,
    /// Follow the log and keep the read tables up to date
    Run {
        /// Stop once everything that is in the log now is served
        #[arg(long)]
        until_caught_up: bool,
    },
    /// Say where the projector stands
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    init_logging("info,async_nats=warn,refinery_core=warn");
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "cannot start the runtime");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(execute(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

async fn execute(arguments: Arguments) -> anyhow::Result<()> {
    let settings = arguments.settings;
    match arguments.command {
        Command::Migrate => {
            let owner = db::owner_config(&settings.database)?;
            db::migrate(&owner, schema::measure::METHOD_VERSION, &settings.benchmark).await?;
            tracing::info!("the database is at the newest schema");
        }
        Command::Run { until_caught_up } => run(&settings, until_caught_up, Shutdown::listen()?).await?,
        Command::Status { json } => status(&settings, json).await?,
    }
    Ok(())
}

fn exit_code(error: &anyhow::Error) -> u8 {
    match (error.downcast_ref::<RunError>(), error.downcast_ref::<DbError>()) {
        (Some(RunError::Db(db)), _) | (_, Some(db)) if db.is_unreachable() => 3,
        (Some(RunError::Stream(_)), _) => 3,
        (Some(RunError::Db(_) | RunError::Lost(_)), _) | (None, _) => 1,
        (Some(_), _) => 2,
    }
}
