//! Connection of ingest to the log: reads manifests, batch ids, rejects and single messages.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use event_log::archive::ArchiveError;
use event_log::message::{FetchError, LogMessage};
use event_log::record_batch::{BatchError, BatchId, Body, RecordBatch};
use event_log::stream::{
    LaggingReplica, StreamError, StreamSettings, find_lagging_replicas, stream_identity,
};
use market::event::{Kind, RunEvent, RunIdError};

mod scan;

use crate::log::publisher::{OutgoingMessage, PublishFailure, Publisher};

/// Maximum number of checks for lagging replicas. The pauses between the checks give a cluster time to elect a leader.
const MAX_ATTEMPTS: usize = 5;
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Connection to the log: reads its messages and publishes manifests.
pub struct Log {
    /// JetStream context for publishing.
    pub context: Context,
    pub(crate) stream: Stream,
    settings: StreamSettings,
    /// Sequences of the damaged messages that were skipped.
    skipped: Mutex<BTreeSet<u64>>,
}

impl Log {
    /// Connects to NATS and opens the stream of the log. Creates the stream if it does not exist.
    pub async fn open(settings: &StreamSettings) -> Result<Self, LogError> {
        let context = settings.connect("ingest").await?;
        let stream = settings.open(&context).await?;
        Self::of_stream(context, stream, settings)
    }

    /// Connects to NATS and opens the stream of the log. Fails if the stream does not exist, so that a lost log does
    /// not look like an empty log.
    pub async fn open_existing(settings: &StreamSettings) -> Result<Self, LogError> {
        let context = settings.connect("ingest").await?;
        let stream = settings.open_existing(&context).await?;
        Self::of_stream(context, stream, settings)
    }

    fn of_stream(context: Context, stream: Stream, settings: &StreamSettings) -> Result<Self, LogError> {
        stream_identity(&stream)?;
        Ok(Self { context, stream, settings: settings.clone(), skipped: Mutex::default() })
    }

    pub(crate) fn publisher(&self) -> Publisher {
        Publisher::new(self.context.clone(), self.stream.clone(), self.settings.clone())
    }

    /// Publishes a manifest, waits until it is on disk, and returns true. If the log has a manifest with a greater
    /// sequence than `after`, publishes nothing and returns false. If `after` is `None`, publishes the manifest in any
    /// case.
    pub(crate) async fn publish_manifest(
        &self,
        mut headers: HeaderMap,
        body: Bytes,
        after: Option<u64>,
    ) -> Result<bool, PublishFailure> {
        let Some(after) = after else {
            let mut publisher = self.publisher();
            publisher.send(OutgoingMessage { subject: self.subject(Kind::Run), headers, body }).await?;
            return publisher.wait_until_stored().await.map(|()| true);
        };
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.to_string());
        let sent = self.context.publish_with_headers(self.subject(Kind::Run), headers, body);
        let stored = async { sent.await?.await };
        match stored.await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(false),
            Err(error) => {
                let failure = PublishFailure::from_refusal(error);
                failure.report_to_log(&self.settings).await;
                Err(failure)
            }
        }
    }

    /// Subject of the messages with rows of a kind.
    pub fn subject(&self, kind: Kind) -> String {
        self.settings.subject(kind)
    }

    /// Calls `each` with sequence, storage time, id and event, for every event of the kind `run` from `from_sequence`
    /// on. Returns the sequence of the last message read, even if it is damaged; 0 if there is none.
    pub(crate) async fn each_run_event(
        &self,
        from_sequence: u64,
        mut each: impl FnMut(u64, DateTime<Utc>, BatchId, RunEvent),
    ) -> Result<u64, LogError> {
        let mut last = 0;
        self.scan(&[self.subject(Kind::Run)], from_sequence, false, |message| {
            last = message.sequence.to_u64();
            for batch in self.read_batches(message)? {
                let Body::Run(event) = batch.body else { continue };
                each(last, message.stored_at, batch.id, event);
            }
            Ok(())
        })
        .await?;
        Ok(last)
    }

    /// Finds the record batches of `runs` in the log, in messages from `from_sequence` on.
    pub(crate) async fn find_batches(
        &self,
        from_sequence: u64,
        runs: &HashSet<String>,
    ) -> Result<StoredBatches, LogError> {
        let mut found = StoredBatches::default();
        let kinds = Kind::ALL.iter().filter(|kind| **kind != Kind::Run);
        let subjects: Vec<String> = kinds.map(|kind| self.subject(*kind)).collect();
        self.scan(&subjects, from_sequence, true, |message| {
            // A damaged message counts as missing in this search. `ingest verify` reports it.
            let envelopes = message.read_envelopes().unwrap_or_default();
            if let Some(first) = envelopes.first().filter(|first| runs.contains(&first.run)) {
                *found.messages.entry(first.run.clone()).or_default() += 1;
                found.ids.extend(envelopes.iter().map(|envelope| envelope.id));
            }
            Ok(())
        })
        .await?;
        Ok(found)
    }

    /// Calls `each` for the batches of a kind.
    pub(crate) async fn each_batch(
        &self,
        kind: Kind,
        mut each: impl FnMut(RecordBatch),
    ) -> Result<(), LogError> {
        self.scan(&[self.subject(kind)], 1, false, |message| {
            self.read_batches(message)?.into_iter().for_each(&mut each);
            Ok(())
        })
        .await
    }

    /// First and last sequence in the log at the time when it was opened; `None` if it was empty.
    pub fn sequence_range(&self) -> Option<std::ops::RangeInclusive<u64>> {
        let state = &self.stream.cached_info().state;
        (state.messages > 0).then(|| state.first_sequence.max(1)..=state.last_sequence)
    }

    /// Replicas that lag behind the leader. If a check finds some, or fails, it is repeated several times. The result
    /// is empty as soon as one check finds no lagging replica.
    pub async fn lagging_replicas(&self) -> Result<Vec<LaggingReplica>, LogError> {
        let check = async || match self.stream.get_info().await {
            Ok(info) => Ok(find_lagging_replicas(&info)),
            Err(error) => Err(LogError::Read(error.into())),
        };
        let mut found = check().await;
        for _ in 1..MAX_ATTEMPTS {
            if matches!(&found, Ok(lagging) if lagging.is_empty()) {
                break;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
            found = check().await;
        }
        found
    }

    /// Calls `each` for every message in the log, in order. The messages are not decoded.
    pub async fn each_message(
        &self,
        each: impl FnMut(&LogMessage) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        self.scan(&[], 1, false, each).await
    }

    /// Decodes the batches of the message at a sequence.
    pub async fn decode_batches_at(&self, sequence: u64) -> Result<Vec<RecordBatch>, LogError> {
        let message = self.fetch(sequence).await?.ok_or(LogError::NoMessage(sequence))?;
        message.decode_batches().map_err(|source| LogError::Batch { sequence, source })
    }

    /// Decodes the batches of a message; none, with a warning, if it is damaged. Fails if a newer program version wrote the
    /// message.
    fn read_batches(&self, message: &LogMessage) -> Result<Vec<RecordBatch>, LogError> {
        let sequence = message.sequence.to_u64();
        match message.decode_batches() {
            Err(source) if source.stops_reader() => Err(LogError::Batch { sequence, source }),
            Err(error) => {
                if self.skipped.lock().unwrap_or_else(PoisonError::into_inner).insert(sequence) {
                    tracing::warn!(sequence, %error, "cannot read a message of the log: skipped");
                }
                Ok(Vec::new())
            }
            Ok(read) => Ok(read),
        }
    }
}

/// Record batches in the log that belong to the requested runs.
#[derive(Debug, Default)]
pub(crate) struct StoredBatches {
    pub ids: HashSet<BatchId>,
    /// Number of messages of each run in the log, by run id.
    pub messages: HashMap<String, u64>,
}

/// Errors of reading the log.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("cannot read the log: {0}")]
    Read(#[source] async_nats::Error),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("cannot read message {sequence} of the log: {source}")]
    Batch { sequence: u64, source: BatchError },
    #[error("cannot write the log to the file: {0}")]
    Archive(#[source] ArchiveError),
    #[error(transparent)]
    Copy(#[from] ArchiveError),
    #[error("a task that reads the log ended unexpectedly: {0}")]
    Task(#[source] tokio::task::JoinError),
    #[error("the log has no message {0}")]
    NoMessage(u64),
    #[error(transparent)]
    Run(#[from] RunIdError),
}

impl LogError {
    /// Exit code for this error: 2 for a message or run that does not exist and for an unusable file of a copy, 3 for a log
    /// that cannot be used.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoMessage(_) | Self::Run(_) => 2,
            Self::Copy(
                ArchiveError::File { .. } | ArchiveError::NotWhole { .. } | ArchiveError::Refused(_),
            ) => 2,
            _ => 3,
        }
    }

    /// True if the operation may succeed with a new connection.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Read(_) | Self::Fetch(FetchError::Request { .. } | FetchError::Server { .. }) => true,
            Self::Stream(error) => {
                matches!(error, StreamError::Unreachable { .. } | StreamError::Unanswered { .. })
            }
            _ => false,
        }
    }

    /// True if the server is reachable, but the log does not exist.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Stream(StreamError::Absent { .. }))
    }
}
