//! Figures of what was read: records, rows by kind, refused rows by reason.

use std::collections::BTreeMap;

use market::event::{Kind, Reject};

use crate::batch::coverage::Coverage;
use crate::batch::retractions::Retractions;

/// Refused rows remembered for the summary.
const EXAMPLES: usize = 10;

/// What was read of a file.
#[derive(Debug, Default, Clone)]
pub struct Stats {
    /// Records read, refused ones included.
    pub records: u64,
    pub rows: BTreeMap<Kind, u64>,
    pub rejects: BTreeMap<&'static str, u64>,
    pub rounded: u64,
    pub examples: Vec<Reject>,
    /// What the accepted rows are about.
    pub(crate) coverage: Coverage,
    /// What they take back.
    pub(crate) retractions: Retractions,
}

impl Stats {
    /// Counts a refused record.
    pub(crate) fn reject(&mut self, reason: &'static str, reject: &Reject) {
        *self.rejects.entry(reason).or_default() += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(reject.clone());
        }
    }

    /// Refused records.
    pub fn rejected(&self) -> u64 {
        self.rejects.values().sum()
    }

    /// Accepted rows of all kinds.
    pub fn accepted(&self) -> u64 {
        self.rows.values().sum()
    }

    /// Adds another file's figures.
    pub fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.rounded += other.rounded;
        self.coverage.add(&other.coverage);
        self.retractions.add(&other.retractions);
        other.rows.iter().for_each(|(kind, rows)| *self.rows.entry(*kind).or_default() += rows);
        other.rejects.iter().for_each(|(reason, rows)| *self.rejects.entry(reason).or_default() += rows);
        let room = EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.iter().take(room).cloned());
    }
}
