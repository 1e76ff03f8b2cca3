//! Numbers of changes made by an undo.

use serde::Serialize;

/// Maximum number of examples.
const MAX_EXAMPLES: usize = 10;

/// Numbers of changes to the rows of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UndoChanges {
    /// Number of rows replaced by the version from before the run.
    pub restored: u64,
    /// Number of rows that the run introduced and the undo retracts.
    pub retracted: u64,
    /// Number of rows that a later run corrected. They are not changed.
    pub corrected_since: u64,
    /// Number of rows that equal the version from before the run. They are not changed.
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
