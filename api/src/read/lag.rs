//! Lag monitor. A background task measures how many messages of the log are not yet in the served data.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use event_log::sequence::Sequence;
use event_log::write_failure::find_write_failure;

use super::projection::Projection;

/// Measured lag of the served data behind the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LagMeasurement {
    /// Number of log messages that are not applied yet.
    pub(crate) events: u64,
    caught_up_at: Instant,
    /// Last time at which a poll found newly applied log messages or a lag of zero.
    progressed_at: Instant,
    measured_at: Instant,
    /// True if NATS could not store a message, and has stored none since.
    pub(crate) write_failed: bool,
}

impl LagMeasurement {
    /// Duration of the current lag, in seconds; 0 if the served data contains every log message.
    pub(crate) fn seconds(&self) -> u64 {
        if self.events == 0 { 0 } else { self.caught_up_at.elapsed().as_secs() }
    }

    /// True if the served data lags behind the log, and the last progress was more than `STALLED_AFTER` ago.
    pub(crate) fn is_stalled(&self) -> bool {
        self.events > 0 && self.progressed_at.elapsed() > STALLED_AFTER
    }
}

/// Latest measurement of the lag, shared by its readers and the polling task.
#[derive(Debug, Clone, Default)]
pub(crate) struct LagMonitor(Arc<RwLock<Option<LagMeasurement>>>);

/// Interval between two polls of the log server, and timeout of each poll. An unresponsive log server is therefore
/// reported within two seconds.
const POLL: Duration = Duration::from_millis(900);
/// Interval between two checks for a failed write to the log.
const WRITE_CHECK: Duration = Duration::from_secs(5);
/// Time for which a measurement is valid.
const VALID_FOR: Duration = Duration::from_secs(4);
/// Time without progress after which the lag is reported as stalled.
const STALLED_AFTER: Duration = Duration::from_secs(30);

impl LagMonitor {
    /// Latest measurement; `None` if there is no measurement, or if the latest one is older than `VALID_FOR`.
    pub(crate) fn latest(&self) -> Option<LagMeasurement> {
        let measurement = *self.0.read().unwrap_or_else(PoisonError::into_inner);
        measurement.filter(|measurement| measurement.measured_at.elapsed() < VALID_FOR)
    }

    /// Reads the number of the last log message at regular intervals, and measures the lag. Reconnects after a loss of
    /// the connection.
    pub(crate) async fn poll_stream(self, url: String, stream: String, projection: Arc<Projection>) {
        let settings = event_log::stream::StreamSettings {
            nats_url: url,
            nats_stream: stream,
            nats_subject_prefix: String::new(),
            nats_replicas: 1,
        };
        loop {
            if let Err(reason) = self.poll_until_disconnected(&settings, &projection).await {
                tracing::debug!(%reason, "cannot read the state of the log");
            }
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
            tokio::time::sleep(POLL).await;
        }
    }

    async fn poll_until_disconnected(
        &self,
        settings: &event_log::stream::StreamSettings,
        projection: &Projection,
    ) -> anyhow::Result<()> {
        let context = settings.connect("api").await?;
        let (mut caught_up_at, mut progressed_at, mut before) =
            (Instant::now(), Instant::now(), Sequence::default());
        let (mut write_failed, mut write_checked_at) = (false, None::<Instant>);
        loop {
            let reading = tokio::time::timeout(POLL, context.get_stream(&settings.nats_stream));
            let stream = reading.await??;
            let last = stream.cached_info().state.last_sequence;
            let applied = projection.pin().map_or(0, |generation| generation.version().sequence);
            let applied = Sequence::try_from(applied)?;
            // The projector may have applied messages published after the log server replied, so `applied` can exceed
            // `last`.
            let events = last.saturating_sub(applied.to_u64());
            if events == 0 {
                caught_up_at = Instant::now();
            }
            if events == 0 || std::mem::replace(&mut before, applied) != applied {
                progressed_at = Instant::now();
            }
            if write_checked_at.is_none_or(|at| at.elapsed() > WRITE_CHECK) {
                let failure = find_write_failure(&context, &settings.nats_stream, last);
                write_failed = tokio::time::timeout(POLL, failure).await?.is_some();
                write_checked_at = Some(Instant::now());
            }
            let measured_at = Instant::now();
            let measured = LagMeasurement { events, caught_up_at, progressed_at, measured_at, write_failed };
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(measured);
            tokio::time::sleep(POLL).await;
        }
    }
}
