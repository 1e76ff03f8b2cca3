//! Open rejects: not corrected yet, and of a run that was not undone.
//!
//! A mended row bears the id of the row it mends, in whatever format. The manifest of the run that loads it names the id,
//! so that the row is closed when the mended one is in the log, and open again when that run is taken back.

use std::collections::{BTreeMap, BTreeSet};

use market::event::{Reject, RunManifest, RunState};
use memchr::memmem;

use crate::log::run_status::RunStatus;

/// An id is this, the run's id, `-`, and a hash of where the row stood.
const MARK: &str = "rj-";
const RUN_DIGITS: usize = 32;
const HASH_DIGITS: usize = 16;
const ID_LENGTH: usize = MARK.len() + RUN_DIGITS + 1 + HASH_DIGITS;

/// The id of a row that a run refused.
pub(crate) fn id_of(run: &str, reject: &Reject) -> String {
    // A row of a wide table is refused for each of its cells that is wrong.
    let place = format!("{}\n{}\n{}\n{}", reject.file, reject.line, reject.reason, reject.message);
    format!("{MARK}{run}-{}", &blake3::hash(place.as_bytes()).to_hex()[..HASH_DIGITS])
}

/// Finds the ids that a text bears, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct IdSearch {
    pub ids: BTreeSet<String>,
    /// The end of what was seen, which may be the beginning of an id.
    seam: Vec<u8>,
}

impl IdSearch {
    /// Looks at the next piece of the text.
    pub(crate) fn look(&mut self, piece: &[u8]) {
        self.seam.extend_from_slice(&piece[..piece.len().min(ID_LENGTH)]);
        for text in [self.seam.as_slice(), piece] {
            self.ids.extend(memmem::find_iter(text, MARK).filter_map(|at| id_at(&text[at..])));
        }
        let end = if piece.len() < ID_LENGTH { self.seam.as_slice() } else { piece };
        self.seam = end[end.len().saturating_sub(ID_LENGTH - 1)..].to_vec();
    }
}

fn id_at(text: &[u8]) -> Option<String> {
    let id = std::str::from_utf8(text.get(..ID_LENGTH)?).ok()?;
    let (run, hash) = id.strip_prefix(MARK)?.split_once('-')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (run.len() == RUN_DIGITS && digits(run) && digits(hash)).then(|| id.to_owned())
}

/// The refused rows of a log, as its manifests tell of them.
#[derive(Debug, Default)]
pub(crate) struct OpenRejects {
    /// Source of each completed run that stands, and the rows it refused.
    refused: BTreeMap<String, (String, u64)>,
    /// Mended rows by the run that refused them.
    mended: BTreeMap<String, BTreeSet<String>>,
    standing: RunStatus,
}

impl OpenRejects {
    /// What the manifests of a log say.
    pub(crate) fn of<'a>(manifests: impl DoubleEndedIterator<Item = &'a RunManifest> + Clone) -> Self {
        let mut open = Self { standing: RunStatus::from_manifests(manifests.clone()), ..Self::default() };
        manifests.filter(|run| run.state == RunState::Completed).for_each(|run| open.add(run));
        open
    }

    /// Adds a completed run, unless it was taken back.
    pub(crate) fn add(&mut self, run: &RunManifest) {
        if self.standing.undone_by(&run.run).is_some() {
            return;
        }
        self.refused.insert(run.run.clone(), (run.source.clone(), run.rejects));
        for id in &run.mends {
            let refused_by = id.get(MARK.len()..MARK.len() + RUN_DIGITS).unwrap_or_default();
            self.mended.entry(refused_by.to_owned()).or_default().insert(id.clone());
        }
    }

    /// True if a row that a run refused is open.
    pub(crate) fn is_open(&self, run: &str, id: &str) -> bool {
        self.standing.undone_by(run).is_none() && !self.mended.get(run).is_some_and(|ids| ids.contains(id))
    }

    /// How many rows of a source are open.
    pub(crate) fn of_source(&self, source: &str) -> u64 {
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

    use super::*;

    fn reject(line: u64) -> Reject {
        let [file, reason, message, row] = ["prices.csv", "bad_date", "m", "KO,x,1"].map(str::to_owned);
        Reject { file, line, reason, message, row, columns: None }
    }

    fn run(run: &str, rejects: u64, mends: &[String]) -> RunManifest {
        let begun =
            RunManifest::started(run.to_owned(), "eod".to_owned(), "auto".to_owned(), DateTime::UNIX_EPOCH);
        RunManifest { state: RunState::Completed, rejects, mends: mends.to_vec(), ..begun }
    }

    #[test]
    fn a_row_is_open_until_it_is_mended_and_again_when_that_is_taken_back() {
        let [a, b, u] = ["a", "b", "c"].map(|digit| digit.repeat(RUN_DIGITS));
        let (first, second) = (id_of(&a, &reject(2)), id_of(&a, &reject(3)));
        let text =
            format!("KO,2024-01-02,1,{first},\"why\"\n{{\"reject_id\":\"{second}\"}} rj-x {MARK}{a}-zz\n");
        for pieces in [1, 7, ID_LENGTH - 1, ID_LENGTH, 1000] {
            let mut search = IdSearch::default();
            text.as_bytes().chunks(pieces).for_each(|piece| search.look(piece));
            assert_eq!(search.ids, BTreeSet::from([first.clone(), second.clone()]), "in pieces of {pieces}");
        }
        let mut log = vec![run(&a, 2, &[]), run(&b, 0, std::slice::from_ref(&first))];
        let open = OpenRejects::of(log.iter());
        assert!(!open.is_open(&a, &first) && open.is_open(&a, &second));
        assert_eq!((open.of_source("eod"), open.of_source("other")), (1, 0));
        log.push(RunManifest { format: "undo".to_owned(), files: vec![b.clone()], ..run(&u, 0, &[]) });
        assert_eq!(OpenRejects::of(log.iter()).of_source("eod"), 2);
    }
}
