//! Record batches that an undo compares: batches of the run, and batches of the same source from before the undo.

use std::collections::BTreeMap;

use event_log::record_batch::{Envelope, RecordBatch};
use market::event::{Kind, RunManifest};

use crate::log::reader::{Log, LogError};

/// Run to undo, and the part of the log that the undo reads.
#[derive(Clone, Copy)]
pub(super) struct UndoScope<'a> {
    pub log: &'a Log,
    pub run: &'a RunManifest,
    /// Sequence at which reading ends: the start manifest of the undo; `u64::MAX` in a dry run.
    pub end: u64,
}

impl UndoScope<'_> {
    /// Number of the run's rows, by kind.
    pub(super) async fn count_own_rows(&self) -> Result<BTreeMap<Kind, u64>, LogError> {
        let mut rows: BTreeMap<Kind, u64> = BTreeMap::new();
        let kinds: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| is_data(*kind)).collect();
        let count = |envelope: &Envelope| {
            if self.is_own(envelope) {
                *rows.entry(envelope.kind).or_default() += envelope.rows;
            }
        };
        self.log.each_envelope(&kinds, self.end, count).await?;
        Ok(rows)
    }

    /// Calls `each` for every record batch of the run with rows of a kind.
    pub(super) async fn each_own_batch(
        &self,
        kind: Kind,
        each: impl FnMut(RecordBatch),
    ) -> Result<(), LogError> {
        self.log.each_batch(kind, self.end, |envelope| self.is_own(envelope), each).await
    }

    /// Calls `each` for every record batch with rows of a kind, from all other runs of the same source.
    pub(super) async fn each_batch_of_other_runs(
        &self,
        kind: Kind,
        each: impl FnMut(RecordBatch),
    ) -> Result<(), LogError> {
        let wanted = |envelope: &Envelope| envelope.source == self.run.source && !self.is_own(envelope);
        self.log.each_batch(kind, self.end, wanted, each).await
    }

    fn is_own(&self, envelope: &Envelope) -> bool {
        envelope.run == self.run.run
    }
}

fn is_data(kind: Kind) -> bool {
    !matches!(kind, Kind::Decision | Kind::Reject | Kind::Run)
}
