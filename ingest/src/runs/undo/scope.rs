//! Record batches relevant to an undo: those of the run, and of the same source up to the start of the undo.

use std::collections::BTreeMap;

use event_log::frame::{Envelope, Frame};
use market::event::{Kind, RunManifest};

use crate::log::reader::{Log, LogError};

/// Run to undo, and the part of the log that counts.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub log: &'a Log,
    pub run: &'a RunManifest,
    /// First sequence that is ignored, because it is later than the undo.
    pub before: u64,
}

impl Scope<'_> {
    /// Number of the run's rows, by kind.
    pub(super) async fn rows_put(&self) -> Result<BTreeMap<Kind, u64>, LogError> {
        let mut rows: BTreeMap<Kind, u64> = BTreeMap::new();
        let kinds: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| is_data(*kind)).collect();
        let count = |envelope: &Envelope| {
            if self.is_own(envelope) {
                *rows.entry(envelope.kind).or_default() += envelope.rows;
            }
        };
        self.log.envelopes(&kinds, self.before, count).await?;
        Ok(rows)
    }

    /// Calls `each` for every record batch of the run and a kind.
    pub(super) async fn own(&self, kind: Kind, each: impl FnMut(Frame)) -> Result<(), LogError> {
        self.log.frames(kind, self.before, |envelope| self.is_own(envelope), each).await
    }

    /// Calls `each` for every record batch of a kind by other runs of the source.
    pub(super) async fn others(&self, kind: Kind, each: impl FnMut(Frame)) -> Result<(), LogError> {
        let wanted = |envelope: &Envelope| envelope.source == self.run.source && !self.is_own(envelope);
        self.log.frames(kind, self.before, wanted, each).await
    }

    fn is_own(&self, envelope: &Envelope) -> bool {
        envelope.run == self.run.run
    }
}

fn is_data(kind: Kind) -> bool {
    !matches!(kind, Kind::Decision | Kind::Reject | Kind::Run)
}
