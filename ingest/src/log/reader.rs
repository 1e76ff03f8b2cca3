//! Log reader: manifests, batch ids, rejects and single messages.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, Message};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use event_log::frame::{Body, Envelope, Frame, FrameId};
use event_log::replica::{LaggingReplica, lagging};
use event_log::stream::{StreamSettings, genesis, is_compressed};
use futures::StreamExt;
use market::event::{Kind, Reject, RunManifest, RunState};

mod error;

pub use error::LogError;

use crate::log::publisher::{Outgoing, PublishFailure, Publisher};

/// How often reading is tried, and the pause before another try: a cluster that lost a node elects another leader.
const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_millis(500);
/// After this long without a message that the server says it has, it is looked for by hand, too.
const STALLED: Duration = Duration::from_secs(1);

/// The log, opened.
pub struct Log {
    /// The connection by which messages are published.
    pub context: Context,
    stream: Stream,
    settings: StreamSettings,
}

impl Log {
    /// Connects and opens the stream, which is created when it does not exist yet.
    pub async fn open(settings: &StreamSettings) -> Result<Self, LogError> {
        let context = settings.connect("ingest").await?;
        let stream = settings.open(&context).await?;
        genesis(&stream)?;
        Ok(Self { context, stream, settings: settings.clone() })
    }

    /// Connects and opens the stream, which has to exist: a log that is gone is not an empty one.
    pub async fn existing(settings: &StreamSettings) -> Result<Self, LogError> {
        let context = settings.connect("ingest").await?;
        let stream = settings.existing(&context).await?;
        genesis(&stream)?;
        Ok(Self { context, stream, settings: settings.clone() })
    }

    /// A publisher to this log.
    pub(crate) fn publisher(&self) -> Publisher {
        Publisher::new(self.context.clone(), self.stream.clone())
    }

    /// Publishes a manifest and waits until it is on disk; false when it was to follow the manifest at a sequence and
    /// another one came between.
    pub(crate) async fn publish_manifest(
        &self,
        mut headers: HeaderMap,
        body: Bytes,
        after: Option<u64>,
    ) -> Result<bool, PublishFailure> {
        let Some(after) = after else {
            let mut publisher = self.publisher();
            publisher.send(Outgoing { subject: self.subject(Kind::Run), headers, body }).await?;
            return publisher.drain().await.map(|()| true);
        };
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.to_string());
        let unreachable = |error: PublishError| PublishFailure::Unreachable { reason: error.to_string() };
        let sent = self.context.publish_with_headers(self.subject(Kind::Run), headers, body).await;
        match sent.map_err(unreachable)?.await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(false),
            Err(error) => Err(unreachable(error)),
        }
    }

    /// The subject of a kind.
    pub fn subject(&self, kind: Kind) -> String {
        self.settings.subject(kind)
    }

    /// Every manifest and its sequence, in order.
    pub async fn manifests(&self) -> Result<Vec<(u64, RunManifest)>, LogError> {
        let mut manifests = Vec::new();
        self.each_manifest(1, |sequence, _, run| manifests.push((sequence, run))).await?;
        Ok(manifests)
    }

    /// Every manifest and when the log took it, in order.
    pub(crate) async fn dated_manifests(&self) -> Result<Vec<(DateTime<Utc>, RunManifest)>, LogError> {
        let mut manifests = Vec::new();
        self.each_manifest(1, |_, taken, run| manifests.push((taken, run))).await?;
        Ok(manifests)
    }

    /// Every manifest from a sequence on, with its sequence and when the log took it, in order.
    pub(crate) async fn each_manifest(
        &self,
        from: u64,
        mut each: impl FnMut(u64, DateTime<Utc>, RunManifest),
    ) -> Result<(), LogError> {
        self.scan(vec![self.subject(Kind::Run)], from, false, |sequence, message| {
            for frame in decode(sequence, message)? {
                let Body::Run(run) = frame.body else { continue };
                let info = message.info().map_err(LogError::Read)?;
                let taken =
                    DateTime::from_timestamp(info.published.unix_timestamp(), 0).ok_or_else(|| {
                        LogError::Read(format!("message {sequence} is dated beyond the calendar").into())
                    })?;
                each(sequence, taken, *run);
            }
            Ok(())
        })
        .await
    }

    /// What the log has of some runs from a sequence on.
    pub(crate) async fn in_log(&self, from: u64, runs: &HashSet<String>) -> Result<InLog, LogError> {
        let mut found = InLog::default();
        let kinds =
            Kind::ALL.iter().filter(|kind| **kind != Kind::Run).map(|kind| self.subject(*kind)).collect();
        self.scan(kinds, from, true, |_, message| {
            // A damaged message is the verification's business; here it is only no reason not to publish.
            let envelopes = Envelope::read_all(message.headers.as_ref()).unwrap_or_default();
            if let Some(first) = envelopes.first().filter(|first| runs.contains(&first.run)) {
                *found.messages.entry(first.run.clone()).or_default() += 1;
                found.frames.extend(envelopes.iter().map(|envelope| envelope.id));
            }
            Ok(())
        })
        .await?;
        Ok(found)
    }

    /// The envelope of every frame of some kinds before a sequence.
    pub(crate) async fn envelopes(
        &self,
        kinds: &[Kind],
        before: u64,
        mut each: impl FnMut(&Envelope),
    ) -> Result<(), LogError> {
        let subjects = kinds.iter().map(|kind| self.subject(*kind)).collect();
        self.scan(subjects, 1, true, |sequence, message| {
            if sequence < before {
                envelopes(sequence, message)?.iter().for_each(&mut each);
            }
            Ok(())
        })
        .await
    }

    /// Every frame of a kind before a sequence whose envelope is wanted, by its run or source: those that share a message
    /// have these in common.
    pub(crate) async fn frames(
        &self,
        kind: Kind,
        before: u64,
        wanted: impl Fn(&Envelope) -> bool,
        mut each: impl FnMut(Frame),
    ) -> Result<(), LogError> {
        self.scan(vec![self.subject(kind)], 1, false, |sequence, message| {
            if sequence < before && envelopes(sequence, message)?.iter().any(&wanted) {
                decode(sequence, message)?.into_iter().for_each(&mut each);
            }
            Ok(())
        })
        .await
    }

    /// Every refused row, with the run and source that refused it.
    pub async fn rejects(&self, mut each: impl FnMut(&Frame, &Reject)) -> Result<(), LogError> {
        self.scan(vec![self.subject(Kind::Reject)], 1, false, |sequence, message| {
            for frame in decode(sequence, message)? {
                if let Body::Rejects(rejects) = &frame.body {
                    rejects.iter().for_each(|reject| each(&frame, reject));
                }
            }
            Ok(())
        })
        .await
    }

    /// First and last sequence there are now; none while the log is empty.
    pub fn range(&self) -> Option<std::ops::RangeInclusive<u64>> {
        let state = &self.stream.cached_info().state;
        (state.messages > 0).then(|| state.first_sequence.max(1)..=state.last_sequence)
    }

    /// The stream's identity.
    pub fn genesis(&self) -> Result<String, LogError> {
        Ok(genesis(&self.stream)?)
    }

    /// True if nats-server compresses the stream.
    pub fn is_compressed(&self) -> bool {
        is_compressed(&self.stream)
    }

    /// Replicas that are not current, and do not become current within a few attempts.
    pub async fn lagging_replicas(&self) -> Result<Vec<LaggingReplica>, LogError> {
        let mut attempt = 1;
        loop {
            match self.stream.get_info().await {
                Ok(info) => {
                    let found = lagging(&info);
                    if found.is_empty() || attempt == ATTEMPTS {
                        return Ok(found);
                    }
                }
                Err(error) if attempt == ATTEMPTS => return Err(LogError::Read(error.into())),
                Err(_) => {}
            }
            attempt += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Every message there is now, in order, as it is stored.
    pub async fn messages(
        &self,
        each: impl FnMut(u64, &Message) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let subjects = Kind::ALL.iter().map(|kind| self.subject(*kind)).collect();
        self.scan(subjects, 1, false, each).await
    }

    /// The frames of the message at a sequence.
    pub async fn frames_at(&self, sequence: u64) -> Result<Vec<Frame>, LogError> {
        let message =
            self.stream.get_raw_message(sequence).await.map_err(|_| LogError::NoMessage(sequence))?;
        Frame::decode(Some(&message.headers), &message.payload)
            .map_err(|source| LogError::Frame { sequence, source })
    }

    /// Reads the present messages of some subjects from a sequence on. If the server goes away, reading continues from the
    /// same sequence with another one; messages that the server has lost or cannot read are skipped.
    async fn scan(
        &self,
        subjects: Vec<String>,
        from: u64,
        headers_only: bool,
        mut each: impl FnMut(u64, &Message) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let (mut next, mut failures) = (from, 0);
        loop {
            let read = self.scan_once(&subjects, next, headers_only, |sequence, message| {
                next = sequence + 1;
                each(sequence, message)
            });
            match read.await {
                Ok(None) => return Ok(()),
                Ok(Some(readable)) => next = readable,
                Err(LogError::Read(reason)) if failures + 1 < ATTEMPTS => {
                    failures += 1;
                    tracing::debug!(%reason, next, "reading the log is tried again");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Where reading goes on when the server has delivered nothing from a sequence on for a while: after the messages that
    /// cannot be read, which it never passes by itself, or there again. None when no message of these subjects is left.
    async fn beyond_the_unreadable(&self, from: u64, subjects: &[String]) -> Result<Option<u64>, LogError> {
        tokio::time::sleep(STALLED).await;
        let (mut unreadable, mut undelivered) = (0, false);
        for sequence in from..=self.range().map_or(0, |range| *range.end()) {
            match self.stream.get_raw_message(sequence).await {
                Ok(_) if unreadable > 0 => {
                    tracing::warn!(messages = unreadable, before = sequence, "messages cannot be read");
                    return Ok(Some(sequence));
                }
                Ok(message) => undelivered |= subjects.contains(&message.subject.to_string()),
                Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => unreadable += 1,
                Err(error) => return Err(LogError::Read(error.into())),
            }
        }
        Ok(undelivered.then_some(from))
    }

    /// Reads to the last message, or to where the server delivers nothing more; then gives where reading goes on.
    async fn scan_once(
        &self,
        subjects: &[String],
        from: u64,
        headers_only: bool,
        mut each: impl FnMut(u64, &Message) -> Result<(), LogError>,
    ) -> Result<Option<u64>, LogError> {
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from.max(1) },
            ack_policy: AckPolicy::None,
            filter_subjects: subjects.to_vec(),
            headers_only,
            memory_storage: true,
            num_replicas: 1,
            inactive_threshold: Duration::from_secs(60),
            ..pull::Config::default()
        };
        let consumer =
            self.stream.create_consumer(config).await.map_err(|error| LogError::Read(error.into()))?;
        let mut pending = consumer.cached_info().num_pending;
        let batch = if headers_only { 4096 } else { 64 };
        let mut messages = consumer
            .stream()
            .max_messages_per_batch(batch)
            .messages()
            .await
            .map_err(|error| LogError::Read(error.into()))?;
        let mut next = from;
        while pending > 0 {
            // A server that has not read for minutes first looks through all of a large log, and does deliver then.
            let message = tokio::select! {
                biased;
                message = messages.next() => message,
                beyond = self.beyond_the_unreadable(next, subjects) => return beyond,
            };
            let Some(message) = message else { break };
            let message = message.map_err(|error| LogError::Read(error.into()))?;
            let info = message.info().map_err(LogError::Read)?;
            let sequence = info.stream_sequence;
            (pending, next) = ((pending - 1).min(info.pending), sequence + 1);
            each(sequence, &message)?;
        }
        Ok(None)
    }
}

fn envelopes(sequence: u64, message: &Message) -> Result<Vec<Envelope>, LogError> {
    Envelope::read_all(message.headers.as_ref()).map_err(|source| LogError::Frame { sequence, source })
}

fn decode(sequence: u64, message: &Message) -> Result<Vec<Frame>, LogError> {
    Frame::decode(message.headers.as_ref(), &message.payload)
        .map_err(|source| LogError::Frame { sequence, source })
}

/// What the log has of some runs.
#[derive(Debug, Default)]
pub(crate) struct InLog {
    pub frames: HashSet<FrameId>,
    /// Messages of each run.
    pub messages: HashMap<String, u64>,
}

/// What the log's manifests say about the inputs of a load.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// A completed run that loaded all of them.
    pub completed: Option<RunManifest>,
    /// The start of this very run, when it was begun before.
    pub started: Option<RunManifest>,
    /// First sequence at which a frame of them may be, and the runs that may have published it.
    pub earlier: Option<(u64, HashSet<String>)>,
}

/// Finds what is known of a source's inputs.
pub fn known(manifests: Vec<(u64, RunManifest)>, run: &str, source: &str, inputs: &[String]) -> Known {
    let mut known = Known::default();
    let wanted: HashSet<&str> = inputs.iter().map(String::as_str).collect();
    for (sequence, manifest) in manifests.into_iter().filter(|(_, manifest)| manifest.source == source) {
        let there: HashSet<&str> = manifest.inputs.iter().map(String::as_str).collect();
        let shared = wanted.intersection(&there).count();
        if shared == 0 {
            continue;
        }
        let (first, runs) = known.earlier.get_or_insert_with(|| (sequence, HashSet::new()));
        // A completion whose start is lost comes after its frames, wherever those begin.
        if runs.insert(manifest.run.clone()) && manifest.state == RunState::Completed {
            *first = 1;
        }
        match manifest.state {
            RunState::Completed if shared == wanted.len() => known.completed = Some(manifest),
            RunState::Started if manifest.run == run && known.started.is_none() => {
                known.started = Some(manifest)
            }
            RunState::Completed | RunState::Started => {}
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(run: &str, state: RunState, inputs: &[&str]) -> RunManifest {
        let begun =
            RunManifest::started(run.to_owned(), "eod".to_owned(), "auto".to_owned(), DateTime::UNIX_EPOCH);
        RunManifest { state, inputs: inputs.iter().map(|input| (*input).to_owned()).collect(), ..begun }
    }

    fn find(run: &str, inputs: &[&str], manifests: &[(u64, RunManifest)]) -> Known {
        let inputs: Vec<String> = inputs.iter().map(|input| (*input).to_owned()).collect();
        known(manifests.to_vec(), run, "eod", &inputs)
    }

    #[test]
    fn a_file_is_found_in_a_load_of_other_files() {
        let log = [
            (1, manifest("other", RunState::Started, &["x"])),
            (5, manifest("both", RunState::Started, &["a", "b"])),
            (9, manifest("both", RunState::Completed, &["a"])),
        ];
        let found = find("mine", &["b"], &log);
        assert_eq!((found.completed, found.started), (None, None));
        assert_eq!(found.earlier, Some((5, HashSet::from(["both".to_owned()]))));
        assert!(find("mine", &["a"], &log).completed.is_some());
        assert!(find("mine", &["a", "b"], &log).completed.is_none());
        assert!(find("both", &["a", "b"], &log).started.is_some());
        assert_eq!(find("mine", &["c"], &log), Known::default());
        // Without the start, its frames may be anywhere before.
        assert_eq!(find("mine", &["a"], &log[2..]).earlier, Some((1, HashSet::from(["both".to_owned()]))));
    }
}
