//! The projector's life: wait for the lease, check that the log is the one the facts came from, apply batches.
//!
//! Transient failures (a restarted Postgres, a lost connection) are retried with back-off from the last committed
//! position; what cannot heal by itself halts with the reason and what to do, and is written to the fact set.

use std::time::Duration;

use async_nats::jetstream::stream::Stream;
use backon::{BackoffBuilder, ExponentialBuilder};
use schema::db::{self, DbError, error_chain};
use schema::process::Shutdown;
use schema::stream::{self, StreamError};
use tokio_postgres::{Client, Transaction};
use tokio_util::sync::CancellationToken;

use crate::apply::{ApplyError, apply_messages};
use crate::consume::{Batch, ConsumeError, LogReader};
use crate::derive::{DeriveError, Derivers};
use crate::generation::Generation;
use crate::lease::{self, Lease, LeaseLost};
use crate::settings::ProjectorSettings;

/// The fact set that the live generations are derived from.
pub const LIVE_FACTS: &str = "facts";

const STAGING: &str = include_str!("../queries/staging.sql");
const ADVANCE: &str = include_str!("../queries/checkpoint_advance.sql");
const HALT: &str = include_str!("../queries/halt.sql");
const NOTIFY: &str = "select pg_notify('projection', $1)";

/// Longest time the read tables wait for the end of a backlog.
const DERIVE_AT_LEAST_EVERY: Duration = Duration::from_secs(60);

/// Why the projector ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Needs a person; starting again would fail the same way.
    #[error("halted: {0}")]
    Halt(String),
    #[error(transparent)]
    Lost(#[from] LeaseLost),
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Consume(#[from] ConsumeError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Derive(#[from] DeriveError),
}

impl From<tokio_postgres::Error> for RunError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Db(error.into())
    }
}

impl RunError {
    /// The reason, when no retry can help.
    fn halt_reason(&self) -> Option<String> {
        let permanent = matches!(
            self,
            Self::Halt(_)
                | Self::Consume(ConsumeError::Gap { .. })
                | Self::Apply(ApplyError::NewerVersion { .. })
                | Self::Derive(DeriveError::Measure { .. } | DeriveError::Benchmark(_) | DeriveError::Bars(_) | DeriveError::Json(_))
                | Self::Stream(StreamError::TooOld { .. } | StreamError::NotOurs { .. })
        );
        permanent.then(|| error_chain(self))
    }
}

/// Runs until asked to stop, or, with `until_caught_up`, until the log's end at start is served.
pub async fn run(
    settings: &ProjectorSettings,
    until_caught_up: bool,
    mut shutdown: Shutdown,
) -> Result<(), RunError> {
    let mut backoff = retries();
    loop {
        let started = tokio::time::Instant::now();
        let outcome = tokio::select! {
            outcome = session(settings, until_caught_up, shutdown.clone()) => outcome,
        };
        let error = match outcome {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if let Some(reason) = error.halt_reason() {
            record_halt(settings, &reason).await;
            return Err(error);
        }
        if started.elapsed() > Duration::from_secs(30) {
            backoff = retries();
        }
        let pause = backoff.next().unwrap_or(Duration::from_secs(5));
        tracing::warn!(error = %error_chain(&error), retry_in = ?pause, "the projector lost its footing; it goes on from the checkpoint");
        tokio::select! { () = shutdown.wait() => return Ok(()), () = tokio::time::sleep(pause) => {} }
    }
}

fn retries() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(Duration::from_secs(5))
        .with_jitter()
        .without_max_times()
        .build()
}

/// One connection's worth of work under one lease.
async fn session(
    settings: &ProjectorSettings,
    until_caught_up: bool,
    mut shutdown: Shutdown,
) -> Result<(), RunError> {
    let config = settings.projector_config()?;
    let mut client = db::connect(&config).await?;
    let holder = format!("{}@{}", std::process::id(), hostname());
    let Some(lease) = wait_for_lease(&client, settings, &holder, &mut shutdown).await? else { return Ok(()) };
    tracing::info!(epoch = lease.epoch, checkpoint = lease.checkpoint, "holding the lease");
    let (stop, lost) = (CancellationToken::new(), CancellationToken::new());
    tokio::spawn(lease::keep(config, lease.clone(), settings.lease(), stop.clone(), lost.clone()));
    let outcome = tokio::select! {
        outcome = work(settings, &mut client, &lease, until_caught_up, shutdown) => outcome,
        () = lost.cancelled() => Err(LeaseLost { fact_set: lease.fact_set.clone() }.into()),
    };
    stop.cancel();
    if !client.is_closed() && !lost.is_cancelled() {
        lease::release(&client, &lease).await?;
    }
    outcome
}

async fn wait_for_lease(
    client: &Client,
    settings: &ProjectorSettings,
    holder: &str,
    shutdown: &mut Shutdown,
) -> Result<Option<Lease>, RunError> {
    let mut announced = false;
    loop {
        if let Some(lease) = lease::acquire(client, LIVE_FACTS, holder, settings.lease()).await? {
            return Ok(Some(lease));
        }
        if !std::mem::replace(&mut announced, true) {
            tracing::info!("another projector holds the lease; standing by");
        }
        tokio::select! { () = shutdown.wait() => return Ok(None), () = tokio::time::sleep(Duration::from_millis(500)) => {} }
    }
}

async fn work(
    settings: &ProjectorSettings,
    client: &mut Client,
    lease: &Lease,
    until_caught_up: bool,
    mut shutdown: Shutdown,
) -> Result<(), RunError> {
    let context = settings.stream.connect("projector").await?;
    let stream = settings.stream.open(&context).await?;
    let genesis = check_log(&stream, lease)?;
    client.batch_execute(STAGING).await?;
    let batch_bytes = usize::try_from(settings.batch_bytes).unwrap_or(usize::MAX);
    let goal = stream.cached_info().state.last_sequence;
    let mut writer = Writer {
        lease: lease.clone(),
        genesis,
        length: settings.lease(),
        derivers: Derivers::new(),
        derived: tokio::time::Instant::now(),
    };
    // Dirty symbols of an earlier life, and policy changes, are served before anything new.
    writer
        .write(client, &Batch { messages: Vec::new(), pending: goal - lease.checkpoint }, lease.checkpoint)
        .await?;
    if until_caught_up && lease.checkpoint >= goal {
        return Ok(());
    }
    let mut reader = LogReader::open(&stream, lease.checkpoint, batch_bytes).await?;
    loop {
        let batch = tokio::select! {
            batch = reader.next_batch() => batch?,
            () = shutdown.wait() => return Ok(()),
        };
        let sequence = batch.last_sequence();
        writer.write(client, &batch, sequence).await?;
        if until_caught_up && sequence >= goal && batch.pending == 0 {
            return Ok(());
        }
    }
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
    if state.last_sequence < lease.checkpoint {
        return halt(format!(
            "the log ends at {} but {} was already applied",
            state.last_sequence, lease.checkpoint
        ));
    }
    if state.messages > 0 && state.first_sequence > lease.checkpoint + 1 {
        return halt(format!(
            "the log begins at {} but {} comes next",
            state.first_sequence,
            lease.checkpoint + 1
        ));
    }
    Ok(genesis)
}

/// Commits batches under one lease.
struct Writer {
    lease: Lease,
    genesis: String,
    length: Duration,
    derivers: Derivers,
    derived: tokio::time::Instant,
}

impl Writer {
    /// Applies a batch; derives the read tables when the log's end is reached, or has been far away for long.
    async fn write(&mut self, client: &mut Client, batch: &Batch, sequence: u64) -> Result<(), RunError> {
        let started = tokio::time::Instant::now();
        let mut transaction = client.transaction().await?;
        lease::confirm(&transaction, &self.lease).await??;
        apply_messages(&mut transaction, &self.lease.fact_set, &batch.messages).await?;
        let derive = batch.pending == 0 || self.derived.elapsed() > DERIVE_AT_LEAST_EVERY;
        let mut securities = 0;
        if derive {
            securities = self.derive(&transaction, sequence).await.inspect_err(|_| self.derivers.clear())?;
        }
        let position = i64::try_from(sequence).unwrap_or(i64::MAX);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&self.lease.fact_set, &position, &self.genesis, &self.length.as_secs_f64()];
        transaction.execute(ADVANCE, &values).await?;
        if let Err(error) = transaction.commit().await {
            self.derivers.clear();
            return Err(error.into());
        }
        if derive {
            self.derived = tokio::time::Instant::now();
        }
        tracing::info!(sequence, messages = batch.messages.len(), pending = batch.pending, securities, elapsed = ?started.elapsed(), "applied");
        Ok(())
    }

    async fn derive(&mut self, transaction: &Transaction<'_>, sequence: u64) -> Result<usize, RunError> {
        let mut securities = 0;
        for generation in Generation::tailing(transaction, &self.lease.fact_set).await? {
            generation.enter(transaction).await?;
            let deriver = self.derivers.entry(generation.id).or_default();
            securities += deriver.derive(transaction, &generation, sequence).await?.securities;
            transaction.execute(NOTIFY, &[&format!("{}.{sequence}", generation.id)]).await?;
        }
        Ok(securities)
    }
}

/// Leaves the reason where `projector status` and a person find it.
async fn record_halt(settings: &ProjectorSettings, reason: &str) {
    tracing::error!(reason, "halted");
    let recorded = async {
        let client = db::connect(&settings.projector_config()?).await?;
        client.execute(HALT, &[&LIVE_FACTS, &reason]).await?;
        Ok::<_, DbError>(())
    };
    if let Err(error) = recorded.await {
        tracing::warn!(error = %error_chain(&error), "the reason could not be recorded");
    }
}

fn hostname() -> String {
    std::fs::read_to_string("/etc/hostname")
        .map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}
