//! Values of read table columns, in the form in which they are printed and compared.

use std::error::Error;
use std::fmt;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use market::decimal::ExactDecimal;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tokio_postgres::types::{FromSql, Type};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CellValue {
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

/// Encoded value of a column, in Postgres's binary format; `None` for null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EncodedCell<'a>(pub(super) Option<&'a [u8]>);

impl<'a> FromSql<'a> for EncodedCell<'a> {
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

impl EncodedCell<'_> {
    /// Decodes the value. If a type has no variant in [`CellValue`], its value is decoded as text.
    pub(super) fn decode(self, ty: &Type) -> Result<CellValue, Box<dyn Error + Sync + Send>> {
        let Some(raw) = self.0 else { return Ok(CellValue::Null) };
        Ok(match *ty {
            Type::BOOL => CellValue::Bool(bool::from_sql(ty, raw)?),
            Type::INT4 => CellValue::Integer(i32::from_sql(ty, raw)?.into()),
            Type::INT8 => CellValue::Integer(i64::from_sql(ty, raw)?),
            Type::NUMERIC => CellValue::Decimal(ExactDecimal::from_sql(ty, raw)?),
            Type::DATE => CellValue::Date(NaiveDate::from_sql(ty, raw)?),
            Type::TIMESTAMPTZ => CellValue::Timestamp(DateTime::from_sql(ty, raw)?),
            Type::JSON => CellValue::Json(std::str::from_utf8(raw)?.to_owned()),
            _ => CellValue::Text(String::from_sql(&Type::TEXT, raw)?),
        })
    }
}

impl CellValue {
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
