//! Publisher of record batches to the log. It limits the number of unacknowledged messages. It sends an unacknowledged
//! message again, and the log drops the duplicate by its message id.

use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::stream::Stream;
use backon::{BackoffBuilder, ExponentialBuilder};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use event_log::archive::is_storage_full;
use event_log::record_batch::{BatchError, BatchId, Body, RecordBatch, schema_name};
use event_log::stream::StreamSettings;
use event_log::write_failure::report_write_failure;
use market::event::{Kind, RunEvent, RunManifest};
use telemetry::failpoint;
use tokio::task::{JoinError, JoinSet};

/// Maximum number of unacknowledged messages.
const MAX_IN_FLIGHT: usize = 64;
/// Maximum time for the acknowledgement of a message. After this time, the load fails.
const ACK_TIMEOUT: Duration = Duration::from_secs(30);

/// Errors of publishing a record batch.
#[derive(Debug, thiserror::Error)]
pub enum PublishFailure {
    #[error("cannot publish: the log did not acknowledge a record batch within {} s: {source}", ACK_TIMEOUT.as_secs())]
    Unreachable { source: PublishError },
    #[error(
        "cannot publish: no space for the log ({source}); free disk space for NATS, then restart NATS, which measures the free space at start"
    )]
    Full { source: PublishError },
    #[error(
        "cannot publish: NATS answers but stores nothing; its disk is full or broken (see its log file): free disk space, then restart NATS"
    )]
    StoresNothing,
    #[error("cannot publish a message of {0} bytes: raise max_payload in the configuration of NATS")]
    TooLarge(usize),
    #[error("publishing stopped unexpectedly: {0}")]
    Internal(#[source] JoinError),
}

impl PublishFailure {
    /// Error of a publication that the server refused or could not confirm.
    pub(crate) fn from_refusal(source: PublishError) -> Self {
        match is_storage_full(&source) {
            true => Self::Full { source },
            false => Self::Unreachable { source },
        }
    }

    /// If NATS answers but cannot store messages, leaves a notice for status commands and health checks.
    pub(crate) async fn report_to_log(&self, settings: &StreamSettings) {
        if matches!(self, Self::Full { .. } | Self::StoresNothing) {
            report_write_failure(settings, &self.to_string()).await;
        }
    }
}

#[derive(Clone)]
pub(crate) struct OutgoingMessage {
    pub subject: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Encodes a manifest as a message. The message id is a hash of the source, `identity` and `number`. NATS drops a
/// message with a known id within its duplicate window.
pub(crate) fn encode_manifest(
    manifest: RunManifest,
    identity: &str,
    number: u64,
) -> Result<(HeaderMap, Bytes), BatchError> {
    let (source, run, chunk) = (manifest.source.clone(), manifest.run.clone(), manifest.chunks);
    let id = BatchId::from_provenance(&source, identity, number, &schema_name(Kind::Run));
    let body = Body::Run(RunEvent::Manifest(Box::new(manifest)));
    RecordBatch { id, source, run, chunk, file: String::new(), line: 0, body }.encode()
}

/// Publisher that sends messages in order, and waits if too many messages are unacknowledged.
pub(crate) struct Publisher {
    context: Context,
    stream: Stream,
    settings: StreamSettings,
    in_flight: JoinSet<Result<(), PublishFailure>>,
}

impl Publisher {
    pub(crate) fn new(context: Context, stream: Stream, settings: StreamSettings) -> Self {
        Self { context, stream, settings, in_flight: JoinSet::new() }
    }

    /// Sends a message. If [`MAX_IN_FLIGHT`] messages are unacknowledged, first waits for an acknowledgement. Returns
    /// an error if an earlier message failed.
    pub(crate) async fn send(&mut self, message: OutgoingMessage) -> Result<(), PublishFailure> {
        while let Some(settled) = self.in_flight.try_join_next() {
            self.check_delivery(settled).await?;
        }
        while self.in_flight.len() >= MAX_IN_FLIGHT {
            self.await_oldest().await?;
        }
        let sent = publish(&self.context, &message).await;
        failpoint!("ingest.sent");
        self.in_flight.spawn(deliver_with_retries(self.context.clone(), self.stream.clone(), message, sent));
        Ok(())
    }

    /// Waits until all sent messages are on disk.
    pub(crate) async fn wait_until_stored(&mut self) -> Result<(), PublishFailure> {
        while !self.in_flight.is_empty() {
            self.await_oldest().await?;
        }
        Ok(())
    }

    async fn await_oldest(&mut self) -> Result<(), PublishFailure> {
        match self.in_flight.join_next().await {
            Some(settled) => self.check_delivery(settled).await,
            None => Ok(()),
        }
    }

    async fn check_delivery(
        &self,
        settled: Result<Result<(), PublishFailure>, JoinError>,
    ) -> Result<(), PublishFailure> {
        let delivered = settled.map_err(PublishFailure::Internal)?;
        if let Err(failure) = &delivered {
            failure.report_to_log(&self.settings).await;
        }
        delivered
    }
}

async fn publish(context: &Context, message: &OutgoingMessage) -> Result<PublishAckFuture, PublishError> {
    context.publish_with_headers(message.subject.clone(), message.headers.clone(), message.body.clone()).await
}

/// Awaits the acknowledgement of a sent message. After a temporary failure, resends the message until [`ACK_TIMEOUT`]
/// has passed.
async fn deliver_with_retries(
    context: Context,
    stream: Stream,
    message: OutgoingMessage,
    sent: Result<PublishAckFuture, PublishError>,
) -> Result<(), PublishFailure> {
    let deadline = Instant::now() + ACK_TIMEOUT;
    let pauses = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(2))
        .without_max_times();
    let mut pauses = pauses.build();
    let (mut attempt, mut last_sequence) = (sent, None);
    loop {
        let acknowledged = match attempt {
            Ok(acknowledgement) => acknowledgement.await,
            Err(error) => Err(error),
        };
        let Err(error) = acknowledged else {
            failpoint!("ingest.acknowledged");
            return Ok(());
        };
        if error.kind() == PublishErrorKind::MaxPayloadExceeded {
            return Err(PublishFailure::TooLarge(message.body.len()));
        }
        if is_storage_full(&error) {
            return Err(PublishFailure::from_refusal(error));
        }
        if error.kind() == PublishErrorKind::TimedOut
            && let Ok(info) = stream.get_info().await
            && last_sequence.replace(info.state.last_sequence) == Some(info.state.last_sequence)
        {
            return Err(PublishFailure::StoresNothing);
        }
        let Some(pause) = pauses.next().filter(|pause| Instant::now() + *pause < deadline) else {
            return Err(PublishFailure::Unreachable { source: error });
        };
        tracing::debug!(%error, "resending a message");
        tokio::time::sleep(pause).await;
        attempt = publish(&context, &message).await;
    }
}

/// Current time, truncated to microseconds, the time resolution of the log.
pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_micros(Utc::now().timestamp_micros()).unwrap_or_default()
}
