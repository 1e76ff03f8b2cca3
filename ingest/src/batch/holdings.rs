//! Holdings of funds, collected over a whole load. All rows with the same fund, date and action become one snapshot.
//! The action is `put` (add or replace) or `retract` (withdraw).

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use event_log::record_batch::TARGET_BYTES;
use market::event::{Action, EventRow, Holding, HoldingSnapshot};
use market::symbol::Symbol;

/// Maximum number of holdings in a load. The limit exists because all holdings stay in memory until the end of the
/// load.
pub(crate) const MAX_POSITIONS: usize = 2_000_000;

/// Snapshots by fund, date and action (`put` or `retract`).
#[derive(Debug, Default)]
pub(crate) struct LoadHoldings {
    snapshots: BTreeMap<(Symbol, NaiveDate, Action), EventRow<HoldingSnapshot>>,
    positions: usize,
}

impl LoadHoldings {
    pub(crate) fn has_room(&self) -> bool {
        self.positions < MAX_POSITIONS
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.snapshots.is_empty()
    }

    /// Adds a row. The record of a retraction is `None`.
    pub(crate) fn add_row(&mut self, etf: Symbol, as_of: NaiveDate, mut row: EventRow<Option<Holding>>) {
        self.positions += 1;
        let key = (etf, as_of, row.action);
        if let Some(known) = self.snapshots.get_mut(&key) {
            return add_positions(known, row.revision, row.observed_at, row.record);
        }
        let holdings = Vec::from_iter(row.record.take());
        let record = HoldingSnapshot { symbol: key.0.clone(), as_of, holdings };
        self.snapshots.insert(key, row.with_record(record));
    }

    pub(crate) fn merge(&mut self, later_file: Self) {
        self.positions += later_file.positions;
        for (key, more) in later_file.snapshots {
            match self.snapshots.get_mut(&key) {
                Some(known) => add_positions(known, more.revision, more.observed_at, more.record.holdings),
                None => {
                    self.snapshots.insert(key, more);
                }
            }
        }
    }

    /// Splits the snapshots into groups of about [`TARGET_BYTES`]. Each group is one record batch.
    pub(crate) fn into_record_batches(self) -> Vec<Vec<EventRow<HoldingSnapshot>>> {
        let mut batches: Vec<Vec<EventRow<HoldingSnapshot>>> = Vec::new();
        let mut bytes = usize::MAX;
        for row in self.into_rows() {
            let size = 200 * (1 + row.record.holdings.len());
            if bytes.saturating_add(size) > TARGET_BYTES {
                batches.push(Vec::new());
                bytes = 0;
            }
            bytes += size;
            if let Some(batch) = batches.last_mut() {
                batch.push(row);
            }
        }
        batches
    }

    /// Snapshots as rows of the log, ordered by fund and date.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = EventRow<HoldingSnapshot>> {
        self.snapshots.into_values()
    }
}

/// Adds holdings to a snapshot. The snapshot gets the highest revision and the newest observation time of its rows.
fn add_positions(
    snapshot: &mut EventRow<HoldingSnapshot>,
    revision: i64,
    observed_at: DateTime<Utc>,
    positions: impl IntoIterator<Item = Holding>,
) {
    snapshot.revision = snapshot.revision.max(revision);
    snapshot.observed_at = snapshot.observed_at.max(observed_at);
    snapshot.record.holdings.extend(positions);
}
