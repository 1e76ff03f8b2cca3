//! `ingest load`: files into the log, from their paths to the run's manifest.
//!
//! What is loaded is found and identified here; reading and publishing it is a [`Run`](crate::run::Run)'s.

use std::path::PathBuf;
use std::time::Instant;

use chrono::{DateTime, NaiveDate, Utc};
use clap::Args;
use event_log::frame::FrameError;
use event_log::stream::StreamSettings;
use market::symbol::Symbol;
use process::Shutdown;

use crate::format::{Choice, Options, SymbolFrom};
use crate::input::{Input, survey};
use crate::log::LogError;
use crate::normalize::{Currency, parse_currency, parse_time};
use crate::publish::PublishFailure;
use crate::report::{FileReport, Progress, Summary};
use crate::run::Run;
use crate::source;

/// Loads feed files into the log.
///
/// PATH is a file or a folder (read recursively, in name order): CSV, NDJSON, a vendor's JSON, also compressed as gzip
/// or zstd or in a .zip.
/// A canonical CSV file is named by its kind: prices.csv, dividends-2024.csv.gz, securities.csv. Rows that cannot be
/// used are kept as rejects, with file, line and reason (`ingest rejects`), and do not stop the others.
///
/// Loading the same files again publishes nothing again; after an interruption the same command resumes.
///
/// Exit codes: 0 all loaded; 1 loaded, but some rows or files were refused; 2 nothing loaded; 3 NATS unreachable;
/// 130 interrupted.
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    /// Files and folders
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Name of the feed; facts are kept by source, and a source policy says which one wins
    #[arg(long, value_parser = parse_source)]
    pub source: String,
    /// Format of the files
    #[arg(long, value_enum, default_value_t)]
    pub format: Choice,
    /// Symbol of files that hold one symbol and do not name it
    #[arg(long, value_parser = Symbol::parse)]
    pub symbol: Option<Symbol>,
    /// Where the symbol stands in the names of files that hold one symbol, such as 'div_{symbol}.csv'
    #[arg(long, value_parser = SymbolFrom::parse, value_name = "PATTERN", conflicts_with = "symbol")]
    pub symbol_from: Option<SymbolFrom>,
    /// Currency of amounts in vendor files, which do not name it (ISO 4217, or a minor unit such as GBX)
    #[arg(long, default_value = "USD", value_parser = checked_currency)]
    pub currency: String,
    /// Parse everything and print the summary, contact nothing
    #[arg(long)]
    pub dry_run: bool,
    /// When rows that do not say so were observed (RFC 3339); default: the time of the load
    #[arg(long, value_parser = checked_time)]
    pub observed_at: Option<DateTime<Utc>>,
    /// Read past columns and fields of unknown names instead of refusing them
    #[arg(long)]
    pub ignore_unknown: bool,
    /// Refuse a file whole when more than this share of its rows cannot be used
    #[arg(long, default_value_t = 5.0, value_name = "PERCENT")]
    pub max_reject_percent: f64,
    /// Publish while reading, without looking at the whole file first
    #[arg(long)]
    pub no_precheck: bool,
    /// Print the summary as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Publish what the log has lost of files that were loaded completely (see `ingest verify`)
    #[arg(long, conflicts_with = "dry_run")]
    pub repair: bool,
    /// Today, for historical data (YYYY-MM-DD); default: the date in New York
    #[arg(long, env = "SERVICE_DATE", value_name = "DATE")]
    pub today: Option<NaiveDate>,
}

impl LoadArgs {
    /// The arguments of `ingest` that load the same again, wherever and whenever they are given.
    pub(crate) fn command(&self, options: &Options) -> Vec<String> {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let mut command = vec!["load".to_owned()];
        command.extend(self.paths.iter().map(|path| absolute(path).display().to_string()));
        let mut option = |name: &str, value: String| command.extend([name.to_owned(), value]);
        option("--source", self.source.clone());
        option("--format", self.format.name().to_owned());
        option("--currency", self.currency.clone());
        option("--max-reject-percent", self.max_reject_percent.to_string());
        // What is in the future of one day is not of the next, so the day is part of the command.
        option("--today", options.today.to_string());
        if let Some(symbol) = &self.symbol {
            option("--symbol", symbol.to_string());
        }
        if let Some(pattern) = &self.symbol_from {
            option("--symbol-from", pattern.to_string());
        }
        if let Some(observed_at) = &self.observed_at {
            option("--observed-at", observed_at.to_rfc3339());
        }
        command.extend(self.ignore_unknown.then(|| "--ignore-unknown".to_owned()));
        command.extend(self.no_precheck.then(|| "--no-precheck".to_owned()));
        command
    }

    /// Reads what [`LoadArgs::command`] wrote.
    pub(crate) fn of_command(command: &[String]) -> Result<Self, clap::Error> {
        #[derive(clap::Parser)]
        struct Load {
            #[command(flatten)]
            args: LoadArgs,
        }
        Ok(<Load as clap::Parser>::try_parse_from(command)?.args)
    }
}

fn parse_source(text: &str) -> Result<String, String> {
    let valid = (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    valid.then(|| text.to_owned()).ok_or_else(|| "1 to 64 letters, digits, '-', '_' and '.'".to_owned())
}

fn checked_currency(text: &str) -> Result<String, String> {
    parse_currency(text)
        .map(|_| text.to_owned())
        .ok_or_else(|| "an ISO 4217 code such as USD, or GBX, ZAc, ILA".to_owned())
}

fn checked_time(text: &str) -> Result<DateTime<Utc>, String> {
    parse_time(text).ok_or_else(|| "an RFC 3339 time such as 2024-03-15T21:00:00Z".to_owned())
}

/// Why a load ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{0}; run the same command again to resume")]
    Publish(#[from] PublishFailure),
    #[error("interrupted; what was acknowledged is kept, run the same command again to resume")]
    Interrupted,
    #[error("{0}")]
    Failed(String),
    #[error("a frame cannot be encoded: {0}")]
    Encode(#[from] FrameError),
}

impl LoadError {
    /// The exit code of a load that ended so.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Log(_) | Self::Publish(_) => 3,
            Self::Interrupted => 130,
            Self::Failed(_) | Self::Encode(_) => 2,
        }
    }
}

/// Loads files as the command line says.
pub async fn load(
    args: &LoadArgs,
    settings: &StreamSettings,
    shutdown: &Shutdown,
) -> Result<Summary, LoadError> {
    let begun = Instant::now();
    let options = options(args);
    let progress = Progress::start();
    let (mut summary, inputs) = {
        let (args, options, progress) = (args.clone(), options.clone(), progress.clone());
        let surveyed = tokio::task::spawn_blocking(move || find_inputs(&args, &options, &progress));
        surveyed.await.map_err(|error| LoadError::Failed(error.to_string()))?
    };
    if !inputs.is_empty() {
        let run = Run::new(args, inputs, options, progress.clone(), shutdown.clone());
        if args.dry_run {
            run.try_out(&mut summary).await?
        } else {
            run.publish(settings, &mut summary).await?
        }
    }
    progress.finish();
    summary.seconds = begun.elapsed().as_secs_f64();
    Ok(summary)
}

fn options(args: &LoadArgs) -> Options {
    let new_york = Utc::now().with_timezone(&chrono_tz::America::New_York).date_naive();
    Options {
        choice: args.format,
        symbol: args.symbol.clone(),
        symbol_from: args.symbol_from.clone(),
        currency: parse_currency(&args.currency).unwrap_or_else(Currency::dollar),
        ignore_unknown: args.ignore_unknown,
        today: args.today.unwrap_or(new_york),
    }
}

/// The inputs of all paths, and a summary that names the files already refused.
fn find_inputs(args: &LoadArgs, options: &Options, progress: &Progress) -> (Summary, Vec<Input>) {
    let found = source::find(&args.paths);
    let mut summary = Summary {
        source: args.source.clone(),
        dry_run: args.dry_run,
        skipped: found.skipped,
        ..Summary::default()
    };
    summary.files.extend(found.refused.into_iter().map(|(file, reason)| FileReport::refused(file, reason)));
    progress.identify();
    let surveyed = survey(&found.files, options, &|bytes| progress.read(bytes));
    let mut inputs = Vec::new();
    for (file, input) in found.files.iter().zip(surveyed) {
        match input {
            Ok(input) => inputs.push(input),
            Err(reason) => summary.files.push(FileReport::refused(file.label.clone(), reason)),
        }
    }
    progress.load(inputs.iter().map(|input| input.bytes).sum());
    (summary, inputs)
}
