//! Import of an exported log into a stream. The stream gets the identity of the original log. If no sequence number is
//! missing in the original log, the imported messages keep their sequence numbers.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::context::{PublishAckFuture, PublishError};
use async_nats::jetstream::{self, Context, ErrorCode};
use bytes::Bytes;
use serde::Serialize;

use crate::archive::{ArchiveError, ArchiveReader, ArchivedMessage};
use crate::envelope::MESSAGE_ID;
use crate::stream::{RESTORE_WINDOW, StreamSettings};
use crate::write_failure::report_write_failure;

/// Maximum number of sent messages that are not acknowledged yet.
const WINDOW: usize = 64;

/// Result of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Number of messages in the imported file.
    pub messages: u64,
    /// Number of missing sequence numbers (gaps) in the original log. The import leaves no gaps. Messages after the
    /// first gap therefore get lower sequence numbers than in the original log.
    pub gaps: u64,
    /// Number of messages that were already in the stream before this import, for example from an interrupted import.
    #[serde(rename = "there_before")]
    pub already_present: u64,
}

/// Imports an exported log into a stream. The stream must be empty or contain the beginning of the same log.
pub async fn import_archive(path: &Path, settings: &StreamSettings) -> Result<ImportReport, ArchiveError> {
    let mut reader = ArchiveReader::open_verified(path)?;
    let context = settings.connect("import").await?;
    let mut stream = settings.open_for_import(&context, &reader.genesis).await?;
    let already_present =
        stream.info().await.map_err(|error| ArchiveError::Read(error.to_string()))?.state.last_sequence;
    let mut import =
        ArchiveImport { context, settings, sent: HashMap::new(), position: 0, waiting: Vec::new() };
    let (mut next, mut gaps) = (1, 0);
    let imported = async {
        while let Some(message) = reader.next_message()? {
            gaps += message.sequence.saturating_sub(next);
            next = message.sequence + 1;
            import.message(message, already_present).await?;
        }
        import.wait_until_stored().await
    };
    if let Err(error) = imported.await {
        if matches!(error, ArchiveError::Full { .. }) {
            report_write_failure(settings, &error.to_string()).await;
        }
        return Err(error);
    }
    if import.position < already_present {
        return Err(ArchiveError::Refused(format!(
            "cannot import: stream {} has {already_present} messages, the file only {}, so the stream grew since the export; import into a stream that is empty or does not exist (--nats-stream)",
            settings.nats_stream, import.position
        )));
    }
    settings.end_import(&import.context).await?;
    Ok(ImportReport { messages: import.position, gaps, already_present })
}

/// True if the server rejected a message because the server's storage is full. A retry also fails until space is freed.
pub fn is_storage_full(error: &PublishError) -> bool {
    let rejection = error.source().and_then(|source| source.downcast_ref::<jetstream::Error>());
    let full = [
        ErrorCode::INSUFFICIENT_RESOURCES,
        ErrorCode::STORAGE_RESOURCES_EXCEEDED,
        ErrorCode::STREAM_STORE_FAILED,
    ];
    rejection.is_some_and(|rejection| full.contains(&rejection.error_code()))
}

struct ArchiveImport<'a> {
    context: Context,
    settings: &'a StreamSettings,
    /// Time at which each message was sent, by message id. A second message with the same id is sent only after the
    /// deduplication window. Otherwise, the server would drop it.
    sent: HashMap<String, Instant>,
    position: u64,
    waiting: Vec<(u64, PublishAckFuture)>,
}

impl ArchiveImport<'_> {
    async fn message(&mut self, message: ArchivedMessage, already_present: u64) -> Result<(), ArchiveError> {
        let ArchivedMessage { kind, headers, body, .. } = message;
        self.position += 1;
        let id = headers.iter().find(|(name, _)| name == MESSAGE_ID).map(|(_, id)| id.clone());
        let repeated = id.and_then(|id| self.sent.insert(id, Instant::now()));
        if self.position <= already_present {
            return Ok(());
        }
        if let Some(wait) = repeated.and_then(|at| RESTORE_WINDOW.checked_sub(at.elapsed())) {
            self.wait_until_stored().await?;
            tokio::time::sleep(wait + Duration::from_millis(50)).await;
        }
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.as_str(), value.as_str());
        }
        map.insert("Nats-Expected-Last-Sequence", (self.position - 1).to_string().as_str());
        let subject = format!("{}.{kind}", self.settings.nats_subject_prefix);
        let sent = self.context.publish_with_headers(subject, map, Bytes::from(body)).await;
        let sequence = self.position;
        let sent = sent.map_err(|error| ArchiveError::Publish { sequence, reason: error.to_string() })?;
        self.waiting.push((sequence, sent));
        if self.waiting.len() >= WINDOW { self.wait_until_stored().await } else { Ok(()) }
    }

    /// Waits until all sent messages are on disk, and checks that the server gave them the expected sequences.
    async fn wait_until_stored(&mut self) -> Result<(), ArchiveError> {
        for (sequence, sent) in self.waiting.drain(..) {
            let acknowledged = sent.await.map_err(|error| match is_storage_full(&error) {
                true => ArchiveError::Full { sequence, reason: error.to_string() },
                false => ArchiveError::Publish { sequence, reason: error.to_string() },
            })?;
            if acknowledged.sequence != sequence || acknowledged.duplicate {
                let reason = format!("it got sequence {}", acknowledged.sequence);
                return Err(ArchiveError::Publish { sequence, reason });
            }
        }
        Ok(())
    }
}
