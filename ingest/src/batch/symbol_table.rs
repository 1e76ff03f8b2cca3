//! Symbols of the price rows of a file. Each symbol has an id, in the order of its first row.

use std::collections::HashMap;

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
