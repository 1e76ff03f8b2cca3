//! Poller of the gauges. It has one connection to Postgres and one to NATS, and opens a lost connection again.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use async_nats::jetstream::stream::Info;
use chrono::{DateTime, NaiveDate, Utc};
use event_log::replica::find_lagging_replicas;
use market::metrics::calendar::{new_york_date, previous_session};
use market::row::QuarantineReason;
use store::db::{self, DbError, error_chain};
use store::ids::GenerationId;
use tokio_postgres::{Client, Row};

use crate::monitoring::gauges::{FeedFreshness, Gauges, midnight_timestamp};
use crate::monitoring::metrics::ProjectorMetrics;
use crate::settings::{LIVE_FACTS, ProjectorSettings};

const STATUS: &str = include_str!("../../queries/status.sql");
const GENERATIONS: &str = include_str!("../../queries/generations_list.sql");
const SERVED: &str = include_str!("../../queries/metrics/served.sql");
const DEAD_LETTERS: &str = include_str!("../../queries/metrics/dead_letters.sql");
const QUARANTINED: &str = include_str!("../../queries/metrics/quarantined.sql");
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
    /// Served generation, sequence of its tables, and checkpoint of its fact set.
    state: Option<(GenerationId, i64, i64)>,
    /// Label values that were exported for the generations.
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
        poll_dead_letters(client, gauges).await?;
        let state = Some((active, served.try_get("sequence")?, checkpoint));
        if self.state != state {
            poll_quarantined(client, gauges).await?;
            poll_feeds(client, gauges).await?;
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
        // not exist is no error.
        for labels in self.generations.difference(&now) {
            let _ = gauges.generation.remove_label_values(labels);
        }
        self.generations = now;
        Ok(())
    }
}

async fn poll_dead_letters(client: &Client, gauges: &Gauges) -> Result<(), DbError> {
    let rows = client.query(DEAD_LETTERS, &[]).await?;
    let counts = count_by_label(&rows)?;
    for status in ["held", "discarded", "applied"] {
        gauges.dead_letters.with_label_values(&[status]).set(counts.get(status).copied().unwrap_or(0));
    }
    Ok(())
}

async fn poll_quarantined(client: &Client, gauges: &Gauges) -> Result<(), DbError> {
    let rows = client.query(QUARANTINED, &[]).await?;
    let counts = count_by_label(&rows)?;
    for reason in QuarantineReason::ALL.iter().map(|reason| reason.as_str()) {
        gauges.quarantined.with_label_values(&[reason]).set(counts.get(reason).copied().unwrap_or(0));
    }
    Ok(())
}

/// Reads rows with two columns: a label and a count.
fn count_by_label(rows: &[Row]) -> Result<BTreeMap<&str, i64>, DbError> {
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

async fn poll_feeds(client: &Client, gauges: &Gauges) -> Result<(), DbError> {
    let rows = client.query(FEEDS, &[]).await?;
    for row in rows {
        gauges.set_feed(&FeedFreshness {
            source: row.try_get("source")?,
            kind: row.try_get("kind")?,
            rows: row.try_get::<_, i64>("rows")?.unsigned_abs(),
            loaded: row.try_get::<_, Option<DateTime<Utc>>>("loaded")?,
            newest: row.try_get("newest")?,
        });
    }
    Ok(())
}

async fn poll_log(settings: &ProjectorSettings, metrics: &ProjectorMetrics) -> Infallible {
    let up = metrics.gauges.server_up.with_label_values(&["nats"]);
    let mut caught_up_at = Instant::now();
    loop {
        if let Err(error) = poll_log_connection(settings, metrics, &mut caught_up_at, || up.set(1)).await {
            up.set(0);
            tracing::debug!(error, "cannot poll the log");
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn poll_log_connection(
    settings: &ProjectorSettings,
    metrics: &ProjectorMetrics,
    caught_up_at: &mut Instant,
    up: impl Fn(),
) -> Result<(), String> {
    let error_text = |error: &dyn std::fmt::Display| error.to_string();
    let context = settings.stream.connect("projector-metrics").await.map_err(|error| error_text(&error))?;
    let stream = settings.stream.open_existing(&context).await.map_err(|error| error_text(&error))?;
    loop {
        let info = tokio::time::timeout(POLL_INTERVAL, stream.get_info())
            .await
            .map_err(|error| error_text(&error))?;
        set_log_gauges(metrics, &info.map_err(|error| error_text(&error))?, caught_up_at);
        up();
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Converts a sequence or count of JetStream, which is below 2^63, to the integer of a gauge.
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
    let lagging = find_lagging_replicas(info);
    metrics.set_lagging_replicas(&lagging);
    let behind = lagging.len();
    let copies = info.config.num_replicas.max(1);
    gauges.log_replicas.with_label_values(&["behind"]).set(gauge_value(behind as u64));
    gauges
        .log_replicas
        .with_label_values(&["current"])
        .set(gauge_value(copies.saturating_sub(behind) as u64));
}
