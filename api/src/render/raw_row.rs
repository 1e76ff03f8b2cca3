//! Renderer of Postgres rows. It reads the columns directly, because rendering through structs takes twice as long.
//!
//! Invariant: the bytes equal the bytes that serde writes for the struct of the row.

use std::marker::PhantomData;

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use market::decimal::ExactDecimal;
use market::row::TableRow;
use serde::Serialize;
use store::from_row::column_position;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use crate::parameters::{Output, ResponseFormat};
use crate::render::rows::{RenderError, ToJsonObject};

/// Initial capacity of the buffer for a rendered row, in bytes.
const ROW: usize = 1_024;

/// Unparsed Postgres row with the columns of `T`.
#[derive(Debug)]
pub(crate) struct RawRow<T> {
    row: Row,
    of: PhantomData<T>,
}

impl<T> RawRow<T> {
    pub(crate) fn new(row: Row) -> Self {
        Self { row, of: PhantomData }
    }
}

impl<T: TableRow> ToJsonObject for RawRow<T> {
    fn to_json(&self, output: &Output) -> Result<Vec<u8>, RenderError> {
        let quote = (output.text_decimals && output.format == ResponseFormat::Json).then_some(b'"');
        let (mut body, mut expected) = (Vec::with_capacity(ROW), 0);
        for name in T::COLUMNS {
            body.extend_from_slice(if body.is_empty() { b"{\"" } else { b",\"" });
            body.extend_from_slice(name.as_bytes());
            body.extend_from_slice(b"\":");
            let place =
                column_position(&self.row, name, expected).ok_or_else(|| RenderError::Column(name))?;
            self.write(place, quote, &mut body)?;
            expected = place + 1;
        }
        body.push(b'}');
        Ok(body)
    }
}

impl<T> RawRow<T> {
    /// Writes the value of one column. `place` is the index of the column. `quote` is the quotation mark around
    /// decimals; `None` for JSON numbers and CSV.
    fn write(&self, place: usize, quote: Option<u8>, body: &mut Vec<u8>) -> Result<(), RenderError> {
        match *self.row.columns()[place].type_() {
            Type::TEXT => self.write_by(place, body, plain::<&str>),
            Type::INT8 => self.write_by(place, body, plain::<i64>),
            Type::TIMESTAMPTZ => self.write_by(place, body, plain::<DateTime<Utc>>),
            Type::DATE => self.write_by(place, body, date),
            Type::NUMERIC => self.write_by(place, body, |value: ExactDecimal, body| {
                body.extend(quote);
                body.extend_from_slice(value.text().as_bytes());
                body.extend(quote);
                Ok(())
            }),
            ref other => Err(RenderError::Type(other.clone())),
        }
    }

    fn write_by<'a, V: FromSql<'a>>(
        &'a self,
        place: usize,
        body: &mut Vec<u8>,
        write: impl FnOnce(V, &mut Vec<u8>) -> Result<(), RenderError>,
    ) -> Result<(), RenderError> {
        match self.row.try_get(place)? {
            Some(value) => write(value, body),
            None => {
                body.extend_from_slice(b"null");
                Ok(())
            }
        }
    }
}

/// Row for a response: read from a table, or derived from facts for an earlier data version.
#[derive(Debug)]
pub(crate) enum StoredOrDerived<T> {
    Stored(RawRow<T>),
    Derived(T),
}

impl<T: TableRow + Serialize> ToJsonObject for StoredOrDerived<T> {
    fn to_json(&self, output: &Output) -> Result<Vec<u8>, RenderError> {
        match self {
            Self::Stored(row) => row.to_json(output),
            Self::Derived(row) => row.to_json(output),
        }
    }
}

fn plain<V: Serialize>(value: V, body: &mut Vec<u8>) -> Result<(), RenderError> {
    Ok(serde_json::to_writer(body, &value)?)
}

fn date(value: NaiveDate, body: &mut Vec<u8>) -> Result<(), RenderError> {
    let Ok(year @ 0..=9_999) = u32::try_from(value.year()) else { return plain(value, body) };
    let (month, day) = (value.month(), value.day());
    let digits = |number: u32| [number / 10, number % 10].map(|digit| b'0' + digit as u8);
    body.push(b'"');
    body.extend_from_slice(&digits(year / 100));
    body.extend_from_slice(&digits(year % 100));
    body.push(b'-');
    body.extend_from_slice(&digits(month));
    body.push(b'-');
    body.extend_from_slice(&digits(day));
    body.push(b'"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_written_as_its_type_writes_it() {
        for (year, month, day) in
            [(2024, 6, 28), (1999, 12, 31), (1, 1, 1), (0, 1, 1), (-5, 2, 3), (12_345, 6, 7)]
        {
            let (value, mut body) = (NaiveDate::from_ymd_opt(year, month, day).expect("a day"), vec![]);
            date(value, &mut body).expect("writes");
            assert_eq!(body, serde_json::to_vec(&value).expect("writes"));
        }
    }
}
