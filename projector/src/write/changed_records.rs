//! Changes of a transaction of which notices are written: dividends, splits, dividend statuses and ticker events.

use std::collections::{BTreeMap, BTreeSet};

use market::notices::RowChanges;
use market::row::{DividendRow, DividendState, SplitRow};
use store::FromRow;
use tokio_postgres::{Error, Row};

use crate::write::DIVIDENDS;

/// Changes of the transaction.
#[derive(Debug, Default)]
pub(crate) struct ChangedRecords {
    pub(crate) dividends: ChangedTable<DividendRow>,
    pub(crate) splits: ChangedTable<SplitRow>,
    /// Former dividend statuses of the securities whose status changed.
    pub(crate) statuses: BTreeMap<String, DividendState>,
    /// Securities whose ticker events changed.
    pub(crate) events: BTreeSet<String>,
}

/// Changes of a table.
#[derive(Debug)]
pub(crate) struct ChangedTable<T> {
    /// Securities that had no row before.
    new_symbols: BTreeSet<String>,
    /// Changed rows by symbol and id, each with the row before the change; `None` for an added row.
    rows: BTreeMap<(String, String), Option<T>>,
}

impl<T> Default for ChangedTable<T> {
    fn default() -> Self {
        Self { new_symbols: BTreeSet::new(), rows: BTreeMap::new() }
    }
}

impl<T: FromRow> ChangedTable<T> {
    fn add_rows(&mut self, rows: &[Row]) -> Result<(), Error> {
        for row in rows {
            let was_served = row.try_get::<_, Option<&str>>("symbol")?.is_some();
            let before = if was_served { Some(T::from_row(row)?) } else { None };
            self.rows.insert((row.try_get("changed_symbol")?, row.try_get("changed_id")?), before);
        }
        Ok(())
    }
}

impl<T> ChangedTable<T> {
    /// Securities with changed rows.
    pub(crate) fn symbols(&self) -> Vec<&str> {
        let changed = self.rows.keys().map(|(symbol, _)| symbol.as_str());
        let symbols: BTreeSet<&str> = changed.chain(self.new_symbols.iter().map(String::as_str)).collect();
        symbols.into_iter().collect()
    }

    /// The changed rows before and after the change. `served` are the rows of the securities after the change.
    pub(crate) fn into_changes(self, served: Vec<T>, key: fn(&T) -> (&str, &str)) -> RowChanges<T> {
        let Self { new_symbols, rows } = self;
        let is_changed = |row: &T| {
            let (symbol, id) = key(row);
            new_symbols.contains(symbol) || rows.contains_key(&(symbol.to_owned(), id.to_owned()))
        };
        let after = served.into_iter().filter(is_changed).collect();
        RowChanges { after, before: rows.into_values().flatten().collect() }
    }
}

impl ChangedRecords {
    pub(crate) fn add_new_symbols<'a>(&mut self, table: &str, symbols: impl IntoIterator<Item = &'a str>) {
        let symbols = symbols.into_iter().map(str::to_owned);
        match table {
            DIVIDENDS => self.dividends.new_symbols.extend(symbols),
            _ => self.splits.new_symbols.extend(symbols),
        }
    }

    pub(crate) fn add_rows(&mut self, table: &str, rows: &[Row]) -> Result<(), Error> {
        match table {
            DIVIDENDS => self.dividends.add_rows(rows),
            _ => self.splits.add_rows(rows),
        }
    }

    pub(crate) fn add_statuses(&mut self, rows: &[Row]) -> Result<(), Error> {
        for row in rows {
            self.statuses.entry(row.try_get("symbol")?).or_insert(row.try_get("dividend_status")?);
        }
        Ok(())
    }

    pub(crate) fn add_events(&mut self, symbols: &[&str]) {
        self.events.extend(symbols.iter().map(|symbol| (*symbol).to_owned()));
    }
}
