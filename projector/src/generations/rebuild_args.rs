//! Arguments of `projector rebuild`, and the inputs of the new generation that follow from the arguments.
//!
//! Postgres does not report free space. If Postgres runs on this machine, the file system of its data directory is
//! checked before a rebuild. Otherwise only the estimated size is logged.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use chrono::{DateTime, NaiveDate, Utc};
use clap::{Args, ValueEnum};
use event_log::message::LogMessage;
use event_log::sequence::Sequence;
use market::history::SourcePolicy;
use market::metrics::Rules;
use rustix::fs::statvfs;
use store::db::generation_schema;
use store::ids::GenerationId;
use store::versions::MarketSettings;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config};

use crate::generation::{Generation, KnownAt, derivation_inputs, find_version};
use crate::settings::ProjectorSettings;

const SERVED: &str = include_str!("../../queries/generation_active.sql");

/// Facts from which a new generation is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FactSource {
    /// The current fact set
    Facts,
    /// A separate fact set, to which the log is applied again
    Log,
}

/// Arguments of `projector rebuild`.
#[derive(Debug, Clone, Args)]
pub struct RebuildArgs {
    /// Rebuild only these read tables, with the rules of the served generation. All other tables are copied from the
    /// served generation
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub only: Vec<String>,
    /// Facts from which the generation is derived
    #[arg(long, value_enum, default_value = "facts")]
    pub from: FactSource,
    /// Last sequence of the log to apply; the generation is frozen at this sequence (implies --from log)
    #[arg(long, value_name = "N", conflicts_with = "until_time")]
    pub until_seq: Option<Sequence>,
    /// Time limit (RFC 3339): only messages that were published before this time are applied, and the generation is
    /// frozen (implies --from log)
    #[arg(long, value_name = "TIME")]
    pub until_time: Option<DateTime<Utc>>,
    /// Leave out these runs, as if they had never been loaded; `ingest runs` lists the run ids. Later events of the log
    /// do not make them visible in the new generation (implies --from log)
    #[arg(long, value_name = "RUN", num_args = 1..)]
    pub without: Vec<String>,
    /// Fixed market date of the new generation; default: the newest session
    #[arg(long, value_name = "DATE")]
    pub as_of: Option<NaiveDate>,
    /// Earlier time: an instant (RFC 3339), or the data_version of a response. The generation serves the market as it
    /// was known at that time, with the policy and the rules of that time, and is frozen (implies --from log)
    #[arg(
        long,
        value_name = "INSTANT|VERSION",
        conflicts_with_all = ["only", "until_seq", "until_time", "as_of", "policy", "rules"]
    )]
    pub known_at: Option<KnownAt>,
    /// JSON file with a source policy; default: the live policy
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Set a rule parameter to another value than the default; use the option several times to set several parameters.
    /// `projector rules` lists the parameters
    #[arg(long = "rule", value_name = "NAME=VALUE", conflicts_with = "only")]
    pub rules: Vec<String>,
    /// Benchmark and reporting currency of the new generation.
    #[command(flatten)]
    pub market: MarketSettings,
    /// Skip the check of free space on Postgres's disk
    #[arg(long)]
    pub without_room: bool,
    /// Number of securities per commit; a resumed rebuild repeats the work of at most one commit
    #[arg(long, value_name = "N", default_value = "1000")]
    pub commit_every: NonZeroUsize,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
}

/// Inputs of a new generation.
pub(crate) struct RequestedInputs {
    pub(crate) rules: Rules,
    /// Last sequence of the log to apply; `None` if no limit was requested.
    pub(crate) until: Option<Sequence>,
    /// Fixed market date (as-of date of the figures); `None` if the market date is the newest session.
    pub(crate) as_of: Option<NaiveDate>,
    /// Source policy that belongs only to this generation; `None` if it follows the live policy.
    pub(crate) policy: Option<SourcePolicy>,
    /// Benchmark and reporting currency.
    pub(crate) market: MarketSettings,
}

impl RequestedInputs {
    /// Determines the inputs of the new generation from the arguments of a rebuild.
    pub(crate) async fn resolve(
        settings: &ProjectorSettings,
        client: &mut Client,
        args: &RebuildArgs,
    ) -> anyhow::Result<Self> {
        if let Some(known_at) = args.known_at {
            let version = find_version(client, known_at).await?;
            let (policy, rules) = derivation_inputs(&version)?;
            return Ok(Self {
                rules: *rules,
                until: Some(Sequence::try_from(version.facts_sequence)?),
                as_of: version.as_of,
                policy: Some(policy.clone()),
                market: version.market,
            });
        }
        // A generation has one set of rules. With `--only`, some tables are copied from the served generation, so the
        // served generation's rules apply.
        let rules = match args.only.is_empty() {
            true => Rules::parse(&args.rules).context("--rule (projector rules lists the parameters)")?,
            false => Generation::from_row(&client.query_one(SERVED, &[]).await?)?.rules,
        };
        let until = match args.until_time {
            Some(time) => Some(sequence_before(settings, time).await?),
            None => args.until_seq,
        };
        let policy = args.policy.as_deref().map(read_policy).transpose()?;
        Ok(Self { rules, until, as_of: args.as_of, policy, market: args.market.clone() })
    }

    /// `true` if the generation has a separate fact set, to which the log is applied again.
    pub(crate) fn applies_log(&self, args: &RebuildArgs) -> bool {
        args.from == FactSource::Log || self.until.is_some() || !args.without.is_empty()
    }
}

/// Reads a source policy: a JSON list of `{"kind", "source", "from", "to", "rank"}`.
fn read_policy(path: &Path) -> anyhow::Result<SourcePolicy> {
    let read = || format!("cannot read {}", path.display());
    // Reading a FIFO would wait for its writer, and reading a device may never end.
    anyhow::ensure!(path.metadata().with_context(read)?.is_file(), "{}: it is not a regular file", read());
    let text = std::fs::read_to_string(path).with_context(read)?;
    serde_json::from_str(&text).with_context(|| format!("cannot parse {} as a source policy", path.display()))
}

/// Sequence of the last message that was published before an instant. Binary search finds it, because publication times
/// rise with the sequence.
async fn sequence_before(settings: &ProjectorSettings, time: DateTime<Utc>) -> anyhow::Result<Sequence> {
    let context = settings.applying.stream.connect("projector-rebuild").await?;
    let stream = settings.applying.stream.open(&context).await?;
    let state = &stream.cached_info().state;
    let (mut low, mut high) = (state.first_sequence, state.last_sequence + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let message = LogMessage::fetch(&context, &settings.applying.stream.nats_stream, middle).await?;
        let message = message.with_context(|| format!("cannot read message {middle} of the log"))?;
        if message.stored_at < time { low = middle + 1 } else { high = middle }
    }
    Ok(Sequence::try_from(low.saturating_sub(1))?)
}

const ACTIVE: &str = "select generation from active";
const SCHEMA_BYTES: &str = include_str!("../../queries/schema_bytes.sql");
const DATA_DIRECTORY: &str = "select control.data_directory()";

/// Logs the estimated size of a new generation. Fails if less disk space is free. If the generation needs a new fact
/// set, `second_fact_set` is the current fact set.
pub(crate) async fn check_disk_space(
    client: &Client,
    config: &Config,
    second_fact_set: Option<&str>,
) -> anyhow::Result<()> {
    let active: GenerationId = client.query_one(ACTIVE, &[]).await?.try_get(0)?;
    let mut cost = load_schema_bytes(client, &generation_schema(active)).await?;
    if let Some(facts) = second_fact_set {
        cost += load_schema_bytes(client, facts).await?;
    }
    let needed_mb = cost.div_ceil(1_000_000);
    let directory: Option<String> = client.query_one(DATA_DIRECTORY, &[]).await?.try_get(0)?;
    let Some((directory, free)) = directory.filter(|_| is_local(config)).and_then(free_bytes_at) else {
        tracing::info!(needed_mb, "disk space of the new generation; free space is unknown");
        return Ok(());
    };
    let free_mb = free.div_ceil(1_000_000);
    if free < cost {
        bail!(
            "cannot build a generation: it needs about {needed_mb} MB, and {free_mb} MB are free at {directory}; remove an unused \
             generation (projector list, drop N), free space, or use --without-room"
        );
    }
    tracing::info!(needed_mb, free_mb, directory, "disk space of the new generation");
    Ok(())
}

/// Size of a schema's tables on disk including indexes, in bytes.
pub(crate) async fn load_schema_bytes(client: &Client, schema: &str) -> anyhow::Result<u64> {
    let bytes: i64 = client.query_one(SCHEMA_BYTES, &[&schema]).await?.try_get(0)?;
    Ok(bytes.unsigned_abs())
}

/// `true` if all server addresses are local.
fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
    })
}

/// Returns the folder and the free bytes of its file system that unprivileged processes may use. `None` if the folder
/// cannot be read.
fn free_bytes_at(folder: String) -> Option<(String, u64)> {
    let volume = statvfs(&folder).ok()?;
    Some((folder, volume.f_bavail.saturating_mul(volume.f_frsize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_bytes_need_an_existing_folder() {
        let here = free_bytes_at(env!("CARGO_MANIFEST_DIR").to_owned()).expect("a volume");
        assert_eq!(here.0, env!("CARGO_MANIFEST_DIR"));
        assert!(here.1 > 0);
        assert_eq!(free_bytes_at("/no/such/folder".to_owned()), None);
    }
}
