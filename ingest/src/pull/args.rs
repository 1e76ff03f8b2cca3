//! Arguments and errors of `ingest pull`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::NaiveDate;
use clap::Args;
use market::symbol::Symbol;
use telemetry::listener::MetricsSettings;

use crate::load::publication::LoadError;
use crate::log::reader::LogError;
use crate::source::file_access::{Links, read_small_text};
use telemetry::command_line::parse_duration;

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
/// rejected or held; 2 nothing was fetched, or a manifest, an option or the folder cannot be used; 3 NATS unreachable; 130
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
    /// Serve fetched rows only if they meet the expectations of their source (see `ingest load --gate`)
    #[arg(long)]
    pub gate: bool,
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
    pub(super) fn parse_symbols(&self) -> Result<Vec<Symbol>, String> {
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

pub(super) fn parse_symbols(texts: &[String]) -> Result<Vec<Symbol>, String> {
    let parse = |text: &String| Symbol::parse(text).map_err(|error| format!("{text:?} {error}"));
    texts.iter().map(parse).collect()
}

/// Errors that end a pull.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The file cannot be read, the text is no manifest, or a value is not allowed.
    #[error("cannot use the manifest {name}: {reason}")]
    Manifest { name: String, reason: String },
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
