//! Poller of the gauges. It has one connection to Postgres and one to NATS, and opens a lost connection again.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use async_nats::jetstream::stream::Info;
use chrono::{NaiveDate, Utc};
use event_log::stream::find_lagging_replicas;
use event_log::write_failure::find_write_failure;
use market::metrics::calendar::{new_york_date, previous_session};
use market::row::QuarantineReason;
use prometheus::IntGaugeVec;
use store::db::{self, DbError, error_chain};
use store::ids::GenerationId;
use tokio_postgres::Client;

use crate::monitoring::{Gauges, ProjectorMetrics, midnight_timestamp};
use crate::settings::{LIVE_FACTS, ProjectorSettings};

const STATUS: &str = include_str!("../../queries/status.sql");
const GENERATIONS: &str = include_str!("../../queries/generations_list.sql");
const SERVED: &str = include_str!("../../queries/metrics/served.sql");
const DEAD_LETTERS: &str = include_str!("../../queries/metrics/dead_letters.sql");
const QUARANTINED: &str = include_str!("../../queries/metrics/quarantined.sql");
const HELD_RUNS: &str = include_str!("../../queries/metrics/held_runs.sql");
const FEEDS: &str = include_str!("../../queries/metrics/feeds.sql");

const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum wait for the queries of one poll.
const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Polls the gauges forever.
pub async fn poll_gauges(settings: &ProjectorSettings, metrics: &ProjectorMetrics) -> Infallible {
    tokio::select! {
        never = poll_postgres(settings, metrics) => never,
        never = poll_log(settings, metrics) => never,
    }
}

async fn poll_postgres(settings: &ProjectorSettings, metrics: &ProjectorMetrics) -> Infallible {
    let up = metrics.gauges.server_up.with_label_values(&["postgres"]);
    loop {
        if let Err(error) = poll_postgres_connection(settings, metrics, || up.set(1)).await {
            tracing::debug!(error = %error_chain(&error), "cannot poll Postgres");
        }
        up.set(0);
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn poll_postgres_connection(
    settings: &ProjectorSettings,
    metrics: &ProjectorMetrics,
    up: impl Fn(),
) -> Result<(), DbError> {
    let client = db::connect(&settings.projector_config(LIVE_FACTS)?).await?;
    let mut state = PollState::default();
    while !client.is_closed() {
        // If Postgres does not answer in time, its gauge `server_up` becomes 0.
        let Ok(polled) = tokio::time::timeout(QUERY_TIMEOUT, state.poll_server(&client, metrics)).await
        else {
            break;
        };
        polled?;
        up();
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// State of the previous poll. If the state has not changed, some queries are skipped.
#[derive(Debug, Default)]
struct PollState {
    /// Served generation, log sequence of its read tables, and checkpoint of its fact set.
    state: Option<(GenerationId, i64, i64)>,
    /// Exported labels of the generation gauge: number, rule version and state of each generation.
    generations: BTreeSet<[String; 3]>,
}

impl PollState {
    async fn poll_server(&mut self, client: &Client, metrics: &ProjectorMetrics) -> Result<(), DbError> {
        let gauges = &metrics.gauges;
        gauges.market_session.set(midnight_timestamp(previous_session(new_york_date(Utc::now()))));
        let status = client.query_one(STATUS, &[]).await?;
        let (active, checkpoint): (GenerationId, i64) =
            (status.try_get("active")?, status.try_get("checkpoint")?);
        gauges.applied.set(checkpoint);
        metrics.set_checkpoint(status.try_get("name")?, checkpoint);
        let path =
            format!("{},{},control", db::generation_schema(active), status.try_get::<_, &str>("name")?);
        client.execute("select set_config('search_path', $1, false)", &[&path]).await?;
        let served = client.query_one(SERVED, &[]).await?;
        gauges.database_bytes.set(served.try_get("database_bytes")?);
        if let Some(as_of) = served.try_get::<_, Option<NaiveDate>>("as_of")? {
            gauges.as_of.set(midnight_timestamp(as_of));
        }
        self.poll_generations(client, gauges).await?;
        poll_counts(client, DEAD_LETTERS, &gauges.dead_letters, ["held", "discarded", "applied"]).await?;
        let state = Some((active, served.try_get("sequence")?, checkpoint));
        if self.state != state {
            let reasons = QuarantineReason::ALL.iter().map(|reason| reason.as_str());
            poll_counts(client, QUARANTINED, &gauges.quarantined, reasons).await?;
            poll_feeds(client, gauges).await?;
            for row in client.query(HELD_RUNS, &[]).await? {
                gauges
                    .held_runs
                    .with_label_values(&[row.try_get::<_, &str>("source")?])
                    .set(row.try_get("runs")?);
            }
            self.state = state;
        }
        Ok(())
    }

    async fn poll_generations(&mut self, client: &Client, gauges: &Gauges) -> Result<(), DbError> {
        let mut now = BTreeSet::new();
        for row in client.query(GENERATIONS, &[]).await? {
            let (id, served): (GenerationId, bool) = (row.try_get("id")?, row.try_get("served")?);
            let state = if served { "served".to_owned() } else { row.try_get("state")? };
            now.insert([id.to_string(), row.try_get("method_version")?, state]);
        }
        for labels in &now {
            gauges.generation.with_label_values(labels).set(1);
        }
        // Remove the exported labels of dropped generations, and of generations whose state changed. A label that does
        // not exist is not an error.
        for labels in self.generations.difference(&now) {
            let _ = gauges.generation.remove_label_values(labels);
        }
        self.generations = now;
        Ok(())
    }
}

/// Sets a gauge for each of `labels`. Each row of the query has a label and a count. If the query has no row for a
/// label, the gauge of the label is set to 0.
async fn poll_counts(
    client: &Client,
    query: &str,
    gauges: &IntGaugeVec,
    labels: impl IntoIterator<Item = &'static str>,
) -> Result<(), DbError> {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for row in client.query(query, &[]).await? {
        counts.insert(row.try_get(0)?, row.try_get(1)?);
    }
    for label in labels {
        gauges.with_label_values(&[label]).set(counts.get(label).copied().unwrap_or(0));
    }
    Ok(())
}

async fn poll_feeds(client: &Client, gauges: &Gauges) -> Result<(), DbError> {
    for row in client.query(FEEDS, &[]).await? {
        let labels = [row.try_get("source")?, row.try_get("kind")?];
        let rows: i64 = row.try_get("rows")?;
        gauges.set_feed(labels, rows.unsigned_abs(), row.try_get("loaded")?, row.try_get("newest")?);
    }
    Ok(())
}

async fn poll_log(settings: &ProjectorSettings, metrics: &ProjectorMetrics) -> Infallible {
    let up = metrics.gauges.server_up.with_label_values(&["nats"]);
    let mut caught_up_at = Instant::now();
    loop {
        if let Err(error) = poll_log_connection(settings, metrics, &mut caught_up_at, || up.set(1)).await {
            up.set(0);
            tracing::debug!(error = error.to_string(), "cannot poll the log");
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn poll_log_connection(
    settings: &ProjectorSettings,
    metrics: &ProjectorMetrics,
    caught_up_at: &mut Instant,
    up: impl Fn(),
) -> anyhow::Result<()> {
    let context = settings.applying.stream.connect("projector-metrics").await?;
    let stream = settings.applying.stream.open_existing(&context).await?;
    loop {
        let info = tokio::time::timeout(POLL_INTERVAL, stream.get_info()).await??;
        set_log_gauges(metrics, &info, caught_up_at);
        let name = &settings.applying.stream.nats_stream;
        let failure = find_write_failure(&context, name, info.state.last_sequence);
        let failure = tokio::time::timeout(POLL_INTERVAL, failure).await?;
        metrics.gauges.log_write_failed.set(i64::from(failure.is_some()));
        let lagging = find_lagging_replicas(&info).into_iter().map(|replica| replica.to_string());
        metrics.set_log_warnings(lagging.chain(failure.map(|failure| failure.to_string())).collect());
        up();
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Converts a JetStream sequence or count to a gauge value. Such numbers are below 2^63.
fn gauge_value(number: u64) -> i64 {
    let level = number.cast_signed();
    debug_assert!(level >= 0, "{number}");
    level
}

fn set_log_gauges(metrics: &ProjectorMetrics, info: &Info, caught_up_at: &mut Instant) {
    let gauges = &metrics.gauges;
    let last = gauge_value(info.state.last_sequence);
    // The projector may have applied messages since the stream information was read, so the difference may be negative.
    let pending = last.saturating_sub(gauges.applied.get()).max(0);
    if pending == 0 {
        *caught_up_at = Instant::now();
    }
    metrics.set_pending(pending);
    gauges.log_last.set(last);
    gauges.log_pending.set(pending);
    gauges.lag.set(if pending == 0 { 0 } else { gauge_value(caught_up_at.elapsed().as_secs()) });
    gauges.log_bytes.set(gauge_value(info.state.bytes));
    gauges.log_messages.set(gauge_value(info.state.messages));
    let behind = find_lagging_replicas(info).len();
    let current = info.config.num_replicas.max(1).saturating_sub(behind);
    for (state, replicas) in [("behind", behind), ("current", current)] {
        gauges.log_replicas.with_label_values(&[state]).set(gauge_value(replicas as u64));
    }
}
