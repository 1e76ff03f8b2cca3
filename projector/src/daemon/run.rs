//! Daemon of the projector: acquires the lease, checks the identity of the log and applies batches.
//!
//! After a transient error, continues from the last checkpoint, with backoff. After a permanent error, stores the
//! reason and halts.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use event_log::sequence::Sequence;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use market::metrics::METHOD_VERSION;
use store::db::{self, DbError, error_chain};
use store::ids::GenerationId;
use telemetry::logging::SPAN_TARGET;
use telemetry::{Shutdown, failpoint};
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::apply::consumer::{LogReader, MessageBatch};
use crate::daemon::batch_writer::{Attention, BatchWriter};
use crate::daemon::lease::{self, Lease};
use crate::daemon::{check_log, check_position, connect_count};
use crate::error::RunError;
use crate::monitoring::ProjectorMetrics;
use crate::review::quality::MonthlyQuality;
use crate::settings::{LIVE_FACTS, ProjectorSettings};

const STAGING: &str = include_str!("../../queries/staging.sql");
const FACT_SETS: &str = include_str!("../../queries/fact_sets_followed.sql");
const SERVED: &str = include_str!("../../queries/generation_active.sql");
pub(crate) const UNTIL: &str = "select until_sequence from fact_sets where name = $1";
const HALT: &str = include_str!("../../queries/halt.sql");

/// Number of failed attempts to apply the same messages. In later attempts, rows that fail become dead letters.
const MAX_APPLY_ATTEMPTS: u32 = 5;
/// Interval at which an idle daemon checks for a pause or a policy change.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which the daemon searches for new fact sets.
const FACT_SETS_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum wait for Postgres in statements outside of [`run_session`]. The statements of a session need no such limit:
/// if the server is frozen, `watch_server` ends the session.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// Applies the log until shutdown, to the fact sets of the served generation and of all generations that this program
/// derives. With `until_caught_up`, stops after the messages that were in the log at the start.
pub async fn run_projector(
    settings: &ProjectorSettings,
    until_caught_up: bool,
    metrics: &Arc<ProjectorMetrics>,
    shutdown: Shutdown,
) -> Result<(), RunError> {
    let mut sessions = FuturesUnordered::new();
    let mut followed: HashSet<String> = HashSet::new();
    let mode = if until_caught_up { RunMode::CatchUp } else { RunMode::Follow };
    match tokio::time::timeout(ANSWER_TIMEOUT, warn_of_older_method(settings)).await {
        Ok(Err(error)) => tracing::warn!(error = %error_chain(&error), "cannot load the served generation"),
        Err(_) => tracing::warn!("cannot load the served generation: Postgres does not answer"),
        Ok(Ok(())) => {}
    }
    let mut pause = Duration::ZERO;
    loop {
        let loading = async {
            tokio::time::sleep(pause).await;
            tokio::time::timeout(ANSWER_TIMEOUT, load_fact_sets(settings)).await
        };
        tokio::select! {
            Some(ended) = sessions.next() => {
                ended?;
                if sessions.is_empty() {
                    return Ok(());
                }
            }
            loaded = loading => {
                pause = FACT_SETS_INTERVAL;
                let fact_sets = loaded.ok().and_then(Result::ok);
                for fact_set in fact_sets.unwrap_or_else(|| vec![LIVE_FACTS.to_owned()]) {
                    if followed.insert(fact_set.clone()) {
                        let (settings, shutdown, metrics) = (settings.clone(), shutdown.clone(), Arc::clone(metrics));
                        sessions.push(async move {
                            follow_fact_set(&settings, &fact_set, mode, &metrics, shutdown).await
                        });
                    }
                }
            }
        }
    }
}

/// Applies the log to a fact set without deriving read tables. Stops at the fact set's `until_sequence`; if it is null,
/// stops at the end of the log.
pub async fn apply_log(
    settings: &ProjectorSettings,
    fact_set: &str,
    shutdown: Shutdown,
) -> Result<(), RunError> {
    follow_fact_set(settings, fact_set, RunMode::CatchUp, &ProjectorMetrics::new()?, shutdown).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunMode {
    Follow,
    CatchUp,
}

async fn load_fact_sets(settings: &ProjectorSettings) -> Result<Vec<String>, RunError> {
    let client = db::connect_migrated(&settings.projector_config(LIVE_FACTS)?).await?;
    let rows = client.query(FACT_SETS, &[&METHOD_VERSION]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Warns if the served generation has another rule version than this program. This program does not update the tables
/// of such a generation.
async fn warn_of_older_method(settings: &ProjectorSettings) -> Result<(), DbError> {
    let client = db::connect_migrated(&settings.projector_config(LIVE_FACTS)?).await?;
    let served = client.query_one(SERVED, &[]).await?;
    let (id, method): (GenerationId, String) = (served.try_get("id")?, served.try_get("method_version")?);
    if method != METHOD_VERSION {
        tracing::warn!(
            generation = id.0,
            rules = method,
            program = METHOD_VERSION,
            "served generation gets no updates; its rules are not this program's (projector rebuild, diff, promote)"
        );
    }
    Ok(())
}

/// Follows the log for one fact set. Runs one session after the other, with backoff after transient errors.
async fn follow_fact_set(
    settings: &ProjectorSettings,
    fact_set: &str,
    mode: RunMode,
    metrics: &ProjectorMetrics,
    mut shutdown: Shutdown,
) -> Result<(), RunError> {
    let (mut backoff, mut failures) = (retry_delays(), PositionFailures::default());
    loop {
        let started = tokio::time::Instant::now();
        let config = settings.projector_config(fact_set)?;
        // A statement to a frozen Postgres server would wait forever. `watch_server` detects a frozen server and ends
        // the session.
        let ended = tokio::select! {
            ended = run_session(settings, fact_set, mode, metrics, &mut failures, shutdown.clone()) => ended,
            error = db::watch_server(&config) => Err(error.into()),
        };
        let Err(error) = ended else { return Ok(()) };
        metrics.set_lease_held(fact_set, false);
        failures.add(&error);
        if let Some(reason) = error.halt_reason() {
            record_halt(settings, fact_set, &reason).await;
            return Err(error);
        }
        metrics.set_failing(fact_set, error_chain(&error));
        if started.elapsed() > Duration::from_secs(30) {
            backoff = retry_delays();
        }
        let pause = backoff.next().unwrap_or(Duration::from_secs(5));
        if db::is_disk_full(&error) {
            tracing::warn!(error = %error_chain(&error), retry_in = ?pause, "disk of Postgres is full; free space on it, the projector then continues by itself");
        } else {
            tracing::warn!(error = %error_chain(&error), retry_in = ?pause, "transient failure; restarting from the checkpoint");
        }
        tokio::select! { () = shutdown.wait() => return Ok(()), () = tokio::time::sleep(pause) => {} }
    }
}

fn retry_delays() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(Duration::from_secs(5))
        .with_jitter()
        .without_max_times()
        .build()
}

/// Counter of failed attempts to apply the messages after one checkpoint.
#[derive(Debug, Default)]
struct PositionFailures {
    checkpoint: Sequence,
    count: u32,
}

impl PositionFailures {
    fn begin_at(&mut self, checkpoint: Sequence) {
        if checkpoint != self.checkpoint {
            *self = Self { checkpoint, count: 0 };
        }
    }

    fn add(&mut self, error: &RunError) {
        if let RunError::Apply(error) = error
            && error.repeated_code().is_some()
        {
            self.count += 1;
        }
    }

    /// `true` if the messages, and not a server, are the likely cause of the failures. Rows that fail again then become
    /// dead letters.
    fn are_repeated(&self) -> bool {
        self.count >= MAX_APPLY_ATTEMPTS
    }
}

/// Runs one session: one database connection under one lease.
async fn run_session(
    settings: &ProjectorSettings,
    fact_set: &str,
    mode: RunMode,
    metrics: &ProjectorMetrics,
    failures: &mut PositionFailures,
    mut shutdown: Shutdown,
) -> Result<(), RunError> {
    let config = settings.projector_config(fact_set)?;
    let mut client = db::connect_migrated(&config).await?;
    metrics.set_lease_held(fact_set, false);
    let waiting = wait_for_lease(&client, fact_set, settings, metrics, &mut shutdown);
    let Some(lease) = waiting.await? else { return Ok(()) };
    tracing::info!(epoch = lease.epoch, checkpoint = lease.checkpoint.to_u64(), "lease acquired");
    metrics.set_lease_held(fact_set, true);
    failures.begin_at(lease.checkpoint);
    let (stop, lost) = (CancellationToken::new(), CancellationToken::new());
    let _stopping = stop.clone().drop_guard();
    let (renewed, length) = (lease.clone(), settings.lease());
    tokio::spawn(lease::renew_lease(config, renewed, length, stop.clone(), lost.clone()));
    let outcome = tokio::select! {
        outcome = apply_batches(settings, &mut client, &lease, mode, metrics, failures, shutdown) => outcome,
        () = lost.cancelled() => Err(RunError::Lost { fact_set: lease.fact_set.clone() }),
    };
    stop.cancel();
    metrics.set_lease_held(fact_set, false);
    if !client.is_closed() && !lost.is_cancelled() {
        // After a transient error, this process releases the lease and will try again. Its name stays stored as the
        // holder, for `projector status`.
        let ends = outcome.as_ref().err().is_none_or(|error| error.halt_reason().is_some());
        lease::release_lease(&client, &lease, ends).await?;
    }
    outcome
}

async fn wait_for_lease(
    client: &Client,
    fact_set: &str,
    settings: &ProjectorSettings,
    metrics: &ProjectorMetrics,
    shutdown: &mut Shutdown,
) -> Result<Option<Lease>, RunError> {
    let hostname = std::fs::read_to_string("/etc/hostname").unwrap_or_else(|_| "localhost".to_owned());
    let holder = format!("{}@{}", std::process::id(), hostname.trim());
    let mut announced = false;
    loop {
        if let Some(lease) = lease::acquire_lease(client, fact_set, &holder, settings.lease()).await? {
            return Ok(Some(lease));
        }
        metrics.set_healthy(fact_set);
        if !std::mem::replace(&mut announced, true) {
            tracing::info!("on standby; another projector holds the lease");
        }
        tokio::select! { () = shutdown.wait() => return Ok(None), () = tokio::time::sleep(Duration::from_millis(500)) => {} }
    }
}

async fn apply_batches(
    settings: &ProjectorSettings,
    client: &mut Client,
    lease: &Lease,
    mode: RunMode,
    metrics: &ProjectorMetrics,
    failures: &PositionFailures,
    mut shutdown: Shutdown,
) -> Result<(), RunError> {
    let context = settings.applying.stream.connect("projector").await?;
    // If facts exist, the stream must exist too. A new empty stream would hide the loss of the log.
    let stream = match lease.genesis_id {
        Some(_) => settings.applying.stream.open_existing(&context).await?,
        None => settings.applying.stream.open(&context).await?,
    };
    let genesis = check_log(&stream, lease)?;
    client.batch_execute(STAGING).await?;
    // The last sequence of a frozen fact set; `None` if the fact set follows the log.
    let until: Option<Sequence> = client.query_one(UNTIL, &[&lease.fact_set]).await?.try_get(0)?;
    let last = Sequence::try_from(stream.cached_info().state.last_sequence)?;
    let last = until.map_or(last, |until| until.min(last));
    // Sequence at which the session ends. A session in mode `Follow` has an end only if the fact set is frozen.
    let end = if mode == RunMode::CatchUp { Some(last) } else { until };
    let facts = db::connect_migrated(&settings.projector_config(&lease.fact_set)?).await?;
    let (cache, repeated) = (settings.fact_cache(), failures.are_repeated());
    let mut writer = BatchWriter::new(
        lease.clone(),
        (genesis, stream.clone()),
        settings.lease(),
        facts,
        cache,
        repeated,
        metrics,
    );
    writer.complete_facts(client).await?;
    if repeated {
        tracing::warn!(
            checkpoint = lease.checkpoint.to_u64(),
            failures = failures.count,
            "the same messages failed repeatedly; rows that fail again become dead letters"
        );
    }
    let mut sequence = lease.checkpoint;
    // Before the first message is read, derive the symbols that an earlier process left dirty.
    let pending = last.to_u64().saturating_sub(sequence.to_u64());
    writer.write_batch(client, &MessageBatch { pending, ..MessageBatch::default() }, sequence).await?;
    let mut reader = LogReader::open(&context, &stream, sequence, settings.applying.batch_bytes).await?;
    let (mut message, mut connects) = (lease.message.clone(), connect_count(&context));
    check_position(&context, settings, sequence, message.as_deref()).await?;
    let mut quality = MonthlyQuality::new(settings.database.review_config(&lease.fact_set)?);
    loop {
        let Attention { paused, month } = writer.derive_on_request(client, sequence).await?;
        quality.start(month);
        if end.is_some_and(|end| sequence >= end) {
            quality.finish().await;
            return Ok(());
        }
        if paused {
            metrics.record_progress(&lease.fact_set);
        }
        if paused || reader.is_delivering() {
            metrics.set_healthy(&lease.fact_set);
        } else {
            let next = reader.next_number();
            metrics.set_failing(&lease.fact_set, format!("message {next} of the log is not delivered"));
        }
        tokio::select! {
            () = shutdown.wait() => return Ok(()),
            () = tokio::time::sleep(CHECK_INTERVAL) => {
                if paused {
                    reader.restart_delivery_timeout();
                } else {
                    reader.check_delivery().await?;
                }
            }
            batch = reader.next_batch(), if !paused => {
                let batch = batch?.truncate_after(end);
                metrics.set_healthy(&lease.fact_set);
                // A restarted server may have lost the last messages of the log and given their sequences to new
                // messages.
                if std::mem::replace(&mut connects, connect_count(&context)) != connects {
                    check_position(&context, settings, sequence, message.as_deref()).await?;
                }
                if let Some(last) = batch.messages.last() {
                    (sequence, message) = (last.sequence, Some(last.id()));
                }
                failpoint!("projector.read");
                let span = batch_span(&batch, sequence);
                write_and_read_ahead(writer.write_batch(client, &batch, sequence).instrument(span), &mut reader).await?;
            }
        }
    }
}

/// Tracing span of a batch. It covers the application of the facts, the derivation and the commit.
fn batch_span(batch: &MessageBatch, sequence: Sequence) -> Span {
    // OTLP has no unsigned integers, so both values become signed.
    let (sequence, messages) = (sequence.to_i64(), i64::try_from(batch.messages.len()).ok());
    tracing::info_span!(target: SPAN_TARGET, "batch", otel.kind = "consumer", sequence, messages)
}

/// Writes a batch, and reads the messages of the next batch into the buffer at the same time.
async fn write_and_read_ahead(
    writing: impl Future<Output = Result<(), RunError>>,
    reader: &mut LogReader,
) -> Result<(), RunError> {
    tokio::pin!(writing);
    let error = tokio::select! {
        written = &mut writing => return written,
        error = reader.read_ahead() => error,
    };
    writing.await?;
    Err(error.into())
}

/// Stores the reason for a halt in the fact set's row, for `projector status`.
async fn record_halt(settings: &ProjectorSettings, fact_set: &str, reason: &str) {
    tracing::error!(reason, "halted");
    let recorded = async {
        let client = db::connect_migrated(&settings.projector_config(fact_set)?).await?;
        client.execute(HALT, &[&fact_set, &reason]).await?;
        Ok::<_, DbError>(())
    };
    match tokio::time::timeout(ANSWER_TIMEOUT, recorded).await {
        Ok(Err(error)) => tracing::warn!(error = %error_chain(&error), "cannot store the halt reason"),
        Err(_) => tracing::warn!("cannot store the halt reason: Postgres does not answer"),
        Ok(Ok(())) => {}
    }
}
