//! `ingest export` and `ingest import`: the log in a file, the second copy.
//!
//! The file is one zstd stream of records, each a length and a postcard body: a beginning with the stream's identity,
//! every message as it was published, an end with count and digest. An imported log has the same identity and the same
//! sequence numbers, so facts folded from the original go on with it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishAckFuture;
use bytes::Bytes;
use clap::Args;
use event_log::stream::{StreamError, StreamSettings};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use crate::log::{Log, LogError};
use crate::publish::is_full;

/// Writes the log to a file, whole: the second copy
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// File to write (zstd); it must not exist yet
    pub file: PathBuf,
    /// Print the figures as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Writes an exported log into an empty stream, with its identity and its sequence numbers; goes on with an
/// interrupted import
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// File that `ingest export` wrote
    pub file: PathBuf,
    /// Print the figures as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Why the log could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("{path}: {source}")]
    File { path: String, source: std::io::Error },
    #[error("{path} is not a whole export of a log: {reason}")]
    NotWhole { path: String, reason: String },
    #[error("message {sequence} was not accepted: {reason}; run the same command again to go on")]
    Publish { sequence: u64, reason: String },
    #[error(
        "message {sequence} was not accepted, for the log has no room ({reason}): make room where NATS stores it, restart NATS, then run the same command again to go on"
    )]
    Full { sequence: u64, reason: String },
    #[error("{0}")]
    Refused(String),
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Copied {
    pub messages: u64,
    /// Sequences of the original that no longer exist; those after them got other numbers.
    pub gaps: u64,
    /// Messages an interrupted import had written before.
    pub there_before: u64,
    pub file: String,
}

impl Copied {
    /// The figures for people.
    pub fn text(&self) -> String {
        let mut text = format!("{} messages, {}\n", self.messages, self.file);
        if self.there_before > 0 {
            text.push_str(&format!("{} of them were there before\n", self.there_before));
        }
        if self.gaps > 0 {
            text.push_str(&format!(
                "{} sequences were lost in the original: sequences after them are smaller in a copy, so facts must be folded anew from it\n",
                self.gaps
            ));
        }
        text
    }
}

#[derive(Debug, Serialize, Deserialize)]
enum Record {
    Beginning { layout: u32, genesis: String },
    Message { sequence: u64, kind: String, headers: Vec<(String, String)>, body: Vec<u8> },
    End { messages: u64, digest: [u8; 32] },
}

const LAYOUT: u32 = 1;
/// More than any message of the log.
const LARGEST: usize = 64 << 20;
/// Messages on the way at once.
const WINDOW: usize = 64;
const MESSAGE_ID: &str = "Nats-Msg-Id";

struct Archive<W: Write> {
    out: zstd::Encoder<'static, W>,
    digest: blake3::Hasher,
    messages: u64,
}

impl<W: Write> Archive<W> {
    fn write(&mut self, record: &Record) -> std::io::Result<()> {
        let bytes = postcard::to_stdvec(record).map_err(std::io::Error::other)?;
        if matches!(record, Record::Message { .. }) {
            self.digest.update(&bytes);
            self.messages += 1;
        }
        self.out.write_all(&u32::try_from(bytes.len()).map_err(std::io::Error::other)?.to_le_bytes())?;
        self.out.write_all(&bytes)
    }

    fn finish(mut self) -> std::io::Result<W> {
        let (messages, digest) = (self.messages, *self.digest.finalize().as_bytes());
        self.write(&Record::End { messages, digest })?;
        self.out.finish()
    }
}

/// Writes the log to a file that appears only when it is whole.
pub async fn export(args: &ExportArgs, settings: &StreamSettings) -> Result<Copied, ArchiveError> {
    let failed = |source| ArchiveError::File { path: args.file.display().to_string(), source };
    if args.file.exists() {
        let path = args.file.display();
        let message =
            format!("{path} exists already and is not overwritten: say another name, or move it away");
        return Err(ArchiveError::Refused(message));
    }
    let log = Log::existing(settings).await?;
    let staging = args.file.with_extension("partial");
    let file = File::create(&staging).map_err(failed)?;
    let out = zstd::Encoder::new(BufWriter::new(file), 3).map_err(failed)?;
    let mut archive = Archive { out, digest: blake3::Hasher::new(), messages: 0 };
    archive.write(&Record::Beginning { layout: LAYOUT, genesis: log.genesis()? }).map_err(failed)?;
    let bar = ProgressBar::new(log.range().map_or(0, |range| *range.end()));
    let (mut next, mut gaps) = (1, 0);
    log.messages(|sequence, message| {
        gaps += sequence - next;
        next = sequence + 1;
        let record = Record::Message {
            sequence,
            kind: message.subject.rsplit('.').next().unwrap_or_default().to_owned(),
            headers: headers_of(message.headers.as_ref()),
            body: message.payload.to_vec(),
        };
        bar.set_position(sequence);
        archive.write(&record).map_err(|error| LogError::Read(format!("the file cannot be written: {error}")))
    })
    .await?;
    bar.finish_and_clear();
    let messages = archive.messages;
    let file = archive.finish().and_then(|out| out.into_inner().map_err(|error| error.into_error()));
    file.and_then(|file| file.sync_all()).map_err(failed)?;
    std::fs::rename(&staging, &args.file).map_err(failed)?;
    Ok(Copied { messages, gaps, there_before: 0, file: args.file.display().to_string() })
}

fn headers_of(headers: Option<&HeaderMap>) -> Vec<(String, String)> {
    let all = headers.into_iter().flat_map(|headers| headers.iter());
    all.flat_map(|(name, values)| values.iter().map(move |value| (name.to_string(), value.to_string())))
        .collect()
}

struct Reader {
    input: zstd::Decoder<'static, BufReader<File>>,
    path: String,
}

impl Reader {
    fn open(path: &Path) -> Result<Self, ArchiveError> {
        let shown = path.display().to_string();
        let failed = |source| ArchiveError::File { path: shown.clone(), source };
        let input = zstd::Decoder::new(File::open(path).map_err(failed)?).map_err(failed)?;
        Ok(Self { input, path: shown })
    }

    fn not_whole(&self, reason: impl ToString) -> ArchiveError {
        ArchiveError::NotWhole { path: self.path.clone(), reason: reason.to_string() }
    }

    /// The next record and its bytes.
    fn next(&mut self) -> Result<(Record, Vec<u8>), ArchiveError> {
        let mut length = [0; 4];
        self.input.read_exact(&mut length).map_err(|error| self.not_whole(error))?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LARGEST {
            return Err(self.not_whole(format!("it has a record of {length} bytes")));
        }
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes).map_err(|error| self.not_whole(error))?;
        let record = postcard::from_bytes(&bytes).map_err(|error| self.not_whole(error))?;
        Ok((record, bytes))
    }

    fn genesis(&mut self) -> Result<String, ArchiveError> {
        match self.next()?.0 {
            Record::Beginning { layout: LAYOUT, genesis } => Ok(genesis),
            Record::Beginning { layout, .. } => {
                Err(self.not_whole(format!("its layout is {layout}, not {LAYOUT}")))
            }
            _ => Err(self.not_whole("it does not begin as one")),
        }
    }
}

/// Reads a file to its end; an error unless it is whole.
fn check(path: &Path) -> Result<String, ArchiveError> {
    let mut reader = Reader::open(path)?;
    let genesis = reader.genesis()?;
    let (mut messages, mut digest) = (0, blake3::Hasher::new());
    loop {
        match reader.next()? {
            (Record::Message { .. }, bytes) => {
                digest.update(&bytes);
                messages += 1;
            }
            (Record::End { messages: told, digest: expected }, _) => {
                let whole = told == messages && expected == *digest.finalize().as_bytes();
                return if whole { Ok(genesis) } else { Err(reader.not_whole("its digest does not match")) };
            }
            (Record::Beginning { .. }, _) => return Err(reader.not_whole("it begins twice")),
        }
    }
}

/// Writes an exported log into the stream, which must be empty or hold its beginning.
pub async fn import(args: &ImportArgs, settings: &StreamSettings) -> Result<Copied, ArchiveError> {
    let genesis = check(&args.file)?;
    let context = settings.connect("ingest-import").await?;
    let mut stream = settings.restore(&context, &genesis).await?;
    let there_before =
        stream.info().await.map_err(|error| LogError::Read(error.to_string()))?.state.last_sequence;
    let mut reader = Reader::open(&args.file)?;
    reader.genesis()?;
    let mut import = Import { context, settings, sent: HashMap::new(), position: 0, waiting: Vec::new() };
    let (mut next, mut gaps) = (1, 0);
    while let (Record::Message { sequence, kind, headers, body }, _) = reader.next()? {
        gaps += sequence.saturating_sub(next);
        next = sequence + 1;
        import.message(kind, headers, body, there_before).await?;
    }
    import.settle().await?;
    if import.position < there_before {
        return Err(ArchiveError::Refused(format!(
            "stream {} has {there_before} messages, the file only {}: it went on since the export; import into one that is empty or does not exist yet (--nats-stream)",
            settings.nats_stream, import.position
        )));
    }
    settings.restored(&import.context).await?;
    Ok(Copied { messages: import.position, gaps, there_before, file: args.file.display().to_string() })
}

struct Import<'a> {
    context: Context,
    settings: &'a StreamSettings,
    /// When a message id was sent: the log recognises a repetition only within its window.
    sent: HashMap<String, Instant>,
    position: u64,
    waiting: Vec<(u64, PublishAckFuture)>,
}

impl Import<'_> {
    async fn message(
        &mut self,
        kind: String,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
        there_before: u64,
    ) -> Result<(), ArchiveError> {
        self.position += 1;
        let id =
            headers.iter().find(|(name, _)| name == MESSAGE_ID).map(|(_, id)| id.clone()).unwrap_or_default();
        let repeated = self.sent.insert(id, Instant::now());
        if self.position <= there_before {
            return Ok(());
        }
        if let Some(wait) =
            repeated.and_then(|at| event_log::stream::RESTORE_WINDOW.checked_sub(at.elapsed()))
        {
            self.settle().await?;
            tokio::time::sleep(wait + Duration::from_millis(50)).await;
        }
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(name.as_str(), value.as_str());
        }
        map.insert("Nats-Expected-Last-Sequence", (self.position - 1).to_string().as_str());
        let subject = format!("{}.{kind}", self.settings.nats_subject_prefix);
        let sent = self.context.publish_with_headers(subject, map, Bytes::from(body)).await;
        let sequence = self.position;
        let sent = sent.map_err(|error| ArchiveError::Publish { sequence, reason: error.to_string() })?;
        self.waiting.push((sequence, sent));
        if self.waiting.len() >= WINDOW { self.settle().await } else { Ok(()) }
    }

    /// Waits until everything sent is on disk, where it belongs.
    async fn settle(&mut self) -> Result<(), ArchiveError> {
        for (sequence, sent) in self.waiting.drain(..) {
            let acknowledged = sent.await.map_err(|error| {
                let (full, reason) = (is_full(&error), error.to_string());
                if full {
                    ArchiveError::Full { sequence, reason }
                } else {
                    ArchiveError::Publish { sequence, reason }
                }
            })?;
            if acknowledged.sequence != sequence || acknowledged.duplicate {
                let reason = format!("it became {}", acknowledged.sequence);
                return Err(ArchiveError::Publish { sequence, reason });
            }
        }
        Ok(())
    }
}
