//! Changes that an undo makes: counts for the report, and record batches to publish.

use event_log::record_batch::{BatchError, Body};
use market::observation::VersionRank;
use serde::Serialize;

use crate::batch::chunk_encoder::{ChunkEncoder, EncodedBatch};

/// Maximum number of examples per kind of row.
const MAX_EXAMPLES: usize = 10;

/// Counts of the changes that an undo makes to the rows of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UndoChanges {
    /// Number of restored rows. The undo republishes the values from before the run.
    pub restored: u64,
    /// Number of retracted rows. The run had introduced these rows.
    pub retracted: u64,
    /// Number of rows that a later run corrected. The undo does not change these rows.
    pub corrected_since: u64,
    /// Number of rows whose values the run did not change. The undo does not change these rows either.
    pub unchanged: u64,
    /// Examples of changes, such as `KO|2024-03-15: retracted`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// Change that an undo makes to a row.
pub(super) enum UndoChange<T> {
    /// Republish this version of the row. It is the highest-ranked version from all other runs.
    Restore(T),
    Retract,
}

impl UndoChanges {
    /// Decides and counts the change that the undo makes to one row. `own` is the row's rank in the undone run. `other`
    /// is its highest-ranked version in all other runs.
    pub(super) fn count_key<T>(
        &mut self,
        key: impl FnOnce() -> String,
        own: VersionRank<'_>,
        other: Option<(T, VersionRank<'_>)>,
        is_equal: impl FnOnce(&T) -> bool,
    ) -> Option<UndoChange<T>> {
        let (change, what) = match other {
            Some((_, rank)) if own < rank => {
                self.corrected_since += 1;
                return None;
            }
            Some((other, rank)) if !rank.retracted && (own.retracted || !is_equal(&other)) => {
                self.restored += 1;
                (UndoChange::Restore(other), "restored to the earlier version")
            }
            other if !own.retracted && other.as_ref().is_none_or(|(_, rank)| rank.retracted) => {
                self.retracted += 1;
                (UndoChange::Retract, "retracted")
            }
            _ => {
                self.unchanged += 1;
                return None;
            }
        };
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(format!("{}: {what}", key()));
        }
        Some(change)
    }
}

/// Encoded record batches in order of publication. Batches are cut at fixed numbers of rows, so a repeated undo gives
/// the same batches.
#[derive(Debug, Default)]
pub(super) struct EncodedBatches {
    encoder: ChunkEncoder,
    pub encoded: Vec<EncodedBatch>,
    pub rows: u64,
}

impl EncodedBatches {
    /// Encodes and adds a record batch.
    pub(super) fn push(&mut self, body: Body) -> Result<(), BatchError> {
        let line = self.rows + 1;
        self.rows += body.row_count() as u64;
        self.encoded.push(self.encoder.encode(&body, line)?);
        Ok(())
    }
}
