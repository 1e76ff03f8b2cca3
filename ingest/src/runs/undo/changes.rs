//! Counts of the changes by an undo.

use serde::Serialize;

/// Maximum number of examples.
const MAX_EXAMPLES: usize = 10;

/// Counts of changes to the rows of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UndoChanges {
    /// Number of rows restored to the version from before the run.
    pub restored: u64,
    /// Number of retracted rows, which the run had introduced.
    pub retracted: u64,
    /// Number of rows corrected by a later run. The undo does not change these rows.
    pub corrected_since: u64,
    /// Number of rows equal to the version from before the run. The undo does not change these rows.
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
