//! Reading a table's rows into their structs.

use std::cell::Cell;

use market::row::{Columns, TableRow};
use tokio_postgres::types::FromSql;
use tokio_postgres::{Column, Error, Row};

/// A row of an answer of Postgres, by column name.
struct Fetched<'a> {
    row: &'a Row,
    /// Where the next column is looked for first: rows are nearly always read in the order of their columns.
    next: Cell<usize>,
}

impl Columns for Fetched<'_> {
    type Error = Error;

    fn column<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T, Error> {
        let (columns, next) = (self.row.columns(), self.next.get());
        let is_here = |column: &Column| column.name() == name;
        let place = match columns.get(next).is_some_and(is_here) {
            true => Some(next),
            false => columns.iter().position(is_here),
        };
        let Some(place) = place else { return self.row.try_get(name) };
        self.next.set(place + 1);
        self.row.try_get(place)
    }
}

/// A struct that is read from a row by its columns' names.
pub trait FromRow: Sized {
    /// Reads the columns by name.
    fn from_row(row: &Row) -> Result<Self, Error>;
}

impl<T: TableRow> FromRow for T {
    fn from_row(row: &Row) -> Result<Self, Error> {
        T::from_columns(&Fetched { row, next: Cell::new(0) })
    }
}
