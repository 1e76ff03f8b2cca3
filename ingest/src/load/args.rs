//! Arguments of `ingest load`, and the command that repeats a load. The run's manifest stores this command.

use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use clap::Args;
use clap::builder::FalseyValueParser;
use market::event::{Kind, parse_source_name};
use market::metrics::calendar::new_york_date;
use market::metrics::currency::Currency;
use market::symbol::Symbol;

use crate::format::canonical::kind_layout::parse_kind;
use crate::format::{FormatChoice, MapFile, ReaderOptions, SymbolPattern};
use crate::load::event_sender::{FetchedDataset, LineageSettings};
use crate::normalize::parse_time;
use crate::source::file_access::FolderHandle;
use crate::source::file_access::is_standard_input;

/// Loads feed files into the log.
///
/// PATH is a file or a folder (read recursively, in name order): CSV, NDJSON, or a vendor's JSON, optionally compressed
/// as gzip, zstd or .zip. The name of a CSV file in this project's own (canonical) format begins with the kind of its
/// rows: prices.csv, dividends-2024.csv.gz, securities.csv. Invalid rows are stored as rejects with file, line and
/// reason (`ingest rejects`). All other rows are loaded.
///
/// Loading the same files twice publishes them once. After an interruption, the same command resumes the load.
///
/// Exit codes: 0 all loaded; 1 loaded, but some rows or files were refused; 2 nothing loaded; 3 NATS unreachable;
/// 4 held by the gate, or undone during its comparison; 130 interrupted.
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    /// Files and folders; `-` is standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// File name for standard input; it determines the format: prices.csv, dividends.ndjson.gz
    #[arg(long, value_name = "FILE")]
    pub name: Option<String>,
    /// Kind of the rows of standard input, if --name is not set: price, dividend, split …
    #[arg(long, conflicts_with = "name", value_parser = parse_kind)]
    pub kind: Option<Kind>,
    /// Name of the feed. Rows of different sources are stored separately, and the source policy decides which source is
    /// used
    #[arg(long, value_parser = parse_source_name)]
    pub source: String,
    /// Format of the files
    #[arg(long, value_enum, default_value_t)]
    pub format: FormatChoice,
    /// Column map for files in other layouts: a TOML file, or the name of a shipped map (see `ingest map`)
    #[arg(long, value_name = "FILE", value_parser = MapFile::open, conflicts_with = "format")]
    pub map: Option<MapFile>,
    /// Symbol of all rows, for files without a symbol column
    #[arg(long, value_parser = Symbol::parse)]
    pub symbol: Option<Symbol>,
    /// Pattern for the symbol in the name of a single-symbol file: 'div_{symbol}.csv'
    #[arg(long, value_parser = SymbolPattern::parse, value_name = "PATTERN", conflicts_with = "symbol")]
    pub symbol_from: Option<SymbolPattern>,
    /// Currency of the prices and amounts in files that name no currency: an ISO 4217 code, or a minor unit such as GBX;
    /// default: the currency of the security
    #[arg(long, value_parser = parse_currency)]
    pub currency: Option<Currency>,
    /// Parse all files and print the summary; publish nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Hold the rows: nothing of the load is served before `ingest release RUN`
    #[arg(long, conflicts_with_all = ["dry_run", "repair"])]
    pub stage: bool,
    /// Hold the rows, and serve them only if the load meets the expectations of its source (`projector expect list`).
    /// A load that does not is held until `ingest release RUN` or `ingest undo RUN`. Needs a running projector, the
    /// program `projector` in the same folder, and PROJECTOR_DATABASE_URL or DATABASE_URL
    #[arg(long, env = "INGEST_GATE", value_parser = FalseyValueParser::new())]
    pub gate: bool,
    /// Source whose rows the load may take out of use, whatever the gate's limit `replaced` is; can be repeated. Without
    /// a gate, it has no effect
    #[arg(long, value_name = "SOURCE", value_parser = parse_source_name)]
    pub replaces: Vec<String>,
    /// Observation time of rows without one (RFC 3339); default: the time of the load
    #[arg(long, value_parser = parse_observation_time)]
    pub observed_at: Option<DateTime<Utc>>,
    /// Ignore columns and fields with unknown names; without this flag, a file with an unknown name is refused
    #[arg(long)]
    pub ignore_unknown: bool,
    /// Maximum percentage of rejected rows in a file; a file with more rejected rows is refused as a whole
    #[arg(long, default_value_t = 5.0, value_name = "PERCENT")]
    pub max_reject_percent: f64,
    /// Publish while reading, without checking the whole file first
    #[arg(long)]
    pub no_precheck: bool,
    /// Print the summary as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Republish lost record batches of completed loads (see `ingest verify`)
    #[arg(long, conflicts_with = "dry_run")]
    pub repair: bool,
    /// Publish the files again, even if the log already has their rows. NAME, for example a date, identifies the
    /// repeated load
    #[arg(long, value_name = "NAME", conflicts_with = "repair")]
    pub again: Option<String>,
    /// Date (YYYY-MM-DD) to use as today, for historical data; default: today's date in New York
    #[arg(long, env = "SERVICE_DATE", value_name = "DATE")]
    pub today: Option<NaiveDate>,
    /// Maximum time, in seconds, to measure the effect of the load on the figures of the API. The summary then contains
    /// the effect. With 0, or if the time does not suffice, the summary contains only the command that measures the
    /// effect. The measurement needs the program `projector` in the same folder, and PROJECTOR_DATABASE_URL or
    /// DATABASE_URL
    #[arg(long, env = "INGEST_EFFECT_WAIT", default_value_t = 5, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=3600))]
    pub effect_wait: u64,
    /// Data catalogue for lineage events.
    #[command(flatten)]
    pub(crate) lineage: LineageSettings,
    /// Origin of the files, if a pull fetched them.
    #[arg(skip)]
    pub(crate) fetched_from: Option<FetchedDataset>,
    /// Handle of the folder that contains all paths. The files are opened through this handle. `None` for paths from
    /// the command line.
    #[arg(skip)]
    pub(crate) folder: Option<Arc<FolderHandle>>,
}

impl LoadArgs {
    /// Command line that repeats this load from any folder and on any day. Empty if the load reads standard input,
    /// which cannot be read twice.
    pub(crate) fn repeat_command(&self, options: &ReaderOptions) -> Vec<String> {
        if self.reads_standard_input() {
            return Vec::new();
        }
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let mut command = vec!["load".to_owned()];
        command.extend(self.paths.iter().map(|path| absolute(path).display().to_string()));
        // The command sets the date of this load, because the date decides which rows are in the future.
        let options = [
            ("--source", Some(self.source.clone())),
            ("--map", self.map.as_ref().map(|map| map.name.clone())),
            ("--format", self.map.is_none().then(|| self.format.name().to_owned())),
            ("--currency", self.currency.as_ref().map(|currency| currency.unit().to_owned())),
            ("--max-reject-percent", Some(self.max_reject_percent.to_string())),
            ("--today", Some(options.today.to_string())),
            ("--symbol", self.symbol.as_ref().map(ToString::to_string)),
            ("--symbol-from", self.symbol_from.as_ref().map(ToString::to_string)),
            ("--observed-at", self.observed_at.map(|observed_at| observed_at.to_rfc3339())),
        ];
        for (name, value) in options {
            command.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        command.extend(self.again.iter().map(|name| format!("--again={name}")));
        command.extend(self.ignore_unknown.then(|| "--ignore-unknown".to_owned()));
        command.extend(self.no_precheck.then(|| "--no-precheck".to_owned()));
        command.extend(self.stage.then(|| "--stage".to_owned()));
        command.extend(self.gate.then(|| "--gate".to_owned()));
        command.extend(self.replaces.iter().map(|source| format!("--replaces={source}")));
        command
    }

    /// Options for reading the files, taken from the command line.
    pub(crate) fn reader_options(&self) -> ReaderOptions {
        ReaderOptions {
            choice: self.format,
            map: self.map.as_ref().map(|file| file.map.clone()),
            symbol: self.symbol.clone(),
            symbol_from: self.symbol_from.clone(),
            currency: self.currency.clone(),
            ignore_unknown: self.ignore_unknown,
            today: self.today.unwrap_or_else(|| new_york_date(Utc::now())),
        }
    }

    /// True if the rows are not visible as they arrive.
    pub(crate) fn holds_rows(&self) -> bool {
        self.stage || self.gate
    }

    pub(crate) fn reads_standard_input(&self) -> bool {
        self.paths.iter().any(|path| is_standard_input(path))
    }

    /// Arguments for a load of one path. `options` are written as on the command line.
    pub(crate) fn parse_options<'a>(
        path: &str,
        source: &str,
        options: impl Iterator<Item = &'a String>,
    ) -> Result<Self, clap::Error> {
        let command = ["load", path, "--source", source].map(str::to_owned);
        Self::parse_command(&command.into_iter().chain(options.cloned()).collect::<Vec<_>>())
    }

    /// Parses the output of [`LoadArgs::repeat_command`].
    pub(crate) fn parse_command(command: &[String]) -> Result<Self, clap::Error> {
        #[derive(clap::Parser)]
        struct Load {
            #[command(flatten)]
            args: LoadArgs,
        }
        Ok(<Load as clap::Parser>::try_parse_from(command)?.args)
    }
}

fn parse_currency(text: &str) -> Result<Currency, String> {
    Currency::parse(text).ok_or_else(|| "an ISO 4217 code such as USD, or GBX, ZAc, ILA".to_owned())
}

pub(crate) fn parse_observation_time(text: &str) -> Result<DateTime<Utc>, String> {
    parse_time(text).ok_or_else(|| "an RFC 3339 time such as 2024-03-15T21:00:00Z".to_owned())
}
