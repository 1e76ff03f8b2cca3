//! Which runs of a log stand, and which were taken back.

use std::collections::BTreeMap;

use market::event::{Run, RunState};

/// The format a manifest names for an undo.
pub(super) const FORMAT: &str = "undo";

/// The runs that were taken back, each with the run that did it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    undone_by: BTreeMap<String, String>,
}

impl Standing {
    /// What the manifests of a log say. An undo that was itself taken back does not count.
    pub(crate) fn of<'a>(manifests: impl DoubleEndedIterator<Item = &'a Run>) -> Self {
        let mut standing = Self::default();
        for undo in manifests.rev().filter(|run| run.state == RunState::Completed && is_undo(run)) {
            if standing.undone_by(&undo.run).is_none() {
                let runs = undo.files.iter().map(|run| (run.clone(), undo.run.clone()));
                standing.undone_by.extend(runs);
            }
        }
        standing
    }

    /// The run that took another one back.
    pub(crate) fn undone_by(&self, run: &str) -> Option<&str> {
        self.undone_by.get(run).map(String::as_str)
    }
}

/// Whether a run takes another one back.
pub(crate) fn is_undo(run: &Run) -> bool {
    run.format == FORMAT
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn undo(run: &str, of: &str) -> Run {
        Run {
            state: RunState::Completed,
            files: vec![of.to_owned()],
            ..Run::begun(run.to_owned(), "eod".to_owned(), FORMAT.to_owned(), DateTime::UNIX_EPOCH)
        }
    }

    #[test]
    fn an_undo_taken_back_takes_nothing_back() {
        let log = [undo("u", "r"), undo("uu", "u")];
        assert_eq!(Standing::of(log[..1].iter()).undone_by("r"), Some("u"));
        let standing = Standing::of(log.iter());
        assert_eq!((standing.undone_by("r"), standing.undone_by("u")), (None, Some("uu")));
    }
}
