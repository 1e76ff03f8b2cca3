//! Notice of a failed write: NATS answers, but it could not store a message, for example because its disk is full.
//!
//! The notice is in a stream of its own, in memory, because NATS can write nothing to disk. The restart that makes NATS
//! store messages again also removes the notice. A notice is void once the log has stored another message.

use std::fmt;

use async_nats::jetstream::Context;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::stream::StreamSettings;

/// Maximum size of a notice, in bytes. Any client of NATS could publish a larger one.
const MAX_NOTICE_BYTES: usize = 8 * 1024;

/// Failed write of a message to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteFailure {
    /// Time of the failure.
    pub at: DateTime<Utc>,
    /// Error of the program that could not write, with the remedy.
    pub reason: String,
    /// Last sequence of the log after the failure.
    pub last_sequence: u64,
}

impl fmt::Display for WriteFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.format("%Y-%m-%d %H:%M:%S UTC");
        write!(f, "NATS has stored nothing since a write failed at {at}: {}", self.reason)
    }
}

/// Leaves a notice that NATS could not store a message. A failure to do so is only logged.
pub async fn report_write_failure(settings: &StreamSettings, reason: &str) {
    if let Err(error) = publish_notice(settings, reason).await {
        tracing::debug!(%error, "cannot leave a notice of the failed write");
    }
}

async fn publish_notice(settings: &StreamSettings, reason: &str) -> Result<(), async_nats::Error> {
    let context = settings.connect("write-failure").await?;
    let last_sequence = settings.open_existing(&context).await?.cached_info().state.last_sequence;
    let name = notice_stream(&settings.nats_stream);
    let config = Config {
        name: name.clone(),
        description: Some("Notice of a failed write to the log".to_owned()),
        subjects: vec![name.clone()],
        storage: StorageType::Memory,
        discard: DiscardPolicy::Old,
        max_messages: 1,
        ..Config::default()
    };
    context.get_or_create_stream(config).await?;
    let notice = WriteFailure { at: Utc::now(), reason: reason.to_owned(), last_sequence };
    context.publish(name, serde_json::to_vec(&notice)?.into()).await?.await?;
    Ok(())
}

/// Reads the notice of a failed write to the stream `stream`. `last_sequence` is the last sequence of this stream.
/// Returns `None` if there is no notice, if the log has stored a message after the failure, or if NATS does not answer.
pub async fn find_write_failure(context: &Context, stream: &str, last_sequence: u64) -> Option<WriteFailure> {
    let name = notice_stream(stream);
    // A search by subject is no error of the server if the stream does not exist.
    context.stream_by_subject(name.as_str()).await.ok()?;
    let notices = context.get_stream_no_info(&name).await.ok()?;
    let notice = notices.get_last_raw_message_by_subject(&name).await.ok()?;
    let is_readable = notice.payload.len() <= MAX_NOTICE_BYTES;
    let failure: WriteFailure = serde_json::from_slice(&notice.payload).ok().filter(|_| is_readable)?;
    (failure.last_sequence >= last_sequence).then_some(failure)
}

/// Name and subject of the stream of notices.
fn notice_stream(stream: &str) -> String {
    format!("{stream}_WRITE_FAILURE")
}
