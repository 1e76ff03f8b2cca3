//! Log archive: a copy of the whole log in one zstd file of length-prefixed postcard records.
//!
//! Import of an exported log into a stream. The stream gets the identity of the original log. If no sequence number is
//! missing in the original log, the imported messages keep their sequence numbers.

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::context::{PublishAckFuture, PublishError};
use async_nats::jetstream::{self, Context, ErrorCode};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::envelope::MESSAGE_ID;
use crate::message::LogMessage;
use crate::stream::{RESTORE_WINDOW, StreamError, StreamSettings};
use crate::write_failure::report_write_failure;

/// Errors of exporting and importing a log.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("cannot use the file {path}: {source}")]
    File { path: String, source: std::io::Error },
    #[error("{path} is not a whole export of a log: {reason}")]
    NotWhole { path: String, reason: String },
    #[error("cannot read the log: {0}")]
    Read(String),
    #[error("cannot publish message {sequence}: {reason}; run the same command again to resume")]
    Publish { sequence: u64, reason: String },
    #[error(
        "cannot publish message {sequence}: no space for the log ({reason}); free disk space for NATS, restart NATS, then run the same command again to resume"
    )]
    Full { sequence: u64, reason: String },
    #[error("{0}")]
    Refused(String),
}

#[derive(Debug, Serialize, Deserialize)]
enum ArchiveRecord {
    Beginning { layout: u32, genesis: String },
    Message(ArchivedMessage),
    End { messages: u64, digest: [u8; 32] },
}

const LAYOUT: u32 = 1;
/// Name of the header that replaces a malformed header block in the archive. The value of this header is the block as
/// text.
const MALFORMED_HEADERS: &str = "Dds-Malformed-Headers";
/// Maximum size of an archive record, in bytes. Every log message is smaller.
const MAX_RECORD_BYTES: usize = 64 << 20;

/// One log message in the archive file.
#[derive(Debug, Serialize, Deserialize)]
pub struct ArchivedMessage {
    /// Sequence number in the original log.
    pub sequence: u64,
    /// Kind of the message's rows: the last token of the message's subject.
    pub kind: String,
    /// Headers of the message in order, as pairs of name and value.
    pub headers: Vec<(String, String)>,
    /// Payload of the message.
    pub body: Vec<u8>,
}

/// Writer of an archive. The file has a temporary name until the last record is written.
pub struct ArchiveWriter {
    out: zstd::Encoder<'static, BufWriter<File>>,
    digest: blake3::Hasher,
    messages: u64,
    path: PathBuf,
    staging: PathBuf,
}

impl ArchiveWriter {
    /// Creates an archive for the log with the identity `genesis`. Fails if a file or link at `path` exists. Only the
    /// owner of the new file can read it.
    pub fn create(path: &Path, genesis: String) -> Result<Self, ArchiveError> {
        if path.symlink_metadata().is_ok() {
            let path = path.display();
            let message = format!("cannot write {path}: the file exists; use another name, or move it away");
            return Err(ArchiveError::Refused(message));
        }
        let failed = |source| ArchiveError::File { path: path.display().to_string(), source };
        let staging = path.with_extension("partial");
        // An interrupted export may have left a file of this name: remove it. If a file or link of this name appears
        // after this removal, `create_new` below fails.
        match std::fs::remove_file(&staging) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let file = File::options().write(true).create_new(true).mode(0o600).open(&staging).map_err(failed)?;
        let out = zstd::Encoder::new(BufWriter::new(file), 3).map_err(failed)?;
        let path = path.to_owned();
        let mut archive = Self { out, digest: blake3::Hasher::new(), messages: 0, path, staging };
        archive.write(&ArchiveRecord::Beginning { layout: LAYOUT, genesis })?;
        Ok(archive)
    }

    /// Appends a message. A malformed header block is stored as the text of a valid header, because the NATS client
    /// cannot publish it.
    pub fn append_message(&mut self, message: &LogMessage) -> Result<(), ArchiveError> {
        self.write(&ArchiveRecord::Message(ArchivedMessage {
            sequence: message.sequence.to_u64(),
            kind: message.subject.rsplit('.').next().unwrap_or_default().to_owned(),
            headers: headers_of(message),
            body: message.payload.to_vec(),
        }))
    }

    /// Writes the last record, syncs the file to disk and gives it its final name. Returns the number of messages in
    /// the archive.
    pub fn finish(mut self) -> Result<u64, ArchiveError> {
        let (messages, digest) = (self.messages, *self.digest.finalize().as_bytes());
        self.write(&ArchiveRecord::End { messages, digest })?;
        let failed = |source| ArchiveError::File { path: self.path.display().to_string(), source };
        let file = self.out.finish().and_then(|out| out.into_inner().map_err(|error| error.into_error()));
        file.and_then(|file| file.sync_all()).map_err(failed)?;
        std::fs::rename(&self.staging, &self.path).map_err(failed)?;
        Ok(messages)
    }

    fn write(&mut self, record: &ArchiveRecord) -> Result<(), ArchiveError> {
        let written = self.write_record(record);
        written.map_err(|source| ArchiveError::File { path: self.path.display().to_string(), source })
    }

    fn write_record(&mut self, record: &ArchiveRecord) -> std::io::Result<()> {
        let bytes = postcard::to_stdvec(record).map_err(std::io::Error::other)?;
        if matches!(record, ArchiveRecord::Message(_)) {
            self.digest.update(&bytes);
            self.messages += 1;
        }
        self.out.write_all(&u32::try_from(bytes.len()).map_err(std::io::Error::other)?.to_le_bytes())?;
        self.out.write_all(&bytes)
    }
}

fn headers_of(message: &LogMessage) -> Vec<(String, String)> {
    let malformed = message.malformed_text().map(|text| (MALFORMED_HEADERS.to_owned(), text));
    let all = message.headers.iter().flat_map(|headers| headers.iter());
    all.flat_map(|(name, values)| values.iter().map(move |value| (name.to_string(), value.to_string())))
        .chain(malformed)
        .collect()
}

/// Reader of an archive.
pub struct ArchiveReader {
    input: zstd::Decoder<'static, BufReader<File>>,
    path: String,
    /// Identity of the exported log.
    pub genesis: String,
}

impl ArchiveReader {
    /// Reads the whole file, and fails if it is incomplete or damaged. Then opens the archive at its first message.
    pub fn open_verified(path: &Path) -> Result<Self, ArchiveError> {
        let mut reader = Self::open(path)?;
        let (mut messages, mut digest) = (0, blake3::Hasher::new());
        loop {
            match reader.next_record()? {
                (ArchiveRecord::Message(_), bytes) => {
                    digest.update(&bytes);
                    messages += 1;
                }
                (ArchiveRecord::End { messages: expected, digest: expected_digest }, _) => {
                    if expected == messages && expected_digest == *digest.finalize().as_bytes() {
                        return Self::open(path);
                    }
                    return Err(reader.not_whole("its digest does not match"));
                }
                (ArchiveRecord::Beginning { .. }, _) => return Err(reader.not_whole("it begins twice")),
            }
        }
    }

    /// Next message of the archive; `None` after the last one.
    pub fn next_message(&mut self) -> Result<Option<ArchivedMessage>, ArchiveError> {
        match self.next_record()?.0 {
            ArchiveRecord::Message(message) => Ok(Some(message)),
            ArchiveRecord::Beginning { .. } | ArchiveRecord::End { .. } => Ok(None),
        }
    }

    fn open(path: &Path) -> Result<Self, ArchiveError> {
        let shown = path.display().to_string();
        let failed = |source| ArchiveError::File { path: shown.clone(), source };
        // Opening a FIFO would block until another process opens it for writing.
        if !path.metadata().map_err(failed)?.is_file() {
            return Err(ArchiveError::Refused(format!("cannot read {shown}: it is not a regular file")));
        }
        let input = zstd::Decoder::new(File::open(path).map_err(failed)?).map_err(failed)?;
        let mut reader = Self { input, path: shown, genesis: String::new() };
        reader.genesis = match reader.next_record()?.0 {
            ArchiveRecord::Beginning { layout: LAYOUT, genesis } => genesis,
            ArchiveRecord::Beginning { layout, .. } => {
                return Err(reader.not_whole(format!("its layout is {layout}, not {LAYOUT}")));
            }
            _ => return Err(reader.not_whole("it has no header of an export")),
        };
        Ok(reader)
    }

    fn not_whole(&self, reason: impl ToString) -> ArchiveError {
        ArchiveError::NotWhole { path: self.path.clone(), reason: reason.to_string() }
    }

    /// Reads the next record. Returns the decoded record and its encoded bytes.
    fn next_record(&mut self) -> Result<(ArchiveRecord, Vec<u8>), ArchiveError> {
        let mut length = [0; 4];
        self.input.read_exact(&mut length).map_err(|error| self.not_whole(error))?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_RECORD_BYTES {
            return Err(self.not_whole(format!("it has a record of {length} bytes")));
        }
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes).map_err(|error| self.not_whole(error))?;
        let record = postcard::from_bytes(&bytes).map_err(|error| self.not_whole(error))?;
        Ok((record, bytes))
    }
}

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
