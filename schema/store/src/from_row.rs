//! Reading a table's rows into their structs.

use market::row::{Columns, TableRow};
use tokio_postgres::types::FromSql;
use tokio_postgres::{Error, Row};

/// A row of an answer of Postgres, by column name.
struct Fetched<'a>(&'a Row);

impl Columns for Fetched<'_> {
    type Error = Error;

    fn column<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T, Error> {
        self.0.try_get(name)
    }
}

/// A struct that is read from a row by its columns' names.
pub trait FromRow: Sized {
    /// Reads the columns by name.
    fn from_row(row: &Row) -> Result<Self, Error>;
}

impl<T: TableRow> FromRow for T {
    fn from_row(row: &Row) -> Result<Self, Error> {
        T::from_columns(&Fetched(row))
    }
}
