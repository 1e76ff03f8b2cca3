//! Reader of the log with an ordered JetStream consumer. Undelivered messages are fetched by sequence.
//!
//! Loads in progress, found from the run manifests in the log. During a load, the log reader waits for more messages.
//! Read tables from a partial load would have to be derived again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::stream::Stream;
use event_log::message::LogMessage;
use event_log::record_batch::{Body, Envelope, unpacked_length};
use event_log::sequence::Sequence;
use futures::StreamExt;
use market::event::{Kind, RunEvent, RunState};

use crate::error::ConsumeError;

/// Largest number of messages in a batch.
const MAX_MESSAGES: usize = 2_000;
/// Maximum wait for the next message while a load is in progress. After this wait, the batch is returned without
/// further messages.
const LINGER: Duration = Duration::from_millis(250);
/// Interval at which a reader without new messages checks the log for an undelivered message.
const STALL_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum time for which a message may stay undelivered after a check found it in the log. The reader then stops using
/// the consumer and fetches the message by its sequence.
const STALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval at which [`LogReader::next_checked_batch`] calls [`LogReader::check_delivery`]. Most of these calls return
/// at once, because the log is checked only every [`STALL_CHECK_INTERVAL`].
const DELIVERY_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of messages that are fetched by sequence before a new consumer is created.
const MAX_BY_SEQUENCE: usize = 256;

/// Batch of consecutive messages of the log.
#[derive(Debug, Default)]
pub struct MessageBatch {
    /// Messages in log order, without a gap.
    pub messages: Vec<LogMessage>,
    /// Number of log messages after the last message of this batch.
    pub pending: u64,
    /// `true` if the batch reached its size limit during a load. More messages of the load follow soon.
    pub unfinished: bool,
}

impl MessageBatch {
    /// Total size of the message payloads after decompression, in bytes.
    pub fn bytes(&self) -> usize {
        self.messages.iter().map(|message| unpacked_length(&message.payload)).sum()
    }

    /// `true` if the log has no message after the batch, and `unfinished` is false. The caller then derives the read
    /// tables without further wait.
    pub fn is_last(&self) -> bool {
        self.pending == 0 && !self.unfinished
    }

    /// Drops the messages after the sequence `end`. A batch that reaches `end` is the last one that the caller needs,
    /// so [`Self::is_last`] is then true.
    pub fn truncate_after(mut self, end: Option<Sequence>) -> Self {
        let Some(end) = end else { return self };
        if self.messages.last().is_some_and(|last| last.sequence >= end) {
            self.messages.retain(|message| message.sequence <= end);
            (self.pending, self.unfinished) = (0, false);
        }
        self
    }
}

/// Reader of the log messages after a given sequence.
pub struct LogReader {
    context: Context,
    stream: Stream,
    /// Consumer that receives messages from the server; `None` while messages are fetched by sequence.
    messages: Option<pull::Ordered>,
    /// Set if the next message must be fetched by sequence. The value is the next sequence, or the later sequence that
    /// the consumer delivered instead.
    gap: Option<u64>,
    after: Sequence,
    batch_bytes: u64,
    buffered: MessageBatch,
    bytes: usize,
    loads: InFlightLoads,
    /// Time of the last delivered message or of the last delivery check.
    last_progress: Instant,
    delivery: DeliveryState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryState {
    /// The log has a next message, but the newly opened reader has not received a message yet.
    Pending,
    /// The reader knows of no undelivered message.
    Current,
    /// A check found the next message in the log, but the server has not delivered it. `since` is the time of the first
    /// such check.
    Stalled { since: Instant },
}

impl DeliveryState {
    /// New state after a check found an undelivered message. If an earlier check already found this message, `since`
    /// does not change.
    fn after_stalled_check(self, now: Instant) -> Self {
        Self::Stalled { since: if let Self::Stalled { since } = self { since } else { now } }
    }

    fn has_timed_out(self, now: Instant) -> bool {
        matches!(self, Self::Stalled { since } if now.duration_since(since) >= STALL_TIMEOUT)
    }
}

impl LogReader {
    /// Opens a reader whose first message is the one after `after`.
    ///
    /// A consumer loses its connection if it receives a malformed message. If the first message is malformed, it is
    /// therefore fetched by sequence before a consumer is created.
    pub async fn open(
        context: &Context,
        stream: &Stream,
        after: Sequence,
        batch_bytes: u64,
    ) -> Result<Self, ConsumeError> {
        let is_at_end = after.to_u64() >= stream.cached_info().state.last_sequence;
        let mut reader = Self {
            context: context.clone(),
            stream: stream.clone(),
            messages: None,
            gap: None,
            after,
            batch_bytes,
            buffered: MessageBatch::default(),
            bytes: 0,
            loads: InFlightLoads::default(),
            last_progress: Instant::now(),
            delivery: if is_at_end { DeliveryState::Current } else { DeliveryState::Pending },
        };
        if let Some(message) = reader.fetch(reader.next_number()).await?.filter(LogMessage::is_malformed) {
            reader.read_by_sequence(message).await?;
        } else {
            reader.create_consumer().await?;
        }
        Ok(reader)
    }

    async fn create_consumer(&mut self) -> Result<(), ConsumeError> {
        let config = pull::OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: self.next_number() },
            max_bytes: 0,
            ..Default::default()
        };
        let consumer = self.stream.create_consumer(config).await.map_err(ConsumeError::of_server)?;
        self.messages = Some(consumer.messages().await.map_err(ConsumeError::of_server)?);
        Ok(())
    }

    /// Waits for the next batch: all available messages, up to the size limit. During a load, also waits for later
    /// messages. If none follow an [unfinished](MessageBatch::unfinished) batch soon, the next batch is empty. Cancel
    /// safe.
    pub async fn next_batch(&mut self) -> Result<MessageBatch, ConsumeError> {
        while !self.is_batch_full() {
            if self.buffered.messages.is_empty() && !self.buffered.unfinished {
                self.buffer_next().await?;
                continue;
            }
            match tokio::time::timeout(LINGER, self.buffer_next()).await {
                Ok(read) => read?,
                Err(_) => break,
            }
        }
        let unfinished = !self.has_room() && self.loads.has_any(Instant::now());
        self.bytes = 0;
        let batch =
            std::mem::replace(&mut self.buffered, MessageBatch { unfinished, ..MessageBatch::default() });
        Ok(MessageBatch { unfinished, ..batch })
    }

    /// Reads messages of the next batch into the buffer, up to the size limit. Then waits until it is cancelled.
    /// Returns only if an error occurs. Cancel safe.
    pub async fn read_ahead(&mut self) -> ConsumeError {
        while self.has_room() {
            if let Err(error) = self.buffer_next().await {
                return error;
            }
        }
        std::future::pending().await
    }

    /// `false` if the log has a next message, but the server has not delivered it yet.
    pub fn is_delivering(&self) -> bool {
        self.delivery == DeliveryState::Current
    }

    /// Sequence of the next message to read.
    pub fn next_number(&self) -> u64 {
        self.after.to_u64() + 1
    }

    /// Restarts the time limit for the next delivery. A paused projector reads no messages, so it calls this function
    /// regularly.
    pub fn restart_delivery_timeout(&mut self) {
        (self.last_progress, self.delivery) = (Instant::now(), DeliveryState::Current);
    }

    /// Waits for the next batch. Once per `DELIVERY_CHECK_INTERVAL`, checks that the server still delivers messages.
    pub async fn next_checked_batch(&mut self) -> Result<MessageBatch, ConsumeError> {
        loop {
            match tokio::time::timeout(DELIVERY_CHECK_INTERVAL, self.next_batch()).await {
                Ok(batch) => return batch,
                Err(_) => self.check_delivery().await?,
            }
        }
    }

    /// Checks that the server still delivers messages. If it does not, fetches the next messages by their sequence.
    /// Fails if the log has lost the next message.
    pub async fn check_delivery(&mut self) -> Result<(), ConsumeError> {
        if self.gap.is_none() && self.last_progress.elapsed() < STALL_CHECK_INTERVAL {
            return Ok(());
        }
        self.last_progress = Instant::now();
        let next = self.next_number();
        if self.last_sequence().await? < next {
            self.delivery = DeliveryState::Current;
            return Ok(());
        }
        let message = match (self.fetch(next).await?, self.gap) {
            (Some(message), _) => message,
            (None, Some(found)) if found > next => {
                return Err(ConsumeError::Gap { after: self.after.to_u64(), found });
            }
            (None, _) => return Err(ConsumeError::Unreadable(next)),
        };
        let now = Instant::now();
        self.delivery = self.delivery.after_stalled_check(now);
        // For example, a damaged replica of the stream may not deliver a message.
        if message.is_malformed() || self.gap.is_some() || self.delivery.has_timed_out(now) {
            tracing::warn!(
                sequence = next,
                malformed = message.is_malformed(),
                "the server does not deliver a message of the log; it is read by its sequence"
            );
            self.messages = None;
            self.read_by_sequence(message).await?;
        }
        Ok(())
    }

    async fn last_sequence(&self) -> Result<u64, ConsumeError> {
        Ok(self.stream.get_info().await.map_err(ConsumeError::of_server)?.state.last_sequence)
    }

    async fn fetch(&self, sequence: u64) -> Result<Option<LogMessage>, ConsumeError> {
        let stream = &self.stream.cached_info().config.name;
        LogMessage::fetch(&self.context, stream, sequence).await.map_err(ConsumeError::of_server)
    }

    /// Buffers `first`, then fetches the later messages one by one. Stops after [`MAX_BY_SEQUENCE`] messages, at the
    /// size limit of a batch, or at the end of the log. Then creates a consumer, unless the next message is malformed.
    async fn read_by_sequence(&mut self, first: LogMessage) -> Result<(), ConsumeError> {
        let last = self.last_sequence().await?;
        let mut next = Some(first);
        for _ in 0..MAX_BY_SEQUENCE {
            let Some(message) = next.take() else { break };
            let pending = last.saturating_sub(message.sequence.to_u64());
            self.buffer_message(message, pending);
            if pending > 0 && self.has_room() {
                next = self.fetch(self.next_number()).await?;
            }
        }
        self.gap = next.filter(LogMessage::is_malformed).map(|message| message.sequence.to_u64());
        if self.gap.is_none() {
            self.create_consumer().await?;
        }
        Ok(())
    }

    fn is_batch_full(&self) -> bool {
        let all = self.buffered.pending == 0 && !self.loads.has_any(Instant::now());
        !self.buffered.messages.is_empty() && (all || !self.has_room())
    }

    fn has_room(&self) -> bool {
        (self.bytes as u64) < self.batch_bytes && self.buffered.messages.len() < MAX_MESSAGES
    }

    async fn buffer_next(&mut self) -> Result<(), ConsumeError> {
        let (message, pending) = self.next_message().await?;
        self.buffer_message(message, pending);
        Ok(())
    }

    fn buffer_message(&mut self, message: LogMessage, pending: u64) {
        self.after = message.sequence;
        (self.last_progress, self.delivery) = (Instant::now(), DeliveryState::Current);
        self.bytes += unpacked_length(&message.payload);
        self.loads.observe(&message, self.last_progress);
        self.buffered.messages.push(message);
        self.buffered.pending = pending;
    }

    async fn next_message(&mut self) -> Result<(LogMessage, u64), ConsumeError> {
        let Some(messages) = &mut self.messages else { return std::future::pending().await };
        let message = match messages.next().await {
            Some(Ok(message)) => message,
            // The consumer failed or ended, but the buffered messages are returned first. The message after them may be
            // the cause, so `check_delivery` fetches that message by its sequence.
            _ if !self.buffered.messages.is_empty() => {
                (self.messages, self.gap) = (None, Some(self.next_number()));
                return std::future::pending().await;
            }
            Some(Err(error)) => return Err(ConsumeError::of_server(error)),
            None => return Err(ConsumeError::Ended),
        };
        let (message, delivery) = LogMessage::from_delivery(message).map_err(ConsumeError::Consumer)?;
        let found = message.sequence.to_u64();
        if found != self.next_number() {
            // The log lacks the next message, or the NATS client hid it. The client hides a message whose header block
            // has a status. `check_delivery` fetches the next message by its sequence.
            (self.messages, self.gap) = (None, Some(found));
            return std::future::pending().await;
        }
        Ok((message, delivery.pending))
    }
}

/// A load without a message for this time counts as ended, because its process may have been killed.
const IDLE_TIMEOUT: Duration = Duration::from_millis(500);

/// Ids of runs that have started but not completed, each with the time of its latest message.
#[derive(Debug, Default)]
pub(crate) struct InFlightLoads(HashMap<String, Instant>);

impl InFlightLoads {
    /// Updates the loads in progress from a message of the log.
    pub(crate) fn observe(&mut self, message: &LogMessage, now: Instant) {
        let Ok(envelope) = Envelope::from_headers(message.headers.as_ref()) else { return };
        if envelope.kind == Kind::Run {
            self.0.retain(|_, latest| now.saturating_duration_since(*latest) < IDLE_TIMEOUT);
            let batches = message.decode_batches().unwrap_or_default();
            let body = batches.into_iter().next().map(|batch| batch.body);
            let Some(Body::Run(RunEvent::Manifest(run))) = body else { return };
            match run.state {
                RunState::Started => drop(self.0.insert(run.run, now)),
                RunState::Completed => drop(self.0.remove(&run.run)),
            }
        } else if let Some(latest) = self.0.get_mut(&envelope.run) {
            *latest = now;
        }
    }

    /// `true` if a load is in progress.
    pub(crate) fn has_any(&self, now: Instant) -> bool {
        self.0.values().any(|latest| now.saturating_duration_since(*latest) < IDLE_TIMEOUT)
    }
}

#[cfg(test)]
mod tests;
