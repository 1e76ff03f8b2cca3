//! Counts of the changes made by an undo.

use serde::Serialize;

/// Changes named to a person.
const EXAMPLES: usize = 10;

/// What becomes of the rows of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// The version that stood before is published again.
    pub restored: u64,
    /// The run introduced it: it is retracted.
    pub retracted: u64,
    /// Somebody corrected it since: it stays.
    pub corrected_since: u64,
    /// The run said what stood there before: it stays.
    pub unchanged: u64,
    /// The first changes, for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

impl Changes {
    /// Notes a change for people.
    pub(super) fn example(&mut self, describe: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(describe());
        }
    }
}
