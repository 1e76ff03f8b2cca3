//! Counts of the changes that an undo makes.

use serde::Serialize;

/// Maximum number of examples.
const MAX_EXAMPLES: usize = 10;

/// Counts of the changes that an undo makes to the rows of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UndoChanges {
    /// Number of rows for which the undo publishes the version from before the run again.
    pub restored: u64,
    /// Number of retracted rows, which the run had introduced.
    pub retracted: u64,
    /// Number of rows that a later run corrected. The undo does not change these rows.
    pub corrected_since: u64,
    /// Number of rows that are equal to the version from before the run. The undo does not change these rows.
    pub unchanged: u64,
    /// Examples of changes, as text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

impl UndoChanges {
    pub(super) fn add_example(&mut self, describe: impl FnOnce() -> String) {
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(describe());
        }
    }
}
