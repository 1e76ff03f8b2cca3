//! Command line of the projector: arguments, logging, shutdown and exit codes.
//!
//! It stands in the library, and not beside `main`, because the code of an `async fn` is generated where it is awaited:
//! beside `main` the whole program would be compiled a second time.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use chrono::NaiveDate;
use clap::{Parser, Subcommand};
use event_log::stream::StreamSettings;
use market::symbol::Symbol;
use process::metrics::MetricsSettings;
use process::{Shutdown, init_logging};
use store::db::{self, DbError};
use tokio_postgres::Client;

use crate::audit::audit;
use crate::diff::{self, DiffArgs};
use crate::error::RunError;
use crate::explain::{Asked, explain};
use crate::keep::{self, BackupArgs, KeepError, RestoreArgs};
use crate::look::look;
use crate::metrics::Metrics;
use crate::policy::{PolicyChange, PolicyLine, Taking};
use crate::promote::PromoteArgs;
use crate::quarantine::{QuarantineCommand, quarantine};
use crate::rebuild::{RebuildArgs, rebuild};
use crate::run::run;
use crate::settings::{ApplyingArgs, BenchmarkArgs, DatabaseArgs, LIVE_FACTS, ProjectorSettings};
use crate::status::status;
use crate::{dead_letters, policy, promote, report, retry};

/// Exit code of an audit, or a restore, that found something to look at.
const LOOK: u8 = 4;

/// Folds the market log into facts and read tables.
///
/// Exit codes: 0 done or asked to stop, 1 failed, 2 halted (a person is needed), 3 Postgres or NATS unreachable, 4 an audit
/// or a restore found something to look at.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Bring the database to the newest schema, with its roles and first generation (needs DATABASE_URL)
    Migrate(BenchmarkArgs),
    /// Follow the log and keep the read tables up to date
    Run {
        /// Stop once everything that is in the log now is served
        #[arg(long)]
        until_caught_up: bool,
        #[command(flatten)]
        applying: ApplyingArgs,
        #[command(flatten)]
        metrics: MetricsSettings,
    },
    /// Ask the projector that runs here how it is, at its METRICS_LISTEN; for containers' health checks
    ///
    /// Exits with 0 when it is well, with 1 when it is not, with 3 when nobody answers.
    Health(MetricsSettings),
    /// Write everything that cannot be made again into a folder, at one position of the log (needs DATABASE_URL)
    ///
    /// It holds the log, accounts with their keys' hashes, plans and audit, the source policy and decisions on dead letters,
    /// and checksums of the read tables. The service goes on meanwhile. Whoever can read the folder can read customers'
    /// addresses.
    Backup {
        #[command(flatten)]
        args: BackupArgs,
        #[command(flatten)]
        applying: ApplyingArgs,
    },
    /// Bring a backup back onto empty servers, make the read tables anew and compare them (needs DATABASE_URL)
    ///
    /// Exits with 0 when every table is as it was, with 4 when some differ; they are named. Roles' passwords belong to the
    /// Postgres server: set them again.
    Restore {
        #[command(flatten)]
        args: RestoreArgs,
        #[command(flatten)]
        applying: ApplyingArgs,
    },
    /// Say where the projector stands
    Status {
        #[command(flatten)]
        stream: StreamSettings,
        #[command(flatten)]
        output: Output,
    },
    /// Build a generation of read tables beside the served one; an interrupted one is resumed
    Rebuild {
        #[command(flatten)]
        args: Box<RebuildArgs>,
        #[command(flatten)]
        applying: ApplyingArgs,
    },
    /// List the generations
    List(Output),
    /// Show what differs between two generations, and why
    ///
    /// The summary ranks what matters: securities, statuses, list memberships, streaks and yields, the greatest change
    /// first. Ctrl-C ends it in Postgres too.
    Diff(DiffArgs),
    /// Write a generation as Parquet files: every read table and the unpacked prices, with a manifest
    #[cfg(feature = "parquet")]
    Export(crate::export::ExportArgs),
    /// Say why a figure is what it is: observations, winners, formula
    Explain {
        #[arg(value_parser = Symbol::parse)]
        symbol: Symbol,
        /// Field of the metrics, for example increase_streak_years; all when it is left out
        metric: Option<String>,
        /// In this generation instead of the served one
        #[arg(long, value_name = "N")]
        generation: Option<i32>,
        /// With the metric price: the close of this session, and what the other sources say of it
        #[arg(long, requires = "metric")]
        date: Option<NaiveDate>,
        #[command(flatten)]
        output: Output,
    },
    /// Say what looks wrong with the served market: what to look at, and what to do next
    ///
    /// Exits with 0 when nothing does, with 4 when something does.
    Audit(Output),
    /// List the numbers in the rules that `rebuild --rule` can change: name, default, range, meaning
    Rules(Output),
    /// Serve a generation, once its differences were looked at
    Promote {
        #[command(flatten)]
        args: PromoteArgs,
        #[command(flatten)]
        output: Output,
    },
    /// Serve the generation that was served before
    Rollback {
        /// Go back even to tables that are behind the log
        #[arg(long)]
        stale_ok: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Remove a generation that is not served
    Drop { generation: i32 },
    /// Stop applying the log for now
    Pause,
    /// Go on applying the log
    Resume,
    /// Choose which source wins
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Look after rows that are held back from every figure: release them, or confirm that they are wrong
    #[command(subcommand)]
    Quarantine(QuarantineCommand),
    /// Look after messages and rows that could not be applied
    #[command(subcommand)]
    DeadLetters(DeadLetterCommand),
}

#[derive(Debug, clap::Args)]
struct Output {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Show the policy
    List(Output),
    /// Rank a source for a kind and date range; the lower rank wins
    ///
    /// Says which securities change. The served tables stay as they are: the next generation follows the change
    /// (projector rebuild, diff, promote), unless it is asked for now.
    Set {
        #[command(flatten)]
        line: PolicyLine,
        #[arg(long)]
        rank: i32,
        /// Take a source of which nothing was loaded yet
        #[arg(long)]
        unknown_ok: bool,
        #[command(flatten)]
        taking: Taking,
    },
    /// Remove a line; like a new one, that waits for the next generation unless it is asked for now
    Remove {
        #[command(flatten)]
        line: PolicyLine,
        #[command(flatten)]
        taking: Taking,
    },
}

#[derive(Debug, Subcommand)]
enum DeadLetterCommand {
    /// List what is held
    List(Output),
    /// Show the letters of one message, whole
    Show {
        sequence: i64,
        #[command(flatten)]
        output: Output,
    },
    /// Apply held letters again, of one message or all of them
    Retry {
        sequence: Option<i64>,
        #[command(flatten)]
        stream: StreamSettings,
    },
    /// Mark a letter as not wanted; it stays on record
    Discard { sequence: i64, item: i32 },
    /// Print the held rows as canonical NDJSON, to be mended and loaded
    Export {
        #[command(flatten)]
        stream: StreamSettings,
    },
}

/// Runs the program.
pub fn main() -> ExitCode {
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
        Command::Health(metrics) => return health(metrics).await,
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
            let kept = keep::backup(&ProjectorSettings::new(database, applying), &args).await?;
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

async fn health(metrics: MetricsSettings) -> anyhow::Result<ExitCode> {
    let address = metrics.metrics_listen.context(
        "METRICS_LISTEN is not set: it names where the running projector tells its health, for example 127.0.0.1:9465",
    )?;
    Ok(ExitCode::from(process::health::ask(address, "/health").await))
}

async fn restored(settings: &ProjectorSettings, args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let restored = keep::restore(settings, args, Shutdown::listen()?).await?;
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
