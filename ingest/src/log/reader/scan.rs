//! Scan of the log: reads every stored message of the given subjects, in order. It also reads messages that a NATS
//! consumer cannot deliver, for example because of malformed headers.

use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, pull};
use event_log::message::LogMessage;
use futures::StreamExt;

use super::{Log, LogError, RETRY_PAUSE};

/// Maximum time for deleting a consumer at the end of a scan.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time for retries of failed reads. The time is counted from the last received message. Before the first
/// message, it is counted from the start of the scan.
const MAX_OUTAGE: Duration = Duration::from_secs(25);
/// Time without a delivered message. After this time, the scan looks for messages that the server cannot deliver.
const STALLED: Duration = Duration::from_secs(1);
/// Additional time for the delivery of a readable message. If it is still not delivered, the message is fetched by its
/// sequence.
const UNDELIVERED: Duration = Duration::from_secs(15);

/// Maximum number of messages on other subjects that a search for further malformed messages skips.
const MAX_SKIPPED: u64 = 256;

impl Log {
    /// Calls `each` for the stored messages of `subjects`, from a sequence on. An empty list means all subjects. After
    /// a failure, a new connection continues at the same sequence. Lost and unreadable messages are skipped.
    pub(super) async fn scan(
        &self,
        subjects: &[String],
        from_sequence: u64,
        headers_only: bool,
        mut each: impl FnMut(&LogMessage) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let (mut next, mut progress, mut stuck) = (from_sequence.max(1), Instant::now(), false);
        loop {
            let begun = next;
            let mut track = |message: &LogMessage| {
                (next, progress) = (message.sequence.to_u64() + 1, Instant::now());
                each(message)
            };
            let read = self.scan_once(subjects, begun, headers_only, stuck, &mut track).await;
            stuck = read.is_err() && next == begun;
            match read {
                Ok(ScanEnd::Complete) => return Ok(()),
                Ok(ScanEnd::Undelivered) => {}
                Err(error) if error.is_transient() && progress.elapsed() < MAX_OUTAGE => {
                    tracing::debug!(%error, next, "retrying a read of the log");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads messages with a consumer until the last message. Fetches an undelivered message by its sequence, and stops
    /// after it. With `by_sequence`, first fetches malformed messages at `from_sequence` without a consumer.
    async fn scan_once(
        &self,
        subjects: &[String],
        from_sequence: u64,
        headers_only: bool,
        by_sequence: bool,
        each: &mut impl FnMut(&LogMessage) -> Result<(), LogError>,
    ) -> Result<ScanEnd, LogError> {
        // A malformed message can end the connection, so every scan opens a connection that nothing else uses.
        let connection = Self::open_existing(&self.settings).await?;
        let mut next = from_sequence;
        // The delivery of a malformed message would end the connection.
        if by_sequence {
            next = connection.fetch_malformed(next, subjects, u64::MAX, each).await?;
        }
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: next },
            ack_policy: AckPolicy::None,
            filter_subjects: subjects.to_vec(),
            headers_only,
            memory_storage: true,
            num_replicas: 1,
            // The server deletes the consumer after this time without requests, for example after a kill of this
            // process.
            inactive_threshold: Duration::from_secs(60),
            ..pull::Config::default()
        };
        let consumer =
            connection.stream.create_consumer(config).await.map_err(|error| LogError::Read(error.into()))?;
        let batch = if headers_only { 4096 } else { 64 };
        let read = self.read_pending(&connection, &consumer, subjects, next, batch, each).await;
        // The consumer is deleted at once. Otherwise, the consumers of many short loads would exhaust the server.
        let deleted = connection.stream.delete_consumer(&consumer.cached_info().name);
        match tokio::time::timeout(DELETE_TIMEOUT, deleted).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "cannot delete a consumer"),
            Err(_) => tracing::debug!("cannot delete a consumer: no answer"),
        }
        read
    }

    async fn read_pending(
        &self,
        connection: &Self,
        consumer: &Consumer<pull::Config>,
        subjects: &[String],
        from_sequence: u64,
        batch: usize,
        each: &mut impl FnMut(&LogMessage) -> Result<(), LogError>,
    ) -> Result<ScanEnd, LogError> {
        let mut pending = consumer.cached_info().num_pending;
        if pending == 0 {
            return Ok(ScanEnd::Complete);
        }
        let mut messages = consumer
            .stream()
            .max_messages_per_batch(batch)
            .messages()
            .await
            .map_err(|error| LogError::Read(error.into()))?;
        let mut next = from_sequence;
        let mut delivered = 0;
        while pending > 0 {
            // After minutes without a read, the server scans the log before the first delivery. This may take long in a
            // large log, so a delay of the first message is not an error.
            let message = tokio::select! {
                biased;
                message = messages.next() => message,
                found = self.find_undelivered(next, subjects) => {
                    let Some(message) = found? else { return Ok(ScanEnd::Complete) };
                    each(&message)?;
                    let connection = Self::open_existing(&self.settings).await?;
                    let next = message.sequence.to_u64() + 1;
                    connection.fetch_malformed(next, subjects, MAX_SKIPPED, each).await?;
                    return Ok(ScanEnd::Undelivered);
                }
            };
            let message = message.ok_or_else(|| LogError::Read("the delivery ended".into()))?;
            let message = message.map_err(|error| LogError::Read(error.into()))?;
            let (message, delivery) = LogMessage::from_delivery(message).map_err(LogError::Read)?;
            let sequence = message.sequence.to_u64();
            if delivery.number != delivered + 1 {
                // A gap in the delivery numbers means that the client library dropped messages. Either the connection
                // ended, or a stored message has a status code, and the library treated it as a reply of the server.
                // The dropped messages are fetched by sequence.
                for missing in next..sequence {
                    if let Some(message) = connection.fetch(missing).await?
                        && matches_subjects(&message, subjects)
                    {
                        each(&message)?;
                    }
                }
            }
            each(&message)?;
            (pending, next, delivered) = ((pending - 1).min(delivery.pending), sequence + 1, delivery.number);
        }
        Ok(ScanEnd::Complete)
    }

    /// Waits [`STALLED`], then fetches the next message of `subjects` by its sequence. Unreadable messages before it
    /// are skipped. `None` if no message is left.
    async fn find_undelivered(
        &self,
        from_sequence: u64,
        subjects: &[String],
    ) -> Result<Option<LogMessage>, LogError> {
        tokio::time::sleep(STALLED).await;
        let connection = Self::open_existing(&self.settings).await?;
        let mut unreadable = 0;
        for sequence in from_sequence..=connection.stream.cached_info().state.last_sequence {
            let Some(message) = connection.fetch(sequence).await? else {
                unreadable += 1;
                continue;
            };
            if !matches_subjects(&message, subjects) {
                continue;
            }
            if unreadable > 0 {
                // Unreadable messages would block the consumer forever.
                let before = sequence;
                tracing::warn!(messages = unreadable, before, "cannot read messages of the log: skipped");
            } else if !message.is_malformed() {
                // The consumer is perhaps only slow, and can still deliver the message.
                tokio::time::sleep(UNDELIVERED).await;
            }
            return Ok(Some(message));
        }
        Ok(None)
    }

    pub(super) async fn fetch(&self, sequence: u64) -> Result<Option<LogMessage>, LogError> {
        Ok(LogMessage::fetch(&self.context, &self.settings.nats_stream, sequence).await?)
    }

    /// Calls `each` for malformed messages of `subjects`, up to the first well-formed or missing message. Skips at most
    /// `max_skipped` messages of other subjects. Returns the sequence at which it stopped.
    async fn fetch_malformed(
        &self,
        from_sequence: u64,
        subjects: &[String],
        max_skipped: u64,
        each: &mut impl FnMut(&LogMessage) -> Result<(), LogError>,
    ) -> Result<u64, LogError> {
        let (mut next, mut skipped) = (from_sequence, 0);
        while let Some(message) = self.fetch(next).await? {
            match matches_subjects(&message, subjects) {
                true if message.is_malformed() => each(&message)?,
                false if skipped < max_skipped => skipped += 1,
                _ => break,
            }
            next += 1;
        }
        Ok(next)
    }
}

/// Result of [`Log::scan_once`].
enum ScanEnd {
    /// All messages were read.
    Complete,
    /// A message was not delivered, and was fetched by its sequence. The messages after it are still unread.
    Undelivered,
}

/// True if the subject of a message is in the list. An empty list matches all subjects.
fn matches_subjects(message: &LogMessage, subjects: &[String]) -> bool {
    subjects.is_empty() || subjects.contains(&message.subject)
}
