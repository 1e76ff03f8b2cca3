//! A message of the log as it was delivered.

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use bytes::Bytes;
use event_log::sequence::Sequence;

/// One message of the log.
#[derive(Debug, Clone)]
pub struct LogMessage {
    /// Its place in the log.
    pub sequence: Sequence,
    /// What it was published on.
    pub subject: String,
    /// `None` when it was published without any.
    pub headers: Option<HeaderMap>,
    /// A frame's bytes as they were published, packed or not.
    pub payload: Bytes,
}

impl LogMessage {
    /// Its id in the log; empty when it has none.
    pub fn id(&self) -> String {
        message_id(self.headers.as_ref())
    }
}

/// The id that a message's headers name; empty when they name none.
pub fn message_id(headers: Option<&HeaderMap>) -> String {
    headers.and_then(|headers| headers.get(NATS_MESSAGE_ID)).map(ToString::to_string).unwrap_or_default()
}
