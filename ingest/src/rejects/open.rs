//! Open rejects: their rows were not corrected, and their runs were not undone. A load of the corrected row closes the
//! reject. An undo of this load opens the reject again.

use std::collections::{BTreeMap, BTreeSet};

use market::event::{Reject, RunManifest, RunState, RunVisibility};
use memchr::memmem;

use crate::log::run_states::Runs;

/// Prefix of a reject id. The whole id is `rj-`, the run id, `-`, and a hash of the row's file, line and error.
const ID_PREFIX: &str = "rj-";
const RUN_DIGITS: usize = 32;
const HASH_DIGITS: usize = 16;
const ID_LENGTH: usize = ID_PREFIX.len() + RUN_DIGITS + 1 + HASH_DIGITS;

/// Id of a reject. `run` is the run that rejected the row.
pub(crate) fn reject_id(run: &str, reject: &Reject) -> String {
    // One row of a wide table may have several rejects, one for each invalid cell. The hash therefore covers the error
    // message.
    let position = format!("{}\n{}\n{}\n{}", reject.file, reject.line, reject.reason, reject.message);
    format!("{ID_PREFIX}{run}-{}", &blake3::hash(position.as_bytes()).to_hex()[..HASH_DIGITS])
}

/// Finds the reject ids in a text that arrives in pieces, and collects them in `ids`.
#[derive(Debug, Default)]
pub(crate) struct RejectIdSearch {
    pub ids: BTreeSet<String>,
    /// End of the previous piece. It may contain the beginning of a reject id that ends in the next piece.
    overlap: Vec<u8>,
}

impl RejectIdSearch {
    /// Searches the next piece of the text.
    pub(crate) fn search_piece(&mut self, piece: &[u8]) {
        self.overlap.extend_from_slice(&piece[..piece.len().min(ID_LENGTH)]);
        for text in [self.overlap.as_slice(), piece] {
            self.ids.extend(memmem::find_iter(text, ID_PREFIX).filter_map(|at| parse_id_at(&text[at..])));
        }
        let end = if piece.len() < ID_LENGTH { self.overlap.as_slice() } else { piece };
        self.overlap = end[end.len().saturating_sub(ID_LENGTH - 1)..].to_vec();
    }
}

fn parse_id_at(text: &[u8]) -> Option<String> {
    let id = std::str::from_utf8(text.get(..ID_LENGTH)?).ok()?;
    let (run, hash) = id.strip_prefix(ID_PREFIX)?.split_once('-')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (run.len() == RUN_DIGITS && digits(run) && digits(hash)).then(|| id.to_owned())
}

/// Maximum number of rejects of an interrupted run that one load can correct. The manifest of such a run has no count.
const INTERRUPTED_REJECTS: u64 = 1000;

/// Index of rejects and their corrections, built from manifests.
#[derive(Debug, Default)]
pub(crate) struct OpenRejects {
    /// Completed runs that are not undone. The key is the run id. The values are the source of the run and the number
    /// of rejects in the run.
    refused: BTreeMap<String, (String, u64)>,
    /// Ids of the corrected rejects. The key is the id of the run that rejected the rows.
    mended: BTreeMap<String, BTreeSet<String>>,
    /// Maximum number of rejects of each run, also of runs whose rows are not visible.
    limits: BTreeMap<String, u64>,
    undone: BTreeSet<String>,
}

impl OpenRejects {
    /// Builds the index from the runs of a log.
    pub(crate) fn from_runs(runs: &Runs) -> Self {
        let mut open = Self::default();
        for run in runs.manifests() {
            match run.state {
                RunState::Completed => drop(open.limits.insert(run.run.clone(), run.rejects)),
                RunState::Started => {
                    open.limits.entry(run.run.clone()).or_insert(INTERRUPTED_REJECTS);
                }
            }
            match (runs.states.state(&run.run), run.state) {
                (RunVisibility::Excluded, _) => drop(open.undone.insert(run.run.clone())),
                (state, RunState::Completed) => open.add_run(run, state == RunVisibility::Held),
                (_, RunState::Started) => {}
            }
        }
        open
    }

    /// Adds a completed run to the index. The corrections of a held run count from its release on.
    pub(crate) fn add_run(&mut self, run: &RunManifest, is_held: bool) {
        self.refused.insert(run.run.clone(), (run.source.clone(), run.rejects));
        for id in run.mends.iter().filter(|_| !is_held) {
            let refused_by = id.get(ID_PREFIX.len()..ID_PREFIX.len() + RUN_DIGITS).unwrap_or_default();
            self.mended.entry(refused_by.to_owned()).or_default().insert(id.clone());
        }
    }

    /// Ids that can belong to rejects of the log. A file can contain any number of invented ids, but a run has no more
    /// rejects than its manifest counts.
    pub(crate) fn keep_known(&self, ids: BTreeSet<String>) -> Vec<String> {
        let (mut known, mut run, mut left) = (Vec::new(), String::new(), 0);
        for id in ids {
            let of_run = &id[ID_PREFIX.len()..ID_PREFIX.len() + RUN_DIGITS];
            if of_run != run {
                of_run.clone_into(&mut run);
                left = self.limits.get(of_run).copied().unwrap_or_default();
            }
            if left > 0 {
                left -= 1;
                known.push(id);
            }
        }
        known
    }

    /// True if a reject of a run is open.
    pub(crate) fn is_open(&self, run: &str, id: &str) -> bool {
        !self.undone.contains(run) && !self.mended.get(run).is_some_and(|ids| ids.contains(id))
    }

    /// Number of open rejects of a source.
    pub(crate) fn count_open(&self, source: &str) -> u64 {
        let of_source = self.refused.iter().filter(|(_, (of, _))| of == source);
        let open = |(run, (_, refused)): (&String, &(String, u64))| {
            let mended = self.mended.get(run).map_or(0, BTreeSet::len) as u64;
            refused.saturating_sub(mended)
        };
        of_source.map(open).sum()
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use market::event::RunChange;

    use super::*;
    use crate::log::run_states::{StoredManifest, change_id};

    fn reject(line: u64) -> Reject {
        let [file, reason, message, row] = ["prices.csv", "bad_date", "m", "KO,x,1"].map(str::to_owned);
        Reject { file, line, reason, message, row, columns: None }
    }

    fn run(run: &str, rejects: u64, mends: &[String]) -> RunManifest {
        let begun =
            RunManifest::started(run.to_owned(), "eod".to_owned(), "auto".to_owned(), DateTime::UNIX_EPOCH);
        RunManifest { state: RunState::Completed, rejects, mends: mends.to_vec(), ..begun }
    }

    fn runs(manifests: &[RunManifest]) -> Runs {
        let stored = |manifest: &RunManifest| StoredManifest {
            sequence: 1,
            stored_at: DateTime::UNIX_EPOCH,
            manifest: manifest.clone(),
        };
        Runs { manifests: manifests.iter().map(stored).collect(), ..Runs::default() }
    }

    #[test]
    fn a_row_is_open_until_it_is_mended_and_again_when_that_is_taken_back() {
        let [a, b] = ["a", "b"].map(|digit| digit.repeat(RUN_DIGITS));
        let (first, second) = (reject_id(&a, &reject(2)), reject_id(&a, &reject(3)));
        let text = format!(
            "KO,2024-01-02,1,{first},\"why\"\n{{\"reject_id\":\"{second}\"}} rj-x {ID_PREFIX}{a}-zz\n"
        );
        for pieces in [1, 7, ID_LENGTH - 1, ID_LENGTH, 1000] {
            let mut search = RejectIdSearch::default();
            text.as_bytes().chunks(pieces).for_each(|piece| search.search_piece(piece));
            assert_eq!(search.ids, BTreeSet::from([first.clone(), second.clone()]), "in pieces of {pieces}");
        }
        let log = [run(&a, 2, &[]), run(&b, 0, std::slice::from_ref(&first))];
        let mut runs = runs(&log);
        let open = OpenRejects::from_runs(&runs);
        assert!(!open.is_open(&a, &first) && open.is_open(&a, &second));
        assert_eq!((open.count_open("eod"), open.count_open("other")), (1, 0));
        let mut change = |run: &str, new_state| {
            let (reason, operator) = (String::new(), "ann".to_owned());
            let change =
                RunChange { run: run.to_owned(), new_state, reason, at: DateTime::UNIX_EPOCH, operator };
            runs.states.add(change_id(&change), change);
            OpenRejects::from_runs(&runs)
        };
        assert_eq!(change(&b, RunVisibility::Excluded).count_open("eod"), 2);
        assert_eq!(change(&b, RunVisibility::Held).count_open("eod"), 2, "the correction waits");
        let open = change(&a, RunVisibility::Held);
        assert!(open.is_open(&a, &first), "rejects of a held run are open");
        assert_eq!(open.count_open("eod"), 2);
        assert!(!change(&a, RunVisibility::Excluded).is_open(&a, &first));
    }

    #[test]
    fn invented_ids_do_not_fill_a_manifest() {
        let [known, unknown] = ["a", "b"].map(|digit| digit.repeat(RUN_DIGITS));
        let ids = |run: &str| (2..9).map(|line| reject_id(run, &reject(line))).collect::<Vec<_>>();
        let open = OpenRejects::from_runs(&runs(&[run(&known, 7, &[])]));
        let all: BTreeSet<String> = ids(&known).into_iter().chain(ids(&unknown)).collect();
        assert_eq!(BTreeSet::from_iter(open.keep_known(all.clone())), BTreeSet::from_iter(ids(&known)));
        let fewer = OpenRejects::from_runs(&runs(&[run(&known, 3, &[])]));
        assert_eq!(fewer.keep_known(all).len(), 3);
    }
}
