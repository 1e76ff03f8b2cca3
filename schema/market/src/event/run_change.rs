//! State of a run, and the log event that changes it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::run_manifest::RunManifest;
use crate::text_enum;

text_enum! {
    /// State of a run's rows. Nothing is deleted: another event makes the rows visible again.
    pub enum RunVisibility {
        /// The rows are served. A run without an event is visible.
        Visible = "visible",
        /// The rows wait for a release and are not served.
        Held = "held",
        /// The run was undone, and its rows are not served.
        Excluded = "excluded",
    }
}

/// Event of kind `run` that changes the state of a run. At a sequence of the log, a run has the state of its last event
/// up to this sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunChange {
    /// Id of the run.
    pub run: String,
    /// State from this event on.
    pub new_state: RunVisibility,
    /// Why the operator changed the state; empty if not given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Instant of the command.
    pub at: DateTime<Utc>,
    /// Person or program that gave the command.
    pub operator: String,
}

/// Row of the kind `run`: a manifest, or a change of state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RunEvent {
    /// Change of a run's state.
    Change(RunChange),
    /// Files and counts of a run.
    Manifest(Box<RunManifest>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_and_a_manifest_are_told_apart() {
        let [run, source, format] = ["r", "eod", "auto"].map(str::to_owned);
        let manifest = RunManifest::started(run.clone(), source, format, DateTime::UNIX_EPOCH);
        let change = RunChange {
            run,
            new_state: RunVisibility::Excluded,
            reason: String::new(),
            at: DateTime::UNIX_EPOCH,
            operator: "ann".to_owned(),
        };
        for event in [RunEvent::Manifest(Box::new(manifest)), RunEvent::Change(change)] {
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<RunEvent>(&text).unwrap(), event, "{text}");
        }
    }
}
