//! Command line of the projector: arguments, logging, shutdown and exit codes.
//!
//! It stands in the library, and not beside `main`, because the code of an `async fn` is generated where it is awaited:
//! beside `main` the whole program would be compiled a second time.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use store::db::{self, DbError};
use telemetry::Shutdown;
use telemetry::listener::MetricsSettings;
use tokio_postgres::Client;

use crate::apply::{dead_letters, retry};
use crate::backup::{self, KeepError, RestoreArgs};
use crate::cli::command::{Arguments, Command, DeadLetterCommand, HealthArgs, Output, PolicyCommand};
use crate::cli::status::status;
use crate::daemon::run::run;
use crate::error::RunError;
use crate::generations::promote;
use crate::generations::rebuild::rebuild;
use crate::monitoring::metrics::Metrics;
use crate::monitoring::poller::look;
use crate::policy::PolicyChange;
use crate::quarantine::quarantine;
use crate::review::audit::audit;
use crate::review::diff;
use crate::review::explain::{Asked, explain};
use crate::settings::{DatabaseArgs, LIVE_FACTS, ProjectorSettings};
use crate::{policy, report};

/// Exit code of an audit, or a restore, that found something to look at.
const LOOK: u8 = 4;

/// Runs the program.
pub fn main() -> ExitCode {
    let _telemetry = telemetry::init("projector", "info,async_nats=warn,refinery_core=warn");
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "cannot start the runtime");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(execute(arguments)) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

async fn execute(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let database = arguments.database;
    match arguments.command {
        Command::Migrate(benchmark) => {
            let owner = db::owner_config(&database.owner)?;
            db::migrate(&owner, market::measure::METHOD_VERSION, &benchmark.symbol).await?;
            tracing::info!("the database is at the newest schema");
        }
        Command::Run { until_caught_up, applying, metrics } => {
            let settings = ProjectorSettings::new(database, applying);
            follow(&settings, until_caught_up, metrics).await?;
        }
        Command::Health(args) => return health(args).await,
        Command::Status { stream, output } => status(&database, &stream, output.json).await?,
        Command::Rebuild { args, applying } => {
            let settings = ProjectorSettings::new(database, applying);
            let generation = rebuild(&settings, &args, Shutdown::listen()?).await?;
            if args.json {
                report::json(&serde_json::json!({ "generation": generation }))?;
            }
        }
        Command::Diff(args) => {
            let found = diff::diff(&database, &args, Shutdown::listen()?).await?;
            if args.json { report::json(&found)? } else { diff::print(&found, &args) }
        }
        Command::Backup { args, applying } => {
            let kept = backup::backup(&ProjectorSettings::new(database, applying), &args).await?;
            if args.json { report::json(&kept)? } else { report::say(&kept.text()) }
        }
        Command::Restore { args, applying } => {
            return restored(&ProjectorSettings::new(database, applying), &args).await;
        }
        #[cfg(feature = "parquet")]
        Command::Export(args) => {
            let manifest = crate::export::export(&database, &args, Shutdown::listen()?).await?;
            if args.json { report::json(&manifest)? } else { crate::export::print(&manifest, &args.parquet) }
        }
        Command::Audit(output) => return audited(&database, &output).await,
        Command::Rules(output) => {
            let parameters = market::measure::Rules::PARAMETERS;
            if output.json { report::json(&parameters)? } else { report::rules(parameters) }
        }
        command => steer(&database, command).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Follows the log, and tells about it where somebody may ask.
async fn follow(
    settings: &ProjectorSettings,
    until_caught_up: bool,
    told_at: MetricsSettings,
) -> anyhow::Result<()> {
    let (metrics, shutdown) = (Arc::new(Metrics::new()?), Shutdown::listen()?);
    let following = run(settings, until_caught_up, &metrics, shutdown);
    let Some(listener) = told_at.bind().await? else { return Ok(following.await?) };
    tokio::select! {
        ended = following => Ok(ended?),
        never = listener.serve(Arc::clone(&metrics)) => match never {},
        never = look(settings, &metrics) => match never {},
    }
}

async fn health(args: HealthArgs) -> anyhow::Result<ExitCode> {
    let address = args.address.or(args.metrics.metrics_listen).context(
        "cannot ask for health: no address is set\n\
         set METRICS_LISTEN or --address to the metrics address of the running projector, such as 127.0.0.1:9465",
    )?;
    Ok(ExitCode::from(telemetry::health_check::check(address, "/health").await))
}

async fn restored(settings: &ProjectorSettings, args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let restored = backup::restore(settings, args, Shutdown::listen()?).await?;
    if args.json {
        report::json(&restored)?
    } else {
        report::say(&restored.text())
    }
    Ok(if restored.is_same() { ExitCode::SUCCESS } else { ExitCode::from(LOOK) })
}

async fn audited(database: &DatabaseArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let mut client = db::connect(&database.projector_config(LIVE_FACTS)?).await?;
    let found = audit(&mut client).await?;
    if output.json {
        report::json(&found)?
    } else {
        report::audit(&found)
    }
    Ok(if found.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(LOOK) })
}

/// The commands that need nothing but one connection.
async fn steer(database: &DatabaseArgs, command: Command) -> anyhow::Result<()> {
    let mut client = db::connect(&database.projector_config(LIVE_FACTS)?).await?;
    match command {
        Command::List(output) => {
            let listed = promote::list(&client).await?;
            if output.json { report::json(&listed)? } else { report::generations(&listed) }
        }
        Command::Explain { symbol, metric, generation, date, output } => {
            let metric = metric.as_deref();
            anyhow::ensure!(
                date.is_none() || metric == Some("price"),
                "--date tells of a price: projector explain {symbol} price --date DATE"
            );
            let found = explain(&mut client, &symbol, &Asked { metric, session: date, generation }).await?;
            if output.json { report::json(&found)? } else { report::explanation(&found) }
        }
        Command::Promote { args, output } => {
            let switched = promote::promote(&mut client, &args).await?;
            if output.json { report::json(&switched)? } else { report::switched(&switched) }
        }
        Command::Rollback { stale_ok, output } => {
            let switched = promote::rollback(&mut client, stale_ok).await?;
            if output.json { report::json(&switched)? } else { report::switched(&switched) }
        }
        Command::Drop { generation } => {
            promote::drop_generation(&mut client, generation).await?;
            report::say(&format!("generation {generation} is gone"));
        }
        Command::Pause => promote::pause(&client, true).await?,
        Command::Resume => promote::pause(&client, false).await?,
        Command::Policy(command) => policy_command(&mut client, command).await?,
        Command::Quarantine(command) => quarantine(&mut client, command).await?,
        Command::DeadLetters(command) => dead_letter_command(database, &client, command).await?,
        Command::Migrate(_)
        | Command::Run { .. }
        | Command::Health(_)
        | Command::Backup { .. }
        | Command::Restore { .. }
        | Command::Status { .. }
        | Command::Rebuild { .. }
        | Command::Diff(_)
        | Command::Rules(_)
        | Command::Audit(_) => {}
        #[cfg(feature = "parquet")]
        Command::Export(_) => {}
    }
    Ok(())
}

async fn policy_command(client: &mut Client, command: PolicyCommand) -> anyhow::Result<()> {
    match command {
        PolicyCommand::List(output) => {
            let found = policy::list(client).await?;
            if output.json {
                return report::json(&found);
            }
            report::policy(&found);
            Ok(())
        }
        PolicyCommand::Set { line, rank, unknown_ok, taking } => {
            let change = policy::set(client, &line, rank, unknown_ok, &taking).await?;
            policy_changed(&change, taking.json)
        }
        PolicyCommand::Remove { line, taking } => {
            let change = policy::remove(client, &line, &taking).await?;
            policy_changed(&change, taking.json)
        }
    }
}

fn policy_changed(change: &PolicyChange, json: bool) -> anyhow::Result<()> {
    if json {
        report::json(change)?
    } else {
        report::policy_change(change)
    }
    Ok(())
}

async fn dead_letter_command(
    database: &DatabaseArgs,
    client: &Client,
    command: DeadLetterCommand,
) -> anyhow::Result<()> {
    let (letters, whole, json) = match command {
        DeadLetterCommand::List(output) => (dead_letters::list(client, None).await?, false, output.json),
        DeadLetterCommand::Show { sequence, output } => {
            (dead_letters::list(client, Some(sequence)).await?, true, output.json)
        }
        DeadLetterCommand::Discard { sequence, item } => {
            let found = dead_letters::discard(client, sequence, item).await?;
            anyhow::ensure!(found, "no letter {sequence}/{item} is held; see: projector dead-letters list");
            return Ok(());
        }
        DeadLetterCommand::Retry { sequence, stream } => {
            let mut held = dead_letters::list(client, sequence).await?;
            held.retain(|letter| letter.status == "held");
            let applied = retry::retry(database, &stream, &held).await?;
            report::say(&format!("{applied} of {} letters were applied", held.len()));
            return Ok(());
        }
        DeadLetterCommand::Export { stream } => {
            let held = dead_letters::list(client, None).await?;
            let (records, unreadable) = retry::export(&stream, &held).await?;
            records.iter().for_each(|record| report::say(&record.to_string()));
            for letter in unreadable {
                tracing::warn!(
                    sequence = letter.sequence,
                    reason = letter.reason,
                    "no row of it can be read"
                );
            }
            return Ok(());
        }
    };
    if json {
        return report::json(&letters);
    }
    report::dead_letters(&letters, whole);
    Ok(())
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<KeepError>().is_some_and(KeepError::is_unreachable) {
        return 3;
    }
    match (error.downcast_ref::<RunError>(), error.downcast_ref::<DbError>()) {
        (Some(RunError::Db(db)), _) | (_, Some(db)) if db.is_unreachable() => 3,
        (Some(RunError::Stream(_)), _) => 3,
        (Some(RunError::Db(_) | RunError::Lost(_)), _) | (None, _) => 1,
        (Some(_), _) => 2,
    }
}
