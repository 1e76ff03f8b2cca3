//! Mapping of table rows to structs.

use std::cell::Cell;

use market::row::{ColumnReader, TableRow};
use tokio_postgres::types::FromSql;
use tokio_postgres::{Column, Error, Row};

/// Postgres row whose columns are read by their names.
struct NamedRow<'a> {
    row: &'a Row,
    /// Index of the column after the one that was read last. The next read checks first if this column has the wanted
    /// name.
    expected: Cell<usize>,
}

impl ColumnReader for NamedRow<'_> {
    type Error = Error;

    fn column<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T, Error> {
        let Some(place) = column_position(self.row, name, self.expected.get()) else {
            return self.row.try_get(name);
        };
        self.expected.set(place + 1);
        self.row.try_get(place)
    }
}

/// Index of the column with this name; `None` without such a column. The index `expected` is checked first,
/// because columns are usually read in order.
pub fn column_position(row: &Row, name: &str, expected: usize) -> Option<usize> {
    let is_it = |column: &Column| column.name() == name;
    match row.columns().get(expected).is_some_and(is_it) {
        true => Some(expected),
        false => row.columns().iter().position(is_it),
    }
}

/// Struct that is read from a row by column names.
pub trait FromRow: Sized {
    /// Reads the columns by name.
    fn from_row(row: &Row) -> Result<Self, Error>;
}

impl<T: TableRow> FromRow for T {
    fn from_row(row: &Row) -> Result<Self, Error> {
        T::from_columns(&NamedRow { row, expected: Cell::new(0) })
    }
}

/// Declares a struct that is read from a row by the names of its fields.
#[macro_export]
macro_rules! sql_row {
    (
        $(#[$meta:meta])* $vis:vis struct $name:ident {
            $($(#[$of_field:meta])* $field_vis:vis $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name { $($(#[$of_field])* $field_vis $field: $type,)* }

        impl $crate::FromRow for $name {
            fn from_row(row: &::tokio_postgres::Row) -> Result<Self, ::tokio_postgres::Error> {
                Ok(Self { $($field: row.try_get(stringify!($field))?),* })
            }
        }
    };
}
