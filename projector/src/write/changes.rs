//! Which served rows a derivation changed: known when they are written, so that readers of changes can be told.

use market::symbol::Symbol;

/// Rows of a read table that were written anew or removed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The read table.
    pub table: &'static str,
    /// The security whose rows they are.
    pub symbol: Symbol,
    /// The calendar year of packed prices; `None`: all rows that the security has in the table.
    pub year: Option<i32>,
}

impl Change {
    /// All rows of a security in a table.
    pub(crate) fn of_table(table: &'static str, symbol: &Symbol) -> Self {
        Self { table, symbol: symbol.clone(), year: None }
    }

    /// One packed year of a security's prices.
    pub(crate) fn of_year(symbol: &Symbol, year: i32) -> Self {
        Self { table: "prices", symbol: symbol.clone(), year: Some(year) }
    }
}
