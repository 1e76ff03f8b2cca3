//! Symbol of the rows of a file, for a map without a symbol column.

use market::symbol::Symbol;

use super::map::ColumnMap;
use crate::format::canonical::kind_layout::FILE_FIELD;
use crate::format::file_format::{ReaderOptions, SymbolScope};
use crate::format::file_symbol;
use crate::normalize::RowError;

/// Symbol of a file with this name, for a map without a symbol column.
pub(super) fn symbol_of_file(
    map: &ColumnMap,
    label: &str,
    options: &ReaderOptions,
) -> Result<Option<Symbol>, String> {
    let symbol_from = options.symbol_from.clone().or_else(|| map.file_name.clone());
    let options = ReaderOptions { symbol_from, ..options.clone() };
    let symbol = file_symbol::resolve_file_symbol(label, SymbolScope::File, &options)?;
    symbol.map(|symbol| map.apply_aliases(symbol)).transpose()
}

/// Symbol of the rows of a file, for a map without a symbol column.
pub(super) struct RowOwner<'a> {
    map: &'a ColumnMap,
    options: &'a ReaderOptions,
    /// Symbol of all rows. In a file of exported rejects, each row may have the symbol of its original file.
    pub(super) symbol: Option<String>,
    has_original_files: bool,
}

impl<'a> RowOwner<'a> {
    pub(super) fn new(
        map: &'a ColumnMap,
        options: &'a ReaderOptions,
        symbol: Option<&Symbol>,
        is_reject_export: bool,
    ) -> Self {
        let symbol = symbol.map(ToString::to_string);
        let has_original_files = is_reject_export && symbol.is_none() && !map.has_symbol_column();
        Self { map, options, symbol, has_original_files }
    }

    /// Symbol of a row with its canonical column. `original_file` is the row's cell of the column [`FILE_FIELD`].
    pub(super) fn value(
        &self,
        original_file: Option<&str>,
    ) -> Result<Option<(&'static str, String)>, RowError> {
        let Some(column) = self.map.symbol_column() else { return Ok(None) };
        if !self.has_original_files {
            return Ok(self.symbol.clone().map(|symbol| (column, symbol)));
        }
        let label = original_file.ok_or_else(|| RowError::missing_value(FILE_FIELD))?;
        let symbol = symbol_of_file(self.map, label, self.options)
            .map_err(|reason| RowError::new("bad_symbol", format_args!("{FILE_FIELD} {label:?} {reason}")))?;
        Ok(symbol.map(|symbol| (column, symbol.to_string())))
    }
}
