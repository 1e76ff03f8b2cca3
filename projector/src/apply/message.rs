//! Message of the log, as delivered by JetStream.

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use bytes::Bytes;
use event_log::sequence::Sequence;

/// One message of the log.
#[derive(Debug, Clone)]
pub struct LogMessage {
    /// Position in the log.
    pub sequence: Sequence,
    /// Subject the message was published on.
    pub subject: String,
    /// Headers; `None` if the message was published without any.
    pub headers: Option<HeaderMap>,
    /// Encoded frames, compressed or not.
    pub payload: Bytes,
}

impl LogMessage {
    /// Message id; empty if the headers lack it.
    pub fn id(&self) -> String {
        message_id(self.headers.as_ref())
    }
}

/// Reads the message id from headers; empty if they lack it.
pub fn message_id(headers: Option<&HeaderMap>) -> String {
    headers.and_then(|headers| headers.get(NATS_MESSAGE_ID)).map(ToString::to_string).unwrap_or_default()
}
