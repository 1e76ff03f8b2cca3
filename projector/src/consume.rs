//! Reading the log: one ordered consumer from the checkpoint on, in batches, with nothing skipped.

use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use bytes::Bytes;
use event_log::frame::unpacked_length;
use futures::StreamExt;

/// Messages in one batch at most.
const MAX_MESSAGES: usize = 2_000;
/// How long a batch waits for a further message that the server says is there.
const LINGER: Duration = Duration::from_millis(250);
/// How long nothing is delivered until it is asked why.
const STALLED: Duration = Duration::from_secs(5);

/// One message of the log.
#[derive(Debug, Clone)]
pub struct Message {
    pub sequence: u64,
    pub subject: String,
    pub headers: Option<HeaderMap>,
    pub payload: Bytes,
}

/// Consecutive messages, and how many more the log holds.
#[derive(Debug, Default)]
pub struct Batch {
    pub messages: Vec<Message>,
    pub pending: u64,
}

impl Message {
    /// Its id in the log; empty when it has none.
    pub fn id(&self) -> String {
        message_id(self.headers.as_ref())
    }
}

/// The id that a message's headers name; empty when they name none.
pub fn message_id(headers: Option<&HeaderMap>) -> String {
    headers.and_then(|headers| headers.get(NATS_MESSAGE_ID)).map(ToString::to_string).unwrap_or_default()
}

impl Batch {
    /// Id of the last message.
    pub fn last_id(&self) -> Option<String> {
        self.messages.last().map(Message::id)
    }

    /// Bytes of the messages, unpacked.
    pub fn bytes(&self) -> usize {
        self.messages.iter().map(|message| unpacked_length(&message.payload)).sum()
    }

    /// Without the messages after `end`.
    pub fn until(mut self, end: u64) -> Self {
        if self.last_sequence() > end {
            self.messages.retain(|message| message.sequence <= end);
            self.pending = 0;
        }
        self
    }

    /// Sequence of the last message.
    pub fn last_sequence(&self) -> u64 {
        self.messages.last().map_or(0, |message| message.sequence)
    }
}

/// Why the log cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ConsumeError {
    #[error("the log cannot be read: {0}")]
    Consumer(String),
    #[error(
        "the log jumps from sequence {after} to {found}: messages are missing; nothing was skipped. Restore the stream (ingest verify says what is missing), then start again"
    )]
    Gap { after: u64, found: u64 },
    #[error(
        "message {0} of the log cannot be read: the server has lost it, or its file is damaged; nothing was skipped. Stop the server and bring the log back from its second copy (ingest import)"
    )]
    Unreadable(u64),
    #[error("the log's delivery ended")]
    Ended,
}

/// An open reading position.
pub struct LogReader {
    messages: pull::Ordered,
    after: u64,
    batch_bytes: usize,
    held: Batch,
    bytes: usize,
    /// When something was delivered, or the delivery was last looked after.
    moved: Instant,
}

impl LogReader {
    /// Reads from the message after `after`.
    pub async fn open(stream: &Stream, after: u64, batch_bytes: usize) -> Result<Self, ConsumeError> {
        let config = pull::OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: after + 1 },
            max_bytes: 0,
            ..Default::default()
        };
        let consumer =
            stream.create_consumer(config).await.map_err(|e| ConsumeError::Consumer(e.to_string()))?;
        let messages = consumer.messages().await.map_err(|e| ConsumeError::Consumer(e.to_string()))?;
        Ok(Self { messages, after, batch_bytes, held: Batch::default(), bytes: 0, moved: Instant::now() })
    }

    /// Waits for the next batch: what is there, up to the size limit. Safe to cancel: what was read stays held.
    pub async fn next_batch(&mut self) -> Result<Batch, ConsumeError> {
        while !self.is_full() {
            if self.held.messages.is_empty() {
                self.hold_next().await?;
                continue;
            }
            match tokio::time::timeout(LINGER, self.hold_next()).await {
                Ok(read) => read?,
                Err(_) => break,
            }
        }
        self.bytes = 0;
        Ok(std::mem::take(&mut self.held))
    }

    /// Holds what comes, up to the size limit, for the next batch. Never ends but by an error; safe to cancel.
    pub async fn read_ahead(&mut self) -> ConsumeError {
        while self.has_room() {
            if let Err(error) = self.hold_next().await {
                return error;
            }
        }
        std::future::pending().await
    }

    /// An error when nothing is delivered because the next message is damaged: the server stops at it and says nothing.
    pub async fn look_after(&mut self, stream: &Stream) -> Result<(), ConsumeError> {
        if self.moved.elapsed() < STALLED {
            return Ok(());
        }
        self.moved = Instant::now();
        let state = stream.get_info().await.map_err(|e| ConsumeError::Consumer(e.to_string()))?.state;
        let next = self.after + 1;
        if state.last_sequence < next {
            return Ok(());
        }
        match stream.get_raw_message(next).await {
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => {
                Err(ConsumeError::Unreadable(next))
            }
            _ => Ok(()),
        }
    }

    fn is_full(&self) -> bool {
        !self.held.messages.is_empty() && (self.held.pending == 0 || !self.has_room())
    }

    fn has_room(&self) -> bool {
        self.bytes < self.batch_bytes && self.held.messages.len() < MAX_MESSAGES
    }

    async fn hold_next(&mut self) -> Result<(), ConsumeError> {
        let (message, pending) = self.next_message().await?;
        self.bytes += unpacked_length(&message.payload);
        self.held.messages.push(message);
        self.held.pending = pending;
        Ok(())
    }

    async fn next_message(&mut self) -> Result<(Message, u64), ConsumeError> {
        let message = self.messages.next().await.ok_or(ConsumeError::Ended)?;
        let message = message.map_err(|e| ConsumeError::Consumer(e.to_string()))?;
        let (sequence, pending) = {
            let info = message.info().map_err(|e| ConsumeError::Consumer(e.to_string()))?;
            (info.stream_sequence, info.pending)
        };
        if sequence != self.after + 1 {
            return Err(ConsumeError::Gap { after: self.after, found: sequence });
        }
        (self.after, self.moved) = (sequence, Instant::now());
        let (message, _) = message.split();
        let async_nats::Message { subject, payload, headers, .. } = message;
        Ok((Message { sequence, subject: subject.to_string(), headers, payload }, pending))
    }
}
