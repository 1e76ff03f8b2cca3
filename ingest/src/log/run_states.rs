//! Runs of the log: their manifests, and the states that later events gave them.
//!
//! Earlier runs with the inputs of a load.

use std::collections::{HashMap, HashSet};

use async_nats::HeaderMap;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use event_log::record_batch::{BatchError, BatchId, Body, RecordBatch, schema_name};
use market::event::{
    Kind, RunChange, RunEvent, RunIdError, RunManifest, RunState, RunVisibility, find_run_id,
};

use crate::log::reader::{Log, LogError};

/// Manifest in the log.
#[derive(Debug, Clone)]
pub(crate) struct StoredManifest {
    /// Log sequence of the manifest.
    pub sequence: u64,
    /// Time at which the log stored the manifest.
    pub stored_at: DateTime<Utc>,
    pub manifest: RunManifest,
}

/// All manifests in log order, and the states of the runs.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    pub manifests: Vec<StoredManifest>,
    pub states: RunStates,
    /// Log sequence of the last manifest or change; 0 without one.
    pub end: u64,
}

impl Runs {
    /// Reads the runs of the log.
    pub(crate) async fn read(log: &Log) -> Result<Self, LogError> {
        let mut runs = Self::default();
        runs.read_new(log).await?;
        Ok(runs)
    }

    /// Adds the manifests and changes that the log got after those of `self`.
    pub(crate) async fn read_new(&mut self, log: &Log) -> Result<(), LogError> {
        let end = log
            .each_run_event(self.end + 1, |sequence, stored_at, id, event| match event {
                RunEvent::Manifest(manifest) => {
                    self.manifests.push(StoredManifest { sequence, stored_at, manifest: *manifest });
                }
                RunEvent::Change(change) => self.states.add(id, change),
            })
            .await?;
        self.end = self.end.max(end);
        Ok(())
    }

    /// All manifests, in log order.
    pub(crate) fn manifests(&self) -> impl DoubleEndedIterator<Item = &RunManifest> + Clone {
        self.manifests.iter().map(|stored| &stored.manifest)
    }

    /// Id of the run with this id, or with this beginning of its id. `None` without a text.
    pub(crate) fn find_id(&self, text: Option<&str>) -> Result<Option<&str>, RunIdError> {
        let ids = || self.manifests().map(|run| run.run.as_str());
        text.map(|text| find_run_id(text, ids())).transpose()
    }

    /// Manifests of the runs whose rows are visible.
    pub(crate) fn visible_manifests(&self) -> impl Iterator<Item = &RunManifest> + Clone {
        self.manifests().filter(|run| self.states.is_visible(&run.run))
    }
}

/// Last change of each run whose state has ever changed.
#[derive(Debug, Default)]
pub(crate) struct RunStates {
    last: HashMap<String, RunChange>,
    /// Run of each change, by the id of the change.
    runs: HashMap<BatchId, String>,
}

impl RunStates {
    /// Adds a change. The changes must be added in log order.
    pub(crate) fn add(&mut self, id: BatchId, change: RunChange) {
        self.runs.insert(id, change.run.clone());
        self.last.insert(change.run.clone(), change);
    }

    /// Last change of the run; `None` if its state never changed.
    pub(crate) fn last_change(&self, run: &str) -> Option<&RunChange> {
        self.last.get(run)
    }

    /// State of the run.
    pub(crate) fn state(&self, run: &str) -> RunVisibility {
        self.last_change(run).map_or(RunVisibility::Visible, |change| change.new_state)
    }

    /// True if the rows of the run are visible.
    pub(crate) fn is_visible(&self, run: &str) -> bool {
        self.state(run) == RunVisibility::Visible
    }

    /// Run whose state the event with this id changed.
    pub(crate) fn run_of_change(&self, id: &str) -> Option<&str> {
        self.runs.get(&id.parse().ok()?).map(String::as_str)
    }
}

/// Id of a change of state.
pub(crate) fn change_id(change: &RunChange) -> BatchId {
    let RunChange { run, new_state, at, operator, .. } = change;
    let identity = format!("{run} {new_state} {} {operator}", at.timestamp_micros());
    BatchId::from_provenance("", &identity, 0, &schema_name(Kind::Run))
}

/// Encodes a change of state as a message, and returns its id. `source` is the source of the run.
pub(crate) fn encode_change(
    source: &str,
    change: RunChange,
) -> Result<(BatchId, HeaderMap, Bytes), BatchError> {
    let id = change_id(&change);
    let (source, run) = (source.to_owned(), change.run.clone());
    let body = Body::Run(RunEvent::Change(change));
    let batch = RecordBatch { id, source, run, chunk: 0, file: String::new(), line: 0, body };
    let (headers, body) = batch.encode()?;
    Ok((id, headers, body))
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

    #[test]
    fn the_last_change_decides_and_each_change_names_its_run() {
        let change = |state, second| RunChange {
            run: "r".to_owned(),
            new_state: state,
            reason: String::new(),
            at: DateTime::from_timestamp(second, 0).unwrap(),
            operator: "ann".to_owned(),
        };
        let mut states = RunStates::default();
        assert!(states.is_visible("r") && states.last_change("r").is_none());
        let (undo, again) = (change(RunVisibility::Excluded, 1), change(RunVisibility::Visible, 2));
        let id = change_id(&undo);
        states.add(id, undo);
        assert_eq!(states.state("r"), RunVisibility::Excluded);
        assert_eq!(states.run_of_change(&id.to_string()), Some("r"));
        assert_eq!(states.run_of_change("r"), None);
        states.add(change_id(&again), again);
        assert!(states.is_visible("r"));
    }
}

#[cfg(test)]
mod earlier_runs_tests {
    use chrono::DateTime;

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
