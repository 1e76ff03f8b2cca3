//! Difference of one row between two versions of a read table, and the values of its columns, in the form in which they are
//! printed and compared.

use std::error::Error;
use std::fmt;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use market::decimal::ExactDecimal;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tokio_postgres::types::{FromSql, Type};

/// Kind of a difference. `Added`: only the second version has the row. `Removed`: only the first version has the row.
/// `Changed`: both versions have the row, with different values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChangeKind {
    Added,
    Removed,
    Changed,
}

impl ChangeKind {
    pub(super) fn of<T>(sides: [Option<&T>; 2]) -> Self {
        match sides {
            [None, _] => Self::Added,
            [_, None] => Self::Removed,
            _ => Self::Changed,
        }
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        })
    }
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct RowDifference {
    #[serde(skip)]
    pub table: &'static str,
    /// Key columns and their values, in the order of the table's key.
    #[serde(serialize_with = "as_object")]
    pub key: Vec<(&'static str, CellValue)>,
    pub change: ChangeKind,
    /// Differing columns, without key columns. If only one version has the row, the list has every column with a value.
    #[serde(serialize_with = "as_pairs")]
    pub columns: Vec<ColumnDifference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct ColumnDifference {
    pub column: String,
    pub a: CellValue,
    pub b: CellValue,
}

impl RowDifference {
    pub(super) fn column(&self, name: &str) -> Option<&ColumnDifference> {
        self.columns.iter().find(|changed| changed.column == name)
    }

    /// Value of the first key column: the security, fund or sector of the row.
    pub(crate) fn owner(&self) -> String {
        self.key.first().map(|(_, cell)| cell.to_string()).unwrap_or_default()
    }

    pub(crate) fn rest_of_key(&self) -> String {
        let rest = self.key.iter().skip(1).map(|(_, cell)| cell.to_string());
        rest.collect::<Vec<_>>().join(" ")
    }
}

fn as_object<S: Serializer>(key: &[(&'static str, CellValue)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(key.iter().map(|(name, cell)| (name, cell)))
}

fn as_pairs<S: Serializer>(columns: &[ColumnDifference], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(columns.len()))?;
    for ColumnDifference { column, a, b } in columns {
        map.serialize_entry(column, &(a, b))?;
    }
    map.end()
}

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
