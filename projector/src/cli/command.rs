//! What the projector can be asked to do: its commands and their help.

use std::net::SocketAddr;

use crate::backup::{BackupArgs, RestoreArgs};
use crate::generations::promote::PromoteArgs;
use crate::generations::rebuild::RebuildArgs;
use crate::policy::{ApplyMode, PolicyRuleArgs};
use crate::quarantine::QuarantineCommand;
use crate::review::diff::DiffArgs;
use crate::settings::{ApplyArgs, BenchmarkArgs, DatabaseArgs};
use chrono::NaiveDate;
use clap::{Parser, Subcommand};
use event_log::stream::StreamSettings;
use market::symbol::Symbol;
use telemetry::listener::{MetricsSettings, parse_address};

/// Folds the market log into facts and read tables.
///
/// Exit codes: 0 done or asked to stop, 1 failed, 2 halted (a person is needed), 3 Postgres or NATS unreachable, 4 an audit
/// or a restore found something to look at.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Address of the metrics listener of the running projector.
#[derive(Debug, clap::Args)]
pub(crate) struct HealthArgs {
    /// Metrics address of the running projector, where METRICS_LISTEN is another program's
    #[arg(long, env = "PROJECTOR_METRICS", value_name = "[ADDRESS:]PORT", value_parser = parse_address)]
    pub(crate) address: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) metrics: MetricsSettings,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring the database to the newest schema, with its roles and first generation (needs DATABASE_URL)
    Migrate(BenchmarkArgs),
    /// Follow the log and keep the read tables up to date
    Run {
        /// Stop once everything that is in the log now is served
        #[arg(long)]
        until_caught_up: bool,
        #[command(flatten)]
        applying: ApplyArgs,
        #[command(flatten)]
        metrics: MetricsSettings,
    },
    /// Report the health of the projector on this machine, for containers' health checks
    ///
    /// Exit codes: 0 healthy, 1 unhealthy, 3 no answer.
    Health(HealthArgs),
    /// Write everything that cannot be made again into a folder, at one position of the log (needs DATABASE_URL)
    ///
    /// It holds the log, accounts with their keys' hashes, plans and audit, the source policy and decisions on dead letters,
    /// and checksums of the read tables. The service goes on meanwhile. Whoever can read the folder can read customers'
    /// addresses.
    Backup {
        #[command(flatten)]
        args: BackupArgs,
        #[command(flatten)]
        applying: ApplyArgs,
    },
    /// Bring a backup back onto empty servers, make the read tables anew and compare them (needs DATABASE_URL)
    ///
    /// Exits with 0 when every table is as it was, with 4 when some differ; they are named. Roles' passwords belong to the
    /// Postgres server: set them again.
    Restore {
        #[command(flatten)]
        args: RestoreArgs,
        #[command(flatten)]
        applying: ApplyArgs,
    },
    /// Say where the projector stands
    Status {
        #[command(flatten)]
        stream: StreamSettings,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Build a generation of read tables beside the served one; an interrupted one is resumed
    Rebuild {
        #[command(flatten)]
        args: Box<RebuildArgs>,
        #[command(flatten)]
        applying: ApplyArgs,
    },
    /// List the generations
    List(OutputArgs),
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
        output: OutputArgs,
    },
    /// Say what looks wrong with the served market: what to look at, and what to do next
    ///
    /// Exits with 0 when nothing does, with 4 when something does.
    Audit(OutputArgs),
    /// List the numbers in the rules that `rebuild --rule` can change: name, default, range, meaning
    Rules(OutputArgs),
    /// Serve a generation, once its differences were looked at
    Promote {
        #[command(flatten)]
        args: PromoteArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Serve the generation that was served before
    Rollback {
        /// Go back even to tables that are behind the log
        #[arg(long)]
        stale_ok: bool,
        #[command(flatten)]
        output: OutputArgs,
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
pub(crate) struct OutputArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show the policy
    List(OutputArgs),
    /// Rank a source for a kind and date range; the lower rank wins
    ///
    /// Says which securities change. The served tables stay as they are: the next generation follows the change
    /// (projector rebuild, diff, promote), unless it is asked for now.
    Set {
        #[command(flatten)]
        line: PolicyRuleArgs,
        #[arg(long)]
        rank: i32,
        /// Take a source of which nothing was loaded yet
        #[arg(long)]
        unknown_ok: bool,
        #[command(flatten)]
        taking: ApplyMode,
    },
    /// Remove a line; like a new one, that waits for the next generation unless it is asked for now
    Remove {
        #[command(flatten)]
        line: PolicyRuleArgs,
        #[command(flatten)]
        taking: ApplyMode,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetterCommand {
    /// List what is held
    List(OutputArgs),
    /// Show the letters of one message, whole
    Show {
        sequence: i64,
        #[command(flatten)]
        output: OutputArgs,
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
