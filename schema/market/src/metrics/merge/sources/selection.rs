//! Selection of records from all sources: the records that are used, and the records that they cover.

use std::collections::BTreeMap;

use crate::metrics::merge::winner::WinningVersion;

/// Records that are used, and the records that they cover.
#[derive(Debug, Default)]
pub(super) struct Selection {
    pub winners: Vec<WinningVersion>,
    /// Index of each covered record, with the index of the record that covers it.
    pub covered: BTreeMap<usize, usize>,
    /// For each date range in which a rank outranks other sources, the indexes of its valid records.
    pub ranked: Vec<Vec<usize>>,
}

impl Selection {
    /// Index of the uppermost of the records that cover the record `index`.
    pub(super) fn top_of(&self, index: usize) -> usize {
        std::iter::successors(Some(index), |index| self.covered.get(index).copied()).last().unwrap_or(index)
    }
}
