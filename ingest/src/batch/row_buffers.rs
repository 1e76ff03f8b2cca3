//! Buffers of rows: symbols of the price rows of a file, rows of one kind until they fill a record batch, and the holdings of
//! a whole load.
//!
//! Each symbol of a price has an id, in the order of its first row. All holdings with the same fund, date and action become
//! one snapshot. The action is `put` (add or replace) or `retract` (withdraw).

use std::collections::{BTreeMap, HashMap};

use chrono::NaiveDate;
use event_log::record_batch::TARGET_BYTES;
use market::event::{Action, EventRow, Holding, HoldingSnapshot};
use market::symbol::Symbol;

use crate::normalize::{RowError, is_absent_value};
use crate::price::price_batch::SymbolId;

#[derive(Debug, Default)]
pub(super) struct SymbolTable {
    /// Symbol of each id.
    pub(super) names: Vec<Symbol>,
    /// Id of each symbol, by its spelling in the file.
    spellings: HashMap<Box<[u8]>, SymbolId>,
    last: (Box<[u8]>, SymbolId),
}

impl SymbolTable {
    /// Takes all symbols out of the table. The table is emptied with every price batch, so that its size is limited for
    /// files with millions of symbols.
    pub(super) fn take(&mut self) -> Vec<Symbol> {
        self.spellings.clear();
        std::mem::take(&mut self.names)
    }

    /// Id of the symbol that is spelled `spelling` in the file.
    pub(super) fn id_of(&mut self, spelling: &[u8]) -> Result<SymbolId, RowError> {
        if *self.last.0 == *spelling && !self.names.is_empty() {
            return Ok(self.last.1);
        }
        let id = match self.spellings.get(spelling) {
            Some(id) => *id,
            None => {
                let text = std::str::from_utf8(spelling).unwrap_or_default();
                if is_absent_value(spelling) {
                    return Err(RowError::missing_value("symbol"));
                }
                let symbol = Symbol::parse(text).map_err(|_| RowError::invalid_symbol("symbol", spelling))?;
                self.add(symbol, spelling)?
            }
        };
        self.last = (spelling.into(), id);
        Ok(id)
    }

    fn add(&mut self, symbol: Symbol, spelling: &[u8]) -> Result<SymbolId, RowError> {
        let id = match self.spellings.get(symbol.as_str().as_bytes()) {
            Some(id) => *id,
            None => {
                let id = SymbolId::try_from(self.names.len()).map_err(|_| {
                    RowError::new("too_many_symbols", "a file has at most 2^32 symbols: load it in parts")
                })?;
                self.spellings.insert(symbol.as_str().as_bytes().into(), id);
                self.names.push(symbol);
                id
            }
        };
        self.spellings.insert(spelling.into(), id);
        Ok(id)
    }
}

/// Estimated number of bytes by which an encoded row is longer than its text in the source file.
const ROW_BYTES: usize = 160;

/// Rows of one kind that do not fill a record batch yet.
pub(super) struct PendingRows<T> {
    rows: Vec<T>,
    bytes: usize,
    line: u64,
}

impl<T> Default for PendingRows<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), bytes: 0, line: 0 }
    }
}

impl<T> PendingRows<T> {
    /// Adds a row. If the rows fill a record batch, removes and returns them, with the line of the first row.
    pub(super) fn push(&mut self, line: u64, row: T, bytes: usize) -> Option<(Vec<T>, u64)> {
        if self.rows.is_empty() {
            self.line = line;
        }
        self.rows.push(row);
        self.bytes += bytes + ROW_BYTES;
        if self.bytes >= TARGET_BYTES { self.take() } else { None }
    }

    /// Removes and returns all rows, and the source line of the first row; `None` if the buffer is empty.
    pub(super) fn take(&mut self) -> Option<(Vec<T>, u64)> {
        self.bytes = 0;
        (!self.rows.is_empty()).then(|| (std::mem::take(&mut self.rows), self.line))
    }
}

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
        let holdings = Vec::from_iter(row.record.take());
        let record = HoldingSnapshot { symbol: etf.clone(), as_of, holdings };
        self.add_snapshot((etf, as_of, row.action), row.with_record(record));
    }

    pub(crate) fn merge(&mut self, later_file: Self) {
        self.positions += later_file.positions;
        later_file.snapshots.into_iter().for_each(|(key, more)| self.add_snapshot(key, more));
    }

    /// Adds the holdings of a snapshot to those of its key. The result has the highest revision and the newest
    /// observation time.
    fn add_snapshot(&mut self, key: (Symbol, NaiveDate, Action), more: EventRow<HoldingSnapshot>) {
        let Some(known) = self.snapshots.get_mut(&key) else {
            self.snapshots.insert(key, more);
            return;
        };
        known.revision = known.revision.max(more.revision);
        known.observed_at = known.observed_at.max(more.observed_at);
        known.record.holdings.extend(more.record.holdings);
    }

    /// Splits the snapshots, ordered by fund and date, into groups of about [`TARGET_BYTES`]. Each group is one record
    /// batch.
    pub(crate) fn into_record_batches(self) -> Vec<Vec<EventRow<HoldingSnapshot>>> {
        let mut batches: Vec<Vec<EventRow<HoldingSnapshot>>> = Vec::new();
        let mut bytes = usize::MAX;
        for row in self.snapshots.into_values() {
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
}
