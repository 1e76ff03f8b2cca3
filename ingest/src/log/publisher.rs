//! Publisher of record batches to the log, with a bounded number of unacknowledged messages. Each message is retried
//! until it is acknowledged.
//!
//! A batch sent twice is stored once: its id is the message id, by which the log deduplicates.

use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::stream::Stream;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use bytes::Bytes;
use event_log::restore::is_full;
use telemetry::failpoint;
use tokio::task::JoinSet;

/// Maximum number of unacknowledged messages.
const WINDOW: usize = 64;
/// Time without acknowledgement after which the load fails.
const GIVE_UP: Duration = Duration::from_secs(30);

/// Errors of publishing a record batch.
#[derive(Debug, thiserror::Error)]
pub enum PublishFailure {
    #[error("the log did not accept a frame within {} s: {reason}", GIVE_UP.as_secs())]
    Unreachable { reason: String },
    #[error(
        "the log has no room ({reason}): make room where NATS stores it, then restart NATS, which looks at the free space when it starts"
    )]
    Full { reason: String },
    #[error(
        "the log answers but stores nothing: its disk is full or broken, the log file of NATS says which; make room, then restart NATS"
    )]
    StoresNothing,
    #[error("a frame of {0} bytes is larger than the server takes: raise max_payload in its configuration")]
    TooLarge(usize),
    #[error("publishing stopped unexpectedly: {0}")]
    Internal(#[source] tokio::task::JoinError),
}

#[derive(Clone)]
pub(crate) struct Outgoing {
    pub subject: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Publisher that sends in order, with a window of unacknowledged messages.
pub(crate) struct Publisher {
    context: Context,
    stream: Stream,
    on_the_way: JoinSet<Result<(), PublishFailure>>,
}

impl Publisher {
    pub(crate) fn new(context: Context, stream: Stream) -> Self {
        Self { context, stream, on_the_way: JoinSet::new() }
    }

    /// Sends a message as soon as the window has room. Returns the error of an earlier message, if one failed.
    pub(crate) async fn send(&mut self, message: Outgoing) -> Result<(), PublishFailure> {
        while let Some(settled) = self.on_the_way.try_join_next() {
            outcome(settled)?;
        }
        while self.on_the_way.len() >= WINDOW {
            self.settle_one().await?;
        }
        let sent = publish(&self.context, &message).await;
        failpoint!("ingest.sent");
        self.on_the_way.spawn(deliver(self.context.clone(), self.stream.clone(), message, sent));
        Ok(())
    }

    /// Waits until all sent messages are on disk.
    pub(crate) async fn drain(&mut self) -> Result<(), PublishFailure> {
        while !self.on_the_way.is_empty() {
            self.settle_one().await?;
        }
        Ok(())
    }

    async fn settle_one(&mut self) -> Result<(), PublishFailure> {
        self.on_the_way.join_next().await.map_or(Ok(()), outcome)
    }
}

fn outcome(
    settled: Result<Result<(), PublishFailure>, tokio::task::JoinError>,
) -> Result<(), PublishFailure> {
    settled.map_err(PublishFailure::Internal)?
}

async fn publish(context: &Context, message: &Outgoing) -> Result<PublishAckFuture, PublishError> {
    context.publish_with_headers(message.subject.clone(), message.headers.clone(), message.body.clone()).await
}

/// Backoff between retries.
fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(2))
        .without_max_times()
        .build()
}

/// Sends a message and awaits its acknowledgement, with retries until the deadline.
async fn deliver(
    context: Context,
    stream: Stream,
    message: Outgoing,
    sent: Result<PublishAckFuture, PublishError>,
) -> Result<(), PublishFailure> {
    let (deadline, mut pauses) = (Instant::now() + GIVE_UP, pauses());
    let (mut attempt, mut stood_at) = (sent, None);
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
        if is_full(&error) {
            return Err(PublishFailure::Full { reason: error.to_string() });
        }
        if error.kind() == PublishErrorKind::TimedOut
            && let Ok(info) = stream.get_info().await
            && stood_at.replace(info.state.last_sequence) == Some(info.state.last_sequence)
        {
            return Err(PublishFailure::StoresNothing);
        }
        let Some(pause) = pauses.next().filter(|pause| Instant::now() + *pause < deadline) else {
            return Err(PublishFailure::Unreachable { reason: error.to_string() });
        };
        tracing::debug!(%error, "a frame is sent again");
        tokio::time::sleep(pause).await;
        attempt = publish(&context, &message).await;
    }
}
