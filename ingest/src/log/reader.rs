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
use event_log::message::LogMessage;
use event_log::record_batch::{BatchError, BatchId, Body, RecordBatch};
use event_log::replica::{LaggingReplica, find_lagging_replicas};
use event_log::stream::{StreamSettings, stream_identity};
use market::event::{Kind, RunEvent, RunManifest, RunState};

mod error;
mod scan;

pub use error::LogError;

use crate::log::publisher::{OutgoingMessage, PublishFailure, Publisher};
use crate::log::run_states::{Runs, StoredManifest};

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
        stream_identity(&stream)?;
        Ok(Self { context, stream, settings: settings.clone(), skipped: Mutex::default() })
    }

    /// Connects to NATS and opens the stream of the log. Fails if the stream does not exist, so that a lost log does
    /// not look like an empty log.
    pub async fn open_existing(settings: &StreamSettings) -> Result<Self, LogError> {
        let context = settings.connect("ingest").await?;
        let stream = settings.open_existing(&context).await?;
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

    fn read_batches(&self, message: &LogMessage) -> Result<Vec<RecordBatch>, LogError> {
        self.skip_damaged(message, message.decode_batches())
    }

    /// Replaces the content of a damaged message by an empty list, with a warning. Fails if a newer program version
    /// wrote the message.
    fn skip_damaged<T>(
        &self,
        message: &LogMessage,
        read: Result<Vec<T>, BatchError>,
    ) -> Result<Vec<T>, LogError> {
        let sequence = message.sequence.to_u64();
        match read {
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

/// Earlier runs with at least one of the inputs of a load, found in the manifests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EarlierRuns {
    /// Manifest of a completed run that loaded all inputs of the load; `None` if no run did.
    pub completed: Option<RunManifest>,
    /// Start manifest that an earlier attempt of this load published; `None` at the first attempt.
    pub started: Option<RunManifest>,
    /// First sequence that may have batches of the inputs, and the runs that published them. `None` if no run had one
    /// of the inputs.
    pub earlier: Option<(u64, HashSet<String>)>,
}

/// Finds the completed and started runs of `source` with at least one of `inputs`. `run` is the id of the new load. Of
/// the other runs, only a visible one counts as completed.
pub(crate) fn find_earlier_runs(runs: &Runs, run: &str, source: &str, inputs: &[String]) -> EarlierRuns {
    let mut known = EarlierRuns::default();
    let wanted: HashSet<&str> = inputs.iter().map(String::as_str).collect();
    for StoredManifest { sequence, manifest, .. } in
        runs.manifests.iter().filter(|stored| stored.manifest.source == source)
    {
        let manifest_inputs: HashSet<&str> = manifest.inputs.iter().map(String::as_str).collect();
        let shared = wanted.intersection(&manifest_inputs).count();
        if shared == 0 {
            continue;
        }
        let (first, publishers) = known.earlier.get_or_insert_with(|| (*sequence, HashSet::new()));
        // If the first manifest of a run is its completion manifest, the start manifest is lost. The batches of the run
        // may then be at any sequence.
        if publishers.insert(manifest.run.clone()) && manifest.state == RunState::Completed {
            *first = 1;
        }
        match manifest.state {
            RunState::Completed if shared == wanted.len() => {
                if manifest.run == run || runs.states.is_visible(&manifest.run) {
                    known.completed = Some(manifest.clone());
                }
            }
            RunState::Started if manifest.run == run && known.started.is_none() => {
                known.started = Some(manifest.clone());
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

    fn find(run: &str, inputs: &[&str], manifests: &[(u64, RunManifest)]) -> EarlierRuns {
        let inputs: Vec<String> = inputs.iter().map(|input| (*input).to_owned()).collect();
        let stored = |(sequence, manifest): &(u64, RunManifest)| StoredManifest {
            sequence: *sequence,
            stored_at: DateTime::UNIX_EPOCH,
            manifest: manifest.clone(),
        };
        let runs = Runs { manifests: manifests.iter().map(stored).collect(), ..Runs::default() };
        find_earlier_runs(&runs, run, "eod", &inputs)
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
        assert_eq!(find("mine", &["c"], &log), EarlierRuns::default());
        // Without the start manifest, the batches may be anywhere before.
        assert_eq!(find("mine", &["a"], &log[2..]).earlier, Some((1, HashSet::from(["both".to_owned()]))));
    }
}
