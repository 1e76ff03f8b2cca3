//! `ingest pull`: fetches data from vendors, once or on a schedule. A connector is a TOML file (the manifest) with the
//! requests to one vendor. A sync run sends the due requests of one connector.
//!
//! Arguments of `ingest pull`.
//!
//! Errors that end a pull.

mod aws;
mod batch;
mod budget;
mod client;
mod connector;
mod credential;
mod http_client;
mod paging;
mod plan;
mod report;
mod state_log;
mod sync;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use chrono::{NaiveDate, Utc};
use clap::Args;
use client::VendorClient;
use connector::{Connector, SHIPPED};
use credential::Credential;
use event_log::stream::StreamSettings;
use http_client::HttpClient;
use market::symbol::Symbol;
use plan::{SyncScope, newest_day, plan_requests, select_templates};
use report::DryRunRequest;
pub use report::PullReport;
use state_log::StateLog;
use sync::SyncRun;
use telemetry::listener::MetricsSettings;
use telemetry::{Shutdown, outln};

use crate::load::publication::LoadError;
use crate::log::reader::{Log, LogError};
use crate::normalize::parse_duration;
use crate::source::folder_handle::FolderHandle;
use crate::source::folder_handle::{Links, read_small_text};

/// Minimum pause between two sync runs of a connector. A sync run that could not reach the log is repeated after this
/// pause.
const MIN_SYNC_PAUSE: Duration = Duration::from_secs(5);

/// Runs the connectors that the command line names, and returns the exit code. Calls `report` after each sync run. A
/// scheduled sync run that cannot reach the log is repeated.
pub async fn pull(
    args: &PullArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
    report: impl Fn(Result<&PullReport, &PullError>),
) -> Result<u8, PullError> {
    if args.show {
        return print_manifests(args);
    }
    let connectors =
        args.manifests.iter().map(|name| Connector::read(name)).collect::<Result<Vec<_>, _>>()?;
    if args.dry_run {
        return report_dry_run(args, &connectors, settings, report).await;
    }
    // A missing credential is reported at start, not at the scheduled time.
    let credentials = connectors.iter().map(read_credential).collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<ConnectorRun<'_>> = connectors
        .iter()
        .zip(&credentials)
        .map(|(connector, credential)| ConnectorRun { args, connector, credential, settings, shutdown })
        .collect();
    if args.once || connectors.iter().all(|connector| connector.schedule.is_none()) {
        let mut code = 0;
        for run in runs {
            let pulled = run.run_once().await?;
            report(Ok(&pulled));
            code = code.max(pulled.exit_code());
        }
        return Ok(code);
    }
    futures::future::try_join_all(runs.iter().map(|run| run.run_on_schedule(&report))).await?;
    Ok(0)
}

fn print_manifests(args: &PullArgs) -> Result<u8, PullError> {
    for name in &args.manifests {
        Connector::read(name)?;
        match SHIPPED.iter().find(|(shipped, _)| shipped == name) {
            Some((_, text)) => outln!("{}", text.trim_end()),
            None => outln!("# {name} is a valid manifest"),
        }
    }
    Ok(0)
}

/// Prints the requests that a sync run would send. If the log is reachable, the requests are planned from their
/// bookmarks, which say what was already fetched. Otherwise, they are planned as if nothing had been fetched before.
async fn report_dry_run(
    args: &PullArgs,
    connectors: &[Connector],
    settings: &StreamSettings,
    report: impl Fn(Result<&PullReport, &PullError>),
) -> Result<u8, PullError> {
    for connector in connectors {
        let bookmarks = match Log::open_existing(settings).await {
            Ok(log) => StateLog::open(log, connector).await?.bookmarks().clone(),
            Err(error) => {
                tracing::warn!(%error, "cannot read the bookmarks: planning without them");
                BTreeMap::new()
            }
        };
        let scope = SyncScope {
            symbols: &symbols_to_fetch(args, connector)?,
            since: args.since,
            today: args.today.unwrap_or_else(|| newest_day(Utc::now())),
            bookmarks: &bookmarks,
            fresh_since: None,
        };
        let mut pulled = PullReport { dry_run: true, ..PullReport::new(connector) };
        for template in select_templates(args, connector)? {
            let requests = plan_requests(connector, template, &scope)?;
            pulled.requests += requests.len();
            pulled.planned.extend(requests.into_iter().map(|request| DryRunRequest {
                request: request.key,
                url: request.url.into(),
                cost: template.cost,
            }));
        }
        report(Ok(&pulled));
    }
    Ok(0)
}

fn read_credential(connector: &Connector) -> Result<Credential, PullError> {
    Credential::read_secrets(connector.credential.as_ref()).map_err(|reason| connector.unusable(reason))
}

/// Symbols to fetch: from the command line if it has symbols, otherwise from the manifest.
fn symbols_to_fetch(args: &PullArgs, connector: &Connector) -> Result<Vec<Symbol>, PullError> {
    let symbols =
        if args.symbols.is_empty() { parse_symbols(&connector.symbols) } else { args.parse_symbols() };
    symbols.map_err(|reason| connector.unusable(reason))
}

/// Inputs of the sync runs of one connector.
struct ConnectorRun<'a> {
    args: &'a PullArgs,
    connector: &'a Connector,
    credential: &'a Credential,
    settings: &'a StreamSettings,
    shutdown: &'a Shutdown,
}

impl ConnectorRun<'_> {
    async fn run_once(&self) -> Result<PullReport, PullError> {
        let Self { args, connector, credential, settings, shutdown } = *self;
        let path = args.folder.join(&connector.name);
        let in_folder = |source| PullError::Folder { path: path.clone(), source };
        fs::create_dir_all(&path).map_err(in_folder)?;
        let folder = Arc::new(FolderHandle::open_unlinked(&path).map_err(in_folder)?);
        let lock = folder.try_lock(".lock").map_err(in_folder)?;
        let _lock = lock.ok_or_else(|| PullError::Locked { folder: path.clone() })?;
        let symbols = symbols_to_fetch(args, connector)?;
        let state_log = StateLog::open(Log::open(settings).await?, connector).await?;
        let http =
            HttpClient::new(args, connector, credential).map_err(|reason| connector.unusable(reason))?;
        let client = VendorClient { args, connector, shutdown, state_log, http, calls: 0 };
        let pulled = PullReport::new(connector);
        SyncRun { client, symbols: &symbols, settings, folder, pulled }.run().await
    }

    /// Starts a sync run immediately, and then at every scheduled time until shutdown. Without a schedule, there is
    /// only one sync run.
    async fn run_on_schedule(
        &self,
        report: impl Fn(Result<&PullReport, &PullError>),
    ) -> Result<(), PullError> {
        loop {
            let again = match self.run_once().await {
                Ok(pulled) => {
                    report(Ok(&pulled));
                    let Some(schedule) = &self.connector.schedule else { return Ok(()) };
                    // After an exhausted call budget, the next run starts as soon as calls are allowed again.
                    schedule.next_after(Utc::now()).into_iter().chain(pulled.again_at).min()
                }
                Err(PullError::Interrupted) => return Ok(()),
                Err(error) if error.exit_code() == 3 => {
                    report(Err(&error));
                    tracing::warn!(%error, "sync run failed: fetched answers are kept");
                    Some(Utc::now() + MIN_SYNC_PAUSE)
                }
                Err(error) => return Err(error),
            };
            let Some(again) = again else { return Ok(()) };
            tracing::info!(
                connector = self.connector.name,
                at = %again.format("%Y-%m-%d %H:%M:%S UTC"),
                "next sync run scheduled"
            );
            let mut shutdown = self.shutdown.clone();
            let wait = (again - Utc::now()).to_std().unwrap_or_default().max(MIN_SYNC_PAUSE);
            tokio::select! { () = tokio::time::sleep(wait) => {}, () = shutdown.wait() => return Ok(()) }
        }
    }
}

/// Fetches data from vendors' HTTP APIs and object stores, and loads it.
///
/// MANIFEST is a TOML file, or the name of a shipped manifest: alphavantage, eodhd, massive, massive-flatfiles, tiingo
/// or url. `--show` prints a shipped manifest as a template for a TOML file. The manifest with the name `url` is the
/// template for feed files at any address. A manifest contains the requests, their schedule and the call budget of the
/// vendor. It also names the environment variables with the credentials.
///
/// The log stores a bookmark of each request: the last day that was fetched. The bookmark advances only after the rows
/// of the request are in the log. Each call is recorded in the log before it is made. The call budget therefore
/// includes the calls of earlier processes and of other machines.
///
/// Example: TIINGO_TOKEN=… ingest pull tiingo --symbols KO,PEP --since 2020-01-01 --once
///
/// Exit codes: 0 all fetched and loaded; 1 some requests failed or wait for the budget, or some files or rows were
/// rejected; 2 nothing was fetched, or a manifest, an option or the folder cannot be used; 3 NATS unreachable; 130
/// interrupted.
#[derive(Debug, Clone, Args)]
pub struct PullArgs {
    /// Name of a shipped manifest, or path of a TOML file; several are allowed
    #[arg(required = true, value_name = "MANIFEST")]
    pub manifests: Vec<String>,
    /// Pull once and exit; this is the default for manifests without a schedule
    #[arg(long)]
    pub once: bool,
    /// Print the planned requests, without making a call
    #[arg(long)]
    pub dry_run: bool,
    /// Fetch nothing. Print each MANIFEST that is the name of a shipped manifest, and validate each MANIFEST that is a
    /// file
    #[arg(long, conflicts_with_all = ["once", "dry_run"])]
    pub show: bool,
    /// First day to fetch; default: the bookmark of each request, else the manifest's `since`, else 30 days ago
    #[arg(long, value_name = "DATE")]
    pub since: Option<NaiveDate>,
    /// Symbols to fetch instead of the symbols in the manifest: KO,PEP or @FILE with one symbol per line
    #[arg(long, value_delimiter = ',', value_name = "SYMBOLS")]
    pub symbols: Vec<String>,
    /// Names of the manifest's requests to send; default: all requests
    #[arg(long = "request", value_name = "NAME")]
    pub requests: Vec<String>,
    /// Folder for fetched responses until they are loaded, and for refused files
    #[arg(long, env = "INGEST_PULL_FOLDER", default_value = "pulled", value_name = "DIR")]
    pub folder: PathBuf,
    /// Maximum time to wait until the budget or the vendor permits a call. A request that must wait longer is left for
    /// the next pull
    #[arg(long, default_value = "2m", value_parser = parse_duration)]
    pub patience: Duration,
    /// Maximum time without new data while a response arrives
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// Maximum size of a response, in bytes
    #[arg(long, default_value_t = 1 << 30, value_name = "BYTES")]
    pub max_bytes: u64,
    /// Address of metrics and health.
    #[command(flatten)]
    pub metrics: MetricsSettings,
    /// Print each pull report as one line of JSON
    #[arg(long)]
    pub json: bool,
    /// Date (YYYY-MM-DD) to use as today, for historical data; default: today's date in New York, or yesterday's date
    /// if the time there is before 17:00
    #[arg(long, env = "SERVICE_DATE", value_name = "DATE")]
    pub today: Option<NaiveDate>,
}

impl PullArgs {
    /// Parses the symbols of the command line. A word such as `@FILE` is replaced by the lines of the file.
    fn parse_symbols(&self) -> Result<Vec<Symbol>, String> {
        let mut texts = Vec::new();
        for word in &self.symbols {
            if let Some(path) = word.strip_prefix('@') {
                let text = read_small_text(Path::new(path), Links::Followed)
                    .map_err(|error| format!("{path}: {error}"))?;
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                texts.extend(lines.map(str::to_owned));
            } else {
                texts.push(word.clone());
            }
        }
        parse_symbols(&texts)
    }
}

fn parse_symbols(texts: &[String]) -> Result<Vec<Symbol>, String> {
    let parse = |text: &String| Symbol::parse(text).map_err(|error| format!("{text:?} {error}"));
    texts.iter().map(parse).collect()
}

/// Errors that end a pull.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    #[error(
        "cannot use the manifest {name}: {source}; shipped manifests: {shipped}; any other name is a file"
    )]
    ManifestFile { name: String, shipped: String, source: io::Error },
    #[error("cannot use the manifest {name}: {source}")]
    Manifest { name: String, source: ManifestError },
    #[error("{connector}: options of the manifest: {source}")]
    Options { connector: String, source: clap::Error },
    /// A credential is missing, or a symbol, a request or an option is invalid.
    #[error("{connector}: {reason}")]
    Unusable { connector: String, reason: String },
    #[error("cannot lock {}: another pull uses it", folder.display())]
    Locked { folder: PathBuf },
    #[error("cannot use {}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("interrupted; fetched answers are kept, run the same command again to resume")]
    Interrupted,
}

/// Errors in the TOML text of a connector manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The text is not TOML, or a field is missing, unknown or has the wrong type.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// The fields are complete, but a value is not allowed. The message names the field and the rule.
    #[error("{0}")]
    Invalid(String),
}

impl PullError {
    /// Exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Log(_) => 3,
            Self::Load(error) => error.exit_code(),
            Self::Interrupted => 130,
            _ => 2,
        }
    }
}
