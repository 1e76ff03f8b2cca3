//! Publication of a run: record batches between the start manifest and the completion manifest.
//!
//! The completion manifest is published only after all batches are on disk. Batches already in the log are skipped.
//!
//! Errors that end a load, or another command that publishes a run.

use std::collections::{BTreeMap, HashSet};
use std::io;

use event_log::archive::ArchiveError;
use event_log::record_batch::{BatchError, BatchId, SharedMessageBuilder};
use market::event::{InputBatchCount, Kind, RunChange, RunIdError, RunManifest, RunState};

use crate::batch::batch_spool::EncodedBatch;
use crate::log::publisher::{OutgoingMessage, PublishFailure, Publisher, encode_manifest};
use crate::log::reader::{Log, LogError, StoredBatches};
use crate::log::run_states::encode_change;

pub(crate) struct Publication<'a> {
    log: &'a Log,
    publisher: Publisher,
    /// Small batches that are not sent yet, by kind. Small batches of one kind share a message.
    waiting: BTreeMap<Kind, SharedMessageBuilder>,
    /// Manifest of the run. [`Self::publish_manifest`] adds the state, the digest and the counts of batches and
    /// messages.
    pub manifest: RunManifest,
    /// Ids of the batches that are already in the log or accepted by this run. They are not sent again.
    in_log: HashSet<BatchId>,
    digest: blake3::Hasher,
    /// Number of batches of this run, by digest of the input and by kind of rows.
    batches: BTreeMap<(String, Kind), u64>,
    /// Number of batches that this attempt of the run published.
    pub published: u64,
    /// Number of batches that an earlier attempt or run had already published.
    pub found: u64,
    /// Number of messages of this run in the log, including those of earlier attempts.
    messages: u64,
}

impl<'a> Publication<'a> {
    /// Creates a publication. `stored` lists the batches that the log already has.
    pub(crate) fn new(log: &'a Log, manifest: RunManifest, stored: StoredBatches) -> Self {
        let StoredBatches { ids: in_log, messages } = stored;
        Self {
            log,
            publisher: log.publisher(),
            waiting: BTreeMap::new(),
            messages: messages.get(&manifest.run).copied().unwrap_or_default(),
            manifest,
            in_log,
            digest: blake3::Hasher::new(),
            batches: BTreeMap::new(),
            published: 0,
            found: 0,
        }
    }

    /// Publishes a batch unless the log has it. Small batches of one kind are collected and sent in one message.
    pub(crate) async fn publish_batch(
        &mut self,
        input_digest: &str,
        label: &str,
        batch: EncodedBatch,
    ) -> Result<(), LoadError> {
        let (kind, number) = (batch.kind, self.manifest.chunks);
        let run = (self.manifest.source.as_str(), self.manifest.run.as_str());
        let (envelope, body) = batch.into_message(run, input_digest, label, number);
        self.digest.update(&envelope.id.0);
        self.manifest.chunks += 1;
        *self.batches.entry((input_digest.to_owned(), kind)).or_default() += 1;
        if !self.in_log.insert(envelope.id) {
            self.found += 1;
            return Ok(());
        }
        self.published += 1;
        let waiting = self.waiting.entry(kind).or_default();
        waiting.add_batch(envelope, body)?;
        if waiting.is_full() {
            self.send_waiting(kind).await?;
        }
        Ok(())
    }

    /// Sends the collected batches of a kind.
    async fn send_waiting(&mut self, kind: Kind) -> Result<(), LoadError> {
        if let Some((headers, body)) =
            self.waiting.get_mut(&kind).and_then(SharedMessageBuilder::take_message)
        {
            self.messages += 1;
            self.publisher.send(OutgoingMessage { subject: self.log.subject(kind), headers, body }).await?;
        }
        Ok(())
    }

    /// Waits until all published batches are on disk.
    pub(crate) async fn wait_until_stored(&mut self) -> Result<(), LoadError> {
        for kind in self.waiting.keys().copied().collect::<Vec<_>>() {
            self.send_waiting(kind).await?;
        }
        Ok(self.publisher.wait_until_stored().await?)
    }

    /// Publishes the manifest with the given state, and waits until it is on disk.
    pub(crate) async fn publish_manifest(&mut self, state: RunState) -> Result<(), LoadError> {
        let mut manifest = self.manifest.clone();
        manifest.state = state;
        manifest.digest = self.digest.finalize().to_hex().to_string();
        let batches = self.batches.iter().map(|((input, kind), batches)| InputBatchCount {
            input: input.clone(),
            kind: *kind,
            frames: *batches,
        });
        manifest.frames = batches.collect();
        manifest.messages = Some(self.messages);
        // A refused file may be loaded later, in the same run. The run then gets a second completion manifest. The
        // digests of the two manifests differ, so their message ids differ too.
        let identity = format!("{}/{}", manifest.run, manifest.digest);
        let (headers, body) = encode_manifest(manifest, &identity, state as u64)?;
        self.publisher.send(OutgoingMessage { subject: self.log.subject(Kind::Run), headers, body }).await?;
        self.wait_until_stored().await
    }
}

/// Publishes a change of a run's state, and waits until it is on disk. `source` is the source of the run. Returns the id
/// of the change.
pub(crate) async fn publish_change(log: &Log, source: &str, change: RunChange) -> Result<BatchId, LoadError> {
    let (id, headers, body) = encode_change(source, change)?;
    log.publish_manifest(headers, body, None).await?;
    Ok(id)
}

/// Errors that end a load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{0}; run the same command again to resume")]
    Publish(#[from] PublishFailure),
    #[error("interrupted; published rows are kept, run the same command again to resume")]
    Interrupted,
    #[error(transparent)]
    Run(#[from] RunIdError),
    /// Any other error. The text is the complete message.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    StandardInput(#[from] io::Error),
    #[error("cannot read the command in its manifest: {0}")]
    Command(#[from] clap::Error),
    #[error("a task of the load ended unexpectedly: {0}")]
    Task(#[source] tokio::task::JoinError),
    #[error("cannot write the rows of the dry run for the projector: {0}")]
    Candidate(#[from] ArchiveError),
    #[error("cannot encode a record batch: {0}")]
    Encode(#[from] BatchError),
}

impl LoadError {
    /// Exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Log(_) | Self::Publish(_) => 3,
            Self::Interrupted => 130,
            _ => 2,
        }
    }
}
