//! Message of the log, received from a JetStream consumer or requested by its sequence number. Messages with a
//! malformed header block or a status can only be requested, because the NATS client cannot receive them.

use std::str::FromStr;

use async_nats::HeaderMap;
use async_nats::header::{HeaderName, HeaderValue, NATS_MESSAGE_ID};
use async_nats::jetstream::context::RequestError;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::stream::RawMessage;
use async_nats::jetstream::{self, Context, ErrorCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;

use crate::envelope::{BatchError, Envelope};
use crate::record_batch::RecordBatch;
use crate::sequence::{Sequence, SequenceError};

/// First line of a header block that has no status.
const VERSION_LINE: &str = "NATS/1.0";
/// Maximum number of bytes of a malformed header block in output and exports. The rest of a longer block is left out.
const MAX_SHOWN_BYTES: usize = 8 * 1024;

/// One message of the log.
#[derive(Debug, Clone)]
pub struct LogMessage {
    /// Sequence number in the log.
    pub sequence: Sequence,
    /// Subject on which the message was published.
    pub subject: String,
    /// Headers; `None` if absent or malformed.
    pub headers: Option<HeaderMap>,
    /// Header block that is malformed or has a status; `None` for any other header block, or without headers.
    pub malformed_headers: Option<Bytes>,
    /// Encoded rows of all record batches of the message. The rows of a batch can be compressed.
    pub payload: Bytes,
    /// Time at which the log stored the message.
    pub stored_at: DateTime<Utc>,
}

/// Data about the delivery of a message by a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Number of this delivery. The consumer numbers its deliveries from 1. A gap in these numbers means that the
    /// client lost a message or did not pass it on.
    pub number: u64,
    /// Number of log messages that the consumer still had to deliver when it delivered this one.
    pub pending: u64,
}

/// Errors of reading a message by its sequence.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("cannot request message {sequence} of the log: {source}")]
    Request { sequence: u64, source: RequestError },
    #[error("cannot read message {sequence} of the log: {source}")]
    Server { sequence: u64, source: jetstream::Error },
    #[error("cannot read message {sequence} of the log: its text is not base64: {source}")]
    Encoding { sequence: u64, source: base64::DecodeError },
    #[error("cannot read message {sequence} of the log: its date is outside the calendar")]
    Date { sequence: u64 },
    #[error(transparent)]
    Sequence(#[from] SequenceError),
}

#[derive(Debug, Deserialize)]
struct FetchResponse {
    message: RawMessage,
}

impl LogMessage {
    /// Converts a message that a consumer delivered.
    ///
    /// # Errors
    /// The message does not come from a consumer.
    pub fn from_delivery(message: jetstream::Message) -> Result<(Self, Delivery), async_nats::Error> {
        let info = message.info()?;
        let (sequence, seconds) = (info.stream_sequence, info.published.unix_timestamp());
        let delivery = Delivery { number: info.consumer_sequence, pending: info.pending };
        let (message, _) = message.split();
        let async_nats::Message { subject, payload, headers, .. } = message;
        let stored_at = DateTime::from_timestamp(seconds, 0).ok_or(FetchError::Date { sequence })?;
        let (sequence, subject) = (Sequence::try_from(sequence)?, subject.to_string());
        Ok((Self { sequence, subject, headers, malformed_headers: None, payload, stored_at }, delivery))
    }

    /// Reads the message with the sequence number `sequence`; `None` if the log has no such message.
    pub async fn fetch(context: &Context, stream: &str, sequence: u64) -> Result<Option<Self>, FetchError> {
        let request = json!({ "seq": sequence });
        let response = context.request(format!("STREAM.MSG.GET.{stream}"), &request).await;
        match response.map_err(|source| FetchError::Request { sequence, source })? {
            Response::Ok(FetchResponse { message }) => Ok(Some(Self::from_raw(message)?)),
            Response::Err { error } if error.error_code() == ErrorCode::NO_MESSAGE_FOUND => Ok(None),
            Response::Err { error: source } => Err(FetchError::Server { sequence, source }),
        }
    }

    fn from_raw(message: RawMessage) -> Result<Self, FetchError> {
        let RawMessage { subject, sequence, payload, headers, time } = message;
        let decode = |text: String| {
            STANDARD.decode(text).map_err(|source| FetchError::Encoding { sequence, source }).map(Bytes::from)
        };
        let (block, payload) = (headers.map(decode).transpose()?, decode(payload)?);
        let headers = block.as_deref().and_then(parse_headers);
        let malformed_headers = if headers.is_none() { block } else { None };
        let stored_at = DateTime::from_timestamp(time.unix_timestamp(), time.nanosecond())
            .ok_or(FetchError::Date { sequence })?;
        Ok(Self {
            sequence: Sequence::try_from(sequence)?,
            subject,
            headers,
            malformed_headers,
            payload,
            stored_at,
        })
    }

    /// Message id from the header `Nats-Msg-Id`; empty without this header.
    pub fn id(&self) -> String {
        let id = self.headers.as_ref().and_then(|headers| headers.get(NATS_MESSAGE_ID));
        id.map(ToString::to_string).unwrap_or_default()
    }

    /// True if the header block is malformed or has a status. No consumer can deliver such a message.
    pub fn is_malformed(&self) -> bool {
        self.malformed_headers.is_some()
    }

    /// First 8 KiB of a malformed header block, with escape sequences for bytes that are not printable. `None` if the
    /// header block is readable.
    pub fn malformed_text(&self) -> Option<String> {
        let block = self.malformed_headers.as_ref()?;
        Some(block[..block.len().min(MAX_SHOWN_BYTES)].escape_ascii().to_string())
    }

    /// Decodes all record batches of the message.
    ///
    /// # Errors
    /// The message is damaged, or a newer program version wrote it ([`BatchError::NewerVersion`]).
    pub fn decode_batches(&self) -> Result<Vec<RecordBatch>, BatchError> {
        self.check_headers()?;
        RecordBatch::decode(self.headers.as_ref(), &self.payload)
    }

    /// Reads the envelopes of all record batches of the message, without decoding the rows.
    ///
    /// # Errors
    /// Headers are missing or malformed, or a newer program version wrote them.
    pub fn read_envelopes(&self) -> Result<Vec<Envelope>, BatchError> {
        self.check_headers()?;
        Envelope::read_all(self.headers.as_ref())
    }

    fn check_headers(&self) -> Result<(), BatchError> {
        let Some(block) = &self.malformed_headers else { return Ok(()) };
        let line = block.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Err(BatchError::HeaderBlock(line[..line.len().min(80)].trim_ascii_end().escape_ascii().to_string()))
    }
}

/// Parses a header block. `None` if a NATS client cannot parse it, or treats it as a server reply because of its
/// status.
fn parse_headers(block: &[u8]) -> Option<HeaderMap> {
    let mut lines = std::str::from_utf8(block).ok()?.lines().peekable();
    if lines.next()?.trim_end() != VERSION_LINE {
        return None;
    }
    let mut headers = HeaderMap::new();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let (name, value) = line.split_once(':')?;
        let mut value = value.trim_start().to_owned();
        while let Some(continued) = lines.next_if(|line| line.starts_with(char::is_whitespace)) {
            value.push_str(continued);
        }
        headers.append(HeaderName::from_str(name).ok()?, HeaderValue::from_str(value.trim_end()).ok()?);
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_ends_or_misleads_a_client_is_malformed() {
        let malformed: [&[u8]; 9] = [
            b"NATS/9.9\r\nA: b\r\n\r\n",
            b"",
            b"\r\n\r\n",
            b"NATS/1.0 503 No Responders\r\n\r\n",
            b"NATS/1.0 100\r\n\r\n",
            b"NATS/1.0\r\nno colon\r\n\r\n",
            b"NATS/1.0\r\nN\xc3\xa4me: b\r\n\r\n",
            b"NATS/1.0\r\nA: \xff\r\n\r\n",
            b"NATS/1.0\r\nA: b\rc\r\n\r\n",
        ];
        for block in malformed {
            assert!(parse_headers(block).is_none(), "{}", block.escape_ascii());
        }
        let headers = parse_headers(b"NATS/1.0\r\nA: b \r\nA:c\r\n d\r\n\r\n").unwrap();
        let values: Vec<&str> = headers.get_all("A").map(|value| value.as_str()).collect();
        assert_eq!(values, ["b", "c d"]);
    }
}
