//! The projector's life: wait for the lease, check that the log is the one the facts came from, apply batches.
//!
//! Transient failures (a restarted Postgres, a lost connection) are retried with back-off from the last committed
//! position; what cannot heal by itself halts with the reason and what to do, and is written to the fact set.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use backon::{BackoffBuilder, ExponentialBuilder};
use event_log::sequence::Sequence;
use event_log::stream;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use market::measure::METHOD_VERSION;
use store::db::{self, DbError, error_chain};
use telemetry::Shutdown;
use telemetry::failpoint;
use telemetry::spans::SPAN_TARGET;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::apply::consumer::{LogReader, MessageBatch};
use crate::apply::message::message_id;
use crate::daemon::batch_writer::BatchWriter;
use crate::daemon::lease::{self, Lease};
use crate::error::{ConsumeError, LeaseLost, RunError};
use crate::monitoring::metrics::ProjectorMetrics;
use crate::settings::{LIVE_FACTS, ProjectorSettings};

const STAGING: &str = include_str!("../../queries/staging.sql");
const FACT_SETS: &str = include_str!("../../queries/fact_sets_followed.sql");
const SERVED: &str = include_str!("../../queries/generation_active.sql");
pub(crate) const UNTIL: &str = "select until_sequence from fact_sets where name = $1";
const HALT: &str = include_str!("../../queries/halt.sql");

const RETRYING: &str = "the projector lost its footing; it goes on from the checkpoint";
const DISK_FULL: &str =
    "Postgres has no room: make room where its data is; the projector goes on from the checkpoint by itself";
/// How often pauses and policy changes are looked for while the log is quiet.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Follows the log for every fact set that a generation of these rules is derived from, until asked to stop; with
/// `until_caught_up`, until the log's end at start is served.
pub async fn run_projector(
    settings: &ProjectorSettings,
    until_caught_up: bool,
    metrics: &Arc<ProjectorMetrics>,
    shutdown: Shutdown,
) -> Result<(), RunError> {
    let mut sessions = FuturesUnordered::new();
    let mut followed: HashSet<String> = HashSet::new();
    let mode = if until_caught_up { RunMode::CatchUp } else { RunMode::Follow };
    if let Err(error) = warn_of_older_method(settings).await {
        tracing::warn!("what is served cannot be looked up: {error}");
    }
    loop {
        for fact_set in load_fact_sets(settings).await.unwrap_or_else(|_| vec![LIVE_FACTS.to_owned()]) {
            if followed.insert(fact_set.clone()) {
                let (settings, shutdown, metrics) = (settings.clone(), shutdown.clone(), Arc::clone(metrics));
                sessions.push(async move {
                    follow_fact_set(&settings, &fact_set, mode, &metrics, shutdown).await
                });
            }
        }
        tokio::select! {
            Some(ended) = sessions.next() => {
                ended?;
                if sessions.is_empty() {
                    return Ok(());
                }
            }
            () = tokio::time::sleep(Duration::from_secs(2)) => {}
        }
    }
}

/// Applies the log to a fact set of its own up to its end (or the fact set's own end); nothing is derived.
pub async fn apply_log(
    settings: &ProjectorSettings,
    fact_set: &str,
    shutdown: Shutdown,
) -> Result<(), RunError> {
    follow_fact_set(settings, fact_set, RunMode::CatchUp, &ProjectorMetrics::new()?, shutdown).await
}

/// When a session ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunMode {
    Follow,
    CatchUp,
}

async fn load_fact_sets(settings: &ProjectorSettings) -> Result<Vec<String>, RunError> {
    let client = db::connect(&settings.projector_config(LIVE_FACTS)?).await?;
    let rows = client.query(FACT_SETS, &[&METHOD_VERSION]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Warns when what is served is of another release's rules, so that nothing new reaches it.
async fn warn_of_older_method(settings: &ProjectorSettings) -> Result<(), DbError> {
    let client = db::connect(&settings.projector_config(LIVE_FACTS)?).await?;
    let served = client.query_one(SERVED, &[]).await?;
    let (id, method): (i32, String) = (served.try_get("id")?, served.try_get("method_version")?);
    if method != METHOD_VERSION {
        tracing::warn!(
            "generation {id} is served and stands still, for its rules are {method} and this program's {METHOD_VERSION}: projector rebuild, diff, promote"
        );
    }
    Ok(())
}

/// Sessions one after the other, with back-off after transient failures.
async fn follow_fact_set(
    settings: &ProjectorSettings,
    fact_set: &str,
    mode: RunMode,
    metrics: &ProjectorMetrics,
    mut shutdown: Shutdown,
) -> Result<(), RunError> {
    let mut backoff = retry_delays();
    loop {
        let started = tokio::time::Instant::now();
        let error = match run_session(settings, fact_set, mode, metrics, shutdown.clone()).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if let Some(reason) = error.halt_reason() {
            record_halt(settings, fact_set, &reason).await;
            return Err(error);
        }
        metrics.set_failing(fact_set, error_chain(&error));
        if started.elapsed() > Duration::from_secs(30) {
            backoff = retry_delays();
        }
        let pause = backoff.next().unwrap_or(Duration::from_secs(5));
        let advice = if db::is_for_room(&error) { DISK_FULL } else { RETRYING };
        tracing::warn!(error = %error_chain(&error), retry_in = ?pause, "{advice}");
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

/// One connection's worth of work under one lease.
async fn run_session(
    settings: &ProjectorSettings,
    fact_set: &str,
    mode: RunMode,
    metrics: &ProjectorMetrics,
    mut shutdown: Shutdown,
) -> Result<(), RunError> {
    let config = settings.projector_config(fact_set)?;
    let mut client = db::connect(&config).await?;
    db::refuse_newer(&client).await?;
    let holder = format!("{}@{}", std::process::id(), read_hostname());
    metrics.set_lease_held(fact_set, false);
    let waiting = wait_for_lease(&client, fact_set, settings, &holder, metrics, &mut shutdown);
    let Some(lease) = waiting.await? else {
        return Ok(());
    };
    tracing::info!(epoch = lease.epoch, checkpoint = lease.checkpoint.number(), "holding the lease");
    metrics.set_lease_held(fact_set, true);
    let (stop, lost) = (CancellationToken::new(), CancellationToken::new());
    tokio::spawn(lease::renew_lease(config, lease.clone(), settings.lease(), stop.clone(), lost.clone()));
    let outcome = tokio::select! {
        outcome = apply_batches(settings, &mut client, &lease, mode, metrics, shutdown) => outcome,
        () = lost.cancelled() => Err(LeaseLost { fact_set: lease.fact_set.clone() }.into()),
    };
    stop.cancel();
    metrics.set_lease_held(fact_set, false);
    if !client.is_closed() && !lost.is_cancelled() {
        lease::release_lease(&client, &lease).await?;
    }
    outcome
}

async fn wait_for_lease(
    client: &Client,
    fact_set: &str,
    settings: &ProjectorSettings,
    holder: &str,
    metrics: &ProjectorMetrics,
    shutdown: &mut Shutdown,
) -> Result<Option<Lease>, RunError> {
    let mut announced = false;
    loop {
        if let Some(lease) = lease::acquire_lease(client, fact_set, holder, settings.lease()).await? {
            return Ok(Some(lease));
        }
        metrics.set_healthy(fact_set);
        if !std::mem::replace(&mut announced, true) {
            tracing::info!("another projector holds the lease; standing by");
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
    mut shutdown: Shutdown,
) -> Result<(), RunError> {
    let context = settings.stream.connect("projector").await?;
    // A log that facts were folded from is never made anew: an empty one in its place would hide that it is gone.
    let stream = match lease.genesis_id {
        Some(_) => settings.stream.existing(&context).await?,
        None => settings.stream.open(&context).await?,
    };
    let genesis = check_log(&stream, lease)?;
    client.batch_execute(STAGING).await?;
    let until = load_end_sequence(client, &lease.fact_set).await?;
    let last = Sequence::try_from(stream.cached_info().state.last_sequence)?;
    let last = until.map_or(last, |until| until.min(last));
    // A session that follows the log has no end but its fact set's.
    let end = if mode == RunMode::CatchUp { Some(last) } else { until };
    let facts = db::connect(&settings.projector_config(&lease.fact_set)?).await?;
    let mut writer =
        BatchWriter::new(lease.clone(), genesis, settings.lease(), facts, settings.fact_cache(), metrics);
    let mut sequence = lease.checkpoint;
    // Dirty symbols of an earlier life are served before anything new.
    let pending = last.number().saturating_sub(sequence.number());
    writer.write_batch(client, &MessageBatch { pending, ..MessageBatch::default() }, sequence).await?;
    let mut reader = LogReader::open(&stream, sequence, settings.batch_bytes).await?;
    let (mut message, mut connects) = (lease.message.clone(), connect_count(&context));
    check_position(&stream, sequence, message.as_deref()).await?;
    loop {
        if end.is_some_and(|end| sequence >= end) {
            return Ok(());
        }
        let paused = writer.derive_on_request(client, sequence).await?;
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
                    reader.reset_stall_timeout();
                } else {
                    reader.check_delivery(&stream).await?;
                }
            }
            batch = reader.next_batch(), if !paused => {
                let batch = batch?.truncate_after(end);
                metrics.set_healthy(&lease.fact_set);
                // A server that came back may have lost the log's end and numbered new messages the same.
                if std::mem::replace(&mut connects, connect_count(&context)) != connects {
                    check_position(&stream, sequence, message.as_deref()).await?;
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

/// A batch, from its facts to the commit of what was derived of them.
fn batch_span(batch: &MessageBatch, sequence: Sequence) -> Span {
    // Collectors have no unsigned numbers.
    let (sequence, messages) = (sequence.bigint(), i64::try_from(batch.messages.len()).ok());
    tracing::info_span!(target: SPAN_TARGET, "batch", otel.kind = "consumer", sequence, messages)
}

/// Reads the next batch as far as that gets while this one is written: what comes meanwhile is one batch.
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

/// The end of a fact set that is frozen for study; the log has no such end.
async fn load_end_sequence(client: &Client, fact_set: &str) -> Result<Option<Sequence>, RunError> {
    let until: Option<i64> = client.query_one(UNTIL, &[&fact_set]).await?.try_get(0)?;
    Ok(until.map(Sequence::try_from).transpose()?)
}

/// The log must be the one the facts were folded from, whole: otherwise everything derived would be a lie.
fn check_log(stream: &Stream, lease: &Lease) -> Result<String, RunError> {
    let state = &stream.cached_info().state;
    let genesis = stream::genesis(stream)?;
    let halt = |what: String| {
        Err(RunError::Halt(format!(
            "{what}. Restore the log (ingest import), or rebuild the facts from it with an empty database"
        )))
    };
    if lease.genesis_id.as_ref().is_some_and(|known| *known != genesis) {
        return halt(
            "the stream was deleted and made again: its genesis_id is not the one the facts were folded from"
                .to_owned(),
        );
    }
    let checkpoint = lease.checkpoint.number();
    if state.last_sequence < checkpoint {
        return halt(format!(
            "the log ends at {} but {} was already applied",
            state.last_sequence, checkpoint
        ));
    }
    if state.messages > 0 && state.first_sequence > checkpoint + 1 {
        return halt(format!("the log begins at {} but {} comes next", state.first_sequence, checkpoint + 1));
    }
    Ok(genesis)
}

/// How often the server was connected to.
fn connect_count(context: &Context) -> u64 {
    context.client().statistics().connects.load(Ordering::Relaxed)
}

/// A message with the number of the one that was applied last must be that one. One that cannot be read is no other.
async fn check_position(stream: &Stream, sequence: Sequence, message: Option<&str>) -> Result<(), RunError> {
    let Some(applied) = message else { return Ok(()) };
    match stream.get_raw_message(sequence.number()).await {
        Ok(found) if message_id(Some(&found.headers)) != applied => Err(RunError::Halt(format!(
            "message {sequence} of the log is not the one that was applied: the log lost its end, and what came after \
             took its numbers. Bring the log back from its second copy (ingest import), or rebuild the facts from it \
             with an empty database"
        ))),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(()),
        Err(error) => Err(ConsumeError::Consumer(error.into()).into()),
    }
}

/// Leaves the reason where `projector status` and a person find it.
async fn record_halt(settings: &ProjectorSettings, fact_set: &str, reason: &str) {
    tracing::error!(reason, "halted");
    let recorded = async {
        let client = db::connect(&settings.projector_config(fact_set)?).await?;
        client.execute(HALT, &[&fact_set, &reason]).await?;
        Ok::<_, DbError>(())
    };
    if let Err(error) = recorded.await {
        tracing::warn!(error = %error_chain(&error), "the reason could not be recorded");
    }
}

fn read_hostname() -> String {
    std::fs::read_to_string("/etc/hostname")
        .map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}
