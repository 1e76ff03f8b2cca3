//! Log reader: one ordered JetStream consumer that reads batches from the checkpoint on and skips no message.

use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use event_log::frame::unpacked_length;
use event_log::sequence::Sequence;
use futures::StreamExt;

use crate::apply::in_flight_loads::InFlightLoads;
use crate::apply::message::LogMessage;
use crate::error::ConsumeError;

/// Largest number of messages in a batch.
const MAX_MESSAGES: usize = 2_000;
/// Wait for one more message before a batch is closed.
const LINGER: Duration = Duration::from_millis(250);
/// Time without a delivery after which the server is asked for the next message.
const STALL_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Time a readable message may stay undelivered before the consumer is created again.
const STALL_TIMEOUT: Duration = Duration::from_secs(15);

/// Consecutive messages of the log.
#[derive(Debug, Default)]
pub struct MessageBatch {
    /// Messages in log order, without a gap.
    pub messages: Vec<LogMessage>,
    /// Number of log messages after the last one of this batch.
    pub pending: u64,
    /// `true` while a load is in progress and more of its messages are expected.
    pub unfinished: bool,
}

impl MessageBatch {
    /// Id of the last message.
    pub fn last_id(&self) -> Option<String> {
        self.messages.last().map(LogMessage::id)
    }

    /// Size of the messages in bytes, decompressed.
    pub fn bytes(&self) -> usize {
        self.messages.iter().map(|message| unpacked_length(&message.payload)).sum()
    }

    /// `true` if no further message is expected, so deriving read tables now is not wasted.
    pub fn is_last(&self) -> bool {
        self.pending == 0 && !self.unfinished
    }

    /// Drops the messages after `end`. The batch then counts as the last one.
    pub fn truncate_after(mut self, end: Option<Sequence>) -> Self {
        let Some(end) = end else { return self };
        if self.messages.last().is_some_and(|last| last.sequence >= end) {
            self.messages.retain(|message| message.sequence <= end);
            (self.pending, self.unfinished) = (0, false);
        }
        self
    }
}

/// Reader of the log at a position.
pub struct LogReader {
    messages: pull::Ordered,
    after: Sequence,
    batch_bytes: u64,
    buffered: MessageBatch,
    bytes: usize,
    loads: InFlightLoads,
    /// Time of the last delivery or of the last check of the delivery.
    last_progress: Instant,
    delivery: DeliveryState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryState {
    /// The log has a next message, and no message was delivered yet.
    Pending,
    /// The last message was delivered, or the reader is at the end of the log.
    Current,
    /// The server does not deliver the next message of the log.
    Stalled { since: Instant },
}

impl DeliveryState {
    /// State after a check that found the next message undelivered. Returns an error from [`STALL_TIMEOUT`] on.
    fn after_stalled_check(self, next: u64, now: Instant) -> Result<Self, ConsumeError> {
        let since = if let Self::Stalled { since } = self { since } else { now };
        let stalled_for = now.duration_since(since);
        if stalled_for >= STALL_TIMEOUT {
            return Err(ConsumeError::Stalled { next, seconds: stalled_for.as_secs() });
        }
        Ok(Self::Stalled { since })
    }
}

impl LogReader {
    /// Opens a reader at the message after `after`.
    pub async fn open(stream: &Stream, after: Sequence, batch_bytes: u64) -> Result<Self, ConsumeError> {
        let config = pull::OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: after.to_u64() + 1 },
            max_bytes: 0,
            ..Default::default()
        };
        let consumer =
            stream.create_consumer(config).await.map_err(|error| ConsumeError::Consumer(error.into()))?;
        let messages = consumer.messages().await.map_err(|error| ConsumeError::Consumer(error.into()))?;
        let (buffered, loads, last_progress) =
            (MessageBatch::default(), InFlightLoads::default(), Instant::now());
        let is_at_end = after.to_u64() >= stream.cached_info().state.last_sequence;
        let delivery = if is_at_end { DeliveryState::Current } else { DeliveryState::Pending };
        Ok(Self { messages, after, batch_bytes, buffered, bytes: 0, loads, last_progress, delivery })
    }

    /// Waits for the next batch: the available messages up to the size limit, and the rest of a load in
    /// progress.
    ///
    /// After a batch that ended within a load, the next batch may be empty. Cancel safe: read messages stay
    /// buffered.
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

    /// Buffers messages for the next batch up to the size limit. Returns only on an error; cancel safe.
    pub async fn read_ahead(&mut self) -> ConsumeError {
        while self.has_room() {
            if let Err(error) = self.buffer_next().await {
                return error;
            }
        }
        std::future::pending().await
    }

    /// `true` if the last message was delivered or the log has no further message.
    pub fn is_delivering(&self) -> bool {
        self.delivery == DeliveryState::Current
    }

    /// Sequence of the next message.
    pub fn next_number(&self) -> u64 {
        self.after.to_u64() + 1
    }

    /// Restarts the stall timeout. Called while the projector is paused and reads nothing.
    pub fn reset_stall_timeout(&mut self) {
        (self.last_progress, self.delivery) = (Instant::now(), DeliveryState::Current);
    }

    /// Checks that the server still delivers.
    ///
    /// Fails if the next message is damaged, because the server then stops silently. Fails also if a readable
    /// message stays undelivered for [`STALL_TIMEOUT`], as with a damaged replica.
    pub async fn check_delivery(&mut self, stream: &Stream) -> Result<(), ConsumeError> {
        if self.last_progress.elapsed() < STALL_CHECK_INTERVAL {
            return Ok(());
        }
        self.last_progress = Instant::now();
        let state = stream.get_info().await.map_err(|error| ConsumeError::Consumer(error.into()))?.state;
        let next = self.next_number();
        if state.last_sequence < next {
            self.delivery = DeliveryState::Current;
            return Ok(());
        }
        match stream.get_raw_message(next).await {
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => {
                Err(ConsumeError::Unreadable(next))
            }
            _ => {
                self.delivery = self.delivery.after_stalled_check(next, Instant::now())?;
                Ok(())
            }
        }
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
        self.bytes += unpacked_length(&message.payload);
        self.loads.observe(&message, self.last_progress);
        self.buffered.messages.push(message);
        self.buffered.pending = pending;
        Ok(())
    }

    async fn next_message(&mut self) -> Result<(LogMessage, u64), ConsumeError> {
        let message = self.messages.next().await.ok_or(ConsumeError::Ended)?;
        let message = message.map_err(|error| ConsumeError::Consumer(error.into()))?;
        let (found, pending) = {
            let info = message.info().map_err(ConsumeError::Consumer)?;
            (info.stream_sequence, info.pending)
        };
        let after = self.after.to_u64();
        if found != after + 1 {
            return Err(ConsumeError::Gap { after, found });
        }
        let sequence = Sequence::try_from(found)?;
        (self.after, self.last_progress, self.delivery) = (sequence, Instant::now(), DeliveryState::Current);
        let (message, _) = message.split();
        let async_nats::Message { subject, payload, headers, .. } = message;
        Ok((LogMessage { sequence, subject: subject.to_string(), headers, payload }, pending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_an_error_from_the_limit_on_and_counts_from_its_first_check() -> Result<(), ConsumeError> {
        let first = Instant::now();
        let seconds = |count| first + Duration::from_secs(count);
        let stalled = DeliveryState::Current.after_stalled_check(7, first)?;
        assert_eq!(stalled, DeliveryState::Stalled { since: first });
        assert_eq!(stalled.after_stalled_check(7, seconds(14))?, stalled);
        let failed = stalled.after_stalled_check(7, seconds(15));
        assert!(matches!(failed, Err(ConsumeError::Stalled { next: 7, seconds: 15 })), "{failed:?}");
        assert_eq!(
            DeliveryState::Pending.after_stalled_check(7, seconds(15))?,
            DeliveryState::Stalled { since: seconds(15) }
        );
        Ok(())
    }
}
