//! Command line of `ingest`: arguments, logging and exit codes.
//!
//! The binary only calls the synchronous function [`main`]. An `async fn` would be compiled a second time in the
//! binary.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use event_log::stream::StreamSettings;
use market::event::RunVisibility;
use telemetry::command_line::HiddenOptions;
use telemetry::listener::{MetricsSettings, parse_listen_address};
use telemetry::report::{print_json, print_result};
use telemetry::{LogArgs, Shutdown, outln};

use crate::format::canonical::kind_layout::{ColumnsArgs, list_columns};
use crate::infer::{MapArgs, MapProposalError, print_map};
use crate::load::effect::LoadEffect;
use crate::load::publication::LoadError;
use crate::load::report::LoadSummary;
use crate::load::{LoadArgs, load};
use crate::log::reader::LogError;
use crate::metrics::IngestMetrics;
use crate::pull::{PullArgs, PullError, PullReport, pull};
use crate::rejects::{RejectsArgs, RejectsError, list_rejects};
use crate::runs::archive::{ExportLogArgs, ImportLogArgs, LogCopyReport};
use crate::runs::freshness::{FreshnessArgs, check_freshness};
use crate::runs::inspect::{self, RunsArgs, ShowArgs};
use crate::runs::undo::{ChangeArgs, ChangeReport, change_run};
use crate::runs::verify::{ResumeArgs, VerifyArgs, VerifyReport};
use crate::runs::{archive, verify};
use crate::watch::{WatchArgs, WatchError, watch_folder};

/// Brings market data feeds into the log.
///
/// Every row of a feed becomes an event of the log, or a reject with its reason. The projector derives tables from the
/// log, and the API serves them.
#[derive(Debug, Parser)]
#[command(name = "ingest", version)]
struct Cli {
    #[command(flatten)]
    stream: StreamSettings,
    #[command(flatten)]
    log: LogArgs,
    #[command(subcommand)]
    command: IngestCommand,
}

#[derive(Debug, Subcommand)]
enum IngestCommand {
    Load(Box<LoadArgs>),
    Map(MapArgs),
    Columns(ColumnsArgs),
    Runs(RunsArgs),
    Verify(VerifyArgs),
    Resume(ResumeArgs),
    /// Undoes a run: its rows are not served any more.
    ///
    /// The served tables become those of a log without the run. Rows of later runs stay, and so do rows that another run
    /// loaded too. `ingest release RUN`, a second load of the same files, or an undo of the undo makes the rows visible
    /// again.
    ///
    /// Exit codes: 0 undone; 2 the run does not exist, or is undone already; 3 NATS unreachable.
    Undo(ChangeArgs),
    /// Releases a run that is held or undone: its rows are served.
    ///
    /// Exit codes: 0 released; 2 the run does not exist, or is visible already; 3 NATS unreachable.
    Release(ChangeArgs),
    Export(ExportLogArgs),
    Import(ImportLogArgs),
    Rejects(RejectsArgs),
    Freshness(FreshnessArgs),
    Watch(WatchArgs),
    Pull(Box<PullArgs>),
    /// Report the health of the `ingest watch` or `ingest pull` that runs on this machine, for a container's health
    /// check
    ///
    /// Exit codes: 0 healthy, 1 unhealthy, 3 no answer.
    Health(IngestHealthArgs),
    Show(ShowArgs),
}

/// Address of the metrics listener of the running `ingest watch` or `ingest pull`.
#[derive(Debug, clap::Args)]
struct IngestHealthArgs {
    /// Metrics address of the running `ingest watch` or `ingest pull`; default: the address in METRICS_LISTEN
    #[arg(long, env = "INGEST_METRICS", value_name = "[ADDRESS:]PORT", value_parser = parse_listen_address)]
    address: Option<SocketAddr>,
    #[command(flatten)]
    metrics: MetricsSettings,
}

/// Connection options that the `--help` of some commands does not list, because these commands do not use the options.
const HIDDEN: [HiddenOptions; 2] = [
    HiddenOptions {
        commands: &["map", "columns", "health"],
        options: &["nats_url", "nats_stream", "nats_subject_prefix", "nats_replicas"],
    },
    // These commands never create the stream, so its number of replicas does not apply.
    HiddenOptions {
        commands: &["runs", "verify", "resume", "undo", "export", "rejects", "freshness", "show"],
        options: &["nats_replicas"],
    },
];

/// Error that ends a command, with the exit code of the program.
struct CommandError {
    message: String,
    exit_code: u8,
}

macro_rules! exit_codes {
    ($($error_type:ty: |$error:ident| $exit_code:expr;)*) => {
        $(impl From<$error_type> for CommandError {
            fn from($error: $error_type) -> Self {
                Self { message: $error.to_string(), exit_code: $exit_code }
            }
        })*
    };
}

exit_codes! {
    LoadError: |error| error.exit_code();
    PullError: |error| error.exit_code();
    serde_json::Error: |error| 2;
    MapProposalError: |error| 2;
    WatchError: |error| 2;
    LogError: |error| error.exit_code();
    RejectsError: |error| if let RejectsError::Log(error) = &error { error.exit_code() } else { 2 };
}

/// Error in the setup of signal handlers, metrics or the metrics listener.
impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        Self { message: format!("cannot start: {error}"), exit_code: 2 }
    }
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli: Cli = telemetry::command_line::parse(&HIDDEN);
    let is_service = match &cli.command {
        IngestCommand::Watch(args) => !args.once,
        IngestCommand::Pull(args) => !args.once,
        _ => false,
    };
    // The only failure is a provider that is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let _telemetry = telemetry::init("ingest", "warn,ingest=info", (!is_service).then_some(cli.log));
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        // The end of the runtime waits for blocking tasks. The error is reported before this wait.
        Ok(runtime) => runtime.block_on(async { report(run(cli).await) }),
        Err(error) => {
            report(Err(CommandError { message: format!("cannot start the runtime: {error}"), exit_code: 2 }))
        }
    }
}

/// Logs the error of a command, and returns the exit code of the program.
fn report(result: Result<u8, CommandError>) -> ExitCode {
    ExitCode::from(result.unwrap_or_else(|CommandError { message, exit_code }| {
        tracing::error!("{message}");
        exit_code
    }))
}

/// Runs a command, and returns its exit code. Commands that listen for signals shut down gracefully after a signal. A
/// signal ends all other commands at once.
async fn run(Cli { stream, command, .. }: Cli) -> Result<u8, CommandError> {
    match command {
        IngestCommand::Load(args) => return run_load(&args, &stream).await,
        IngestCommand::Resume(args) => return run_resume(&args, &stream).await,
        IngestCommand::Watch(args) => return run_watch(&args, &stream).await,
        IngestCommand::Pull(args) => return run_pull(&args, &stream).await,
        IngestCommand::Verify(args) => return run_verify(&args, &stream).await,
        IngestCommand::Freshness(args) => return run_freshness(&args, &stream).await,
        IngestCommand::Health(args) => return run_health(args).await,
        IngestCommand::Map(args) => print_map(&args)?,
        IngestCommand::Columns(args) => list_columns(&args),
        IngestCommand::Undo(args) => {
            let changed = change_run(&args, RunVisibility::Excluded, &stream).await?;
            print_result(&changed, args.json, ChangeReport::report)?;
        }
        IngestCommand::Release(args) => {
            let changed = change_run(&args, RunVisibility::Visible, &stream).await?;
            print_result(&changed, args.json, ChangeReport::report)?;
        }
        IngestCommand::Export(args) => {
            print_result(&archive::export_log(&args, &stream).await?, args.json, LogCopyReport::report)?;
        }
        IngestCommand::Import(args) => {
            print_result(&archive::import_log(&args, &stream).await?, args.json, LogCopyReport::report)?;
        }
        IngestCommand::Runs(args) => inspect::list_runs(&args, &stream).await?,
        IngestCommand::Rejects(args) => list_rejects(&args, &stream).await?,
        IngestCommand::Show(args) => inspect::show_message(&args, &stream).await?,
    }
    Ok(0)
}

async fn run_load(args: &LoadArgs, stream: &StreamSettings) -> Result<u8, CommandError> {
    let mut summary = load(args, stream, &Shutdown::listen()?).await?;
    if summary.has_published() && summary.gate.is_none() {
        summary.effect = Some(LoadEffect::measure(&summary.run, args, stream).await);
    }
    print_result(&summary, args.json, LoadSummary::report)?;
    Ok(summary.exit_code())
}

async fn run_watch(args: &WatchArgs, stream: &StreamSettings) -> Result<u8, CommandError> {
    let metrics = new_metrics()?;
    let shutdown = Shutdown::listen()?;
    let watching = watch_folder(args, stream, &shutdown, &metrics);
    let left = run_with_metrics(args.metrics, &metrics, watching).await??;
    Ok(u8::from(left > 0))
}

async fn run_pull(args: &PullArgs, stream: &StreamSettings) -> Result<u8, CommandError> {
    let metrics = new_metrics()?;
    let report = |round: Result<&PullReport, &PullError>| match round {
        Ok(pulled) => {
            metrics.count_pull(pulled);
            if let Err(error) = print_result(pulled, args.json, PullReport::report) {
                tracing::error!(%error, "cannot print the report");
            }
        }
        Err(error) => metrics.set_log_failure(error.to_string()),
    };
    let shutdown = Shutdown::listen()?;
    let pulling = pull(args, stream, &shutdown, report);
    Ok(run_with_metrics(args.metrics, &metrics, pulling).await??)
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

async fn run_health(args: IngestHealthArgs) -> Result<u8, CommandError> {
    match args.address.or(args.metrics.metrics_listen) {
        Some(address) => Ok(telemetry::listener::check_health(address, "/health").await),
        None => Err(CommandError {
            message: "cannot check health: no address is set\n\
                 set METRICS_LISTEN or --address to the metrics address of the running watch or pull, such as 127.0.0.1:9466"
                .to_owned(),
            exit_code: 2,
        }),
    }
}

async fn run_resume(args: &ResumeArgs, stream: &StreamSettings) -> Result<u8, CommandError> {
    let resumed = verify::resume_runs(args, stream, &Shutdown::listen()?).await?;
    for run in &resumed {
        print_result(run, args.json, LoadSummary::report)?;
    }
    if resumed.is_empty() && !args.json {
        outln!("nothing to resume: every run of the log is completed");
    }
    Ok(resumed.iter().map(LoadSummary::exit_code).max().unwrap_or_default())
}

async fn run_verify(args: &VerifyArgs, stream: &StreamSettings) -> Result<u8, CommandError> {
    let shutdown = Shutdown::listen()?;
    // If the repair is interrupted, the batches acknowledged so far stay in the log.
    let found = shutdown.or_stop(verify::verify_log(args, stream, &shutdown)).await;
    let interrupted = || CommandError { message: "interrupted".to_owned(), exit_code: 130 };
    let findings = found.ok_or_else(interrupted)?.map_err(|error| {
        let exit_code = if error.is_absence() { 1 } else { 3 };
        CommandError { message: error.to_string(), exit_code }
    })?;
    print_result(&findings, args.json, VerifyReport::report)?;
    Ok(u8::from(!findings.whole))
}

async fn run_freshness(args: &FreshnessArgs, stream: &StreamSettings) -> Result<u8, CommandError> {
    let freshness = check_freshness(args, stream).await?;
    if args.output.json {
        print_json(&freshness)?;
    } else {
        freshness.print_table(args.output.max_rows());
    }
    Ok(freshness.exit_code())
}
