//! Arguments of `ingest pull`.

use std::path::PathBuf;
use std::time::Duration;

use chrono::NaiveDate;
use clap::Args;
use market::symbol::Symbol;
use telemetry::listener::MetricsSettings;

use crate::normalize::parse_duration;

/// Fetches from vendors' HTTP interfaces and object stores, and loads what came.
///
/// MANIFEST is one that ships with the program (alphavantage, eodhd, massive, massive-flatfiles, tiingo, url) or a TOML
/// file like them; `--show` prints it, to be copied and changed. It says what is asked for, how often, and how many
/// calls the vendor allows. Credentials are read from the variables it names.
///
/// How far each request came is kept in the log, and moves only when its rows are there. Calls are charged in the log
/// before they are made, so a budget holds over restarts and over several machines.
///
///   TIINGO_TOKEN=… ingest pull tiingo --symbols KO,PEP --since 2020-01-01 --once
///
/// Exit codes: 0 all fetched and loaded; 1 some requests failed, were refused or are left for a later budget; 2 nothing
/// was loaded, or a manifest cannot be used; 3 NATS unreachable; 130 interrupted.
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
pub struct PullArgs {
    /// Names of shipped manifests, or files
    #[arg(required = true, value_name = "MANIFEST")]
    pub manifests: Vec<String>,
    /// Pull once and end; the default where the manifests have no schedule
    #[arg(long)]
    pub once: bool,
    /// Say what would be asked for, make no call
    #[arg(long)]
    pub dry_run: bool,
    /// Print the manifests
    #[arg(long, conflicts_with_all = ["once", "dry_run"])]
    pub show: bool,
    /// Ask from this day on instead of from where the last pull came
    #[arg(long, value_name = "DATE")]
    pub since: Option<NaiveDate>,
    /// Symbols to ask for, instead of the manifest's: KO,PEP or @FILE with one a line
    #[arg(long, value_delimiter = ',', value_name = "SYMBOLS")]
    pub symbols: Vec<String>,
    /// Only these requests of the manifest
    #[arg(long = "request", value_name = "NAME")]
    pub requests: Vec<String>,
    /// Where answers are kept until they are loaded, and refused ones after that
    #[arg(long, env = "INGEST_PULL_FOLDER", default_value = "pulled", value_name = "DIR")]
    pub folder: PathBuf,
    /// The longest wait for a budget or a vendor; what it takes longer for is left for the next pull
    #[arg(long, default_value = "2m", value_parser = parse_duration)]
    pub patience: Duration,
    /// The longest pause within an answer
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// The largest answer
    #[arg(long, default_value_t = 1 << 30, value_name = "BYTES")]
    pub max_bytes: u64,
    /// Where the running pull tells its figures and its health
    #[command(flatten)]
    pub metrics: MetricsSettings,
    /// Print what came of each manifest as one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Today, for historical data (YYYY-MM-DD); default: the newest day after its close in New York
    #[arg(long, env = "SERVICE_DATE", value_name = "DATE")]
    pub today: Option<NaiveDate>,
}

impl PullArgs {
    /// Symbols of the command line.
    pub(super) fn parse_symbols(&self) -> Result<Vec<Symbol>, String> {
        let mut symbols = Vec::new();
        for word in &self.symbols {
            let texts = match word.strip_prefix('@') {
                None => vec![word.clone()],
                Some(path) => {
                    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
                    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
                }
            };
            for text in texts {
                symbols.push(Symbol::parse(&text).map_err(|error| format!("{text:?} {error}"))?);
            }
        }
        Ok(symbols)
    }
}
