//! Symbols of the price rows of a file. Each symbol has an id, in the order of its first row.
//!
//! Buffer for rows of one kind until they fill a record batch.

use std::collections::HashMap;

use event_log::record_batch::TARGET_BYTES;
use market::symbol::Symbol;

use crate::normalize::{RowError, is_absent_value};
use crate::price::price_batch::SymbolId;

#[derive(Debug, Default)]
pub(super) struct SymbolTable {
    names: Vec<Symbol>,
    /// Id of each symbol, by its spelling in the file.
    spellings: HashMap<Box<[u8]>, SymbolId>,
    last: (Box<[u8]>, SymbolId),
}

impl SymbolTable {
    /// Symbol of each id.
    pub(super) fn names(&self) -> &[Symbol] {
        &self.names
    }

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
