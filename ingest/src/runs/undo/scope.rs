//! Record batches that an undo compares: from the undone run, and from other runs of its source.

use event_log::record_batch::{Envelope, RecordBatch};
use market::event::{Kind, RunManifest};

use crate::log::reader::{Log, LogError};

/// Run to undo, and the part of the log that the undo reads.
#[derive(Clone, Copy)]
pub(super) struct UndoScope<'a> {
    pub log: &'a Log,
    pub run: &'a RunManifest,
    /// Run id of the undo.
    pub id: &'a str,
    /// Log sequence of the undo's start manifest; `u64::MAX` in a dry run. The undo reads only messages with smaller
    /// sequences.
    pub end: u64,
}

impl UndoScope<'_> {
    /// Calls `each` for the batches of a kind. They are from the undone run if `own` is true, otherwise from all other
    /// runs of its source.
    pub(super) async fn each_batch(
        &self,
        kind: Kind,
        own: bool,
        each: impl FnMut(RecordBatch),
    ) -> Result<(), LogError> {
        let wanted =
            |envelope: &Envelope| envelope.source == self.run.source && (envelope.run == self.run.run) == own;
        self.log.each_batch(kind, self.end, wanted, each).await
    }
}
