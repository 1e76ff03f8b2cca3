//! Rows of tables: reading by column names, and writing by binary COPY. Rows can be encoded on any thread.
//!
//! The format of COPY has a signature, tuples of length-prefixed values, and a trailer
//! (<https://www.postgresql.org/docs/current/sql-copy.html>, "Binary Format").

use std::cell::Cell;

use bytes::{BufMut, Bytes, BytesMut};
use futures::{SinkExt, pin_mut};
use market::row::{ColumnReader, TableRow};
use postgres_types::{IsNull, ToSql, Type};
use tokio_postgres::types::FromSql;
use tokio_postgres::{Column, Error, GenericClient, Row, ToStatement, Transaction};

use crate::error::DbError;

pub use crate::error::EncodeError;

/// Row type of a table that is written with COPY.
pub trait CopyRow {
    /// COPY statement, whose columns are the fields of the row.
    const STATEMENT: &'static str;
    /// Postgres types of the columns, in field order.
    const TYPES: &'static [Type];
    /// Values of the row, in field order.
    fn values(&self) -> Vec<&(dyn ToSql + Sync)>;
}

/// Declares a struct whose fields are the columns of a COPY statement.
#[macro_export]
macro_rules! copy_row {
    ($(#[$meta:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? in $table:literal {
        $(#[$first_meta:meta])* $first:ident: $first_type:ty $(, $(#[$field_meta:meta])* $field:ident: $type:ty)* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name $(<$life>)? {
            $(#[$first_meta])* $vis $first: $first_type,
            $($(#[$field_meta])* $vis $field: $type,)*
        }

        impl $(<$life>)? $crate::copy::CopyRow for $name $(<$life>)? {
            const STATEMENT: &'static str = concat!(
                "copy ", $table, " (", stringify!($first) $(, ", ", stringify!($field))*, ") from stdin binary"
            );
            const TYPES: &'static [tokio_postgres::types::Type] = &[
                <$first_type as market::row::ColumnType>::TYPE
                $(, <$type as market::row::ColumnType>::TYPE)*
            ];
            fn values(&self) -> Vec<&(dyn tokio_postgres::types::ToSql + Sync)> {
                vec![&self.$first $(, &self.$field)*]
            }
        }
    };
}

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Initial capacity of a buffer of encoded rows, in bytes per row.
const ROW: usize = 1024;
/// Size of the buffer that collects encoded rows before they are sent, in bytes.
const PIECE: usize = 1 << 17;

/// Encodes one row and appends it to `out`.
pub fn encode_values(
    types: &[Type],
    values: &[&(dyn ToSql + Sync)],
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    debug_assert_eq!(types.len(), values.len(), "every value has a type");
    let columns = i16::try_from(values.len()).map_err(|_| EncodeError::TooManyColumns(values.len()))?;
    out.put_i16(columns);
    for (value, ty) in values.iter().zip(types) {
        let at = out.len();
        out.put_i32(-1);
        let failed = |error: Box<dyn std::error::Error>| EncodeError::Value {
            ty: ty.clone(),
            reason: error.to_string(),
        };
        if let IsNull::No = value.to_sql_checked(ty, out).map_err(|error| failed(error))? {
            let length = i32::try_from(out.len() - at - 4);
            let length = length.map_err(|error| failed(error.into()))?;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
    Ok(())
}

/// Encodes rows of one type.
pub fn encode_rows<'a, T: TableRow + 'a>(
    rows: impl IntoIterator<Item = &'a T>,
) -> Result<Bytes, EncodeError> {
    let (rows, types) = (rows.into_iter(), T::types());
    let mut out = BytesMut::with_capacity(rows.size_hint().0 * ROW);
    for row in rows {
        encode_values(types, &row.values(), &mut out)?;
    }
    Ok(out.freeze())
}

/// Writes already encoded rows. The columns of the COPY `statement` must be those of the rows.
pub async fn copy_encoded(
    transaction: &Transaction<'_>,
    statement: &(impl ToStatement + ?Sized),
    rows: impl IntoIterator<Item = Result<Bytes, EncodeError>>,
) -> Result<u64, DbError> {
    let sink = transaction.copy_in::<_, Bytes>(statement).await?;
    pin_mut!(sink);
    let mut piece = BytesMut::with_capacity(PIECE);
    piece.put_slice(SIGNATURE);
    // Two fields of the COPY header, both 0: flags, and length of the header extension.
    piece.put_u64(0);
    for rows in rows {
        let rows = rows?;
        if piece.len() + rows.len() > PIECE {
            sink.feed(piece.split().freeze()).await?;
        }
        if rows.len() > PIECE {
            sink.feed(rows).await?;
        } else {
            piece.put_slice(&rows);
        }
    }
    piece.put_i16(-1);
    sink.feed(piece.freeze()).await?;
    Ok(sink.as_mut().finish().await?)
}

/// Encodes rows and writes them with the COPY statement of their type.
pub async fn copy_into<'a, T: CopyRow + 'a>(
    transaction: &Transaction<'_>,
    rows: impl IntoIterator<Item = &'a T>,
) -> Result<u64, DbError> {
    copy_values(transaction, T::STATEMENT, T::TYPES, rows.into_iter().map(CopyRow::values)).await
}

/// Encodes and writes rows that are given as lists of values.
pub async fn copy_values<'a>(
    transaction: &Transaction<'_>,
    statement: &str,
    types: &[Type],
    tuples: impl IntoIterator<Item = Vec<&'a (dyn ToSql + Sync)>>,
) -> Result<u64, DbError> {
    let mut out = BytesMut::new();
    let encoded = tuples.into_iter().map(|tuple| {
        encode_values(types, &tuple, &mut out)?;
        Ok(out.split().freeze())
    });
    copy_encoded(transaction, statement, encoded).await
}

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

/// Runs a query, and reads its rows.
pub async fn find_rows<T: FromRow>(
    client: &impl GenericClient,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<T>, Error> {
    client.query(statement, parameters).await?.iter().map(T::from_row).collect()
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
