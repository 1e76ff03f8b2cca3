//! Command line of `ingest`: arguments, logging and exit codes.
//!
//! The library awaits all `async` functions; the binary only calls [`main`]. An `async fn` is compiled in the crate
//! that awaits it. An await in the binary would compile the whole program twice.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use event_log::archive::ArchiveError;
use event_log::stream::StreamSettings;
use telemetry::command_line::HiddenOptions;
use telemetry::listener::{MetricsSettings, parse_listen_address};
use telemetry::table::ListArgs;
use telemetry::{Shutdown, outln};

use crate::generate::{self, GenerateArgs};
use crate::infer::{MapArgs, print_map};
use crate::load::effect::LoadEffect;
use crate::load::error::LoadError;
use crate::load::report::print_result;
use crate::load::{LoadArgs, load};
use crate::log::reader::LogError;
use crate::metrics::IngestMetrics;
use crate::pull::{PullArgs, PullError, PullReport, pull};
use crate::rejects::{RejectsArgs, RejectsError, list_rejects};
use crate::runs::archive::{ExportLogArgs, ImportLogArgs, LogCopyError, LogCopyReport};
use crate::runs::freshness::{FreshnessArgs, FreshnessReport, check_freshness};
use crate::runs::inspect::{self, RunsArgs, ShowArgs};
use crate::runs::undo::{UndoArgs, UndoReport, undo_run};
use crate::runs::verify::{ResumeArgs, ResumedRun, VerifyArgs};
use crate::runs::{archive, verify};
use crate::watch::{WatchArgs, WatchEvent, watch_folder};

/// Brings market data feeds into the log.
///
/// Every row of a feed becomes an event of the log, or a reject with its reason. The projector derives tables from the
/// log, and the API serves them.
#[derive(Debug, Parser)]
#[command(name = "ingest", version)]
struct Cli {
    #[command(flatten)]
    stream: StreamSettings,
    #[command(subcommand)]
    command: IngestCommand,
}

#[derive(Debug, Subcommand)]
enum IngestCommand {
    Load(Box<LoadArgs>),
    Map(MapArgs),
    Runs(RunsArgs),
    Verify(VerifyArgs),
    Resume(ResumeArgs),
    Undo(UndoArgs),
    Export(ExportLogArgs),
    Import(ImportLogArgs),
    Rejects(RejectsArgs),
    Freshness(FreshnessArgs),
    Watch(WatchArgs),
    Pull(Box<PullArgs>),
    /// Report the health of the watch or pull on this machine, for a container's health check
    ///
    /// Exit codes: 0 healthy, 1 unhealthy, 3 no answer.
    Health(IngestHealthArgs),
    Show(ShowArgs),
    Generate(GenerateArgs),
}

/// Address of the metrics listener of the running watch or pull.
#[derive(Debug, clap::Args)]
struct IngestHealthArgs {
    /// Metrics address of the watch or pull, if METRICS_LISTEN is the address of another program
    #[arg(long, env = "INGEST_METRICS", value_name = "[ADDRESS:]PORT", value_parser = parse_listen_address)]
    address: Option<SocketAddr>,
    #[command(flatten)]
    metrics: MetricsSettings,
}

/// Connection options that do not apply to some commands, and are hidden in their `--help`.
const HIDDEN: [HiddenOptions; 2] = [
    HiddenOptions {
        commands: &["map", "generate", "health"],
        options: &["nats_url", "nats_stream", "nats_subject_prefix", "nats_replicas"],
    },
    // These commands never create the stream, so its number of replicas does not apply.
    HiddenOptions {
        commands: &["runs", "verify", "resume", "undo", "export", "rejects", "freshness", "show"],
        options: &["nats_replicas"],
    },
];

/// Runs the program.
pub fn main() -> ExitCode {
    let _telemetry = telemetry::init("ingest", "warn,ingest=info");
    let cli: Cli = telemetry::command_line::parse(&HIDDEN);
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(run(cli)),
        Err(error) => fail(format_args!("cannot start the runtime: {error}"), 2),
    }
}

async fn run(Cli { stream, command }: Cli) -> ExitCode {
    match command {
        IngestCommand::Load(args) => run_interruptible(run_load(&args, &stream)).await,
        IngestCommand::Map(args) => match print_map(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(format_args!("{error}"), 2),
        },
        IngestCommand::Resume(args) => run_interruptible(run_resume(&args, &stream)).await,
        IngestCommand::Watch(args) => run_interruptible(run_watch(&args, &stream)).await,
        IngestCommand::Pull(args) => run_interruptible(run_pull(&args, &stream)).await,
        IngestCommand::Undo(args) => finish_undo(undo_run(&args, &stream, false).await, args.json),
        IngestCommand::Verify(args) => run_interruptible(run_verify(&args, &stream)).await,
        IngestCommand::Export(args) => {
            finish_copy(archive::export_log(&args, &stream).await, LogCopyReport::export_text, args.json)
        }
        IngestCommand::Import(args) => {
            finish_copy(archive::import_log(&args, &stream).await, LogCopyReport::import_text, args.json)
        }
        IngestCommand::Runs(args) => finish_read(inspect::list_runs(&args, &stream).await),
        IngestCommand::Rejects(args) => finish_rejects(list_rejects(&args, &stream).await),
        IngestCommand::Freshness(args) => {
            finish_freshness(check_freshness(&args, &stream).await, args.output)
        }
        IngestCommand::Health(args) => run_health(args).await,
        IngestCommand::Show(args) => finish_read(inspect::show_message(&args, &stream).await),
        IngestCommand::Generate(args) => match generate::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(format_args!("{error:#}"), 2),
        },
    }
}

/// Runs a command that handles signals, and returns its exit code. Other commands end at the first signal.
async fn run_interruptible(command: impl Future<Output = std::io::Result<ExitCode>>) -> ExitCode {
    command.await.unwrap_or_else(|error| fail(format_args!("cannot start: {error}"), 2))
}

async fn run_load(args: &LoadArgs, stream: &StreamSettings) -> std::io::Result<ExitCode> {
    Ok(match load(args, stream, &Shutdown::listen()?).await {
        Ok(mut summary) => {
            if summary.has_published() {
                summary.effect = Some(LoadEffect::measure(&summary.run, args, stream).await);
            }
            print_result(&summary, &summary.text(), args.json);
            ExitCode::from(summary.exit_code())
        }
        Err(error) => fail(format_args!("{error}"), error.exit_code()),
    })
}

async fn run_watch(args: &WatchArgs, stream: &StreamSettings) -> std::io::Result<ExitCode> {
    let metrics = new_metrics()?;
    let count_event = |event: WatchEvent<'_>| match event {
        WatchEvent::Loaded(summary) => metrics.count_load(summary),
        WatchEvent::Refused => metrics.count_refused_file(),
        WatchEvent::LogUnreachable => metrics.set_log_unreachable(),
    };
    let shutdown = Shutdown::listen()?;
    let watching = watch_folder(args, stream, &shutdown, count_event);
    Ok(match run_with_metrics(args.metrics, &metrics, watching).await? {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => fail(format_args!("{error}"), 2),
    })
}

async fn run_pull(args: &PullArgs, stream: &StreamSettings) -> std::io::Result<ExitCode> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        return Ok(fail(format_args!("cannot set up TLS: another provider is installed"), 2));
    }
    let metrics = new_metrics()?;
    let report = |round: Result<&PullReport, &PullError>| match round {
        Ok(pulled) => {
            metrics.count_pull(pulled);
            print_result(pulled, &pulled.text(), args.json);
        }
        Err(_) => metrics.set_log_unreachable(),
    };
    let shutdown = Shutdown::listen()?;
    let pulling = pull(args, stream, &shutdown, report);
    Ok(match run_with_metrics(args.metrics, &metrics, pulling).await? {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(format_args!("{error}"), error.exit_code()),
    })
}

fn new_metrics() -> std::io::Result<Arc<IngestMetrics>> {
    IngestMetrics::new().map(Arc::new).map_err(std::io::Error::other)
}

/// Runs a command, with a metrics listener if one is configured.
async fn run_with_metrics<T>(
    settings: MetricsSettings,
    metrics: &Arc<IngestMetrics>,
    command: impl Future<Output = T>,
) -> std::io::Result<T> {
    let Some(listener) = settings.bind().await? else { return Ok(command.await) };
    tokio::select! {
        ended = command => Ok(ended),
        never = listener.serve(Arc::clone(metrics)) => match never {},
    }
}

async fn run_health(args: IngestHealthArgs) -> ExitCode {
    match args.address.or(args.metrics.metrics_listen) {
        Some(address) => ExitCode::from(telemetry::health_check::check_health(address, "/health").await),
        None => fail(
            format_args!(
                "cannot check health: no address is set\n\
                 set METRICS_LISTEN or --address to the metrics address of the running watch or pull, such as 127.0.0.1:9466"
            ),
            2,
        ),
    }
}

async fn run_resume(args: &ResumeArgs, stream: &StreamSettings) -> std::io::Result<ExitCode> {
    Ok(match verify::resume_runs(args, stream, &Shutdown::listen()?).await {
        Ok(resumed) => {
            resumed.iter().for_each(|run| print_result(run, &run.text(), args.json));
            if resumed.is_empty() && !args.json {
                outln!("nothing to resume: every run of the log is completed");
            }
            ExitCode::from(resumed.iter().map(ResumedRun::exit_code).max().unwrap_or_default())
        }
        Err(error) => fail(format_args!("{error}"), error.exit_code()),
    })
}

async fn run_verify(args: &VerifyArgs, stream: &StreamSettings) -> std::io::Result<ExitCode> {
    let shutdown = Shutdown::listen()?;
    let mut asked = shutdown.clone();
    // If the repair is interrupted, the batches acknowledged so far stay in the log.
    let found = tokio::select! {
        found = verify::verify_log(args, stream, &shutdown) => found,
        () = asked.wait() => return Ok(fail(format_args!("interrupted"), 130)),
    };
    Ok(match found {
        Ok(findings) => {
            print_result(&findings, &findings.text(), args.json);
            ExitCode::from(findings.exit_code())
        }
        Err(error) => fail(format_args!("{error}"), if error.is_absence() { 1 } else { 3 }),
    })
}

fn finish_undo(result: Result<UndoReport, LoadError>, json: bool) -> ExitCode {
    match result {
        Ok(undone) => {
            print_result(&undone, &undone.text(), json);
            ExitCode::SUCCESS
        }
        Err(error) => fail(format_args!("{error}"), error.exit_code()),
    }
}

fn finish_freshness(result: Result<FreshnessReport, LogError>, output: ListArgs) -> ExitCode {
    match result {
        Ok(freshness) => {
            match output.json {
                true => print_result(&freshness, "", true),
                false => freshness.print_table(output.max_rows()),
            }
            ExitCode::from(freshness.exit_code())
        }
        Err(error) => fail(format_args!("{error}"), 3),
    }
}

fn finish_copy(
    result: Result<LogCopyReport, LogCopyError>,
    text: fn(&LogCopyReport) -> String,
    json: bool,
) -> ExitCode {
    match result {
        Ok(copied) => {
            print_result(&copied, &text(&copied), json);
            ExitCode::SUCCESS
        }
        Err(
            error @ (LogCopyError::Log(_)
            | LogCopyError::Archive(
                ArchiveError::Stream(_)
                | ArchiveError::Read(_)
                | ArchiveError::Publish { .. }
                | ArchiveError::Full { .. },
            )),
        ) => fail(format_args!("{error}"), 3),
        Err(error) => fail(format_args!("{error}"), 2),
    }
}

fn finish_read(result: Result<(), LogError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ LogError::NoMessage(_)) => fail(format_args!("{error}"), 2),
        Err(error) => fail(format_args!("{error}"), 3),
    }
}

fn finish_rejects(result: Result<(), RejectsError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(RejectsError::Log(error)) => fail(format_args!("{error}"), 3),
        Err(error) => fail(format_args!("{error}"), 2),
    }
}

fn fail(message: std::fmt::Arguments<'_>, code: u8) -> ExitCode {
    tracing::error!("{message}");
    ExitCode::from(code)
}
