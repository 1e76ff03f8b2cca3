//! List of the runs that `ingest undo` has undone. An undo is a run too, so it can itself be undone.

use std::collections::BTreeMap;

use market::event::{RunManifest, RunState};

/// Format name in the manifest of an undo. It distinguishes an undo from a load.
pub(crate) const UNDO_FORMAT: &str = "undo";

/// Undone runs, each with the id of the undo.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RunStatus {
    undone_by: BTreeMap<String, String>,
}

impl RunStatus {
    /// Builds the list from all manifests of a log. An undo has no effect if it was itself undone.
    pub(crate) fn from_manifests<'a>(manifests: impl DoubleEndedIterator<Item = &'a RunManifest>) -> Self {
        let mut status = Self::default();
        for undo in manifests.rev().filter(|run| run.state == RunState::Completed && is_undo(run)) {
            if status.undone_by(&undo.run).is_none() {
                let runs = undo.files.iter().map(|run| (run.clone(), undo.run.clone()));
                status.undone_by.extend(runs);
            }
        }
        status
    }

    /// Id of the undo that undid `run`; `None` if `run` was not undone.
    pub(crate) fn undone_by(&self, run: &str) -> Option<&str> {
        self.undone_by.get(run).map(String::as_str)
    }
}

/// True if the run is an undo.
pub(crate) fn is_undo(run: &RunManifest) -> bool {
    run.format == UNDO_FORMAT
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn undo(run: &str, of: &str) -> RunManifest {
        RunManifest {
            state: RunState::Completed,
            files: vec![of.to_owned()],
            ..RunManifest::started(
                run.to_owned(),
                "eod".to_owned(),
                UNDO_FORMAT.to_owned(),
                DateTime::UNIX_EPOCH,
            )
        }
    }

    #[test]
    fn an_undone_undo_has_no_effect() {
        let log = [undo("u", "r"), undo("uu", "u")];
        assert_eq!(RunStatus::from_manifests(log[..1].iter()).undone_by("r"), Some("u"));
        let status = RunStatus::from_manifests(log.iter());
        assert_eq!((status.undone_by("r"), status.undone_by("u")), (None, Some("uu")));
    }
}
