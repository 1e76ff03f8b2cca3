//! `projector status`: state of the projector, as text or JSON.

use async_nats::jetstream::stream::Info;
use chrono::NaiveDate;
use event_log::replica::{LaggingReplica, find_lagging_replicas};
use event_log::sequence::Sequence;
use event_log::stream::StreamSettings;
use serde::Serialize;
use store::db::{self, error_chain};
use telemetry::outln;
use tokio_postgres::Client;

use crate::settings::{DatabaseArgs, LIVE_FACTS};

const STATUS: &str = include_str!("../../queries/status.sql");
const SCHEMA_BYTES: &str = include_str!("../../queries/schema_bytes.sql");

#[derive(Debug, Serialize)]
struct StatusReport {
    fact_set: String,
    checkpoint: i64,
    log_last_sequence: Option<u64>,
    lag_events: Option<u64>,
    /// Replicas of the log that lag; `None` if NATS does not answer.
    lagging_replicas: Option<Vec<LaggingReplica>>,
    holder: Option<String>,
    halted: Option<String>,
    dead_letters: i64,
    /// Size of the facts on disk with indexes, in bytes.
    facts_bytes: i64,
    active_generation: i32,
    generations: Vec<GenerationStatus>,
}

#[derive(Debug, Serialize)]
struct GenerationStatus {
    id: i32,
    state: String,
    method_version: String,
    sequence: i64,
    as_of: Option<NaiveDate>,
    /// Size of the read tables on disk with indexes, in bytes.
    bytes: i64,
}

/// Prints the status.
pub async fn print_status(
    database: &DatabaseArgs,
    stream: &StreamSettings,
    json: bool,
) -> anyhow::Result<()> {
    let client = db::connect(&database.projector_config(LIVE_FACTS)?).await?;
    let row = client.query_one(STATUS, &[]).await?;
    let checkpoint: i64 = row.try_get("checkpoint")?;
    let applied = Sequence::try_from(checkpoint)?;
    let log = match load_stream_info(stream).await {
        Ok(info) => Some(info),
        Err(error) => {
            tracing::warn!(error = %error_chain(error.as_ref()), "NATS does not answer");
            None
        }
    };
    let mut status = StatusReport {
        fact_set: row.try_get("name")?,
        checkpoint,
        log_last_sequence: log.as_ref().map(|log| log.state.last_sequence),
        lag_events: log.as_ref().map(|log| log.state.last_sequence.saturating_sub(applied.to_u64())),
        lagging_replicas: log.as_ref().map(find_lagging_replicas),
        holder: row.try_get("holder")?,
        halted: row.try_get("halted")?,
        dead_letters: row.try_get("dead_letters")?,
        facts_bytes: load_schema_bytes(&client, row.try_get("name")?).await?,
        active_generation: row.try_get("active")?,
        generations: Vec::new(),
    };
    for row in client.query("select id, state, method_version from generations order by id", &[]).await? {
        let id: i32 = row.try_get("id")?;
        let version = client
            .query_one(&format!("select sequence, as_of from {}.version", db::generation_schema(id)), &[])
            .await?;
        status.generations.push(GenerationStatus {
            id,
            state: row.try_get("state")?,
            method_version: row.try_get("method_version")?,
            sequence: version.try_get("sequence")?,
            as_of: version.try_get("as_of")?,
            bytes: load_schema_bytes(&client, &db::generation_schema(id)).await?,
        });
    }
    if json {
        outln!("{}", serde_json::to_string_pretty(&status)?);
    } else {
        print_text(&status);
    }
    Ok(())
}

async fn load_schema_bytes(client: &Client, schema: &str) -> anyhow::Result<i64> {
    Ok(client.query_one(SCHEMA_BYTES, &[&schema]).await?.try_get(0)?)
}

async fn load_stream_info(settings: &StreamSettings) -> anyhow::Result<Info> {
    let context = settings.connect("projector-status").await?;
    let stream = settings.open_existing(&context).await?;
    Ok(stream.cached_info().clone())
}

fn print_text(status: &StatusReport) {
    let lag =
        status.lag_events.map_or("unknown (NATS does not answer)".to_owned(), |lag| format!("{lag} events"));
    let size = |bytes: i64| format!("{:.1} MB", bytes as f64 / 1e6);
    let facts = size(status.facts_bytes);
    outln!("facts        applied to sequence {}, lag {lag}, {facts} on disk", status.checkpoint);
    outln!("projector    {}", status.holder.as_deref().unwrap_or("none running"));
    if let Some(reason) = &status.halted {
        outln!("HALTED       {reason}");
    }
    for replica in status.lagging_replicas.iter().flatten() {
        outln!("log          {replica}");
    }
    outln!("dead letters {}", status.dead_letters);
    for generation in &status.generations {
        let active = if generation.id == status.active_generation { "served" } else { "" };
        let as_of = generation.as_of.map_or("no session yet".to_owned(), |date| date.to_string());
        outln!(
            "generation   {} {} sequence {} as of {as_of} rules {} {} on disk {active}",
            generation.id,
            generation.state,
            generation.sequence,
            generation.method_version,
            size(generation.bytes)
        );
    }
}
