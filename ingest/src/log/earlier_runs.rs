//! Earlier runs with the inputs of a load.

use std::collections::HashSet;

use market::event::{RunManifest, RunState};

use crate::log::run_states::{Runs, StoredManifest};

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
