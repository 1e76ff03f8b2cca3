//! Values of read table columns, in the form in which they are printed and compared.

use std::error::Error;
use std::fmt;

use bytes::BytesMut;
use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use market::decimal::ExactDecimal;
use market::row::TableRow;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tokio_postgres::types::{FromSql, IsNull, Type};

/// Decoded value of a column. Decimals have no rounding error.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellValue {
    Null,
    Bool(bool),
    Integer(i64),
    Decimal(ExactDecimal),
    Date(NaiveDate),
    Timestamp(DateTime<Utc>),
    Text(String),
    /// JSON text as Postgres stores it.
    Json(String),
}

/// Encoded value of a column, in Postgres's binary format; `None` for null. Two values are equal if their bytes are
/// equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PostgresCell<'a>(pub(super) Option<&'a [u8]>);

impl<'a> FromSql<'a> for PostgresCell<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }
    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }
    fn accepts(_: &Type) -> bool {
        true
    }
}

impl CellValue {
    /// Decodes a value. If a type has no variant in this enum, its value is decoded as text.
    pub(super) fn decode(ty: &Type, raw: PostgresCell<'_>) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let PostgresCell(Some(raw)) = raw else { return Ok(Self::Null) };
        Ok(match *ty {
            Type::BOOL => Self::Bool(bool::from_sql(ty, raw)?),
            Type::INT4 => Self::Integer(i32::from_sql(ty, raw)?.into()),
            Type::INT8 => Self::Integer(i64::from_sql(ty, raw)?),
            Type::NUMERIC => Self::Decimal(ExactDecimal::from_sql(ty, raw)?),
            Type::DATE => Self::Date(NaiveDate::from_sql(ty, raw)?),
            Type::TIMESTAMPTZ => Self::Timestamp(DateTime::from_sql(ty, raw)?),
            Type::JSON => Self::Json(std::str::from_utf8(raw)?.to_owned()),
            _ => Self::Text(String::from_sql(&Type::TEXT, raw)?),
        })
    }

    /// The value as a decimal; `None` if it is not a number.
    pub(super) fn as_decimal(&self) -> Option<ExactDecimal> {
        match self {
            Self::Decimal(value) => Some(*value),
            Self::Integer(value) => Some(ExactDecimal((*value).into())),
            _ => None,
        }
    }
}

impl fmt::Display for CellValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Decimal(value) => value.fmt(f),
            Self::Date(value) => value.fmt(f),
            Self::Timestamp(value) => f.write_str(&value.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            Self::Text(value) | Self::Json(value) => f.write_str(value),
        }
    }
}

impl Serialize for CellValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_i64(*value),
            Self::Decimal(value) => value.serialize(serializer),
            Self::Json(value) => {
                RawValue::from_string(value.clone()).map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
            Self::Date(_) | Self::Timestamp(_) | Self::Text(_) => serializer.collect_str(self),
        }
    }
}

/// Returns the values of a derived row in column order. They equal the values that Postgres returns after the row is
/// stored.
pub(crate) fn read_cells<T: TableRow>(row: &T) -> anyhow::Result<Vec<CellValue>> {
    let mut cells = Vec::with_capacity(T::COLUMNS.len());
    for (value, ty) in row.values().into_iter().zip(T::types()) {
        let mut bytes = BytesMut::new();
        let cell = match value.to_sql_checked(ty, &mut bytes).map_err(|error| anyhow::anyhow!(error))? {
            IsNull::Yes => PostgresCell(None),
            IsNull::No => PostgresCell(Some(&bytes)),
        };
        cells.push(CellValue::decode(ty, cell).map_err(|error| anyhow::anyhow!(error))?);
    }
    Ok(cells)
}
