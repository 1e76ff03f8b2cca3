//! Holdings of funds, collected over a whole load. All rows of one fund and date are one snapshot.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use market::event::{Action, EventRow, Holding, HoldingSnapshot};
use market::symbol::Symbol;

/// Maximum number of holdings in a load, which stay in memory until the end of the load.
pub(crate) const MAX_POSITIONS: usize = 2_000_000;

/// Snapshots by fund, date and action (put or retract).
#[derive(Debug, Default)]
pub(crate) struct LoadHoldings {
    snapshots: BTreeMap<(Symbol, NaiveDate, Action), FundSnapshot>,
    positions: usize,
}

#[derive(Debug)]
struct FundSnapshot {
    line: u64,
    id: Option<String>,
    security_ref: Option<String>,
    revision: i64,
    observed_at: DateTime<Utc>,
    holdings: Vec<Holding>,
}

impl LoadHoldings {
    pub(crate) fn has_room(&self) -> bool {
        self.positions < MAX_POSITIONS
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.snapshots.is_empty()
    }

    /// Adds a row. The record of a retraction is `None`.
    pub(crate) fn add_row(&mut self, etf: Symbol, as_of: NaiveDate, row: EventRow<Option<Holding>>) {
        self.positions += 1;
        let snapshot = self.snapshots.entry((etf, as_of, row.action)).or_insert_with(|| FundSnapshot {
            line: row.line,
            id: row.id,
            security_ref: row.security_ref,
            revision: row.revision,
            observed_at: row.observed_at,
            holdings: Vec::new(),
        });
        snapshot.revision = snapshot.revision.max(row.revision);
        snapshot.observed_at = snapshot.observed_at.max(row.observed_at);
        snapshot.holdings.extend(row.record);
    }

    pub(crate) fn merge(&mut self, later_file: Self) {
        self.positions += later_file.positions;
        for (key, more) in later_file.snapshots {
            match self.snapshots.entry(key) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(more);
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    let snapshot = entry.get_mut();
                    snapshot.revision = snapshot.revision.max(more.revision);
                    snapshot.observed_at = snapshot.observed_at.max(more.observed_at);
                    snapshot.holdings.extend(more.holdings);
                }
            }
        }
    }

    /// Splits the snapshots into groups of about `target` bytes. Each group is one record batch.
    pub(crate) fn into_record_batches(self, target: usize) -> Vec<Vec<EventRow<HoldingSnapshot>>> {
        let mut batches: Vec<Vec<EventRow<HoldingSnapshot>>> = Vec::new();
        let mut bytes = usize::MAX;
        for row in self.into_rows() {
            let size = 200 * (1 + row.record.holdings.len());
            if bytes.saturating_add(size) > target {
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

    /// Snapshots as rows of the log, by fund and date.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = EventRow<HoldingSnapshot>> {
        self.snapshots.into_iter().map(|((symbol, as_of, action), snapshot)| EventRow {
            line: snapshot.line,
            id: snapshot.id,
            revision: snapshot.revision,
            action,
            observed_at: snapshot.observed_at,
            security_ref: snapshot.security_ref,
            record: HoldingSnapshot { symbol, as_of, holdings: snapshot.holdings },
        })
    }
}
