//! The one way rows get into Postgres: binary COPY. Rows are encoded wherever their values are at hand, on any thread.
//!
//! The format is PostgreSQL's: a signature, tuples of length-prefixed values, a trailer
//! (<https://www.postgresql.org/docs/current/sql-copy.html>, "Binary Format").

use bytes::{BufMut, Bytes, BytesMut};
use futures::{SinkExt, pin_mut};
use postgres_types::{IsNull, ToSql, Type};
use tokio_postgres::Transaction;

use crate::db::DbError;
use market::row::TableRow;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Bytes sent at a time.
const PIECE: usize = 1 << 17;

/// A value has no form in the column's type.
#[derive(Debug, thiserror::Error)]
#[error("a value cannot be written as {ty}: {reason}")]
pub struct EncodeError {
    ty: Type,
    reason: String,
}

/// Appends one row of values.
pub fn encode_values(
    types: &[Type],
    values: &[&(dyn ToSql + Sync)],
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    out.put_u16(u16::try_from(values.len()).unwrap_or(u16::MAX));
    for (value, ty) in values.iter().zip(types) {
        let at = out.len();
        out.put_i32(-1);
        let failed =
            |error: Box<dyn std::error::Error>| EncodeError { ty: ty.clone(), reason: error.to_string() };
        if let IsNull::No = value.to_sql_checked(ty, out).map_err(|error| failed(error))? {
            let length = i32::try_from(out.len() - at - 4);
            let length = length.map_err(|error| failed(error.into()))?;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
    Ok(())
}

/// Rows of one type.
pub fn encode_rows<'a, T: TableRow + 'a>(
    rows: impl IntoIterator<Item = &'a T>,
) -> Result<Bytes, EncodeError> {
    let mut out = BytesMut::new();
    for row in rows {
        encode_values(T::TYPES, &row.values(), &mut out)?;
    }
    Ok(out.freeze())
}

/// Writes encoded rows. `statement` is the COPY statement; its columns are the rows'.
pub async fn copy_encoded(
    transaction: &Transaction<'_>,
    statement: &str,
    rows: impl IntoIterator<Item = Result<Bytes, EncodeError>>,
) -> Result<u64, DbError> {
    let sink = transaction.copy_in::<_, Bytes>(statement).await?;
    pin_mut!(sink);
    let mut piece = BytesMut::with_capacity(PIECE);
    piece.put_slice(SIGNATURE);
    // No flags, no extension.
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

/// Writes rows of one type.
pub async fn copy_rows<'a, T: TableRow + 'a>(
    transaction: &Transaction<'_>,
    statement: &str,
    rows: impl IntoIterator<Item = &'a T>,
) -> Result<u64, DbError> {
    copy_values(transaction, statement, T::TYPES, rows.into_iter().map(TableRow::values)).await
}

/// Writes tuples of values.
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
