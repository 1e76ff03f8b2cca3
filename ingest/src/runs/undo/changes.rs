//! Counts of the changes made by an undo.

use serde::Serialize;

/// Maximum number of examples.
const EXAMPLES: usize = 10;

/// Number of changes to the rows of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UndoChanges {
    /// Rows replaced by the version from before the run.
    pub restored: u64,
    /// Rows that the run introduced, now retracted.
    pub retracted: u64,
    /// Rows corrected by a later run; they stay.
    pub corrected_since: u64,
    /// Rows equal to the version from before the run; they stay.
    pub unchanged: u64,
    /// Examples of changes, as text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

impl UndoChanges {
    pub(super) fn add_example(&mut self, describe: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(describe());
        }
    }
}
