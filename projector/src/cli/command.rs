//! Commands of the projector and their help.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::generation::KnownAt;
use crate::generations::PromoteArgs;
use crate::generations::rebuild_args::RebuildArgs;
use crate::policy::{ApplyMode, PolicyRuleArgs};
use crate::publish::PublishArgs;
use crate::quarantine::QuarantineCommand;
use crate::review::audit::AuditArgs;
use crate::review::diff::DiffArgs;
use crate::review::gate::{ExpectCommand, GateArgs};
use crate::review::sources::LicenceArgs;
use crate::settings::{ApplyArgs, DatabaseArgs};
use chrono::NaiveDate;
use clap::{Parser, Subcommand};
use event_log::sequence::Sequence;
use event_log::stream::StreamSettings;
use market::identity::SecurityAddress;
use store::ids::GenerationId;
use store::versions::MarketSettings;
use telemetry::LogArgs;
use telemetry::listener::{MetricsSettings, parse_listen_address};
use telemetry::table::ListArgs;

/// Applies the market log to Postgres and derives the tables that the API reads
///
/// Exit codes: 0 success or stopped on request, 1 failed, 2 halted (an operator must act), 3 Postgres or NATS
/// unreachable, 4 an audit, a gate, a backup or a restore has findings.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Address at which the running projector serves its metrics.
#[derive(Debug, clap::Args)]
pub(crate) struct HealthArgs {
    /// Metrics address of the running projector; default: the address in METRICS_LISTEN
    #[arg(long, env = "PROJECTOR_METRICS", value_name = "[ADDRESS:]PORT", value_parser = parse_listen_address)]
    pub(crate) address: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) metrics: MetricsSettings,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Migrate the database to the newest schema; create the roles and the first generation if needed (needs
    /// DATABASE_URL)
    Migrate(MarketSettings),
    /// Follow the log and keep the read tables up to date
    Run {
        /// Stop when the read tables contain all messages that were in the log at the start
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
    /// Back up all data that cannot be derived again, as of one position of the log (needs DATABASE_URL)
    ///
    /// The backup contains the log, the accounts (with key hashes, plans and audit log), the source policy, the list of
    /// discarded dead letters, and checksums of the read tables. The service keeps running. Protect the folder, because
    /// it contains customers' email addresses.
    ///
    /// Exit codes: 0 the backup has all messages that were in the log when the backup started, 4 the last messages are
    /// missing, because the projector has not applied them.
    Backup {
        /// Folder to create
        folder: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        applying: ApplyArgs,
    },
    /// Restore a backup to empty servers, derive the read tables and compare their checksums (needs DATABASE_URL)
    ///
    /// Ends all dashboard sessions and one-time links of the backup. Keys and passwords of the backup are valid again.
    /// Set the passwords of the Postgres roles again, because a backup does not contain them.
    ///
    /// Exit codes: 0 every table is identical, 4 some tables differ; their names are printed.
    Restore {
        /// Folder that `projector backup` created
        folder: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        applying: ApplyArgs,
    },
    /// Print the state of the projector and of the log
    ///
    /// Exit codes: 0 Postgres and NATS answered, 3 at least one of them did not answer; available state is printed.
    Status {
        #[command(flatten)]
        stream: StreamSettings,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Build a new generation of read tables; resumes an interrupted build
    Rebuild {
        #[command(flatten)]
        args: Box<RebuildArgs>,
        #[command(flatten)]
        applying: ApplyArgs,
    },
    /// List the generations
    List(ListArgs),
    /// Compare two generations and print the differences
    ///
    /// The summary lists the differences by topic: securities, dividend statuses, list memberships, streaks, yields and
    /// prices. Each topic begins with its largest changes. Ctrl-C also cancels the queries in Postgres.
    Diff(DiffArgs),
    /// Publish the served version as Parquet files on an object store: every read table, with a manifest
    ///
    /// Readers see a version only when it is complete. Files with the same rows are shared between versions.
    Publish(PublishArgs),
    /// Explain a metric: observations, sources, formula
    Explain {
        /// Symbol or identifier of the security: KO, isin:US1912161007, figi:BBG000BMX289, cusip:191216100 or KO@XNYS
        symbol: SecurityAddress,
        /// Field of the metrics, for example increase_streak_years; default: all fields
        metric: Option<String>,
        /// Number of the generation; default: the served generation
        #[arg(long, value_name = "N")]
        generation: Option<GenerationId>,
        /// Earlier time: an instant (RFC 3339), or the data_version of a response. Only the facts, the policy and the
        /// rules of that time are used
        #[arg(long, value_name = "INSTANT|VERSION", conflicts_with = "generation")]
        known_at: Option<KnownAt>,
        /// Session whose price is explained, with the prices of all sources; only for the metric `price`
        #[arg(long, requires = "metric")]
        date: Option<NaiveDate>,
        /// List every row. By default, only the first and the last of many similar rows are listed
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Check the served data and print findings with next steps; or report on a load (--since) or on the sources
    /// (--quality)
    ///
    /// Exit codes: 0 no findings, 4 findings. A report exits with 0.
    Audit(Box<AuditArgs>),
    /// Compare a load with the expectations of its source, as `ingest load --gate` does before the rows are served
    ///
    /// Exit codes: 0 all expectations are met, 4 some are not.
    Gate(Box<GateArgs>),
    /// List and change the expectations of the gate
    #[command(subcommand)]
    Expect(ExpectCommand),
    /// List the rule parameters for `rebuild --rule`: name, default, range, meaning
    Rules(ListArgs),
    /// Serve a generation whose differences were reviewed with `projector diff`
    Promote {
        #[command(flatten)]
        args: PromoteArgs,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Serve the previous generation again
    Rollback {
        /// Accept a generation whose tables are behind the log
        #[arg(long)]
        stale_ok: bool,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Remove a generation that is not served
    Drop { generation: GenerationId },
    /// Stop applying the log until `resume`
    Pause,
    /// Continue to apply the log after `pause`
    Resume,
    /// List and change the source policy, which ranks sources
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// List the sources, and state their licences
    #[command(subcommand)]
    Source(SourceCommand),
    /// List, release and confirm quarantined rows, which no metric uses
    #[command(subcommand)]
    Quarantine(QuarantineCommand),
    /// List, retry, discard and export dead letters: messages and rows that could not be applied
    #[command(subcommand)]
    DeadLetters(DeadLetterCommand),
}

#[derive(Debug, clap::Args)]
pub(crate) struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// List the rules of the policy
    List(ListArgs),
    /// Rank a source for a kind of rows and a date range; the source with the lowest rank is preferred
    ///
    /// Prints the securities that change. The served tables change with the next generation (projector rebuild, diff,
    /// promote), or at once with --now.
    Set {
        #[command(flatten)]
        line: PolicyRuleArgs,
        #[arg(long)]
        rank: i32,
        /// Accept a source without any loaded rows
        #[arg(long)]
        unknown_ok: bool,
        #[command(flatten)]
        taking: ApplyMode,
    },
    /// Remove a rule; the change takes effect with the next generation, or at once with --now
    Remove {
        #[command(flatten)]
        line: PolicyRuleArgs,
        #[command(flatten)]
        taking: ApplyMode,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    /// List the sources with their licences
    List(ListArgs),
    /// State the licence of a source; it takes effect at once, without a new data version
    Set(LicenceArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetterCommand {
    /// List the open dead letters, which were neither applied by a retry nor discarded (status `held`)
    List(ListArgs),
    /// Print the dead letters of one message with their payloads
    Show {
        sequence: Sequence,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Apply dead letters again: the dead letters of one message, or all
    Retry {
        sequence: Option<Sequence>,
        #[command(flatten)]
        stream: StreamSettings,
    },
    /// Mark a dead letter as discarded; its row stays in the table `dead_letters`
    Discard { sequence: Sequence, item: i32 },
    /// Print the rows of all open dead letters as canonical NDJSON, for repair and a new load
    Export {
        #[command(flatten)]
        stream: StreamSettings,
    },
}
