//! `projector status`: state of the projector, as text or JSON.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use async_nats::jetstream::stream::Info;
use chrono::{DateTime, NaiveDate, Utc};
use event_log::sequence::Sequence;
use event_log::stream::{LaggingReplica, StreamError, StreamSettings, find_lagging_replicas};
use event_log::write_failure::{WriteFailure, find_write_failure};
use serde::Serialize;
use store::db::{self, error_chain};
use store::ids::GenerationId;
use telemetry::report::{Report, print_result};

use crate::generations::list_generations;
use crate::generations::rebuild_args::load_schema_bytes;
use crate::settings::{DatabaseArgs, LIVE_FACTS};

const STATUS: &str = include_str!("../../queries/status.sql");
const BUSY: &str = include_str!("../../queries/status_busy.sql");

const PART_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize)]
struct StatusReport {
    /// State that Postgres stores; absent if Postgres cannot be reached.
    #[serde(flatten)]
    facts: Option<FactsStatus>,
    /// Error that occurred while the state was read from Postgres; `None` if the state was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    postgres_error: Option<String>,
    log_last_sequence: Option<u64>,
    lag_events: Option<u64>,
    /// Replicas of the log's stream that lack messages or are offline; `None` if the log cannot be read.
    lagging_replicas: Option<Vec<LaggingReplica>>,
    /// Failed write to the log, for example because the disk of NATS is full. Absent if the log has stored a message
    /// since, or if there was no such failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    write_failure: Option<WriteFailure>,
    /// Error that occurred while the state of the log was read; `None` if the state was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_error: Option<String>,
}

#[derive(Debug, Serialize)]
struct FactsStatus {
    fact_set: String,
    checkpoint: Sequence,
    holder: Option<String>,
    /// `true` if the lease of the projector that `holder` names is still valid. If the lease is no longer valid and
    /// `busy_since` is absent, this projector is retrying after an error, or was killed.
    leased: bool,
    /// Start of the transaction that the projector is executing; absent between two transactions. A transaction that
    /// derives many securities may take longer than the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    busy_since: Option<DateTime<Utc>>,
    halted: Option<String>,
    dead_letters: i64,
    /// Size of the facts on disk including indexes, in bytes.
    facts_bytes: u64,
    active_generation: GenerationId,
    generations: Vec<GenerationStatus>,
}

#[derive(Debug, Serialize)]
struct GenerationStatus {
    id: GenerationId,
    state: String,
    method_version: String,
    sequence: Sequence,
    as_of: Option<NaiveDate>,
    /// Size of the read tables on disk including indexes, in bytes.
    bytes: u64,
}

/// Prints the status. If Postgres or NATS cannot be reached, prints the error in place of the state of that server, and
/// returns exit code 3.
pub(super) async fn print_status(
    database: &DatabaseArgs,
    stream: &StreamSettings,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let (facts, log) = tokio::join!(
        limit_wait("Postgres", load_facts_status(database)),
        limit_wait("NATS", load_log_status(stream))
    );
    // Before the first load, the stream does not exist. An absent stream is therefore not an outage.
    let is_absent = |error: &anyhow::Error| matches!(error.downcast_ref(), Some(StreamError::Absent { .. }));
    let is_unreachable = facts.is_err() || log.as_ref().is_err_and(|error| !is_absent(error));
    let applied = facts.as_ref().ok().map(|facts| facts.checkpoint.to_u64());
    let (log, write_failure) = match log {
        Ok((log, failure)) => (Ok(log), failure),
        Err(error) => (Err(error), None),
    };
    let last = log.as_ref().ok().map(|log| log.state.last_sequence);
    let status = StatusReport {
        log_last_sequence: last,
        lag_events: last.zip(applied).map(|(last, applied)| last.saturating_sub(applied)),
        lagging_replicas: log.as_ref().ok().map(find_lagging_replicas),
        write_failure,
        log_error: log.as_ref().err().map(|error| error_chain(error.as_ref())),
        postgres_error: facts.as_ref().err().map(|error| error_chain(error.as_ref())),
        facts: facts.ok(),
    };
    print_result(&status, json, describe_status)?;
    Ok(if is_unreachable { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

async fn limit_wait<T>(server: &str, loading: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let loaded = tokio::time::timeout(PART_TIMEOUT, loading).await;
    loaded.map_err(|_| anyhow!("{server} does not answer within {} s", PART_TIMEOUT.as_secs()))?
}

async fn load_facts_status(database: &DatabaseArgs) -> anyhow::Result<FactsStatus> {
    let client = db::connect_migrated(&database.projector_config(LIVE_FACTS)?).await?;
    let row = client.query_one(STATUS, &[]).await?;
    let fact_set: String = row.try_get("name")?;
    let mut status = FactsStatus {
        busy_since: client.query_one(BUSY, &[&fact_set]).await?.try_get("busy_since")?,
        facts_bytes: load_schema_bytes(&client, &fact_set).await?,
        fact_set,
        checkpoint: row.try_get("checkpoint")?,
        holder: row.try_get("holder")?,
        leased: row.try_get("leased")?,
        halted: row.try_get("halted")?,
        dead_letters: row.try_get("dead_letters")?,
        active_generation: row.try_get("active")?,
        generations: Vec::new(),
    };
    for listed in list_generations(&client).await? {
        let schema = db::generation_schema(listed.generation);
        status.generations.push(GenerationStatus {
            id: listed.generation,
            state: listed.state,
            method_version: listed.method_version,
            sequence: listed.sequence,
            as_of: listed.as_of,
            bytes: load_schema_bytes(&client, &schema).await?,
        });
    }
    Ok(status)
}

/// Loads the state of the log's stream, and the notice of a failed write.
async fn load_log_status(settings: &StreamSettings) -> anyhow::Result<(Info, Option<WriteFailure>)> {
    let context = settings.connect("projector-status").await?;
    let info = settings.open_existing(&context).await?.cached_info().clone();
    let failure = find_write_failure(&context, &settings.nats_stream, info.state.last_sequence).await;
    Ok((info, failure))
}

fn describe_status(status: &StatusReport) -> Report {
    let mut report = Report::new("");
    let mut add = |label: &str, text: String| report.add_fact(format!("{label:<12} {text}"));
    if let Some(reason) = &status.log_error {
        add("log", format!("unknown: {reason}"));
    } else if let Some(last) = status.log_last_sequence {
        add("log", format!("ends at sequence {last}"));
    }
    if let Some(failure) = &status.write_failure {
        add("log", failure.to_string());
    }
    status.lagging_replicas.iter().flatten().for_each(|replica| add("log", replica.to_string()));
    if let Some(reason) = &status.postgres_error {
        add("facts", format!("unknown: {reason}"));
    }
    let Some(facts) = &status.facts else { return report };
    let lag = status.lag_events.map_or("unknown".to_owned(), |lag| format!("{lag} events"));
    let size = |bytes: u64| format!("{:.1} MB on disk", bytes as f64 / 1e6);
    add("facts", format!("applied to sequence {}, lag {lag}, {}", facts.checkpoint, size(facts.facts_bytes)));
    let holder = facts.holder.as_deref().unwrap_or("none running");
    let state = match facts.busy_since {
        _ if facts.holder.is_none() => String::new(),
        Some(since) => format!(", busy since {}", since.format("%Y-%m-%d %H:%M:%S UTC")),
        None if facts.leased => String::new(),
        None => ", without the lease: it retries, or was killed".to_owned(),
    };
    add("projector", format!("{holder}{state}"));
    if let Some(reason) = &facts.halted {
        add("HALTED", reason.clone());
    }
    add("dead letters", facts.dead_letters.to_string());
    for generation in &facts.generations {
        let active = if generation.id == facts.active_generation { "served" } else { "" };
        let as_of = generation.as_of.map_or("no session yet".to_owned(), |date| date.to_string());
        let GenerationStatus { id, state, method_version, sequence, bytes, .. } = generation;
        let size = size(*bytes);
        add(
            "generation",
            format!("{id} {state} sequence {sequence} as of {as_of} rules {method_version} {size} {active}"),
        );
    }
    report
}
