//! Command line of the ingest: arguments, logging and exit codes.
//!
//! The code is in the library because an `async fn` is compiled where it is awaited. In `main`, the whole program
//! would be compiled a second time.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use event_log::archive::ArchiveError;
use event_log::stream::StreamSettings;
use telemetry::Shutdown;
use telemetry::listener::{MetricsSettings, parse_address};

use crate::generate::{self, GenerateArgs};
use crate::infer::{MapArgs, print_map};
use crate::load::error::LoadError;
use crate::load::report::print;
use crate::load::{LoadArgs, load};
use crate::log::reader::LogError;
use crate::metrics::Metrics;
use crate::pull::{PullArgs, PullError, PullReport, pull};
use crate::rejects::{RejectsArgs, RejectsError, rejects};
use crate::runs::archive::{Copied, CopyError, ExportArgs, ImportArgs};
use crate::runs::freshness::{Freshness, FreshnessArgs, freshness};
use crate::runs::inspect::{self, RunsArgs, ShowArgs};
use crate::runs::undo::{UndoArgs, Undone, undo};
use crate::runs::verify::{ResumeArgs, Resumed, VerifyArgs};
use crate::runs::{archive, verify};
use crate::watch::{Told, WatchArgs, watch};

/// Brings market data feeds into the log.
///
/// Every row of a feed becomes an event of the log or a reject with its reason; nothing is dropped. The projector
/// turns the log into tables, from which the API answers.
#[derive(Debug, Parser)]
#[command(name = "ingest", version)]
struct Cli {
    #[command(flatten)]
    stream: StreamSettings,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Load(Box<LoadArgs>),
    Map(MapArgs),
    Runs(RunsArgs),
    Verify(VerifyArgs),
    Resume(ResumeArgs),
    Undo(UndoArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    Rejects(RejectsArgs),
    Freshness(FreshnessArgs),
    Watch(WatchArgs),
    Pull(Box<PullArgs>),
    /// Report the health of the watch or pull on this machine, for containers' health checks
    ///
    /// Exit codes: 0 healthy, 1 unhealthy, 3 no answer.
    Health(HealthArgs),
    Show(ShowArgs),
    Generate(GenerateArgs),
}

/// Address of the metrics listener of the running watch or pull.
#[derive(Debug, clap::Args)]
struct HealthArgs {
    /// Metrics address of the running watch or pull, where METRICS_LISTEN is another program's
    #[arg(long, env = "INGEST_METRICS", value_name = "[ADDRESS:]PORT", value_parser = parse_address)]
    address: Option<SocketAddr>,
    #[command(flatten)]
    metrics: MetricsSettings,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let _telemetry = telemetry::init("ingest", "warn,ingest=info");
    let cli = Cli::parse();
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(run(cli)),
        Err(error) => failed(format_args!("cannot start the runtime: {error}"), 2),
    }
}

async fn run(Cli { stream, command }: Cli) -> ExitCode {
    match command {
        Command::Load(args) => interruptible(run_load(&args, &stream)).await,
        Command::Map(args) => match print_map(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(format_args!("{error}"), 2),
        },
        Command::Resume(args) => interruptible(run_resume(&args, &stream)).await,
        Command::Watch(args) => interruptible(run_watch(&args, &stream)).await,
        Command::Pull(args) => interruptible(run_pull(&args, &stream)).await,
        Command::Undo(args) => undone(undo(&args, &stream, false).await, args.json),
        Command::Verify(args) => interruptible(run_verify(&args, &stream)).await,
        Command::Export(args) => copied(archive::export(&args, &stream).await, args.json),
        Command::Import(args) => copied(archive::import(&args, &stream).await, args.json),
        Command::Runs(args) => read(inspect::runs(&args, &stream).await),
        Command::Rejects(args) => listed(rejects(&args, &stream).await),
        Command::Freshness(args) => judged(freshness(&args, &stream).await, args.json),
        Command::Health(args) => run_health(args).await,
        Command::Show(args) => read(inspect::show(&args, &stream).await),
        Command::Generate(args) => match generate::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(format_args!("{error:#}"), 2),
        },
    }
}

/// Exit code of a command with its own signal handling. Other commands end at the first signal.
async fn interruptible(command: impl Future<Output = std::io::Result<ExitCode>>) -> ExitCode {
    command.await.unwrap_or_else(|error| failed(format_args!("cannot start: {error}"), 2))
}

async fn run_load(args: &LoadArgs, stream: &StreamSettings) -> std::io::Result<ExitCode> {
    Ok(match load(args, stream, &Shutdown::listen()?).await {
        Ok(summary) => {
            print(&summary, &summary.text(), args.json);
            ExitCode::from(summary.exit_code())
        }
        Err(error) => failed(format_args!("{error}"), error.exit_code()),
    })
}

async fn run_watch(args: &WatchArgs, stream: &StreamSettings) -> std::io::Result<ExitCode> {
    let metrics = metrics()?;
    let told = |told: Told<'_>| match told {
        Told::Loaded(summary) => metrics.loaded(summary),
        Told::Refused => metrics.refused(),
        Told::Away => metrics.away(),
    };
    let shutdown = Shutdown::listen()?;
    let watching = watch(args, stream, &shutdown, told);
    Ok(match telling(args.metrics, &metrics, watching).await? {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(format_args!("{error}"), 2),
    })
}

async fn run_pull(args: &PullArgs, stream: &StreamSettings) -> std::io::Result<ExitCode> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        return Ok(failed(format_args!("the program's cryptography cannot be set up"), 2));
    }
    let metrics = metrics()?;
    let report = |round: Result<&PullReport, &PullError>| match round {
        Ok(pulled) => {
            metrics.pulled(pulled);
            print(pulled, &pulled.text(), args.json);
        }
        Err(_) => metrics.away(),
    };
    let shutdown = Shutdown::listen()?;
    let pulling = pull(args, stream, &shutdown, report);
    Ok(match telling(args.metrics, &metrics, pulling).await? {
        Ok(code) => ExitCode::from(code),
        Err(error) => failed(format_args!("{error}"), error.exit_code()),
    })
}

fn metrics() -> std::io::Result<Arc<Metrics>> {
    Metrics::new().map(Arc::new).map_err(std::io::Error::other)
}

/// Runs a command, with a metrics listener if one is configured.
async fn telling<T>(
    told_at: MetricsSettings,
    metrics: &Arc<Metrics>,
    command: impl Future<Output = T>,
) -> std::io::Result<T> {
    let Some(listener) = told_at.bind().await? else { return Ok(command.await) };
    tokio::select! {
        ended = command => Ok(ended),
        never = listener.serve(Arc::clone(metrics)) => match never {},
    }
}

async fn run_health(args: HealthArgs) -> ExitCode {
    match args.address.or(args.metrics.metrics_listen) {
        Some(address) => ExitCode::from(telemetry::health_check::check(address, "/health").await),
        None => failed(
            format_args!(
                "cannot ask for health: no address is set\n\
                 set METRICS_LISTEN or --address to the metrics address of the running watch or pull, such as 127.0.0.1:9466"
            ),
            2,
        ),
    }
}

async fn run_resume(args: &ResumeArgs, stream: &StreamSettings) -> std::io::Result<ExitCode> {
    Ok(match verify::resume(args, stream, &Shutdown::listen()?).await {
        Ok(resumed) => {
            resumed.iter().for_each(|run| print(run, &run.text(), args.json));
            ExitCode::from(resumed.iter().map(Resumed::exit_code).max().unwrap_or_default())
        }
        Err(error) => failed(format_args!("{error}"), error.exit_code()),
    })
}

async fn run_verify(args: &VerifyArgs, stream: &StreamSettings) -> std::io::Result<ExitCode> {
    let shutdown = Shutdown::listen()?;
    let mut asked = shutdown.clone();
    // An interrupted repair keeps the batches acknowledged so far.
    let found = tokio::select! {
        found = verify::verify(args, stream, &shutdown) => found,
        () = asked.wait() => return Ok(failed(format_args!("interrupted"), 130)),
    };
    Ok(match found {
        Ok(findings) => {
            print(&findings, &findings.text(), args.json);
            ExitCode::from(findings.exit_code())
        }
        Err(error) => failed(format_args!("{error}"), if error.is_absence() { 1 } else { 3 }),
    })
}

fn undone(result: Result<Undone, LoadError>, json: bool) -> ExitCode {
    match result {
        Ok(undone) => {
            print(&undone, &undone.text(), json);
            ExitCode::SUCCESS
        }
        Err(error) => failed(format_args!("{error}"), error.exit_code()),
    }
}

fn judged(result: Result<Freshness, LogError>, json: bool) -> ExitCode {
    match result {
        Ok(freshness) => {
            print(&freshness, &freshness.text(), json);
            ExitCode::from(freshness.exit_code())
        }
        Err(error) => failed(format_args!("{error}"), 3),
    }
}

fn copied(result: Result<Copied, CopyError>, json: bool) -> ExitCode {
    match result {
        Ok(copied) => {
            print(&copied, &copied.text(), json);
            ExitCode::SUCCESS
        }
        Err(
            error @ (CopyError::Log(_)
            | CopyError::Archive(
                ArchiveError::Stream(_)
                | ArchiveError::Read(_)
                | ArchiveError::Publish { .. }
                | ArchiveError::Full { .. },
            )),
        ) => failed(format_args!("{error}"), 3),
        Err(error) => failed(format_args!("{error}"), 2),
    }
}

fn read(result: Result<(), LogError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ LogError::NoMessage(_)) => failed(format_args!("{error}"), 2),
        Err(error) => failed(format_args!("{error}"), 3),
    }
}

fn listed(result: Result<(), RejectsError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(RejectsError::Log(error)) => failed(format_args!("{error}"), 3),
        Err(error) => failed(format_args!("{error}"), 2),
    }
}

fn failed(message: std::fmt::Arguments<'_>, code: u8) -> ExitCode {
    tracing::error!("{message}");
    ExitCode::from(code)
}
